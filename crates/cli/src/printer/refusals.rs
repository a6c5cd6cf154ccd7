//! What a person should know of refused requests once the command has ended.
//!
//! Hosts are the workload's choice, so they are counted up to a limit and never recommended: the hint
//! says what would allow them.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use cordon::{Event, Location, OnRecord, Place, Record, Verdict};

use super::{Printer, Verbosity};

/// The refused requests of one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals(Arc<Mutex<Noted>>);

#[derive(Debug, Default)]
struct Noted {
    requests: u64,
    /// Hosts that no entry of the allowlist names.
    unlisted: BTreeSet<String>,
    /// Hosts that are listed, but lead to an address outside the public internet.
    private: BTreeSet<String>,
    /// There was something that naming a host would not have allowed.
    others: bool,
}

impl Refusals {
    /// Notes every record, and passes it on.
    pub(crate) fn noting(&self, next: Option<OnRecord>) -> OnRecord {
        let noted = Arc::clone(&self.0);
        Arc::new(move |record| {
            noted
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .note(record);
            if let Some(next) = &next {
                next(record);
            }
        })
    }

    /// Says what was refused and what would allow it.
    pub(crate) fn tell(&self, printer: &Printer) {
        let noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.requests == 0 || printer.verbosity < Verbosity::Normal {
            return;
        }
        printer.warning(noted.summary());
        for hint in noted.hints() {
            printer.hint(hint);
        }
    }
}

impl Noted {
    fn note(&mut self, record: &Record) {
        let Event::Request(request) = &record.event else {
            return;
        };
        let Verdict::Blocked { code, .. } = request.verdict else {
            return;
        };
        self.requests += 1;
        let hosts = match code {
            "host_not_listed" => &mut self.unlisted,
            "address_refused" => &mut self.private,
            _ => {
                self.others = true;
                return;
            }
        };
        match &request.location {
            Location::Url {
                place: Place::Known { host, port: None },
                ..
            } if hosts.len() < HOSTS => {
                hosts.insert(host.as_str().to_owned());
            }
            Location::Url { .. } | Location::Tunnel(_) => self.others = true,
        }
    }

    fn summary(&self) -> String {
        let requests = match self.requests {
            1 => "1 request was".to_owned(),
            requests => format!("{requests} requests were"),
        };
        let hosts: Vec<_> = self.unlisted.union(&self.private).cloned().collect();
        if hosts.is_empty() {
            return format!("{requests} refused by the network allowlist");
        }
        let others = if self.others { " and others" } else { "" };
        let hosts = hosts.join(", ");
        format!("{requests} refused by the network allowlist: {hosts}{others}")
    }

    fn hints(&self) -> Vec<String> {
        let mut hints = Vec::new();
        let flags: Vec<_> = self
            .unlisted
            .iter()
            .map(|host| format!("--allow {host}"))
            .collect();
        if !flags.is_empty() {
            let what = if flags.len() == 1 { "it" } else { "them" };
            let flags = flags.join(" ");
            hints.push(format!("to let the command reach {what}: {flags}"));
        }
        for host in &self.private {
            hints.push(format!(
                "`{host}` leads to an address outside the public internet; an allowlist lets it pass with `domains: [{{ host: \"{host}\", private_addresses: true }}]`"
            ));
        }
        if self.others {
            hints.push("--network-log FILE shows each of them with its reason".to_owned());
        }
        hints
    }
}

/// More hosts than a person reads.
const HOSTS: usize = 12;
