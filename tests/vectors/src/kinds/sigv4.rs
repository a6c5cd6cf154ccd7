//! The steps of AWS signing, one by one.

pub(crate) mod steps;

use cordon_sigv4::{
    Algorithm, Credentials, Head, Resigned, Resigning, SignedHeaders, SignedRequest, canonical,
};
use serde_json::{Value, json};

use crate::{Case, Check, Unreadable};

pub(crate) fn check(case: &mut Case) -> Result<Check, Unreadable> {
    let operation = case.text("op")?;
    let input = Input(case.value("input")?);
    let expected = case.expected()?;
    match operation.as_str() {
        "parse_authorization" => parse_authorization(&input, expected),
        "parse_presigned_url_params" => parse_presigned(&input, expected),
        "resign_request" => resign_request(&input, &expected),
        "resign_presigned_url" => resign_presigned(&input, &expected),
        other => steps::check(other, &input, expected),
    }
}

/// The input of a case, whose fields are read by their names.
pub(crate) struct Input(pub(crate) Value);

impl Input {
    pub(crate) fn text(&self, name: &'static str) -> Result<&str, Unreadable> {
        self.0[name].as_str().ok_or(Unreadable::Shape(name))
    }

    pub(crate) fn flag(&self, name: &'static str) -> Result<bool, Unreadable> {
        self.0[name].as_bool().ok_or(Unreadable::Shape(name))
    }

    pub(crate) fn bytes(&self, name: &'static str) -> Result<Vec<u8>, Unreadable> {
        crate::case::bytes(&self.0[name]).ok_or(Unreadable::Shape(name))
    }

    /// Headers, given as a map or as a list of pairs.
    pub(crate) fn headers(&self) -> Result<Vec<(String, String)>, Unreadable> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let headers: Option<Vec<_>> = match &self.0["headers"] {
            Value::Object(map) => map
                .iter()
                .map(|(name, value)| Some((name.clone(), text(value)?)))
                .collect(),
            Value::Array(pairs) => pairs
                .iter()
                .map(|pair| Some((text(&pair[0])?, text(&pair[1])?)))
                .collect(),
            _ => None,
        };
        headers.ok_or(Unreadable::Shape("headers"))
    }
}

/// Headers in the form that signing takes. What HTTP/2 keeps beside the headers is not among them.
pub(crate) fn fields(headers: &[(String, String)]) -> Vec<(&str, &[u8])> {
    let ordinary = headers.iter().filter(|(name, _)| !name.starts_with(':'));
    ordinary
        .map(|(name, value)| (name.as_str(), value.as_bytes()))
        .collect()
}

/// Where the request is sent to: `:authority`, or else its Host header.
pub(crate) fn authority(headers: &[(String, String)]) -> &str {
    let named = |wanted: &str| {
        headers
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
    };
    named(":authority")
        .or_else(|| named("host"))
        .map_or("", |(_, value)| value.as_str())
}

fn parse_authorization(input: &Input, expected: Value) -> Result<Check, Unreadable> {
    let value = input.text("auth_value")?;
    let headers = [
        ("authorization", value.as_bytes()),
        ("x-amz-date", b"20260101T000000Z"),
        ("host", b"h.test"),
    ];
    let head = Head {
        method: "GET",
        target: "/",
        authority: "h.test",
        headers: &headers,
    };
    Ok(match SignedRequest::parse(&head) {
        Ok(signed) => {
            let got = signed.map(|signed| {
                json!({
                    "algorithm": signed.algorithm().name(),
                    "key_id": signed.access_key_id(),
                    "scope": signed.scope().to_string(),
                    "signed_headers": signed.signed_headers().to_string(),
                    "signature": signed.signature(),
                })
            });
            Check::new(expected, got).because("a header that AWS accepts")
        }
        // It looks like a signature and is none, so the request is refused; the cases let it pass as unsigned.
        Err(error) => Check::new(expected, Value::Null).because(error),
    })
}

fn parse_presigned(input: &Input, mut expected: Value) -> Result<Check, Unreadable> {
    if let Some(parameters) = expected.as_object_mut() {
        // Kept, and of no use to anybody here.
        parameters.remove("X-Amz-Expires");
    }
    let target = format!("/?{}", input.text("query")?);
    let head = Head {
        method: "GET",
        target: &target,
        authority: "h.test",
        headers: &[("host", b"h.test")],
    };
    Ok(match SignedRequest::parse(&head) {
        Ok(None) => Check::new(expected, Value::Null),
        Err(error) => Check::new(expected, Value::Null).because(error),
        Ok(Some(signed)) => {
            let mut got = json!({
                "X-Amz-Algorithm": signed.algorithm().name(),
                "X-Amz-Credential": format!("{}/{}", signed.access_key_id(), signed.scope()),
                "X-Amz-Date": signed.timestamp().to_string(),
                "X-Amz-SignedHeaders": signed.signed_headers().to_string(),
                "X-Amz-Signature": signed.signature(),
            });
            if let Some(token) = signed.session_token() {
                got["X-Amz-Security-Token"] = token.into();
            }
            Check::new(expected, got)
        }
    })
}

fn resign_request(input: &Input, expected: &Value) -> Result<Check, Unreadable> {
    let parsed = Input(input.0["parsed_auth"].clone());
    let mut headers = input.headers()?;
    // The old signature is never looked at, but must be one.
    let authorization = format!(
        "{} Credential={}/{}, SignedHeaders={}, Signature=00",
        parsed.text("algorithm")?,
        parsed.text("key_id")?,
        parsed.text("scope")?,
        parsed.text("signed_headers")?,
    );
    headers.push(("authorization".to_owned(), authorization));
    let payload = "x-amz-content-sha256";
    if !headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case(payload))
    {
        headers.push((payload.to_owned(), input.text("content_sha256")?.to_owned()));
    }
    let target = match input.text("query")? {
        "" => input.text("path")?.to_owned(),
        query => format!("{}?{query}", input.text("path")?),
    };
    let fields = fields(&headers);
    let head = Head {
        method: input.text("method")?,
        target: &target,
        authority: authority(&headers),
        headers: &fields,
    };
    let expected = json!({
        "auth_header": expected["auth_header"],
        "region": expected["region"],
        "is_chunked": expected["is_chunked"],
        "signed_headers": expected["signed_headers"],
        "canonical_request": expected["canonical_request"],
    });
    let Some(signed) = SignedRequest::parse(&head)? else {
        return Ok(Check::new(expected, Value::Null));
    };
    let (resigned, is_chunked) = match signed.resign(&head, &credentials(input)?)? {
        Resigning::Ready(resigned) => (resigned, false),
        Resigning::Chunked(resigned, _) => (resigned, true),
        Resigning::Deferred(_) => return Ok(Check::new(expected, "deferred")),
    };
    let canonical = steps::canonical_request(
        &head,
        signed.scope().service(),
        signed.signed_headers(),
        input,
    )?;
    let got = json!({
        "auth_header": masked(&authorization_of(&resigned), signed.algorithm()),
        "region": signed.scope().region().unwrap_or_default(),
        "is_chunked": is_chunked,
        "signed_headers": signed.signed_headers().to_string(),
        "canonical_request": canonical,
    });
    Ok(Check::new(expected, got))
}

fn resign_presigned(input: &Input, expected: &Value) -> Result<Check, Unreadable> {
    let headers = input.headers()?;
    let fields = fields(&headers);
    let target = format!("{}?{}", input.text("path")?, input.text("query")?);
    let head = Head {
        method: input.text("method")?,
        target: &target,
        authority: authority(&headers),
        headers: &fields,
    };
    let expected = expected["query"].clone();
    let Some(signed) = SignedRequest::parse(&head)? else {
        return Ok(Check::new(expected, Value::Null));
    };
    let Resigning::Ready(resigned) = signed.resign(&head, &credentials(input)?)? else {
        return Ok(Check::new(expected, "not ready"));
    };
    let target = resigned.target.unwrap_or_default();
    Ok(Check::new(
        expected,
        target.split_once('?').map(|(_, query)| query),
    ))
}

fn credentials(input: &Input) -> Result<Credentials<'_>, Unreadable> {
    Ok(Credentials {
        access_key_id: input.text("real_key_id")?,
        secret_access_key: input.text("real_secret_key")?,
        session_token: input.0["real_session_token"].as_str(),
    })
}

/// The new Authorization header.
pub(crate) fn authorization_of(resigned: &Resigned) -> String {
    let edit = resigned
        .headers
        .iter()
        .find(|edit| edit.name == "authorization");
    edit.and_then(|edit| edit.value.clone()).unwrap_or_default()
}

/// Signatures of SigV4A are left out where cases cannot know them.
fn masked(authorization: &str, algorithm: Algorithm) -> String {
    match (algorithm, authorization.split_once("Signature=")) {
        (Algorithm::EcdsaP256Sha256, Some((start, _))) => {
            format!("{start}Signature=<nondeterministic-ecdsa>")
        }
        (Algorithm::EcdsaP256Sha256, None) | (Algorithm::HmacSha256, _) => authorization.to_owned(),
    }
}

/// A list of signed headers; every such list has the host in it.
pub(crate) fn signed_headers(text: &str) -> Result<SignedHeaders, Unreadable> {
    Ok(SignedHeaders::parse(text)?)
}

/// The canonical rule for the path, by whether the service is S3.
pub(crate) fn path_rule(is_s3: bool) -> canonical::PathRule {
    canonical::PathRule::of(if is_s3 { "s3" } else { "other" })
}
