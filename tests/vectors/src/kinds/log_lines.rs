//! Requests and the lines of the network log.

use std::time::Duration;

use cordon_policy::{Authority, RuleRef, Scheme};
use cordon_proxy::{Event, Location, Notes, Place, Record, RequestRecord, Verdict};
use jiff::Timestamp;
use serde_json::Value;

use crate::{Case, Check, Unreadable};

pub(crate) fn check(case: &mut Case) -> Result<Check, Unreadable> {
    let event = case.text("event")?;
    let expected = case.value("expect_log")?;
    let request = match event.as_str() {
        "connect" => connect(case)?,
        "response" | "error" => {
            let Some(request) = exchange(case, &event)? else {
                return Ok(Check::new(expected, "none").because("a request without a verdict"));
            };
            request
        }
        _ => return Err(Unreadable::Shape("event")),
    };
    Ok(Check::new(
        expected,
        vec![line(Event::Request(Box::new(request)))],
    ))
}

/// The line of an event, without its detail.
pub(crate) fn line(event: Event) -> String {
    let time = Timestamp::UNIX_EPOCH;
    Record { id: 1, time, event }.line()
}

fn connect(case: &mut Case) -> Result<RequestRecord, Unreadable> {
    let host = case.text("host")?;
    let port = case.value("port")?;
    // The answer itself is a matter of whole requests.
    case.optional("expect_response");
    let verdict = Verdict::Blocked {
        code: "tunnel_refused",
        note: Some("tunneling not allowed".to_owned()),
    };
    let location = Location::Tunnel(format!("{host}:{port}").into());
    Ok(record(verdict, "CONNECT".to_owned(), location, Some(403)))
}

/// A request by its metadata; none where the metadata know no verdict.
fn exchange(case: &mut Case, event: &str) -> Result<Option<RequestRecord>, Unreadable> {
    let method = case.text("method")?;
    let location = location(&case.text("url")?)?;
    let metadata = case.value("metadata")?;
    let status = match case.optional("status") {
        None => None,
        Some(status) => Some(
            status
                .as_u64()
                .and_then(|status| u16::try_from(status).ok())
                .ok_or(STATUS)?,
        ),
    };
    let error = case.optional("error");
    let rule = RuleRef::Domain(0);
    let verdict = match (event, metadata["allowlist_action"].as_str(), error) {
        (_, None, _) => return Ok(None),
        ("error", Some(_), Some(Value::String(message))) => Verdict::Failed {
            rule,
            code: "upstream",
            message,
        },
        ("response", Some("ALLOWED"), None) => Verdict::Allowed { rule },
        ("response", Some("BLOCKED"), None) => Verdict::Blocked {
            code: "host_not_listed",
            note: None,
        },
        _ => return Err(Unreadable::Shape("metadata")),
    };
    let mut request = record(verdict, method, location, status);
    request.notes = Some(Box::new(notes(&metadata)?));
    Ok(Some(request))
}

fn notes(metadata: &Value) -> Result<Notes, Unreadable> {
    let known = [
        "allowlist_action",
        "matched_url_entry",
        "filter_tags",
        "credential_info",
        "masked_count",
        "dropped_count",
        "aws_region",
        "aws_resigned",
    ];
    let fields = metadata.as_object().ok_or(Unreadable::Shape("metadata"))?;
    if fields.keys().any(|name| !known.contains(&name.as_str())) {
        return Err(Unreadable::Shape("metadata"));
    }
    let count = |name: &str| {
        metadata[name]
            .as_u64()
            .and_then(|count| u32::try_from(count).ok())
            .unwrap_or(0)
    };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let tags = metadata["filter_tags"]
        .as_array()
        .into_iter()
        .flatten()
        .chain([&metadata["credential_info"]]);
    Ok(Notes {
        tags: tags.filter_map(text).collect(),
        masked: count("masked_count"),
        dropped: count("dropped_count"),
        region: text(&metadata["aws_region"]),
        ..Notes::default()
    })
}

fn location(url: &str) -> Result<Location, Unreadable> {
    let (scheme, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(rest), _) => (Scheme::Https, rest),
        (_, Some(rest)) => (Scheme::Http, rest),
        _ => return Err(Unreadable::Shape("url")),
    };
    let slash = rest.find('/').unwrap_or(rest.len());
    let (place, target) = rest.split_at(slash);
    let Authority { host, port } = Authority::parse(place.as_bytes())?;
    Ok(Location::Url {
        scheme,
        place: Place::Known { host, port },
        target: target.to_owned().into(),
    })
}

fn record(
    verdict: Verdict,
    method: String,
    location: Location,
    status: Option<u16>,
) -> RequestRecord {
    RequestRecord {
        verdict,
        method: method.into(),
        location,
        status,
        bytes_up: 0,
        bytes_down: 0,
        duration: Duration::ZERO,
        upstream: None,
        broken: None,
        notes: None,
    }
}

const STATUS: Unreadable = Unreadable::Shape("status");
