//! Scrubs a response body, compressed or not.
//!
//! Input and output are decoupled: whatever is fed comes out in pieces of bounded size, so that a small input that
//! unpacks to gigabytes meets the reader's pace and never fills memory.

use std::{fmt, io, mem};

use bytes::{Buf, Bytes};
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{ACCEPT_RANGES, CONTENT_LENGTH, ETAG},
};

use super::{
    Coding, Scrub, ScrubError, Scrubber,
    coding::{Decoder, Encoder},
};

impl Scrub {
    /// What scrubs the body of a response that has one, by its status and headers.
    ///
    /// For a compressed body the headers that speak of its bytes are taken out or weakened: the response has another
    /// length afterwards, and only then.
    pub fn body(
        &self,
        status: StatusCode,
        headers: &mut HeaderMap,
    ) -> Result<BodyScrubber, ScrubError> {
        let Some(coding) = Coding::declared(headers)? else {
            return Ok(BodyScrubber(Kind::Plain {
                scrubber: self.stream(),
                ready: Bytes::new(),
            }));
        };
        if status == StatusCode::PARTIAL_CONTENT {
            return Err(ScrubError::Partial { coding });
        }
        forget_bytes(headers);
        Ok(BodyScrubber(Kind::Coded(Box::new(Coded {
            coding,
            decoder: Decoder::new(coding)?,
            encoder: None,
            scrubber: self.stream(),
            input: Bytes::new(),
            unpacked: vec![0; PIECE].into(),
            progress: Progress::default(),
            read: 0,
            written: 0,
        }))))
    }
}

/// Scrubs one body.
///
/// Feed a piece, then take until there is nothing; after the last piece, say `end` and take once more.
pub struct BodyScrubber(Kind);

enum Kind {
    Plain { scrubber: Scrubber, ready: Bytes },
    Coded(Box<Coded>),
}

impl BodyScrubber {
    /// Hands over the next piece.
    pub fn feed(&mut self, piece: Bytes) {
        match &mut self.0 {
            Kind::Plain { scrubber, ready } => append(ready, scrubber.push(piece)),
            Kind::Coded(coded) => append(&mut coded.input, piece),
        }
    }

    /// Says that no more pieces come.
    pub fn end(&mut self) {
        match &mut self.0 {
            Kind::Plain { scrubber, ready } => append(ready, scrubber.flush()),
            Kind::Coded(coded) => coded.progress.last = true,
        }
    }

    /// What can be sent on; `None` until there is more input. After an error the response must be cut off.
    pub fn take(&mut self) -> Result<Option<Bytes>, ScrubError> {
        let piece = match &mut self.0 {
            Kind::Plain { ready, .. } => mem::take(ready),
            Kind::Coded(coded) => coded.take()?,
        };
        Ok((!piece.is_empty()).then_some(piece))
    }

    /// How many replacements were made.
    pub fn count(&self) -> u64 {
        match &self.0 {
            Kind::Plain { scrubber, .. } => scrubber.count(),
            Kind::Coded(coded) => coded.scrubber.count(),
        }
    }
}

impl fmt::Debug for BodyScrubber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyScrubber")
            .field("count", &self.count())
            .finish_non_exhaustive()
    }
}

/// A body that is decoded, scrubbed and encoded.
struct Coded {
    coding: Coding,
    decoder: Decoder,
    encoder: Option<Encoder>,
    scrubber: Scrubber,
    input: Bytes,
    unpacked: Box<[u8]>,
    progress: Progress,
    /// Compressed bytes so far.
    read: u64,
    /// Unpacked bytes so far.
    written: u64,
}

/// How far a body is.
#[derive(Default)]
struct Progress {
    /// The decoder stopped for want of room and not of input.
    more: bool,
    /// What was read so far is complete; another such part may follow.
    complete: bool,
    /// The encoder holds something that the other end cannot read yet.
    unflushed: bool,
    /// No more input comes.
    last: bool,
    /// All is said.
    done: bool,
}

impl Coded {
    fn take(&mut self) -> Result<Bytes, ScrubError> {
        while !self.input.is_empty() || self.progress.more {
            let ready = self.unpack()?;
            if !ready.is_empty() {
                return Ok(ready);
            }
        }
        let encode = |_: io::Error| ScrubError::Encode {
            coding: self.coding,
        };
        let Some(encoder) = &mut self.encoder else {
            return Ok(Bytes::new());
        };
        if self.progress.last && !self.progress.done {
            if !self.progress.complete {
                return Err(ScrubError::Truncated {
                    coding: self.coding,
                });
            }
            encoder.write(&self.scrubber.flush()).map_err(encode)?;
            encoder.finish().map_err(encode)?;
            self.progress.done = true;
        } else if mem::take(&mut self.progress.unflushed) && !self.progress.done {
            encoder.flush().map_err(encode)?;
        }
        Ok(encoder.take().into())
    }

    /// Takes one step with the decoder, and passes on what it gives.
    fn unpack(&mut self) -> Result<Bytes, ScrubError> {
        if self.progress.complete && !self.begin_next_part()? {
            // What follows the end is no part of the body.
            self.input.clear();
            return Ok(Bytes::new());
        }
        let encode = |_: io::Error| ScrubError::Encode {
            coding: self.coding,
        };
        let encoder = match &mut self.encoder {
            Some(encoder) => encoder,
            none => none.insert(Encoder::like(&self.decoder, &self.input).map_err(encode)?),
        };
        let step = self.decoder.step(&self.input, &mut self.unpacked)?;
        self.input.advance(step.consumed);
        self.read += step.consumed as u64;
        self.written += step.produced as u64;
        if self.written > UNCHECKED && self.written / MAX_RATIO > self.read {
            return Err(ScrubError::Bomb {
                coding: self.coding,
            });
        }
        self.progress.complete = step.ended;
        self.progress.more = !step.ended && step.produced == self.unpacked.len();
        if step.consumed == 0 && step.produced == 0 && !step.ended && !self.input.is_empty() {
            return Err(ScrubError::Malformed {
                coding: self.coding,
            });
        }
        let scrubbed = self
            .scrubber
            .push(Bytes::copy_from_slice(&self.unpacked[..step.produced]));
        encoder.write(&scrubbed).map_err(encode)?;
        self.progress.unflushed |= !scrubbed.is_empty();
        Ok(encoder.take().into())
    }

    /// Gets ready for another part; of the codings, two allow for any.
    fn begin_next_part(&mut self) -> Result<bool, ScrubError> {
        let begins = match self.coding {
            Coding::Gzip => self.input.first() == Some(&GZIP_MAGIC),
            Coding::Zstd => true,
            Coding::Deflate | Coding::Brotli => false,
        };
        if begins {
            self.decoder = Decoder::new(self.coding)?;
        }
        Ok(begins)
    }
}

/// Callers that take everything before they feed again never need the copy.
fn append(bytes: &mut Bytes, more: Bytes) {
    *bytes = if bytes.is_empty() {
        more
    } else {
        [bytes.as_ref(), more.as_ref()].concat().into()
    };
}

/// Takes out what the headers say about bytes that will be others.
fn forget_bytes(headers: &mut HeaderMap) {
    let about_bytes = |name: &HeaderName| {
        BYTE_HEADERS.contains(&name.as_str()) || name.as_str().starts_with("x-amz-checksum-")
    };
    for name in Vec::from_iter(headers.keys().filter(|name| about_bytes(name)).cloned()) {
        headers.remove(name);
    }
    headers.remove(CONTENT_LENGTH);
    headers.remove(ACCEPT_RANGES);
    // A weak tag cannot be used to fetch the rest of another copy.
    if let Some(tag) = headers.get_mut(ETAG)
        && !tag.as_bytes().starts_with(b"W/")
        && let Ok(weak) = HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat())
    {
        *tag = weak;
    }
}

const BYTE_HEADERS: &[&str] = &[
    "content-digest",
    "content-md5",
    "digest",
    "repr-digest",
    "x-goog-hash",
];

/// Begins every part of a gzip body.
const GZIP_MAGIC: u8 = 0x1f;

/// How much is unpacked at a time.
const PIECE: usize = 16 * 1024;

/// Text seldom packs better than twenty to one.
pub(super) const MAX_RATIO: u64 = 200;

/// Small bodies may be as repetitive as they like.
const UNCHECKED: u64 = 32 * 1024 * 1024;
