//! Looks at each HTTP/1 request head before the HTTP library does.
//!
//! The library answers what it cannot parse by itself, without a word to us, and mends what it
//! should refuse. So the front passes on only heads that mean one thing. In place of a bad head it
//! passes on a stand-in, which the service recognises and answers with the reason; the request then
//! takes the same path as all others and leaves its one record. Nothing follows a stand-in.

mod framing;
mod head;
mod lane;

use std::{
    io,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep},
};
use tokio_util::io::poll_read_buf;

use crate::{Limits, refusal::MalformedHead};

use framing::Framing;
pub(crate) use head::BadHead;
use head::Parsed;
use lane::Lane;
pub(crate) use lane::Turn;

/// A connection whose request heads have been looked at.
pub(crate) struct Front<S> {
    inner: S,
    heads: Arc<Heads>,
    state: State,
    /// Bytes that were read and not passed on.
    buffer: BytesMut,
    /// How much of the buffer was searched for the end of a head.
    searched: usize,
    /// What is left to write of heads from the lane.
    interim: BytesMut,
    timer: Option<Pin<Box<Sleep>>>,
    bounds: Bounds,
}

/// What the front tells the service about the heads it passed on, and the other way round.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    passed: AtomicUsize,
    served: AtomicUsize,
    refused: OnceLock<BadHead>,
    open: AtomicUsize,
    /// Whether a request has ended since the front last looked.
    ended: AtomicBool,
    upgraded: AtomicBool,
    /// Interim responses to the request under way.
    pub(crate) lane: Lane,
}

impl Heads {
    /// To be called once for each request: the bad head that it stands for, if it does.
    pub(crate) fn next(&self) -> Option<&BadHead> {
        let index = self.served.fetch_add(1, Ordering::Relaxed);
        if index < self.passed.load(Ordering::Acquire) {
            None
        } else {
            self.refused.get()
        }
    }

    /// From now on the bytes are no HTTP.
    pub(crate) fn upgrade(&self) {
        self.upgraded.store(true, Ordering::Release);
    }

    /// Whether a request is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }

    /// Keeps the connection from being taken for idle.
    pub(crate) fn open(self: &Arc<Self>) -> Open {
        self.open.fetch_add(1, Ordering::Relaxed);
        Open(Arc::clone(self))
    }
}

/// A request under way on a connection.
#[derive(Debug)]
pub(crate) struct Open(Arc<Heads>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Relaxed);
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

enum State {
    /// Reading a head into the buffer.
    Head,
    /// Passing on this many bytes of the buffer, which are a head, and then a body.
    Pass(usize, Framing),
    /// Passing on a body.
    Body(Framing),
    /// Passing on everything.
    Raw,
    /// Passing on what is left of a stand-in, and then nothing more.
    StandIn(&'static [u8]),
    /// Reading and dropping what the client still sends, so that it gets to read our answer.
    Linger { bytes: usize },
}

struct Bounds {
    head_bytes: usize,
    head_count: usize,
    head_time: Duration,
    idle_time: Duration,
}

impl<S> Front<S> {
    /// Takes over a connection of which `read` has been read already.
    pub(crate) fn new(inner: S, read: BytesMut, heads: Arc<Heads>, limits: &Limits) -> Self {
        Self {
            inner,
            heads,
            state: State::Head,
            buffer: read,
            searched: 0,
            interim: BytesMut::new(),
            timer: None,
            bounds: Bounds {
                head_bytes: limits.header_bytes,
                head_count: limits.header_count,
                head_time: limits.header_time,
                idle_time: limits.idle_time,
            },
        }
    }

    /// Looks for a head at the start of the buffer. True once there is a verdict.
    fn judge(&mut self) -> bool {
        if !self.worth_parsing() {
            return false;
        }
        match head::parse(&self.buffer, self.bounds.head_count) {
            Parsed::Partial => return false,
            Parsed::Complete { length, .. } if length > self.bounds.head_bytes => {
                self.refuse(MalformedHead::TooLarge);
            }
            Parsed::Complete { length, framing } => {
                self.heads.passed.fetch_add(1, Ordering::Release);
                self.state = State::Pass(length, framing);
                self.searched = 0;
            }
            Parsed::Bad(why) => self.refuse(why),
        }
        self.timer = None;
        true
    }

    /// Parsing again for every byte that trickles in would be quadratic work. A head ends with an
    /// empty line; before that only the first line is worth a look.
    fn worth_parsing(&mut self) -> bool {
        let fresh = &self.buffer[self.searched.saturating_sub(2)..];
        let first_line = !self.buffer[..self.searched].contains(&b'\n') && fresh.contains(&b'\n');
        let end = fresh.windows(2).any(|pair| pair == b"\n\n")
            || fresh.windows(3).any(|triple| triple == b"\n\r\n");
        self.searched = self.buffer.len();
        first_line || end
    }

    fn refuse(&mut self, why: MalformedHead) {
        // The first refusal is the last: nothing is read after it.
        let _ = self.heads.refused.set(BadHead::new(&self.buffer, why));
        self.buffer.clear();
        self.state = State::StandIn(STAND_IN);
    }

    /// Passes on up to `limit` bytes of the buffer.
    fn give(&mut self, buf: &mut ReadBuf<'_>, limit: usize) -> usize {
        let length = self.buffer.len().min(buf.remaining()).min(limit);
        buf.put_slice(&self.buffer[..length]);
        self.buffer.advance(length);
        length
    }

    /// Whether time is up. Armed when the front begins to wait, and again while a request is open.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let time = if self.buffer.is_empty() {
            self.bounds.idle_time
        } else {
            self.bounds.head_time
        };
        loop {
            let timer = self
                .timer
                .get_or_insert_with(|| Box::pin(tokio::time::sleep(time)));
            ready!(timer.as_mut().poll(cx));
            let busy = self.heads.is_busy() || self.heads.ended.swap(false, Ordering::Relaxed);
            if !busy || !self.buffer.is_empty() {
                return Poll::Ready(());
            }
            timer.as_mut().reset(Instant::now() + time);
        }
    }
}

impl<S: AsyncRead + Unpin> Front<S> {
    /// Reads until there is a verdict on the next head. Ready without one at the end of the stream.
    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if self.heads.upgraded.load(Ordering::Acquire) {
                self.state = State::Raw;
                return Poll::Ready(Ok(()));
            }
            if self.judge() {
                return Poll::Ready(Ok(()));
            }
            if self.buffer.len() >= self.bounds.head_bytes {
                self.refuse(MalformedHead::TooLarge);
                return Poll::Ready(Ok(()));
            }
            let empty = self.buffer.is_empty();
            match self.poll_fill(cx) {
                Poll::Ready(read) => {
                    let ended = read? == 0;
                    if ended && !empty {
                        self.refuse(MalformedHead::Incomplete);
                    }
                    if ended {
                        return Poll::Ready(Ok(()));
                    }
                    if empty {
                        // From idle to reading a head: another clock.
                        self.timer = None;
                    }
                }
                Poll::Pending => {
                    ready!(self.poll_timer(cx));
                    if !empty {
                        self.refuse(MalformedHead::TooSlow);
                    }
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.buffer.reserve(READ_SIZE);
        poll_read_buf(Pin::new(&mut self.inner), cx, &mut self.buffer)
    }

    fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
        mut framing: Framing,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let limit = framing.at_most();
        if !self.buffer.is_empty() {
            self.give(buf, limit);
        } else if limit >= buf.remaining() {
            ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        } else {
            let mut part = ReadBuf::new(buf.initialize_unfilled_to(limit));
            ready!(Pin::new(&mut self.inner).poll_read(cx, &mut part))?;
            let read = part.filled().len();
            buf.advance(read);
        }
        let body = framing.advance(&buf.filled()[before..]);
        // What follows the body is the next head and waits for its verdict.
        let (_, surplus) = buf.filled()[before..].split_at(body);
        if !surplus.is_empty() {
            let mut rest = BytesMut::from(surplus);
            rest.unsplit(std::mem::take(&mut self.buffer));
            self.buffer = rest;
            buf.set_filled(before + body);
        }
        self.state = if framing.is_done() {
            State::Head
        } else {
            State::Body(framing)
        };
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> Front<S> {
    /// Writes the heads that wait in the lane.
    fn poll_lane(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_interim(cx))?;
            let unread = matches!(self.state, State::Pass(0, framing) if !framing.is_done());
            match self.heads.lane.next(unread, cx) {
                Some(heads) => self.interim = heads,
                None => return Poll::Ready(Ok(())),
            }
        }
    }

    /// Writes to its end what was begun. Nothing else may be written before that.
    fn poll_interim(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.interim.is_empty() {
            let written = ready!(Pin::new(&mut self.inner).poll_write(cx, &self.interim))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.interim.advance(written);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Front<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            match this.state {
                State::Head => {
                    ready!(this.poll_head(cx))?;
                    if matches!(this.state, State::Head) {
                        return Poll::Ready(Ok(()));
                    }
                }
                State::Pass(0, framing) if framing.is_done() => this.state = State::Head,
                State::Pass(0, framing) => this.state = State::Body(framing),
                State::Pass(length, framing) => {
                    let given = this.give(buf, length);
                    this.state = State::Pass(length - given, framing);
                    return Poll::Ready(Ok(()));
                }
                State::Body(framing) => return this.poll_body(cx, buf, framing),
                State::Raw if this.buffer.is_empty() => {
                    return Pin::new(&mut this.inner).poll_read(cx, buf);
                }
                State::Raw => {
                    this.give(buf, usize::MAX);
                    return Poll::Ready(Ok(()));
                }
                // The answer to a stand-in closes the connection; until then there is nothing to read.
                State::StandIn([]) | State::Linger { .. } => return Poll::Pending,
                State::StandIn(rest) => {
                    let (now, later) = rest.split_at(rest.len().min(buf.remaining()));
                    buf.put_slice(now);
                    this.state = State::StandIn(later);
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Front<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_interim(cx))?;
        Pin::new(&mut this.inner).poll_write(cx, buf)
    }

    /// The library flushes when it has written all that it holds, so interim responses go here. Once the
    /// response has begun there are none.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.heads.lane.is_closed() {
            ready!(this.poll_lane(cx))?;
        }
        Pin::new(&mut this.inner).poll_flush(cx)
    }

    /// Closes our side first. A socket that is dropped with unread bytes in it is reset, and the
    /// client may then never see the refusal that it was sent.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let mut dropped = match this.state {
            State::Linger { bytes } => bytes,
            State::Body(_) | State::StandIn(_) => {
                ready!(Pin::new(&mut this.inner).poll_shutdown(cx))?;
                this.timer = Some(Box::pin(tokio::time::sleep(LINGER_TIME)));
                0
            }
            State::Head | State::Pass(..) | State::Raw => {
                return Pin::new(&mut this.inner).poll_shutdown(cx);
            }
        };
        let mut sink = [0; LINGER_READ];
        while dropped < LINGER_BYTES {
            this.state = State::Linger { bytes: dropped };
            let mut buf = ReadBuf::new(&mut sink);
            match Pin::new(&mut this.inner).poll_read(cx, &mut buf) {
                Poll::Ready(Ok(())) if !buf.filled().is_empty() => dropped += buf.filled().len(),
                Poll::Ready(_) => break,
                Poll::Pending => match &mut this.timer {
                    Some(timer) => {
                        ready!(timer.as_mut().poll(cx));
                        break;
                    }
                    None => break,
                },
            }
        }
        this.state = State::StandIn(&[]);
        Poll::Ready(Ok(()))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_interim(cx))?;
        Pin::new(&mut this.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

/// What the HTTP library sees in place of a bad head.
const STAND_IN: &[u8] = b"GET / HTTP/1.1\r\nhost: refused.invalid\r\nconnection: close\r\n\r\n";

/// One read of a head; most fit.
const READ_SIZE: usize = 8192;

/// A client that uploads against a refusal has this long to notice it,
const LINGER_TIME: Duration = Duration::from_secs(2);

/// and may send this much in that time.
const LINGER_BYTES: usize = 4 * 1024 * 1024;

/// One read of what is dropped; lives on the stack.
const LINGER_READ: usize = 4096;

#[cfg(test)]
mod tests;
