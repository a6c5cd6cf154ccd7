//! The pure steps: encodings, canonical forms, keys and signatures.

use cordon_sigv4::{
    Algorithm, CredentialScope, Head, SignedHeaders, SigningKey, Timestamp,
    canonical::{self, Context, PathRule},
    hmac_key,
};
use serde_json::{Map, Value, json};

use super::{Input, authority, fields, path_rule, signed_headers};
use crate::{Check, Unreadable};

pub(super) fn check(operation: &str, input: &Input, expected: Value) -> Result<Check, Unreadable> {
    let got = match operation {
        "uri_encode" => {
            let keep: &[u8] = if input.flag("encode_slash")? {
                b""
            } else {
                b"/"
            };
            canonical::encode(input.text("value")?, keep).into()
        }
        "canonical_uri" => return canonical_uri(input, expected),
        "canonical_query_string" => {
            canonical_query(input.text("query")?, input.flag("exclude_signature")?).into()
        }
        "canonical_headers_string" => canonical_headers(input)?,
        "build_canonical_request" => build_canonical_request(input)?,
        "derive_sigv4_signing_key" => {
            let text = |name| input.text(name);
            let key = hmac_key(
                text("secret_key")?,
                text("date")?,
                text("region")?,
                text("service")?,
            );
            json!({ "hex": hex(&*key) })
        }
        "sigv4_sign" => hmac(&input.bytes("signing_key")?)?
            .sign(input.text("string_to_sign")?)
            .into(),
        "build_sigv4_string_to_sign" => {
            let context = context(input, Algorithm::HmacSha256)?;
            context
                .string_to_sign(input.text("canonical_request")?.as_bytes())
                .into()
        }
        "collect_signing_headers" => return collect(input, expected),
        _ => return Err(Unreadable::Shape("op")),
    };
    Ok(Check::new(expected, got))
}

/// The canonical form of a whole request.
pub(super) fn canonical_request(
    head: &Head<'_>,
    service: &str,
    signed: &SignedHeaders,
    input: &Input,
) -> Result<String, Unreadable> {
    let query = head.target.split_once('?').map_or("", |(_, query)| query);
    let request = canonical::request(
        head.method,
        &canonical::uri(head.target, PathRule::of(service)),
        &canonical::query(query),
        &canonical::headers(head.headers, signed, head.authority)?,
        signed,
        input.text("content_sha256")?,
    );
    Ok(String::from_utf8_lossy(&request).into_owned())
}

/// What the strings to sign of a case begin with.
pub(crate) fn context(input: &Input, algorithm: Algorithm) -> Result<Context, Unreadable> {
    Ok(Context {
        algorithm,
        timestamp: Timestamp::parse(input.text("timestamp")?)?,
        scope: CredentialScope::parse(algorithm, input.text("scope")?)?,
    })
}

/// A derived key of SigV4.
pub(crate) fn hmac(key: &[u8]) -> Result<SigningKey, Unreadable> {
    let key: [u8; 32] = key
        .try_into()
        .map_err(|_| Unreadable::Shape("signing_key"))?;
    Ok(SigningKey::from_hmac_key(key.into()))
}

/// Bytes as pairs of hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn canonical_uri(input: &Input, expected: Value) -> Result<Check, Unreadable> {
    let (path, is_s3) = (input.text("path")?, input.flag("is_s3")?);
    let got = canonical::uri(path, path_rule(is_s3));
    let slash = !is_s3
        && expected
            .as_str()
            .is_some_and(|expected| got == format!("{expected}/"));
    let check = Check::new(expected, got);
    Ok(if slash {
        check.because("a trailing slash")
    } else {
        check
    })
}

fn canonical_query(query: &str, exclude_signature: bool) -> String {
    match exclude_signature {
        true => canonical::presigned_query(query),
        false => canonical::query(query),
    }
}

fn canonical_headers(input: &Input) -> Result<Value, Unreadable> {
    let headers = input.headers()?;
    let names: Option<Vec<&str>> = input.0["signed_headers_list"]
        .as_array()
        .into_iter()
        .flatten()
        .map(Value::as_str)
        .collect();
    let signed = signed_headers(
        &names
            .ok_or(Unreadable::Shape("signed_headers_list"))?
            .join(";"),
    )?;
    let block = canonical::headers(&fields(&headers), &signed, authority(&headers))?;
    Ok(String::from_utf8_lossy(&block).into())
}

fn build_canonical_request(input: &Input) -> Result<Value, Unreadable> {
    let headers = input.headers()?;
    let signed = signed_headers(input.text("signed_headers")?)?;
    let request = canonical::request(
        input.text("method")?,
        &canonical::uri(input.text("path")?, path_rule(input.flag("is_s3")?)),
        &canonical_query(input.text("query")?, input.flag("exclude_signature")?),
        &canonical::headers(&fields(&headers), &signed, authority(&headers))?,
        &signed,
        input.text("payload_hash")?,
    );
    Ok(String::from_utf8_lossy(&request).into())
}

/// The values that are signed for each header, read off the canonical form.
fn collect(input: &Input, expected: Value) -> Result<Check, Unreadable> {
    let names = expected.as_object().ok_or(Unreadable::Shape("expect"))?;
    if names.is_empty() {
        return Ok(Check::new(expected, json!({})));
    }
    let headers = input.headers()?;
    let names = Vec::from_iter(names.keys().map(String::as_str).chain(["host"])).join(";");
    let block = match canonical::headers(
        &fields(&headers),
        &signed_headers(&names)?,
        authority(&headers),
    ) {
        Ok(block) => String::from_utf8_lossy(&block).into_owned(),
        Err(error) => return Ok(Check::new(expected, "refused").because(error)),
    };
    let lines = block.lines().filter_map(|line| line.split_once(':'));
    let got = lines
        .filter(|(name, _)| expected.get(*name).is_some())
        .map(|(name, value)| (name.to_owned(), Value::from(value)));
    let got = Value::Object(Map::from_iter(got));
    Ok(Check::new(expected, got).because("values in the order in which they were sent"))
}
