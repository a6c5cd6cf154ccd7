//! Replacement in request bodies, for the few services that take credentials there.
//!
//! The real value has the length of its surrogate and needs no escapes, so Content-Length stays right. Words are not
//! looked at: in JSON the letter of an escape such as `\n` may stand right before the token.

use std::{collections::BTreeSet, fmt, sync::Arc};

use bytes::Bytes;
use cordon_policy::Host;
use http::{
    HeaderMap,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};

use super::{Channel, Rules};
use crate::{
    SecretReplacements,
    rewrite::{Patterns, Rewriter},
};

impl SecretReplacements {
    /// What replaces surrogates in the body of a request with these headers; `None` if nothing may be replaced there.
    ///
    /// Bodies with a content encoding are left alone.
    pub fn body(&self, host: &Host, channel: Channel, headers: &HeaderMap) -> Option<BodyReplacer> {
        let content_type = content_type(headers)?;
        let rules = Rules::of(self.inner(), host, channel);
        let listed = |listed: &String| listed.eq_ignore_ascii_case(content_type);
        let values: BTreeSet<usize> = rules
            .masked()
            .filter(|masked| rules.usable[masked.value])
            .filter(|masked| {
                masked
                    .body
                    .as_ref()
                    .is_some_and(|body| body.content_types.iter().any(listed))
            })
            .map(|masked| masked.value)
            .collect();
        if values.is_empty() {
            return None;
        }
        let pattern = |&owner: &usize| self.inner().values[owner].surrogate_pattern(owner);
        let patterns = Patterns::new(values.iter().map(pattern));
        Some(BodyReplacer(Rewriter::new(
            Arc::new(patterns),
            Arc::default(),
        )))
    }
}

/// Puts real values into a body as it streams by, in memory bounded by the longest surrogate.
pub struct BodyReplacer(Rewriter);

impl BodyReplacer {
    /// Takes the next piece and gives back what can be sent.
    pub fn push(&mut self, piece: Bytes) -> Bytes {
        self.0.push(piece)
    }

    /// Gives back what is left at the end of the body.
    pub fn finish(&mut self) -> Bytes {
        self.0.finish()
    }

    /// How many surrogates were replaced.
    pub fn count(&self) -> u64 {
        self.0.count()
    }
}

impl fmt::Debug for BodyReplacer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyReplacer")
            .field("count", &self.count())
            .finish_non_exhaustive()
    }
}

/// The content type without parameters, of a body that is not compressed.
fn content_type(headers: &HeaderMap) -> Option<&str> {
    let encoded = |value: &http::HeaderValue| !value.as_bytes().eq_ignore_ascii_case(b"identity");
    if headers.get_all(CONTENT_ENCODING).iter().any(encoded) {
        return None;
    }
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or(value).trim())
}
