//! The lines of `network-sandbox.log`, for people.
//!
//! A line begins with what happened; the detail in braces at its end is for those who look closer.

use std::{
    borrow::Cow,
    fmt::{self, Write},
};

use cordon_policy::Authority;
use cordon_secrets::Note;

use super::{
    escape::{Escaped, EscapedText, escaped},
    record::{Broken, DnsResult, Event, Location, Notes, Place, Record, RequestRecord, Verdict},
};

/// What happened, without the detail.
pub(super) fn line(record: &Record) -> String {
    let mut line = String::new();
    // Writing to a string cannot fail.
    let _ = write_line(&mut line, record);
    line
}

/// The same, behind what was changed about the credentials of a request.
pub(super) fn lines(record: &Record) -> Vec<String> {
    let mut lines = changes(record);
    lines.push(line(record));
    lines
}

/// Appends the whole lines of a record with its detail and their line feeds.
pub(super) fn append(out: &mut String, record: &Record) {
    for change in changes(record) {
        let _ = writeln!(out, "{change} {{id={} time={:.3}}}", record.id, record.time);
    }
    let _ = write_line(out, record).and_then(|()| write_detail(out, record));
    out.push('\n');
}

fn changes(record: &Record) -> Vec<String> {
    let Event::Request(request) = &record.event else {
        return Vec::new();
    };
    let Some(notes) = request
        .notes
        .as_deref()
        .filter(|notes| !notes.changes.is_empty())
    else {
        return Vec::new();
    };
    let (method, url) = (escaped(&request.method), Url(&request.location).to_string());
    let line = |change: &Note| EscapedText(&change.line(&method, &url)).to_string();
    notes.changes.iter().map(line).collect()
}

/// The name of a DNS record type.
pub(crate) fn type_name(number: u16) -> Cow<'static, str> {
    Cow::Borrowed(match number {
        1 => "A",
        2 => "NS",
        5 => "CNAME",
        15 => "MX",
        16 => "TXT",
        28 => "AAAA",
        33 => "SRV",
        255 => "ANY",
        other => return Cow::Owned(format!("TYPE{other}")),
    })
}

fn write_line(out: &mut String, record: &Record) -> fmt::Result {
    match &record.event {
        Event::Start => write!(out, "=== TASK START {:.0} ===", record.time),
        Event::Request(request) => write_request(out, request),
        Event::Dns(dns) => {
            write!(out, "DNS {} {} -> ", type_name(dns.record_type), dns.name)?;
            match dns.result {
                DnsResult::Address(address) => write!(out, "{address}"),
                DnsResult::NoData => out.write_str("NODATA"),
                DnsResult::Malformed => out.write_str("FORMERR"),
                DnsResult::NotImplemented => out.write_str("NOTIMP"),
            }
        }
        Event::DnsDropped { count } => {
            write!(out, "ERROR DNS -> {count} questions over the rate limit")
        }
        Event::Handshake { server_name, error } => {
            let name = server_name.as_deref().unwrap_or("?");
            write!(
                out,
                "ERROR TLS {} -> {}",
                Escaped(name.as_bytes()),
                EscapedText(error)
            )
        }
        Event::Lost { count } => write!(out, "ERROR LOG -> {count} records could not be written"),
    }
}

fn write_request(out: &mut String, request: &RequestRecord) -> fmt::Result {
    let word = match &request.verdict {
        Verdict::Allowed { .. } => "ALLOWED",
        Verdict::Blocked { .. } => "BLOCKED",
        Verdict::Alarm { .. } => "ALARM",
        Verdict::Failed { .. } => "ERROR",
    };
    write!(
        out,
        "{word} {} {} -> ",
        Escaped(&request.method),
        Url(&request.location)
    )?;
    if let Verdict::Failed { message, .. } = &request.verdict {
        return write!(out, "{}", EscapedText(message));
    }
    match request.status {
        Some(status) => write!(out, "{status}")?,
        None => out.write_char('?')?,
    }
    if let Some(notes) = &request.notes {
        write_notes(out, notes)?;
    }
    match &request.verdict {
        Verdict::Blocked {
            note: Some(note), ..
        }
        | Verdict::Alarm { note, .. } => {
            write!(out, " ({})", EscapedText(note))
        }
        Verdict::Blocked { note: None, .. } | Verdict::Allowed { .. } | Verdict::Failed { .. } => {
            Ok(())
        }
    }
}

fn write_notes(out: &mut String, notes: &Notes) -> fmt::Result {
    for tag in &notes.tags {
        write!(out, " [{}]", EscapedText(tag))?;
    }
    if notes.masked > 0 {
        write!(out, " [masked: {}]", notes.masked)?;
    }
    if notes.dropped > 0 {
        write!(out, " [dropped: {}]", notes.dropped)?;
    }
    if let Some(region) = &notes.region {
        write!(out, " [region: {}]", EscapedText(region))?;
    }
    if notes.scrubbed > 0 {
        write!(out, " [scrubbed: {}]", notes.scrubbed)?;
    }
    Ok(())
}

fn write_detail(out: &mut String, record: &Record) -> fmt::Result {
    if record.event == Event::Start {
        return Ok(());
    }
    write!(out, " {{id={} time={:.3}", record.id, record.time)?;
    if let Event::Request(request) = &record.event {
        match &request.verdict {
            Verdict::Allowed { rule } => write!(out, " rule={rule}")?,
            Verdict::Blocked { code, .. } | Verdict::Alarm { code, .. } => {
                write!(out, " denial={code}")?;
            }
            Verdict::Failed { rule, code, .. } => write!(out, " rule={rule} error={code}")?,
        }
        write!(
            out,
            " up={} down={} ms={}",
            request.bytes_up,
            request.bytes_down,
            request.duration.as_millis()
        )?;
        if let Some(upstream) = request.upstream {
            write!(out, " via={upstream}")?;
        }
        match &request.broken {
            Some(Broken::ClientGone) => out.write_str(" broken=client_gone")?,
            Some(Broken::Upstream(why)) => {
                write!(out, " broken={:?}", EscapedText(why).to_string())?
            }
            None => {}
        }
    }
    out.write_char('}')
}

/// Shows where a request was meant to go.
pub(super) struct Url<'a>(pub(super) &'a Location);

impl fmt::Display for Url<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Location::Url {
                scheme,
                place,
                target,
            } => {
                write!(f, "{scheme}://")?;
                match place {
                    Place::Known { host, port } => {
                        write!(
                            f,
                            "{}",
                            Authority {
                                host: host.clone(),
                                port: *port
                            }
                        )?;
                    }
                    Place::Raw(raw) => write!(f, "{}", Escaped(raw))?,
                }
                write!(f, "{}", Escaped(target))
            }
            Location::Tunnel(authority) => write!(f, "{}", Escaped(authority)),
        }
    }
}

#[cfg(test)]
mod tests;
