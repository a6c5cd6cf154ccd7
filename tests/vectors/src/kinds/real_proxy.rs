//! Raw bytes to a live proxy: what the client gets, what the upstream gets, what is logged.

use cordon_policy::Allowlist;
use serde_json::{Value, json};

use super::{
    flow,
    replacements::{Given, given},
};
use crate::{
    Case, Check, Unreadable,
    world::{Received, Request, Transport, exchange},
};

pub(crate) fn check(case: &mut Case) -> Result<Check, Unreadable> {
    let name = case.text("name")?;
    let allowlist = allowlist(case.value("allowlist")?)?;
    let Given::Replacements(replacements) = given(&case.value("replacements")?)? else {
        return Err(Unreadable::Shape("replacements"));
    };
    let request = request(case, &name)?;
    let observed = case.value("observed")?;
    let got = exchange(allowlist, replacements, &request)?;
    if observed.get("upstream_sends").is_some() {
        // The events were held back until the last; the safer behaviour is to pass each on as it comes.
        return Ok(Check::new(true, got.streamed));
    }
    if request.bytes.is_empty() {
        return Ok(Check::new(observed["alpn"].clone(), got.alpn));
    }
    let wanted = wanted(&observed)?;
    let seen = flow::got(&got, &wanted);
    let dotted = String::from_utf8_lossy(&request.bytes).contains(".:18090");
    let because = match flow::because(&wanted, &seen, &got) {
        reason if reason.is_empty() && dotted => "a host with a trailing dot".to_owned(),
        reason => reason,
    };
    Ok(Check::new(wanted, seen).because(because))
}

/// The allowlist of a case, which knows neither ports nor schemes: they are allowed as the cases use them.
fn allowlist(mut allowlist: Value) -> Result<Allowlist, Unreadable> {
    for domain in allowlist["domains"].as_array_mut().into_iter().flatten() {
        *domain = json!({ "host": domain, "ports": PORTS });
    }
    for entry in allowlist["url_prefixes"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        entry["ports"] = json!(PORTS);
        entry["schemes"] = json!(["http", "https"]);
    }
    Ok(Allowlist::from_json(&allowlist.to_string())?)
}

fn request(case: &mut Case, name: &str) -> Result<Request, Unreadable> {
    let text = case.text("request_latin1")?;
    let bytes = text
        .chars()
        .map(|character| u8::try_from(u32::from(character)));
    let bytes: Vec<u8> = bytes
        .collect::<Result<_, _>>()
        .map_err(|_| Unreadable::Shape("request_latin1"))?;
    let tls = case
        .value("tls")?
        .as_bool()
        .ok_or(Unreadable::Shape("tls"))?;
    let host = text.lines().find_map(|line| line.strip_prefix("Host: "));
    let host = host
        .and_then(|host| host.split(':').next())
        .unwrap_or("localhost")
        .to_owned();
    let transport = match tls {
        false => Transport::Plain,
        true if name.contains("without SNI") => Transport::Tls(None),
        true if name.contains("port-80") => Transport::TlsOnPlain(Some(host)),
        true if name.contains("SNI differs") => Transport::Tls(Some("localhost".to_owned())),
        true => Transport::Tls(Some(host)),
    };
    Ok(Request { bytes, transport })
}

fn wanted(observed: &Value) -> Result<Value, Unreadable> {
    let mut log = observed["log"]
        .as_array()
        .ok_or(Unreadable::Shape("log"))?
        .clone();
    log.dedup();
    let Some(upstream) = observed["upstream_request"].as_str() else {
        let mut body = observed["body"].clone();
        match body.as_object_mut() {
            Some(fields) => fields.remove("message"),
            None => body.take().into(),
        };
        return Ok(json!({ "status": observed["status"], "json": body, "log": log }));
    };
    let (head, body) = upstream
        .split_once("\r\n\r\n")
        .ok_or(Unreadable::Shape("upstream_request"))?;
    let received = Received {
        head: head.to_owned(),
        body: body.into(),
    };
    Ok(flow::passed(
        observed["status"].clone(),
        &received,
        log.into(),
    ))
}

/// The ports that the cases speak of, and the usual ones.
const PORTS: [u16; 4] = [80, 443, 18090, 18091];
