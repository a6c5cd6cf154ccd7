//! The lines of `network-sandbox.jsonl`, for programs.

use cordon_secrets::{Field, Note};
use serde::Serialize;

use super::{
    escape::escaped,
    record::{Broken, DnsResult, Event, Location, Record, RequestRecord, Verdict},
    text::{Url, type_name},
};

/// Appends one whole line with its line feed.
pub(super) fn append(out: &mut Vec<u8>, record: &Record) {
    let line = Line {
        time: format!("{:.3}", record.time),
        id: record.id,
        event: Body::of(&record.event),
    };
    let before = out.len();
    // Strings and numbers always serialise; were that ever to fail, half a line must not stay.
    if serde_json::to_writer(&mut *out, &line).is_err() {
        out.truncate(before);
        return;
    }
    out.push(b'\n');
}

#[derive(Serialize)]
struct Line<'a> {
    time: String,
    id: u64,
    #[serde(flatten)]
    event: Body<'a>,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Body<'a> {
    Start,
    Request(Box<Request<'a>>),
    Dns {
        name: &'a str,
        r#type: String,
        result: String,
    },
    DnsDropped {
        count: u64,
    },
    TlsFailure {
        server_name: Option<&'a str>,
        error: &'a str,
    },
    Lost {
        count: u64,
    },
}

#[derive(Serialize)]
struct Request<'a> {
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    denial: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    method: String,
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    status: Option<u16>,
    bytes_up: u64,
    bytes_down: u64,
    duration_ms: u64,
    upstream: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    broken: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    masked: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scrubbed: Option<u64>,
    /// Names of headers and parameters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stripped: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    collapsed: Vec<&'a str>,
    /// The variable whose surrogate or value it carried.
    #[serde(skip_serializing_if = "Option::is_none")]
    variable: Option<&'a str>,
}

impl<'a> Body<'a> {
    fn of(event: &'a Event) -> Self {
        match event {
            Event::Start => Self::Start,
            Event::Request(request) => Self::Request(Box::new(Request::of(request))),
            Event::Dns(dns) => Self::Dns {
                name: &dns.name,
                r#type: type_name(dns.record_type).into_owned(),
                result: match dns.result {
                    DnsResult::Address(address) => address.to_string(),
                    DnsResult::NoData => "NODATA".to_owned(),
                    DnsResult::Malformed => "FORMERR".to_owned(),
                    DnsResult::NotImplemented => "NOTIMP".to_owned(),
                },
            },
            Event::DnsDropped { count } => Self::DnsDropped { count: *count },
            Event::Handshake { server_name, error } => Self::TlsFailure {
                server_name: server_name.as_deref(),
                error,
            },
            Event::Lost { count } => Self::Lost { count: *count },
        }
    }
}

impl<'a> Request<'a> {
    fn of(request: &'a RequestRecord) -> Self {
        let notes = request.notes.as_deref();
        let mut line = Self {
            verdict: "allowed",
            rule: None,
            denial: None,
            note: None,
            error: None,
            message: None,
            method: escaped(&request.method),
            url: Url(&request.location).to_string(),
            host: match &request.location {
                Location::Url { place, .. } => Some(place.text()),
                Location::Tunnel(_) => None,
            },
            status: request.status,
            bytes_up: request.bytes_up,
            bytes_down: request.bytes_down,
            duration_ms: u64::try_from(request.duration.as_millis()).unwrap_or(u64::MAX),
            upstream: request.upstream.map(|address| address.to_string()),
            broken: request.broken.as_ref().map(|broken| match broken {
                Broken::ClientGone => "client_gone",
                Broken::Upstream(why) => why,
            }),
            tags: notes
                .map(|notes| &*notes.tags)
                .filter(|tags| !tags.is_empty()),
            masked: notes.map(|notes| notes.masked),
            dropped: notes.map(|notes| notes.dropped),
            region: notes.and_then(|notes| notes.region.as_deref()),
            scrubbed: notes.map(|notes| notes.scrubbed),
            stripped: Vec::new(),
            collapsed: Vec::new(),
            variable: None,
        };
        for change in notes.iter().flat_map(|notes| &notes.changes) {
            match change {
                Note::Stripped { field } => line.stripped.push(name(field)),
                Note::Collapsed { field, .. } => line.collapsed.push(name(field)),
            }
        }
        match &request.verdict {
            Verdict::Allowed { rule } => line.rule = Some(rule.to_string()),
            Verdict::Blocked { code, note } => {
                line.verdict = "blocked";
                line.denial = Some(code);
                line.note = note.as_deref();
            }
            Verdict::Alarm {
                code,
                variable,
                note,
            } => {
                line.verdict = "alarm";
                line.denial = Some(code);
                line.note = Some(note);
                line.variable = Some(variable);
            }
            Verdict::Failed {
                rule,
                code,
                message,
            } => {
                line.verdict = "failed";
                line.rule = Some(rule.to_string());
                line.error = Some(code);
                line.message = Some(message);
            }
        }
        line
    }
}

fn name(field: &Field) -> &str {
    match field {
        Field::Header(name) => name.as_str(),
        Field::Parameter(name) => name,
    }
}
