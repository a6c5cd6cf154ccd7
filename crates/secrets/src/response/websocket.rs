//! Scrubs the frames that a WebSocket server sends.
//!
//! A value may lie across the fragments of one message, so payloads are scrubbed as one stream for each message and put
//! back between the same frame headers. Frames keep their lengths; nothing is kept beyond what the scrubber holds and the
//! headers behind it. Extensions change what a payload means and must not be agreed on: see `Scrub::ask_plain`.

use std::{collections::VecDeque, fmt, mem};

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, header::SEC_WEBSOCKET_EXTENSIONS};

use super::ScrubError;
use crate::rewrite::Rewriter;

/// Scrubs all frames after one handshake, from the server to the client.
pub struct FrameScrubber {
    rewriter: Rewriter,
    reading: Reading,
    in_message: bool,
    /// Bytes of the present message that came in.
    received: u64,
    /// Those of them that went out.
    sent: u64,
    /// Frame headers and control frames, with the place in the message that they stand at.
    waiting: VecDeque<(u64, Vec<u8>)>,
    backlog: usize,
}

impl FrameScrubber {
    pub(super) fn new(rewriter: Rewriter) -> Self {
        Self {
            rewriter,
            reading: Reading::Header(Vec::new()),
            in_message: false,
            received: 0,
            sent: 0,
            waiting: VecDeque::new(),
            backlog: 0,
        }
    }

    /// Checks the server's answer to a handshake: it must not have agreed on an extension.
    pub fn check_handshake(response: &HeaderMap) -> Result<(), ScrubError> {
        if response.contains_key(SEC_WEBSOCKET_EXTENSIONS) {
            return Err(ScrubError::Frame);
        }
        Ok(())
    }

    /// Takes the next bytes from the server and gives back what can be sent on. After an error, the connection must be
    /// closed.
    pub fn push(&mut self, mut bytes: Bytes) -> Result<Bytes, ScrubError> {
        let mut out = BytesMut::with_capacity(bytes.len());
        while !bytes.is_empty() {
            match &mut self.reading {
                Reading::Header(header) => {
                    header.push(bytes.get_u8());
                    if let Some(frame) = Frame::parse(header)? {
                        let header = mem::take(header);
                        self.begin(frame, header, &mut out)?;
                    }
                }
                Reading::Data { left, last } => {
                    let length = bytes
                        .len()
                        .min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= length as u64;
                    let end = (*left == 0).then_some(*last);
                    self.received += length as u64;
                    let settled = self.rewriter.push(bytes.split_to(length));
                    self.send(&settled, &mut out);
                    if let Some(last) = end {
                        self.end_frame(last, &mut out);
                    }
                }
                Reading::Control { frame, left } => {
                    let length = bytes.len().min(*left);
                    frame.extend_from_slice(&bytes.split_to(length));
                    *left -= length;
                    if *left == 0 {
                        let frame = mem::take(frame);
                        self.end_control(frame, &mut out)?;
                    }
                }
            }
        }
        Ok(out.freeze())
    }

    /// Gives back what waited, when the server closes the connection in the middle of a message.
    pub fn finish(&mut self) -> Bytes {
        let mut out = BytesMut::new();
        let rest = self.rewriter.finish();
        self.send(&rest, &mut out);
        out.freeze()
    }

    /// How many replacements were made.
    pub fn count(&self) -> u64 {
        self.rewriter.count()
    }

    fn begin(
        &mut self,
        frame: Frame,
        header: Vec<u8>,
        out: &mut BytesMut,
    ) -> Result<(), ScrubError> {
        let (last, length) = match frame {
            Frame::Control { length: 0 } => return self.end_control(header, out),
            Frame::Control { length } => {
                self.reading = Reading::Control {
                    frame: header,
                    left: length,
                };
                return Ok(());
            }
            Frame::Data {
                first,
                last,
                length,
            } => {
                if first == self.in_message {
                    return Err(ScrubError::Frame);
                }
                (last, length)
            }
        };
        self.in_message = !last;
        self.wait(header, out)?;
        self.reading = Reading::Data { left: length, last };
        if length == 0 {
            self.end_frame(last, out);
        }
        Ok(())
    }

    fn end_frame(&mut self, last: bool, out: &mut BytesMut) {
        if last {
            let rest = self.rewriter.finish();
            self.send(&rest, out);
            (self.received, self.sent) = (0, 0);
        }
        self.reading = Reading::Header(Vec::new());
    }

    fn end_control(&mut self, mut frame: Vec<u8>, out: &mut BytesMut) -> Result<(), ScrubError> {
        if let Some(scrubbed) = self.rewriter.whole(&frame[CONTROL_HEADER..]) {
            frame.splice(CONTROL_HEADER.., scrubbed);
        }
        self.reading = Reading::Header(Vec::new());
        self.wait(frame, out)
    }

    /// Puts a header or control frame behind the payload that came before it.
    fn wait(&mut self, bytes: Vec<u8>, out: &mut BytesMut) -> Result<(), ScrubError> {
        self.backlog += bytes.len();
        self.waiting.push_back((self.received, bytes));
        self.send(&[], out);
        if self.backlog > MAX_BACKLOG {
            return Err(ScrubError::Backlog);
        }
        Ok(())
    }

    /// Sends payload, with everything that stands before, in or right behind it.
    fn send(&mut self, mut payload: &[u8], out: &mut BytesMut) {
        while let Some((place, _)) = self.waiting.front() {
            let before = usize::try_from(place - self.sent).unwrap_or(usize::MAX);
            let Some((head, rest)) = payload.split_at_checked(before) else {
                break;
            };
            out.extend_from_slice(head);
            self.sent += head.len() as u64;
            payload = rest;
            if let Some((_, bytes)) = self.waiting.pop_front() {
                self.backlog -= bytes.len();
                out.extend_from_slice(&bytes);
            }
        }
        out.extend_from_slice(payload);
        self.sent += payload.len() as u64;
    }
}

impl fmt::Debug for FrameScrubber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameScrubber")
            .field("count", &self.count())
            .finish_non_exhaustive()
    }
}

/// What the next bytes are.
enum Reading {
    Header(Vec<u8>),
    Data { left: u64, last: bool },
    Control { frame: Vec<u8>, left: usize },
}

/// What a frame header says.
enum Frame {
    Control {
        length: usize,
    },
    Data {
        first: bool,
        last: bool,
        length: u64,
    },
}

impl Frame {
    /// Reads a header as far as it came; `None` if there is more to come.
    fn parse(header: &[u8]) -> Result<Option<Self>, ScrubError> {
        let [flags, length, ref rest @ ..] = *header else {
            return Ok(None);
        };
        let (last, reserved, opcode) = (flags & 0x80 != 0, flags & 0x70, flags & 0x0f);
        // Reserved bits belong to extensions; only clients mask.
        if reserved != 0 || length & 0x80 != 0 {
            return Err(ScrubError::Frame);
        }
        match (opcode, length) {
            (0x8..=0xa, 0..=125) if last => Ok(Some(Self::Control {
                length: length.into(),
            })),
            (0x0..=0x2, _) => {
                let length = match (length, rest) {
                    (0..=125, _) => length.into(),
                    (126, &[a, b]) => u16::from_be_bytes([a, b]).into(),
                    (127, rest) if rest.len() == 8 => rest
                        .iter()
                        .fold(0, |length, &byte| length << 8 | u64::from(byte)),
                    _ => return Ok(None),
                };
                if length > i64::MAX as u64 {
                    return Err(ScrubError::Frame);
                }
                Ok(Some(Self::Data {
                    first: opcode != 0,
                    last,
                    length,
                }))
            }
            _ => Err(ScrubError::Frame),
        }
    }
}

/// Control frames are short, and so is their header.
const CONTROL_HEADER: usize = 2;

/// Pings and empty fragments that a server may send while a value hangs in the balance.
const MAX_BACKLOG: usize = 64 * 1024;

#[cfg(test)]
mod tests;
