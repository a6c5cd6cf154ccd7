//! Takes real values out of responses, before they reach the container.
//!
//! Only responses of hosts in a secret's scope are touched, since only those were sent real values; of these, all values
//! are scrubbed. Everything that replaces a value has its length, so Content-Length, chunks and frames stay right.
//!
//! Compressed bodies: the request asks for none (`ask_plain`), which costs no time and no memory and is obeyed nearly
//! always. What comes compressed nevertheless, such as an object that is stored so, is decoded, scrubbed and encoded
//! again as it streams by, with a flush after each piece; it then has another length and no longer fits its checksums.

mod body;
mod coding;
mod websocket;

use std::{fmt, sync::Arc};

use bytes::Bytes;
use cordon_policy::Host;
use http::{
    HeaderMap, HeaderValue,
    header::{ACCEPT_ENCODING, SEC_WEBSOCKET_EXTENSIONS},
};

use crate::{
    SecretReplacements,
    rewrite::{Patterns, Rewriter},
};

pub use body::BodyScrubber;
pub use coding::Coding;
pub use websocket::FrameScrubber;

impl SecretReplacements {
    /// What scrubs the responses of a host; `None` if the host is in no secret's scope.
    pub fn scrub(&self, host: &Host) -> Option<Scrub> {
        let in_scope = self.inner().in_scope(host);
        in_scope.contains(&true).then(|| Scrub {
            patterns: Arc::clone(&self.inner().reals),
            in_scope: in_scope.into(),
        })
    }
}

/// Scrubs the messages that come from one host.
#[derive(Clone)]
pub struct Scrub {
    patterns: Arc<Patterns>,
    /// Where two secrets have the same value, the surrogate that this host may see is the one that comes back.
    in_scope: Arc<[bool]>,
}

impl Scrub {
    /// Changes the headers of a request so that its response can be scrubbed: no compression, neither of the body nor of
    /// WebSocket messages.
    ///
    /// Signing comes after this, since some clients sign `accept-encoding`.
    pub fn ask_plain(&self, request: &mut HeaderMap) {
        request.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        request.remove(SEC_WEBSOCKET_EXTENSIONS);
    }

    /// Scrubs header or trailer fields; gives the number of replacements.
    pub fn headers(&self, fields: &mut HeaderMap) -> u64 {
        let mut rewriter = self.rewriter();
        for value in fields.values_mut() {
            let Some(scrubbed) = rewriter.whole(value.as_bytes()) else {
                continue;
            };
            let sensitive = value.is_sensitive();
            // Letters take the place of whatever was there, so the result is a header value as well.
            *value = HeaderValue::try_from(scrubbed).unwrap_or(HeaderValue::from_static(""));
            value.set_sensitive(sensitive);
        }
        rewriter.count()
    }

    /// What scrubs bytes as they are.
    pub fn stream(&self) -> Scrubber {
        Scrubber(self.rewriter())
    }

    /// What scrubs the frames that follow a WebSocket handshake.
    pub fn frames(&self) -> FrameScrubber {
        FrameScrubber::new(self.rewriter())
    }

    fn rewriter(&self) -> Rewriter {
        Rewriter::new(Arc::clone(&self.patterns), Arc::clone(&self.in_scope))
    }
}

impl fmt::Debug for Scrub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scrub").finish_non_exhaustive()
    }
}

/// Scrubs a stream of bytes without changing its length.
///
/// Memory is bounded by the longest spelling of a value. Nothing waits but an end that may be the beginning of one.
pub struct Scrubber(Rewriter);

impl Scrubber {
    /// Takes the next piece and gives back what is settled: the same bytes, uncopied, if nothing in them changed.
    pub fn push(&mut self, piece: Bytes) -> Bytes {
        self.0.push(piece)
    }

    /// Gives back what waited, at the end of the stream.
    pub fn flush(&mut self) -> Bytes {
        self.0.finish()
    }

    /// How many bytes wait for what follows them.
    pub fn held(&self) -> usize {
        self.0.held()
    }

    /// How many replacements were made.
    pub fn count(&self) -> u64 {
        self.0.count()
    }
}

impl fmt::Debug for Scrubber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scrubber")
            .field("count", &self.count())
            .finish_non_exhaustive()
    }
}

/// Why a response cannot be scrubbed; it must end here.
#[derive(Debug, thiserror::Error)]
pub enum ScrubError {
    /// A content coding that nobody here can read, or several on top of each other.
    #[error("the response has a content coding that cannot be scrubbed")]
    UnknownCoding,
    /// A part of a compressed body means nothing without what comes before it.
    #[error("the response is a part of a {coding} body, which cannot be scrubbed")]
    Partial {
        /// The coding.
        coding: Coding,
    },
    /// The compressed body is broken.
    #[error("the {coding} body does not decode")]
    Malformed {
        /// The coding.
        coding: Coding,
    },
    /// The compressed body ends too early.
    #[error("the {coding} body is cut off")]
    Truncated {
        /// The coding.
        coding: Coding,
    },
    /// The compressed body unpacks to more than any honest one.
    #[error("the {coding} body unpacks to over {} times its size", body::MAX_RATIO)]
    Bomb {
        /// The coding.
        coding: Coding,
    },
    /// The encoder failed.
    #[error("the scrubbed {coding} body cannot be encoded")]
    Encode {
        /// The coding.
        coding: Coding,
    },
    /// The frame breaks the WebSocket protocol, or uses an extension that was not agreed on.
    #[error("the server sent a WebSocket frame that breaks the protocol")]
    Frame,
    /// The server sends frames in the middle of a message, without end.
    #[error("the server sent too many WebSocket frames inside one message")]
    Backlog,
}

#[cfg(test)]
mod tests;
