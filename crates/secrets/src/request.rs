//! Puts real values in the place of surrogates in a request that is on its way out.
//!
//! Only over verified TLS, only to hosts in a secret's scope, only where the secret's rules say. A surrogate on its way
//! anywhere else is an alarm, and the request must not go out. Callers get counts and names, never values.

mod alarm;
pub mod basic;
mod body;
mod headers;
mod target;
mod text;

use cordon_policy::Host;
use http::{HeaderMap, HeaderName, uri::PathAndQuery};

use crate::{
    SecretReplacements,
    replacements::{Inner, Masked},
};

pub use alarm::{Alarm, AlarmKind, Place};
pub use body::BodyReplacer;

impl SecretReplacements {
    /// Checks a request head for surrogates that must not leave, then replaces those that may.
    ///
    /// Signing comes after this, since it covers what is replaced here.
    pub fn apply(
        &self,
        host: &Host,
        channel: Channel,
        headers: &mut HeaderMap,
        target: &mut PathAndQuery,
    ) -> Result<Applied, Alarm> {
        self.check(host, channel, headers, target)?;
        let rules = Rules::of(self.inner(), host, channel);
        let mut applied = Applied::default();
        rules.apply_to_headers(headers, &mut applied);
        rules.apply_to_target(target, &mut applied);
        Ok(applied)
    }
}

/// How the request leaves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Channel {
    /// Over TLS, to a server whose certificate is verified before the first byte of the request is sent.
    VerifiedTls,
    /// In any other way; nothing is replaced, and every surrogate is an alarm.
    Unverified,
}

/// What was done to a request head.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Applied {
    /// Replacements; a secret counts once in each header or parameter.
    pub masked: u32,
    /// Headers and parameters that were stripped because they held somebody else's credentials.
    pub dropped: u32,
    /// Headers and parameters whose duplicates were removed.
    pub collapsed: u32,
    /// What the log has to tell.
    pub notes: Vec<Note>,
}

impl Applied {
    fn strip(&mut self, field: Field) {
        self.dropped += 1;
        self.notes.push(Note::Stripped { field });
    }

    fn collapse(&mut self, field: Field, count: usize) {
        self.collapsed += 1;
        self.notes.push(Note::Collapsed { field, count });
    }
}

/// A change that the log has to tell of.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Note {
    /// All of a credential field was removed: it did not hold the surrogate.
    Stripped {
        /// The field.
        field: Field,
    },
    /// Of several fields of one name, only the one with the surrogate was kept.
    Collapsed {
        /// The field.
        field: Field,
        /// How many there were.
        count: usize,
    },
}

impl Note {
    /// The line for the log. Method and URL are written as given.
    pub fn line(&self, method: &str, url: &str) -> String {
        match self {
            Self::Stripped { field } => {
                let (kind, name) = field.parts();
                format!("STRIPPED {kind} '{name}' from {method} {url} (foreign credential blocked)")
            }
            Self::Collapsed { field, count } => {
                let (kind, name) = field.parts();
                format!(
                    "COLLAPSED {count} duplicate '{name}' {kind}s in {method} {url} (duplicate credential {kind}s removed)"
                )
            }
        }
    }
}

/// A part of a request head that may carry a credential.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Field {
    /// A header.
    Header(HeaderName),
    /// A query parameter, by the name that the secret's rules give it.
    Parameter(String),
}

impl Field {
    fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::Header(name) => ("header", name.as_str()),
            Self::Parameter(name) => ("parameter", name),
        }
    }
}

/// What applies to requests to one host.
struct Rules<'a> {
    inner: &'a Inner,
    /// For each value, whether the host is in its scope.
    in_scope: Vec<bool>,
    /// For each value, whether it may be put into this request.
    usable: Vec<bool>,
}

impl<'a> Rules<'a> {
    fn of(inner: &'a Inner, host: &Host, channel: Channel) -> Self {
        let in_scope = inner.in_scope(host);
        let usable = match channel {
            Channel::VerifiedTls => in_scope.clone(),
            Channel::Unverified => vec![false; in_scope.len()],
        };
        Self {
            inner,
            in_scope,
            usable,
        }
    }

    /// The masked secrets that have the host in their scope.
    fn masked(&self) -> impl Iterator<Item = &'a Masked> {
        self.inner
            .masked
            .iter()
            .filter(|masked| self.in_scope[masked.value])
    }

    fn real(&self, value: usize) -> &'a [u8] {
        self.inner.values[value].real.expose().as_bytes()
    }
}

#[cfg(test)]
mod tests;
