//! What AWS's own code signs: every one of these must come out the same.

use cordon_sigv4::{
    Algorithm, ChunkSigner, ChunkStream, Credentials, Head, Resigned, Resigning, SignedRequest,
    SigningKey,
    canonical::{self, Context, PathRule},
    ecdsa_scalar,
};
use p256::ecdsa::{DerSignature, SigningKey as EcdsaKey, VerifyingKey, signature::Verifier};
use serde_json::{Value, json};

use super::sigv4::{
    Input, authority, authorization_of, fields,
    steps::{context, hex},
};
use crate::{Case, Check, Unreadable, case};

pub(crate) fn check(case: &mut Case) -> Result<Check, Unreadable> {
    // Whether somebody else gets it right says nothing about us.
    case.optional("airut_matches_reference");
    case.optional("airut_public_x_hex");
    match case.text("kind")?.as_str() {
        "resign" => resign(case),
        "chunked" => chunked(case),
        "sigv4a_key" => key(case),
        "sigv4a_verify" => verify(case),
        _ => Err(Unreadable::Shape("kind")),
    }
}

fn resign(case: &mut Case) -> Result<Check, Unreadable> {
    let real = Input(case.value("real_credential")?);
    case.value("surrogate")?;
    let request = Input(case.value("request")?);
    let expected = case.expected()?;
    let headers = request.headers()?;
    let url = request
        .text("url")?
        .strip_prefix("https://")
        .ok_or(Unreadable::Shape("url"))?;
    let slash = url.find('/').ok_or(Unreadable::Shape("url"))?;
    let fields = fields(&headers);
    let head = Head {
        method: request.text("method")?,
        target: &url[slash..],
        authority: &url[..slash],
        headers: &fields,
    };
    let Some(signed) = SignedRequest::parse(&head)? else {
        return Ok(Check::new(expected, Value::Null));
    };
    let resigned = match signed.resign(&head, &credentials(&real)?)? {
        Resigning::Ready(resigned) => resigned,
        Resigning::Deferred(mut deferred) => {
            deferred.update(&request.bytes("body")?);
            deferred.finish()
        }
        Resigning::Chunked(resigned, _) => resigned,
    };
    let wanted = expected.as_object().ok_or(Unreadable::Shape("expect"))?;
    let got = wanted
        .keys()
        .map(|name| Ok((name.clone(), result(name, &resigned)?)));
    let got = Value::Object(got.collect::<Result<_, Unreadable>>()?);
    Ok(Check::new(expected, got))
}

fn result(name: &str, resigned: &Resigned) -> Result<Value, Unreadable> {
    match name {
        "authorization" => Ok(authorization_of(resigned).into()),
        "x-amz-security-token" => {
            let edit = resigned.headers.iter().find(|edit| edit.name == name);
            Ok(json!(edit.and_then(|edit| edit.value.clone())))
        }
        "target" | "url" | "path" => Ok(json!(resigned.target)),
        _ => Err(Unreadable::Shape("expect")),
    }
}

fn credentials(input: &Input) -> Result<Credentials<'_>, Unreadable> {
    Ok(Credentials {
        access_key_id: input.text("access_key_id")?,
        secret_access_key: input.text("secret_access_key")?,
        session_token: input.0["session_token"].as_str(),
    })
}

/// Feeds the chunks, framed and wrongly signed, and reads the new signatures off what comes out.
fn chunked(case: &mut Case) -> Result<Check, Unreadable> {
    let input =
        Input(json!({ "timestamp": case.value("timestamp")?, "scope": case.value("scope")? }));
    let context = context(&input, Algorithm::HmacSha256)?;
    let secret = case.text("secret_access_key")?;
    let credentials = Credentials {
        access_key_id: "AKID",
        secret_access_key: &secret,
        session_token: None,
    };
    let key = SigningKey::derive(Algorithm::HmacSha256, &credentials, &context.scope)?;
    let stream = ChunkStream {
        decoded_length: None,
        trailers: None,
    };
    let mut signer = ChunkSigner::new(key, context, case.text("seed_signature")?, stream)?;
    let mut output = Vec::new();
    let chunks = case.value("chunks")?;
    for chunk in chunks.as_array().ok_or(Unreadable::Shape("chunks"))? {
        let data = case::bytes(chunk).ok_or(Unreadable::Shape("chunks"))?;
        let head = format!("{:x};chunk-signature={}\r\n", data.len(), "0".repeat(64));
        signer.push(&[head.as_bytes(), &data, b"\r\n"].concat(), &mut output)?;
    }
    signer.finish(&mut output)?;
    let output = String::from_utf8_lossy(&output);
    let signatures = output
        .lines()
        .filter_map(|line| line.split_once("chunk-signature="));
    let signatures = Vec::from_iter(signatures.map(|(_, signature)| signature));
    Ok(Check::new(
        case.expected()?,
        json!({ "chunk_signatures": signatures }),
    ))
}

fn key(case: &mut Case) -> Result<Check, Unreadable> {
    let scalar = ecdsa_scalar(
        &case.text("access_key_id")?,
        &case.text("secret_access_key")?,
    )?;
    let point = verifying_key(&scalar)?.to_sec1_point(false);
    let coordinate = |bytes: Option<&_>| bytes.map(|bytes: &p256::FieldBytes| hex(bytes));
    let got = json!({
        "private_scalar_hex": hex(&*scalar),
        "public_x_hex": coordinate(point.x()),
        "public_y_hex": coordinate(point.y()),
    });
    Ok(Check::new(case.expected()?, got))
}

/// Makes the strings of a request that AWS's code signed, and checks that signature with the key derived here.
fn verify(case: &mut Case) -> Result<Check, Unreadable> {
    let credential = Input(case.value("credential")?);
    let request = Input(case.value("request")?);
    let authorization = case.text("authorization")?;
    let expected = case.expected()?;
    let mut headers = request.headers()?;
    headers.push(("authorization".to_owned(), authorization));
    let fields = fields(&headers);
    let head = Head {
        method: request.text("method")?,
        target: request.text("path")?,
        authority: authority(&headers),
        headers: &fields,
    };
    let Some(signed) = SignedRequest::parse(&head)? else {
        return Ok(Check::new(expected, Value::Null));
    };
    let payload = signed
        .payload()
        .canonical(signed.algorithm())
        .unwrap_or_else(|| canonical::hash(b""));
    let query = head.target.split_once('?').map_or("", |(_, query)| query);
    let canonical = canonical::request(
        head.method,
        &canonical::uri(head.target, PathRule::of(signed.scope().service())),
        &canonical::query(query),
        &canonical::headers(head.headers, signed.signed_headers(), head.authority)?,
        signed.signed_headers(),
        &payload,
    );
    let context = Context {
        algorithm: signed.algorithm(),
        timestamp: signed.timestamp(),
        scope: signed.scope().clone(),
    };
    let string = context.string_to_sign(&canonical);
    let scalar = ecdsa_scalar(
        credential.text("access_key_id")?,
        credential.text("secret_access_key")?,
    )?;
    let signature = case::hex(signed.signature()).ok_or(Unreadable::Shape("authorization"))?;
    let signature =
        DerSignature::from_bytes(&signature).map_err(|_| Unreadable::Shape("authorization"))?;
    let got = json!({
        "canonical_request": String::from_utf8_lossy(&canonical),
        "string_to_sign": string,
        "signature_der_hex": signed.signature(),
        "valid": verifying_key(&scalar)?.verify(string.as_bytes(), &signature).is_ok(),
    });
    Ok(Check::new(expected, got))
}

fn verifying_key(scalar: &[u8; 32]) -> Result<VerifyingKey, Unreadable> {
    let key = EcdsaKey::from_slice(scalar).map_err(|_| Unreadable::Shape("credential"))?;
    Ok(*key.verifying_key())
}
