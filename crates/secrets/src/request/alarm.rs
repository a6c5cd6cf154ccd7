//! Notices surrogates, and real values, that are on their way to where they do not belong.

use std::fmt;

use cordon_policy::Host;
use http::{HeaderMap, HeaderName, uri::PathAndQuery};

use super::{Channel, Rules, target::Decoded};
use crate::{SecretReplacements, replacements::Role};

impl SecretReplacements {
    /// Looks for surrogates whose scope does not include the host, and for real values, anywhere in a request head:
    /// in any case, percent-encoded, and inside base64 as in Basic credentials.
    pub fn check(
        &self,
        host: &Host,
        channel: Channel,
        headers: &HeaderMap,
        target: &PathAndQuery,
    ) -> Result<(), Alarm> {
        if self.is_empty() {
            return Ok(());
        }
        let rules = Rules::of(self.inner(), host, channel);
        rules.look(host.as_str().as_bytes(), || Place::Host)?;
        rules.look(target.path().as_bytes(), || Place::Path)?;
        if let Some(query) = target.query() {
            rules.look(query.as_bytes(), || Place::Query)?;
        }
        for (name, value) in headers {
            let place = || Place::Header(name.clone());
            rules.look(name.as_str().as_bytes(), place)?;
            rules.look(value.as_bytes(), place)?;
        }
        Ok(())
    }
}

impl Rules<'_> {
    fn look(&self, text: &[u8], place: impl Fn() -> Place) -> Result<(), Alarm> {
        self.look_once(text, &place)?;
        let mut text = text.to_vec();
        for _ in 0..DECODINGS {
            if !text.contains(&b'%') {
                break;
            }
            text = Decoded::of(&text).text;
            self.look_once(&text, &place)?;
        }
        Ok(())
    }

    fn look_once(&self, text: &[u8], place: &impl Fn() -> Place) -> Result<(), Alarm> {
        let values = &self.inner.values;
        let alarm = |kind, value: usize| Alarm {
            kind,
            env_var: values[value].env_var.clone(),
            place: place(),
        };
        let sighted = self.inner.sightings.owners(text);
        if let Some(&value) = sighted.iter().find(|&&value| !self.usable[value]) {
            return Err(alarm(AlarmKind::SurrogateOutOfScope, value));
        }
        // An access key id names its owner and opens nothing.
        let secret = |&value: &usize| values[value].role != Role::AccessKeyId;
        match self.inner.reals.owners(text).find(secret) {
            Some(value) => Err(alarm(AlarmKind::RealValue, value)),
            None => Ok(()),
        }
    }
}

/// A request that must be refused and recorded. It names the variable, not the value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Alarm {
    /// What was seen.
    pub kind: AlarmKind,
    /// The variable whose value or surrogate it is.
    pub env_var: String,
    /// Where it was seen.
    pub place: Place,
}

impl Alarm {
    /// The word for it in answers and records.
    pub fn code(&self) -> &'static str {
        match self.kind {
            AlarmKind::SurrogateOutOfScope => "surrogate_out_of_scope",
            AlarmKind::RealValue => "real_value_in_request",
        }
    }
}

impl fmt::Display for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            env_var,
            place,
        } = self;
        match kind {
            AlarmKind::SurrogateOutOfScope => {
                write!(
                    f,
                    "the surrogate of {env_var} is in the {place} of a request that must not carry it"
                )
            }
            AlarmKind::RealValue => {
                write!(
                    f,
                    "the real value of {env_var} is in the {place} of a request from the container"
                )
            }
        }
    }
}

impl std::error::Error for Alarm {}

/// What was seen in a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AlarmKind {
    /// A surrogate on its way to a host outside its scope, or in the clear.
    SurrogateOutOfScope,
    /// A real value, which the container cannot know.
    RealValue,
}

/// Where in a request head something was seen.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Place {
    /// The name of the host.
    Host,
    /// The name or a value of a header.
    Header(HeaderName),
    /// The path.
    Path,
    /// The query.
    Query,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("host"),
            // The name itself may be what must not be repeated.
            Self::Header(_) => f.write_str("headers"),
            Self::Path => f.write_str("path"),
            Self::Query => f.write_str("query"),
        }
    }
}

/// How often a text may have been percent-encoded to hide what it holds.
const DECODINGS: usize = 3;
