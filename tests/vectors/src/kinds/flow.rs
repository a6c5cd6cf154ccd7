//! Whole requests through the proxy: what is let through, what reaches the upstream, what the log says.

use cordon_policy::Allowlist;
use cordon_secrets::SecretReplacements;
use serde_json::{Map, Value, json};

use super::{
    replacements::{Given, given},
    sigv4::Input,
};
use crate::{
    Case, Check, Unreadable, case,
    world::{Observed, Received, Request, Transport, exchange},
};

pub(crate) fn check(case: &mut Case) -> Result<Check, Unreadable> {
    let allowlist = Allowlist::from_json(&case.value("allowlist")?.to_string())?;
    let replacements = match given(&case.value("replacements")?)? {
        Given::Replacements(replacements) => replacements,
        Given::Unsupported(kind) => {
            return Ok(Check::new(case.expected()?, "unsupported").because(kind));
        }
    };
    let request = Input(case.value("request")?);
    let expected = case.expected()?;
    run(allowlist, replacements, &request, &expected)
}

fn run(
    allowlist: Allowlist,
    replacements: SecretReplacements,
    request: &Input,
    expected: &Value,
) -> Result<Check, Unreadable> {
    let wire = wire(request)?;
    let observed = exchange(allowlist, replacements, &wire)?;
    let wanted = wanted(expected, request)?;
    let got = got(&observed, &wanted);
    let because = because(&wanted, &got, &observed);
    Ok(Check::new(wanted, got).because(because))
}

/// The bytes of a request. One whose URL names another host than its Host header is sent in absolute form.
fn wire(request: &Input) -> Result<Request, Unreadable> {
    let (host, url_host) = (request.text("host")?, request.text("url_host")?);
    let target = if host == url_host {
        request.text("path")?
    } else {
        request.text("url")?
    };
    let mut head = format!("{} {target} HTTP/1.1\r\n", request.text("method")?);
    let headers = request.headers()?;
    let has = |name: &str| {
        headers
            .iter()
            .any(|(known, value)| known.eq_ignore_ascii_case(name) && !value.is_empty())
    };
    if !has("host") {
        head += &format!("Host: {host}\r\n");
    }
    // HTTP/1.1 has no pseudo headers, and an empty Host names nothing.
    let empty_host =
        |name: &str, value: &str| name.eq_ignore_ascii_case("host") && value.is_empty();
    let sent = headers
        .iter()
        .filter(|(name, value)| !name.starts_with(':') && !empty_host(name, value));
    for (name, value) in sent {
        head += &format!("{name}: {value}\r\n");
    }
    let body = request.bytes("body")?;
    if !body.is_empty() {
        head += &format!("Content-Length: {}\r\n", body.len());
    }
    if !has("connection") {
        head += "Connection: close\r\n";
    }
    let transport = match request.text("url")?.starts_with("https:") {
        true => Transport::Tls(Some(host.to_owned())),
        false => Transport::Plain,
    };
    let bytes = [head.as_bytes(), b"\r\n", &body].concat();
    Ok(Request { bytes, transport })
}

/// What a case expects of what can be seen from outside.
fn wanted(expected: &Value, request: &Input) -> Result<Value, Unreadable> {
    let action = expected["action"]
        .as_str()
        .ok_or(Unreadable::Shape("action"))?;
    let mut log = expected["log"]
        .as_array()
        .ok_or(Unreadable::Shape("log"))?
        .clone();
    // One record for each request, where two hooks used to write the same.
    log.dedup();
    if action != "ALLOWED" {
        let response = &expected["blocked_response"];
        let mut json = response["json"].clone();
        // What it says to people is said in other words.
        json.as_object_mut()
            .and_then(|fields| fields.remove("message"));
        return Ok(json!({ "status": response["status"], "json": json, "log": log }));
    }
    let body = case::bytes(&expected["body_after"]).ok_or(Unreadable::Shape("body_after"))?;
    let headers = Input(json!({ "headers": expected["headers"] })).headers()?;
    let headers = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    Ok(json!({
        "status": 200,
        "target": target(expected["url"].as_str().unwrap_or_default(), request)?,
        "headers": end_to_end(headers),
        "body": String::from_utf8_lossy(&body),
        "log": log,
    }))
}

/// Path and query of the URL that is sent on.
fn target(url: &str, request: &Input) -> Result<String, Unreadable> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    match rest.find('/') {
        Some(slash) => Ok(rest[slash..].to_owned()),
        None => Ok(request.text("path")?.to_owned()),
    }
}

/// What was seen, with as much of a refusal as a case speaks of.
pub(crate) fn got(observed: &Observed, wanted: &Value) -> Value {
    let status = observed.response.as_ref().map(|response| response.status);
    if let Some(received) = &observed.received {
        return passed(json!(status), received, json!(observed.log));
    }
    let json = match observed.response.as_ref().map(|response| response.json()) {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let known = |name: &String| wanted["json"].get(name).is_some();
    let json: Map<_, _> = json.into_iter().filter(|(name, _)| known(name)).collect();
    json!({ "status": status, "json": json, "log": observed.log })
}

/// A request that reached the upstream.
pub(crate) fn passed(status: Value, received: &Received, log: Value) -> Value {
    json!({
        "status": status,
        "target": received.target(),
        "headers": end_to_end(received.headers()),
        "body": String::from_utf8_lossy(&received.body),
        "log": log,
    })
}

/// Headers by name, without those that belong to one connection or to the framing of the message, and without the
/// proxy's own wish for responses that it can look into.
fn end_to_end<'a>(headers: impl Iterator<Item = (&'a str, &'a str)>) -> Value {
    let hop = [
        "accept-encoding",
        "connection",
        "content-length",
        "host",
        "transfer-encoding",
        "upgrade",
    ];
    let mut headers: Vec<_> = headers
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
        .filter(|(name, _)| !name.starts_with(':') && !hop.contains(&name.as_str()))
        .map(|(name, value)| (name, masked(value)))
        .collect();
    headers.sort();
    json!(headers)
}

/// Signatures of SigV4A are left out: nobody can know them beforehand.
fn masked(value: &str) -> String {
    match value.split_once("Signature=") {
        Some((start, _)) if value.starts_with("AWS4-ECDSA-P256-SHA256") => {
            format!("{start}Signature=<nondeterministic-ecdsa>")
        }
        _ => value.to_owned(),
    }
}

/// What explains a difference, where one thing does.
pub(crate) fn because(wanted: &Value, got: &Value, observed: &Observed) -> String {
    let log = wanted["log"].to_string();
    if log.contains("[tool-domains:") {
        return "tools in the body of a request to a model".to_owned();
    }
    let code = observed
        .response
        .as_ref()
        .map(|response| response.json()["code"].clone())
        .unwrap_or_default();
    match (code.as_str(), &observed.received) {
        (Some(code), None) if wanted["status"] == got["status"] => {
            format!("refused as well: {code}")
        }
        (Some(code), None) => format!("refused: {code}"),
        _ if log.contains("[graphql-op:") => "a GraphQL operation that is allowed".to_owned(),
        _ if wanted["target"] == "*" && got["target"] == "*" => {
            "the target of OPTIONS in the log".to_owned()
        }
        _ => String::new(),
    }
}
