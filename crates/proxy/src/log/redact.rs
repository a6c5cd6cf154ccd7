//! Takes real values out of records, before anybody sees them.
//!
//! Records show what the workload sent, where surrogates may stand; a real value in it is an alarm, and its record must
//! not spread it.

use std::borrow::Cow;

use bytes::Bytes;
use cordon_secrets::Redactor;

use super::record::{Broken, Event, Location, Place, Record, RequestRecord, Verdict};

impl Record {
    pub(super) fn redact(&mut self, redactor: &Redactor) {
        match &mut self.event {
            Event::Request(request) => request.redact(redactor),
            Event::Dns(dns) => text(&mut dns.name, redactor),
            Event::Handshake { server_name, error } => {
                server_name.iter_mut().for_each(|name| text(name, redactor));
                text(error, redactor);
            }
            Event::Start | Event::DnsDropped { .. } | Event::Lost { .. } => {}
        }
    }
}

impl RequestRecord {
    fn redact(&mut self, redactor: &Redactor) {
        bytes(&mut self.method, redactor);
        match &mut self.location {
            Location::Url { place, target, .. } => {
                if let Cow::Owned(redacted) = redactor.redact(&place.text()) {
                    *place = Place::Raw(redacted.into());
                }
                bytes(target, redactor);
            }
            Location::Tunnel(authority) => bytes(authority, redactor),
        }
        match &mut self.verdict {
            Verdict::Blocked {
                note: Some(note), ..
            }
            | Verdict::Alarm { note, .. } => text(note, redactor),
            Verdict::Failed { message, .. } => text(message, redactor),
            Verdict::Blocked { note: None, .. } | Verdict::Allowed { .. } => {}
        }
        if let Some(Broken::Upstream(why)) = &mut self.broken {
            text(why, redactor);
        }
        if let Some(notes) = &mut self.notes {
            notes
                .tags
                .iter_mut()
                .chain(&mut notes.region)
                .for_each(|tag| text(tag, redactor));
        }
    }
}

fn text(text: &mut String, redactor: &Redactor) {
    if let Cow::Owned(redacted) = redactor.redact(text) {
        *text = redacted;
    }
}

fn bytes(bytes: &mut Bytes, redactor: &Redactor) {
    if let Cow::Owned(redacted) = redactor.redact(&String::from_utf8_lossy(bytes)) {
        *bytes = redacted.into();
    }
}
