//! One request from its head to the end of its response, and the one record it leaves.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use cordon_policy::RuleRef;
use http::{Method, StatusCode};
use tokio::time::Instant;

use crate::{
    body::Traffic,
    credentials::Refused,
    front::Open,
    log::{Broken, Event, Location, Notes, RequestRecord, Slot, Verdict},
    refusal::Refusal,
    upstream::Trouble,
};

/// A request that was taken up. Records itself when it is dropped, if it was not before.
pub(crate) struct Exchange {
    slot: Option<Slot>,
    started: Instant,
    traffic: Arc<Traffic>,
    record: Option<Box<RequestRecord>>,
    _open: Option<Open>,
}

impl Exchange {
    /// A request about which nothing is decided yet.
    pub(crate) fn new(slot: Slot, method: Bytes, location: Location, open: Option<Open>) -> Self {
        let record = RequestRecord {
            verdict: Verdict::Blocked {
                code: "undecided",
                note: None,
            },
            method,
            location,
            status: None,
            bytes_up: 0,
            bytes_down: 0,
            duration: std::time::Duration::ZERO,
            upstream: None,
            broken: None,
            notes: None,
        };
        Self {
            slot: Some(slot),
            started: Instant::now(),
            traffic: Arc::default(),
            record: Some(Box::new(record)),
            _open: open,
        }
    }

    pub(crate) fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }

    pub(crate) fn count_down(&self, length: usize) {
        self.traffic
            .down
            .fetch_add(length as u64, Ordering::Relaxed);
    }

    pub(crate) fn allow(&mut self, rule: RuleRef) {
        self.update(|record| record.verdict = Verdict::Allowed { rule });
    }

    pub(crate) fn answered(&mut self, status: StatusCode, upstream: Option<SocketAddr>) {
        self.update(|record| {
            record.status = Some(status.as_u16());
            record.upstream = upstream;
        });
    }

    /// What was done about the credentials of the request.
    pub(crate) fn note(&mut self, notes: Notes) {
        if notes != Notes::default() {
            self.update(|record| record.notes = Some(Box::new(notes)));
        }
    }

    /// The response has ended as it should.
    pub(crate) fn finish(mut self) {
        self.emit();
    }

    /// The response ended early.
    pub(crate) fn break_off(mut self, why: Broken) {
        self.update(|record| record.broken = Some(why));
        self.emit();
    }

    /// The request gets an answer of ours. Returns the id of the record, and the parts that the
    /// answer repeats.
    pub(crate) fn refuse(mut self, refusal: &Refusal) -> (u64, Bytes, Option<Location>) {
        let id = self.slot.as_ref().map_or(0, Slot::id);
        let mut parts = (id, Bytes::new(), None);
        if matches!(refusal, Refusal::Upstream(Trouble::ClientGone)) {
            return parts;
        }
        self.update(|record| {
            record.status = Some(refusal.status().as_u16());
            let rule = match record.verdict {
                Verdict::Allowed { rule } => Some(rule),
                Verdict::Blocked { .. } | Verdict::Alarm { .. } | Verdict::Failed { .. } => None,
            };
            record.verdict = match (refusal, rule) {
                (Refusal::Credentials(Refused::Alarm(alarm)), _) => Verdict::Alarm {
                    code: alarm.code(),
                    variable: alarm.env_var.clone(),
                    note: alarm.to_string(),
                },
                (Refusal::Credentials(refused), _) if refused.is_policy() => Verdict::Blocked {
                    code: refused.code(),
                    note: refusal.note(),
                },
                (Refusal::Upstream(Trouble::Address(_)), _) | (_, None) => Verdict::Blocked {
                    code: refusal.code(),
                    note: refusal.note(),
                },
                (_, Some(rule)) => Verdict::Failed {
                    rule,
                    code: refusal.code(),
                    message: refusal.to_string(),
                },
            };
            parts.1 = record.method.clone();
            parts.2 = Some(record.location.clone());
        });
        self.emit();
        parts
    }

    fn update(&mut self, change: impl FnOnce(&mut RequestRecord)) {
        if let Some(record) = &mut self.record {
            change(record);
        }
    }

    fn emit(&mut self) {
        let (Some(slot), Some(mut record)) = (self.slot.take(), self.record.take()) else {
            return;
        };
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        record.bytes_up = load(&self.traffic.up);
        record.bytes_down = load(&self.traffic.down);
        record.duration = self.started.elapsed();
        let (masked, scrubbed) = (load(&self.traffic.masked), load(&self.traffic.scrubbed));
        if masked + scrubbed > 0 {
            let notes = record.notes.get_or_insert_default();
            notes.masked = notes
                .masked
                .saturating_add(u32::try_from(masked).unwrap_or(u32::MAX));
            notes.scrubbed = scrubbed;
        }
        slot.fill(Event::Request(record));
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.update(|record| record.broken = Some(Broken::ClientGone));
        self.emit();
    }
}

/// A method as the log keeps it; the usual ones cost nothing.
pub(crate) fn method_bytes(method: &Method) -> Bytes {
    Bytes::from_static(match *method {
        Method::GET => b"GET",
        Method::POST => b"POST",
        Method::HEAD => b"HEAD",
        Method::PUT => b"PUT",
        Method::DELETE => b"DELETE",
        Method::PATCH => b"PATCH",
        Method::OPTIONS => b"OPTIONS",
        _ => return Bytes::copy_from_slice(method.as_str().as_bytes()),
    })
}
