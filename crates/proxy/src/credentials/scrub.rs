//! Responses on their way back: real values become surrogates again, and nothing else waits.

use std::{
    io,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use cordon_secrets::{BodyScrubber, FrameScrubber, Scrub, ScrubError};
use http::{HeaderMap, response::Parts};
use http_body::{Body, Frame};
use hyper::body::Incoming;
use tokio::io::{AsyncRead, ReadBuf};

use crate::{body::Traffic, through::Reads};

/// A response body that is being scrubbed.
pub(crate) struct Scrubbing {
    scrub: Scrub,
    body: BodyScrubber,
    stage: Stage,
    trailers: Option<HeaderMap>,
    /// Nothing more comes from the upstream.
    over: bool,
    /// Replacements of headers and trailers, those of interim responses included.
    in_fields: u64,
}

impl Scrubbing {
    /// Scrubs the head of a response. Gives what scrubs its body, if it has one.
    pub(crate) fn begin(
        scrub: Scrub,
        parts: &mut Parts,
        has_body: bool,
        traffic: &Traffic,
    ) -> Result<Option<Self>, ScrubError> {
        let interim = traffic.scrubbed.load(Ordering::Relaxed);
        let in_fields = interim + scrub.headers(&mut parts.headers);
        traffic.scrubbed.store(in_fields, Ordering::Relaxed);
        if !has_body {
            return Ok(None);
        }
        let body = scrub.body(parts.status, &mut parts.headers)?;
        Ok(Some(Self {
            scrub,
            body,
            stage: Stage::Data,
            trailers: None,
            over: false,
            in_fields,
        }))
    }

    /// What can be sent on without more from the upstream.
    pub(crate) fn next(&mut self) -> Result<Option<Frame<Bytes>>, ScrubError> {
        if let Some(piece) = self.body.take()? {
            return Ok(Some(Frame::data(piece)));
        }
        match self.stage {
            Stage::Data => Ok(None),
            Stage::End => {
                self.stage = Stage::Trailers;
                self.body.end();
                self.next()
            }
            Stage::Trailers => Ok(self.trailers.take().map(Frame::trailers)),
        }
    }

    /// Takes a frame that came from the upstream, once `next` has nothing.
    pub(crate) fn feed(&mut self, frame: Frame<Bytes>, upstream: &Incoming) {
        match frame.into_data().map_err(Frame::into_trailers) {
            Ok(data) => self.body.feed(data),
            Err(Ok(mut trailers)) => {
                self.in_fields += self.scrub.headers(&mut trailers);
                self.trailers = Some(trailers);
                self.end();
            }
            // There are no other frames.
            Err(Err(_)) => {}
        }
        if upstream.is_end_stream() {
            self.end();
        } else if upstream.size_hint().exact() == Some(0) {
            // With a known length, nobody may ask for what follows the last byte.
            self.end_data();
        }
    }

    /// Nothing more comes.
    pub(crate) fn end(&mut self) {
        self.over = true;
        self.end_data();
    }

    fn end_data(&mut self) {
        if let Stage::Data = self.stage {
            self.stage = Stage::End;
        }
    }

    /// Whether nothing more comes.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// Whether all data was sent on.
    pub(crate) fn is_drained(&mut self) -> bool {
        match self.stage {
            Stage::Data => false,
            Stage::End | Stage::Trailers => matches!(self.next(), Ok(None)),
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.in_fields + self.body.count()
    }
}

/// How far a body is.
#[derive(Clone, Copy)]
enum Stage {
    /// More data may come.
    Data,
    /// No more data comes, which the scrubber does not know yet.
    End,
    /// Trailers may come.
    Trailers,
}

/// Scrubs the frames of a WebSocket as they are read from the upstream.
pub(crate) struct ScrubbedFrames {
    frames: FrameScrubber,
    ready: Bytes,
    ended: bool,
    traffic: Arc<Traffic>,
    /// Replacements of headers.
    in_fields: u64,
}

impl ScrubbedFrames {
    pub(crate) fn new(scrub: &Scrub, traffic: &Arc<Traffic>) -> Self {
        let in_fields = traffic.scrubbed.load(Ordering::Relaxed);
        let traffic = Arc::clone(traffic);
        Self {
            frames: scrub.frames(),
            ready: Bytes::new(),
            ended: false,
            traffic,
            in_fields,
        }
    }

    fn count(&self) {
        self.traffic
            .scrubbed
            .store(self.in_fields + self.frames.count(), Ordering::Relaxed);
    }
}

impl<S: AsyncRead + Unpin> Reads<S> for ScrubbedFrames {
    fn poll_read(
        &mut self,
        below: &mut S,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.ready.is_empty() && !self.ended {
            let mut bytes = [0; PIECE];
            let mut piece = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut *below).poll_read(cx, &mut piece))?;
            self.ready = match piece.filled() {
                [] => {
                    self.ended = true;
                    self.frames.finish()
                }
                read => self
                    .frames
                    .push(Bytes::copy_from_slice(read))
                    .map_err(io::Error::other)?,
            };
            self.count();
        }
        let length = self.ready.len().min(buf.remaining());
        buf.put_slice(&self.ready[..length]);
        self.ready.advance(length);
        Poll::Ready(Ok(()))
    }
}

/// How much is read at a time.
const PIECE: usize = 8 * 1024;
