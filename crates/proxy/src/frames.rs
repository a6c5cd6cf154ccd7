//! Counts the HTTP/2 requests of a connection as they come over the wire.
//!
//! The HTTP/2 library resets malformed streams without a word to us. What came in and was never
//! served is the difference.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, ReadBuf};

use crate::through::Reads;

/// The requests of one connection.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    opened: AtomicU64,
    served: AtomicU64,
}

impl Streams {
    pub(crate) fn serve(&self) {
        self.served.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }

    pub(crate) fn unserved(&self) -> u64 {
        self.opened
            .load(Ordering::Relaxed)
            .saturating_sub(self.served.load(Ordering::Relaxed))
    }
}

/// Looks at the frames of a connection as they are read.
pub(crate) struct Tap {
    /// Bytes that were read before the tap was set.
    read: BytesMut,
    streams: Arc<Streams>,
    frames: Frames,
}

impl Tap {
    pub(crate) fn new(read: BytesMut, streams: Arc<Streams>) -> Self {
        Self {
            read,
            streams,
            frames: Frames::default(),
        }
    }
}

impl<S: AsyncRead + Unpin> Reads<S> for Tap {
    fn poll_read(
        &mut self,
        below: &mut S,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        if self.read.is_empty() {
            ready!(Pin::new(below).poll_read(cx, buf))?;
        } else {
            let length = self.read.len().min(buf.remaining());
            buf.put_slice(&self.read[..length]);
            self.read.advance(length);
        }
        let opened = self.frames.advance(&buf.filled()[before..]);
        self.streams.opened.fetch_add(opened, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

/// Where in the sequence of frames we are.
struct Frames {
    /// Bytes to pass over: the preface, then payloads.
    skip: usize,
    header: [u8; FRAME_HEADER],
    have: usize,
    last: u32,
}

impl Default for Frames {
    fn default() -> Self {
        Self {
            skip: PREFACE,
            header: [0; FRAME_HEADER],
            have: 0,
            last: 0,
        }
    }
}

impl Frames {
    /// Takes note of bytes that were read. Returns how many streams they open.
    fn advance(&mut self, mut bytes: &[u8]) -> u64 {
        let mut opened = 0;
        while !bytes.is_empty() {
            let skip = self.skip.min(bytes.len());
            self.skip -= skip;
            bytes = &bytes[skip..];
            let take = (FRAME_HEADER - self.have).min(bytes.len());
            self.header[self.have..self.have + take].copy_from_slice(&bytes[..take]);
            self.have += take;
            bytes = &bytes[take..];
            if self.have == FRAME_HEADER {
                self.have = 0;
                let [a, b, c, kind, _, id @ ..] = self.header;
                self.skip = u32::from_be_bytes([0, a, b, c]) as usize;
                let id = u32::from_be_bytes(id) & STREAM_ID;
                // A later HEADERS frame of a known stream is its trailers.
                if kind == HEADERS && id > self.last {
                    self.last = id;
                    opened += 1;
                }
            }
        }
        opened
    }
}

/// Length of the fixed part of a frame.
const FRAME_HEADER: usize = 9;

/// Length of what a client sends before its first frame.
const PREFACE: usize = 24;

/// The type of a frame that opens a stream.
const HEADERS: u8 = 1;

/// The highest bit of a stream id is reserved.
const STREAM_ID: u32 = 0x7fff_ffff;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_counted_wherever_the_bytes_are_cut() {
        let mut wire = vec![0; PREFACE];
        let mut frame = |kind: u8, id: u8, payload: &[u8]| {
            wire.extend([
                0,
                0,
                u8::try_from(payload.len()).unwrap(),
                kind,
                0,
                0,
                0,
                0,
                id,
            ]);
            wire.extend(payload);
        };
        frame(4, 0, &[1; 12]);
        frame(HEADERS, 1, b"one");
        frame(0, 1, b"data");
        frame(HEADERS, 1, b"trailers");
        frame(HEADERS, 3, b"");
        for cut in 0..wire.len() {
            let mut frames = Frames::default();
            assert_eq!(
                frames.advance(&wire[..cut]) + frames.advance(&wire[cut..]),
                2,
                "cut at {cut}"
            );
        }
    }
}
