//! What the log remembers: one record for each request and each DNS question.
//!
//! A record holds the bytes as they came. Whoever shows them escapes them; the writers in this
//! module's siblings do.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use bytes::Bytes;
use cordon_policy::{Authority, Host, RuleRef, Scheme};
use cordon_secrets::Note;
use jiff::Timestamp;

/// One entry of the network log.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Counts from 1 within one proxy.
    pub id: u64,
    /// When it began.
    pub time: Timestamp,
    /// What it was.
    pub event: Event,
}

impl Record {
    /// The record as the line of `network-sandbox.log` without its detail in braces.
    pub fn line(&self) -> String {
        super::text::line(self)
    }

    /// All lines of the record: what was changed about its credentials, then what became of it.
    pub fn lines(&self) -> Vec<String> {
        super::text::lines(self)
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The proxy began to serve.
    Start,
    /// A request was answered, by an upstream or by the proxy.
    Request(Box<RequestRecord>),
    /// A DNS question was answered.
    Dns(DnsRecord),
    /// DNS questions above the rate limit got no answer.
    DnsDropped {
        /// How many since the last such record.
        count: u64,
    },
    /// A TLS handshake with the workload failed, so no request was read.
    Handshake {
        /// The name that the client asked for, where it came so far.
        server_name: Option<String>,
        /// What went wrong.
        error: String,
    },
    /// Records before this one could not be written.
    Lost {
        /// How many.
        count: u64,
    },
}

/// A request and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestRecord {
    /// Whether it was let through.
    pub verdict: Verdict,
    /// The method, as sent.
    pub method: Bytes,
    /// Where it was meant to go.
    pub location: Location,
    /// The status that the workload saw; none when the connection ended before one was sent.
    pub status: Option<u16>,
    /// Bytes of request body that were passed on.
    pub bytes_up: u64,
    /// Bytes of response body that were passed on.
    pub bytes_down: u64,
    /// From the head of the request to the end of the response.
    pub duration: Duration,
    /// The address that was dialled.
    pub upstream: Option<SocketAddr>,
    /// Why the exchange ended early, where it did after the response had begun.
    pub broken: Option<Broken>,
    /// What was done about credentials.
    pub notes: Option<Box<Notes>>,
}

/// Whether a request was let through, and by what.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// An entry of the allowlist admits it.
    Allowed {
        /// The entry.
        rule: RuleRef,
    },
    /// It was refused.
    Blocked {
        /// Stable name of the reason.
        code: &'static str,
        /// What the text line adds in parentheses.
        note: Option<String>,
    },
    /// It was refused because it carried a surrogate where none belongs, or a real value.
    Alarm {
        /// Stable name of the reason.
        code: &'static str,
        /// The variable whose value or surrogate it was.
        variable: String,
        /// What the text line adds in parentheses.
        note: String,
    },
    /// It was admitted, but the upstream could not be reached or did not answer.
    Failed {
        /// The entry.
        rule: RuleRef,
        /// Stable name of the reason.
        code: &'static str,
        /// What went wrong, in words.
        message: String,
    },
}

/// Where a request was meant to go, as far as it could be understood.
#[derive(Clone, Debug, PartialEq)]
pub enum Location {
    /// An ordinary URL.
    Url {
        /// How the request came in.
        scheme: Scheme,
        /// Host and port.
        place: Place,
        /// Path and query, as sent.
        target: Bytes,
    },
    /// The `host:port` of CONNECT.
    Tunnel(Bytes),
}

/// The host part of a URL.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// Understood and normalised.
    Known {
        /// The host.
        host: Host,
        /// The port, where it is not the scheme's own.
        port: Option<u16>,
    },
    /// As sent; nobody could tell what it means.
    Raw(Bytes),
}

impl Place {
    /// The place as it stands in a URL, hostile bytes escaped.
    pub fn text(&self) -> String {
        match self {
            Self::Known { host, port } => Authority {
                host: host.clone(),
                port: *port,
            }
            .to_string(),
            Self::Raw(raw) => super::escape::escaped(raw),
        }
    }
}

/// How an exchange ended that had begun well.
#[derive(Clone, Debug, PartialEq)]
pub enum Broken {
    /// The workload went away.
    ClientGone,
    /// The upstream did.
    Upstream(String),
}

/// What credential handling did to a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Notes {
    /// Free tags, in order.
    pub tags: Vec<String>,
    /// Surrogates that were replaced; a signature counts as one.
    pub masked: u32,
    /// Headers and parameters that were dropped because they held a foreign credential.
    pub dropped: u32,
    /// The region of a signed request.
    pub region: Option<String>,
    /// Real values that were taken out of the response.
    pub scrubbed: u64,
    /// What was removed from the request, each with a line of its own.
    pub changes: Vec<Note>,
}

/// A DNS question and its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct DnsRecord {
    /// The name, escaped, without its last dot.
    pub name: String,
    /// The number of the record type asked for.
    pub record_type: u16,
    /// What was answered.
    pub result: DnsResult,
}

/// The answer to a DNS question.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DnsResult {
    /// The proxy's own address.
    Address(Ipv4Addr),
    /// The name exists, without data of that type.
    NoData,
    /// The message could not be understood.
    Malformed,
    /// The message asked for something other than a lookup.
    NotImplemented,
}
