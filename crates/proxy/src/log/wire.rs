//! Records on their way from a proxy in a container to the host, one JSON line each.
//!
//! Unlike the lines of `network-sandbox.jsonl` they hold everything, so that the host can write both
//! files and call the caller's function as if the proxy were its own. Bytes of the workload travel as
//! base64: no line can be forged or broken by them.

use std::{
    collections::BTreeSet,
    net::{Ipv4Addr, SocketAddr},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use cordon_policy::{Authority, RuleRef, Scheme};
use cordon_secrets::{Field, Note};
use data_encoding::BASE64;
use http::HeaderName;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::record::{
    Broken, DnsRecord, DnsResult, Event, Location, Notes, Place, Record, RequestRecord, Verdict,
};

impl Record {
    /// The record as a line for another process, with its line feed.
    pub(crate) fn to_line(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut line = serde_json::to_vec(&Line::of(self))?;
        line.push(b'\n');
        Ok(line)
    }

    /// Reads what [`Record::to_line`] wrote.
    pub(crate) fn from_line(line: &[u8]) -> Result<Self, serde_json::Error> {
        Ok(serde_json::from_slice::<Line>(line)?.into_record())
    }
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Line {
    id: u64,
    time: Timestamp,
    event: LineEvent,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum LineEvent {
    Start,
    Request(Box<LineRequest>),
    Dns {
        name: String,
        record_type: u16,
        result: LineDnsResult,
    },
    DnsDropped {
        count: u64,
    },
    Handshake {
        server_name: Option<String>,
        error: String,
    },
    Lost {
        count: u64,
    },
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum LineDnsResult {
    Address(Ipv4Addr),
    NoData,
    Malformed,
    NotImplemented,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct LineRequest {
    verdict: LineVerdict,
    method: Raw,
    location: LineLocation,
    status: Option<u16>,
    bytes_up: u64,
    bytes_down: u64,
    duration: Duration,
    upstream: Option<SocketAddr>,
    broken: Option<LineBroken>,
    notes: Option<LineNotes>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum LineVerdict {
    Allowed {
        rule: LineRule,
    },
    Blocked {
        code: Code,
        note: Option<String>,
    },
    Alarm {
        code: Code,
        variable: String,
        note: String,
    },
    Failed {
        rule: LineRule,
        code: Code,
        message: String,
    },
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum LineRule {
    Domain(usize),
    UrlPrefix(usize),
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum LineLocation {
    Url {
        tls: bool,
        place: LinePlace,
        target: Raw,
    },
    Tunnel(Raw),
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum LinePlace {
    /// As it stands in a URL, normalised.
    Known(String),
    Raw(Raw),
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum LineBroken {
    ClientGone,
    Upstream(String),
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct LineNotes {
    tags: Vec<String>,
    masked: u32,
    dropped: u32,
    region: Option<String>,
    scrubbed: u64,
    changes: Vec<LineNote>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum LineNote {
    Stripped { field: LineField },
    Collapsed { field: LineField, count: usize },
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum LineField {
    Header(String),
    Parameter(String),
}

impl Line {
    fn of(record: &Record) -> Self {
        let event = match &record.event {
            Event::Start => LineEvent::Start,
            Event::Request(request) => LineEvent::Request(Box::new(LineRequest::of(request))),
            Event::Dns(DnsRecord {
                name,
                record_type,
                result,
            }) => LineEvent::Dns {
                name: name.clone(),
                record_type: *record_type,
                result: match result {
                    DnsResult::Address(address) => LineDnsResult::Address(*address),
                    DnsResult::NoData => LineDnsResult::NoData,
                    DnsResult::Malformed => LineDnsResult::Malformed,
                    DnsResult::NotImplemented => LineDnsResult::NotImplemented,
                },
            },
            Event::DnsDropped { count } => LineEvent::DnsDropped { count: *count },
            Event::Handshake { server_name, error } => LineEvent::Handshake {
                server_name: server_name.clone(),
                error: error.clone(),
            },
            Event::Lost { count } => LineEvent::Lost { count: *count },
        };
        Self {
            id: record.id,
            time: record.time,
            event,
        }
    }

    fn into_record(self) -> Record {
        let event = match self.event {
            LineEvent::Start => Event::Start,
            LineEvent::Request(request) => Event::Request(Box::new(request.into_record())),
            LineEvent::Dns {
                name,
                record_type,
                result,
            } => Event::Dns(DnsRecord {
                name,
                record_type,
                result: match result {
                    LineDnsResult::Address(address) => DnsResult::Address(address),
                    LineDnsResult::NoData => DnsResult::NoData,
                    LineDnsResult::Malformed => DnsResult::Malformed,
                    LineDnsResult::NotImplemented => DnsResult::NotImplemented,
                },
            }),
            LineEvent::DnsDropped { count } => Event::DnsDropped { count },
            LineEvent::Handshake { server_name, error } => Event::Handshake { server_name, error },
            LineEvent::Lost { count } => Event::Lost { count },
        };
        Record {
            id: self.id,
            time: self.time,
            event,
        }
    }
}

impl LineRequest {
    fn of(request: &RequestRecord) -> Self {
        Self {
            verdict: LineVerdict::of(&request.verdict),
            method: Raw(request.method.clone()),
            location: LineLocation::of(&request.location),
            status: request.status,
            bytes_up: request.bytes_up,
            bytes_down: request.bytes_down,
            duration: request.duration,
            upstream: request.upstream,
            broken: request.broken.as_ref().map(|broken| match broken {
                Broken::ClientGone => LineBroken::ClientGone,
                Broken::Upstream(why) => LineBroken::Upstream(why.clone()),
            }),
            notes: request.notes.as_deref().map(LineNotes::of),
        }
    }

    fn into_record(self) -> RequestRecord {
        RequestRecord {
            verdict: self.verdict.into_verdict(),
            method: self.method.0,
            location: self.location.into_location(),
            status: self.status,
            bytes_up: self.bytes_up,
            bytes_down: self.bytes_down,
            duration: self.duration,
            upstream: self.upstream,
            broken: self.broken.map(|broken| match broken {
                LineBroken::ClientGone => Broken::ClientGone,
                LineBroken::Upstream(why) => Broken::Upstream(why),
            }),
            notes: self.notes.map(|notes| Box::new(notes.into_notes())),
        }
    }
}

impl LineVerdict {
    fn of(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Allowed { rule } => Self::Allowed {
                rule: LineRule::of(*rule),
            },
            Verdict::Blocked { code, note } => Self::Blocked {
                code: Code(code),
                note: note.clone(),
            },
            Verdict::Alarm {
                code,
                variable,
                note,
            } => Self::Alarm {
                code: Code(code),
                variable: variable.clone(),
                note: note.clone(),
            },
            Verdict::Failed {
                rule,
                code,
                message,
            } => Self::Failed {
                rule: LineRule::of(*rule),
                code: Code(code),
                message: message.clone(),
            },
        }
    }

    fn into_verdict(self) -> Verdict {
        match self {
            Self::Allowed { rule } => Verdict::Allowed {
                rule: rule.into_rule(),
            },
            Self::Blocked { code, note } => Verdict::Blocked { code: code.0, note },
            Self::Alarm {
                code,
                variable,
                note,
            } => Verdict::Alarm {
                code: code.0,
                variable,
                note,
            },
            Self::Failed {
                rule,
                code,
                message,
            } => Verdict::Failed {
                rule: rule.into_rule(),
                code: code.0,
                message,
            },
        }
    }
}

impl LineRule {
    fn of(rule: RuleRef) -> Self {
        match rule {
            RuleRef::Domain(index) => Self::Domain(index),
            RuleRef::UrlPrefix(index) => Self::UrlPrefix(index),
        }
    }

    fn into_rule(self) -> RuleRef {
        match self {
            Self::Domain(index) => RuleRef::Domain(index),
            Self::UrlPrefix(index) => RuleRef::UrlPrefix(index),
        }
    }
}

impl LineLocation {
    fn of(location: &Location) -> Self {
        match location {
            Location::Url {
                scheme,
                place,
                target,
            } => Self::Url {
                tls: *scheme == Scheme::Https,
                place: match place {
                    Place::Known { host, port } => {
                        let authority = Authority {
                            host: host.clone(),
                            port: *port,
                        };
                        LinePlace::Known(authority.to_string())
                    }
                    Place::Raw(raw) => LinePlace::Raw(Raw(raw.clone())),
                },
                target: Raw(target.clone()),
            },
            Location::Tunnel(authority) => Self::Tunnel(Raw(authority.clone())),
        }
    }

    fn into_location(self) -> Location {
        match self {
            Self::Url { tls, place, target } => Location::Url {
                scheme: if tls { Scheme::Https } else { Scheme::Http },
                place: match place {
                    LinePlace::Known(text) => match Authority::parse(text.as_bytes()) {
                        Ok(Authority { host, port }) => Place::Known { host, port },
                        Err(_) => Place::Raw(text.into()),
                    },
                    LinePlace::Raw(raw) => Place::Raw(raw.0),
                },
                target: target.0,
            },
            Self::Tunnel(authority) => Location::Tunnel(authority.0),
        }
    }
}

impl LineNotes {
    fn of(notes: &Notes) -> Self {
        let field = |field: &Field| match field {
            Field::Header(name) => LineField::Header(name.as_str().to_owned()),
            Field::Parameter(name) => LineField::Parameter(name.clone()),
        };
        Self {
            tags: notes.tags.clone(),
            masked: notes.masked,
            dropped: notes.dropped,
            region: notes.region.clone(),
            scrubbed: notes.scrubbed,
            changes: notes
                .changes
                .iter()
                .map(|change| match change {
                    Note::Stripped { field: of } => LineNote::Stripped { field: field(of) },
                    Note::Collapsed { field: of, count } => LineNote::Collapsed {
                        field: field(of),
                        count: *count,
                    },
                })
                .collect(),
        }
    }

    fn into_notes(self) -> Notes {
        let field = |field: LineField| match field {
            LineField::Parameter(name) => Field::Parameter(name),
            LineField::Header(name) => match HeaderName::try_from(&name) {
                Ok(name) => Field::Header(name),
                Err(_) => Field::Parameter(name),
            },
        };
        Notes {
            tags: self.tags,
            masked: self.masked,
            dropped: self.dropped,
            region: self.region,
            scrubbed: self.scrubbed,
            changes: self
                .changes
                .into_iter()
                .map(|change| match change {
                    LineNote::Stripped { field: of } => Note::Stripped { field: field(of) },
                    LineNote::Collapsed { field: of, count } => Note::Collapsed {
                        field: field(of),
                        count,
                    },
                })
                .collect(),
        }
    }
}

/// Bytes as the workload sent them.
struct Raw(Bytes);

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = BASE64.decode(text.as_bytes()).map_err(de::Error::custom)?;
        Ok(Self(bytes.into()))
    }
}

/// A stable name, which is part of the program on both sides.
struct Code(&'static str);

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0)
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(CODES.interned(String::deserialize(deserializer)?)))
    }
}

/// The one copy of each stable name. What is kept is bounded, whatever the other side sends.
struct Codes(Mutex<BTreeSet<&'static str>>);

static CODES: Codes = Codes(Mutex::new(BTreeSet::new()));

impl Codes {
    fn interned(&self, code: String) -> &'static str {
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match codes.get(code.as_str()) {
            Some(known) => known,
            None if codes.len() == CODES_MAX || code.len() > CODE_LENGTH_MAX => "unknown",
            None => {
                let code: &'static str = code.leak();
                codes.insert(code);
                code
            }
        }
    }
}

/// Far more than there are.
const CODES_MAX: usize = 256;

const CODE_LENGTH_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use cordon_policy::Host;

    use super::*;

    fn survives(event: Event) {
        let record = Record {
            id: 7,
            time: Timestamp::now(),
            event,
        };
        let line = record.to_line().unwrap();
        assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
        assert_eq!(Record::from_line(&line).unwrap(), record);
    }

    fn request(verdict: Verdict, location: Location) -> Event {
        Event::Request(Box::new(RequestRecord {
            verdict,
            method: Bytes::from_static(b"GE\nT\xff"),
            location,
            status: Some(403),
            bytes_up: 1,
            bytes_down: u64::MAX,
            duration: Duration::from_micros(1_234_567),
            upstream: Some("[2001:db8::1]:443".parse().unwrap()),
            broken: Some(Broken::Upstream("reset\n".into())),
            notes: Some(Box::new(Notes {
                tags: vec!["one".into()],
                masked: 2,
                changes: vec![
                    Note::Stripped {
                        field: Field::Header(HeaderName::from_static("x-api-key")),
                    },
                    Note::Collapsed {
                        field: Field::Parameter("key".into()),
                        count: 3,
                    },
                ],
                ..Notes::default()
            })),
        }))
    }

    #[test]
    fn every_event_survives_the_way_to_the_host() {
        survives(Event::Start);
        survives(Event::DnsDropped { count: 9 });
        survives(Event::Lost { count: 9 });
        survives(Event::Handshake {
            server_name: Some("a\nb".into()),
            error: "bad".into(),
        });
        for result in [DnsResult::Address([10, 0, 0, 2].into()), DnsResult::NoData] {
            survives(Event::Dns(DnsRecord {
                name: "a.example".into(),
                record_type: 28,
                result,
            }));
        }
    }

    #[test]
    fn every_request_survives_the_way_to_the_host() {
        let known = |host, port| Place::Known {
            host: Host::parse(host).unwrap(),
            port,
        };
        let url = |scheme, place| Location::Url {
            scheme,
            place,
            target: Bytes::from_static(b"/\0\r\n{\"id\":1}\xfe"),
        };
        let rule = RuleRef::UrlPrefix(3);
        let note = "not listed".to_owned();
        survives(request(
            Verdict::Allowed {
                rule: RuleRef::Domain(0),
            },
            url(Scheme::Https, known("api.example.com", Some(8443))),
        ));
        survives(request(
            Verdict::Blocked {
                code: "host_not_listed",
                note: Some(note.clone()),
            },
            url(Scheme::Http, known("[2001:db8::7]", None)),
        ));
        survives(request(
            Verdict::Alarm {
                code: "surrogate",
                variable: "TOKEN".into(),
                note,
            },
            url(Scheme::Https, Place::Raw(Bytes::from_static(b"\xff\n"))),
        ));
        survives(request(
            Verdict::Failed {
                rule,
                code: "timeout",
                message: "too late".into(),
            },
            Location::Tunnel(Bytes::from_static(b"a:1\n")),
        ));
    }

    #[test]
    fn names_from_the_other_side_take_bounded_memory() {
        let codes = Codes(Mutex::new(BTreeSet::new()));
        assert_eq!(codes.interned("real".into()), "real");
        for number in 0..1_000 {
            codes.interned(format!("made-up-{number}"));
        }
        assert_eq!(codes.interned("one more".into()), "unknown");
        assert_eq!(codes.interned("real".into()), "real");
    }
}
