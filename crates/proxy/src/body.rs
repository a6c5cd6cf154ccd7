//! Bodies on their way through: counted, never kept.

use std::{
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use cordon_secrets::ScrubError;
use futures_util::task::AtomicWaker;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant, Sleep},
};

use crate::{
    credentials::{BrokenUpload, Rewriting, Scrubbing},
    exchange::Exchange,
    inspect::Inspected,
    log::Broken,
    upload::Upload,
    upstream::{Lease, describe},
};

/// What the bodies of an exchange come to.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    /// Bytes that went each way.
    pub(crate) up: AtomicU64,
    pub(crate) down: AtomicU64,
    /// Whether the request body has been sent to its end.
    pub(crate) uploaded: AtomicBool,
    /// Holds the request body back until the upstream wants it.
    pub(crate) gate: Gate,
    /// Surrogates that were replaced in the body of the request.
    pub(crate) masked: AtomicU64,
    /// Real values that were taken out of the response.
    pub(crate) scrubbed: AtomicU64,
    /// Why the request broke off half-way: it could not be signed to its end.
    pub(crate) unsigned: OnceLock<cordon_sigv4::Error>,
}

/// Open, unless somebody waits for `100 Continue`.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    shut: AtomicBool,
    waiting: AtomicWaker,
}

impl Gate {
    pub(crate) fn shut(&self) {
        self.shut.store(true, Ordering::Release);
    }

    pub(crate) fn is_shut(&self) -> bool {
        self.shut.load(Ordering::Acquire)
    }

    pub(crate) fn open(&self) {
        self.shut.store(false, Ordering::Release);
        self.waiting.wake();
    }

    fn poll(&self, cx: &Context<'_>) -> Poll<()> {
        if !self.shut.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        self.waiting.register(cx.waker());
        if self.shut.load(Ordering::Acquire) {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }
}

/// A request body on its way to the upstream.
pub(crate) enum RequestBody {
    Empty,
    /// Read already, because its content had to be judged.
    Kept {
        bytes: Option<Bytes>,
        traffic: Arc<Traffic>,
        _place: OwnedSemaphorePermit,
    },
    Passing {
        incoming: Upload,
        traffic: Arc<Traffic>,
    },
    /// Changed as it passes, for the sake of credentials.
    Rewritten(Box<Rewriting>),
}

impl RequestBody {
    pub(crate) fn new(incoming: Upload, traffic: &Arc<Traffic>) -> Self {
        if incoming.is_end_stream() {
            return Self::Empty;
        }
        Self::Passing {
            incoming,
            traffic: Arc::clone(traffic),
        }
    }

    pub(crate) fn kept(inspected: Inspected, traffic: &Arc<Traffic>) -> Self {
        let Inspected { bytes, place } = inspected;
        Self::Kept {
            bytes: Some(bytes),
            traffic: Arc::clone(traffic),
            _place: place,
        }
    }

    /// The bytes of a body that was read already.
    pub(crate) fn kept_bytes(&self) -> &[u8] {
        match self {
            Self::Kept {
                bytes: Some(bytes), ..
            } => bytes,
            Self::Empty
            | Self::Kept { bytes: None, .. }
            | Self::Passing { .. }
            | Self::Rewritten(_) => &[],
        }
    }

    /// Tells at any later time how much of it was sent. None for the empty body.
    pub(crate) fn traffic(&self) -> Option<&Arc<Traffic>> {
        match self {
            Self::Empty => None,
            Self::Kept { traffic, .. } | Self::Passing { traffic, .. } => Some(traffic),
            Self::Rewritten(rewriting) => Some(&rewriting.traffic),
        }
    }

    fn count<E>(&self, frame: Option<&Result<Frame<Bytes>, E>>) {
        let Some(traffic) = self.traffic() else {
            return;
        };
        if let Some(Ok(frame)) = frame
            && let Some(data) = frame.data_ref()
        {
            traffic.up.fetch_add(data.len() as u64, Ordering::Relaxed);
        }
        if frame.is_none() || self.is_end_stream() {
            traffic.uploaded.store(true, Ordering::Release);
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BrokenUpload;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenUpload>>> {
        let this = self.get_mut();
        if let Some(traffic) = this.traffic() {
            ready!(traffic.gate.poll(cx));
        }
        let frame = match this {
            Self::Empty => None,
            Self::Kept { bytes, .. } => bytes.take().map(|bytes| Ok(Frame::data(bytes))),
            Self::Passing { incoming, .. } => {
                ready!(
                    Pin::new(incoming)
                        .poll_frame(cx)
                        .map_err(BrokenUpload::Client)
                )
            }
            Self::Rewritten(rewriting) => ready!(rewriting.poll_frame(cx)),
        };
        this.count(frame.as_ref());
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Kept { bytes, .. } => bytes.is_none(),
            Self::Passing { incoming, .. } => incoming.is_end_stream(),
            Self::Rewritten(rewriting) => rewriting.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Kept { bytes, .. } => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Passing { incoming, .. } => incoming.size_hint(),
            // Content-Length tells, where it can be known.
            Self::Rewritten(_) => SizeHint::default(),
        }
    }
}

/// A response body on its way to the workload.
pub(crate) enum ResponseBody {
    /// The proxy's own words.
    Own(Full<Bytes>),
    /// The upstream's.
    Passing(Box<Passing>),
}

impl ResponseBody {
    pub(crate) fn own(bytes: Vec<u8>) -> Self {
        Self::Own(Full::new(bytes.into()))
    }

    /// Passes on a response and records the exchange when it ends, however it ends.
    pub(crate) fn passing(
        incoming: Incoming,
        scrubbing: Option<Scrubbing>,
        lease: Lease,
        exchange: Exchange,
        idle: Duration,
    ) -> Self {
        let (exchange, idle) = (Some(exchange), Idle::new(idle));
        let scrubbing = scrubbing.map(Box::new);
        let mut passing = Passing {
            incoming,
            scrubbing,
            lease,
            exchange,
            idle,
        };
        if passing.incoming.is_end_stream() {
            passing.complete();
        }
        Self::Passing(Box::new(passing))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BrokenBody;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenBody>>> {
        match self.get_mut() {
            Self::Own(full) => Pin::new(full)
                .poll_frame(cx)
                .map_err(|never| match never {}),
            Self::Passing(passing) if passing.scrubbing.is_some() => passing.poll_scrubbed(cx),
            Self::Passing(passing) => passing.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own(full) => full.is_end_stream(),
            Self::Passing(passing) => match &passing.scrubbing {
                Some(_) => passing.exchange.is_none(),
                None => passing.incoming.is_end_stream(),
            },
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own(full) => full.size_hint(),
            Self::Passing(passing) => match &passing.scrubbing {
                // Content-Length tells, where the length stays.
                Some(_) => SizeHint::default(),
                None => passing.incoming.size_hint(),
            },
        }
    }
}

/// Why a response body ends before its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BrokenBody {
    #[error("the upstream broke off the response")]
    Upstream(#[source] hyper::Error),
    #[error("the upstream stopped sending")]
    Idle,
    #[error("the response could carry real credentials")]
    Unscrubbable(#[source] ScrubError),
}

pub(crate) struct Passing {
    incoming: Incoming,
    scrubbing: Option<Box<Scrubbing>>,
    lease: Lease,
    exchange: Option<Exchange>,
    idle: Idle,
}

impl Passing {
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenBody>>> {
        let frame = ready!(self.poll_upstream(cx));
        match &frame {
            Some(Ok(frame)) => {
                self.count(frame);
                if frame.is_trailers() || self.incoming.is_end_stream() {
                    self.complete();
                }
            }
            Some(Err(_)) => {}
            None => self.complete(),
        }
        Poll::Ready(frame)
    }

    fn poll_scrubbed(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenBody>>> {
        while let Some(scrubbing) = &mut self.scrubbing {
            let ready = scrubbing.next();
            if let Some(exchange) = &self.exchange {
                exchange
                    .traffic()
                    .scrubbed
                    .store(scrubbing.count(), Ordering::Relaxed);
            }
            match ready {
                Ok(Some(frame)) => {
                    self.count(&frame);
                    return Poll::Ready(Some(Ok(frame)));
                }
                Ok(None) if scrubbing.is_over() => break,
                Ok(None) => {}
                Err(error) => {
                    self.break_off(Broken::Upstream(error.to_string()));
                    return Poll::Ready(Some(Err(BrokenBody::Unscrubbable(error))));
                }
            }
            match ready!(self.poll_upstream(cx)) {
                Some(Ok(frame)) => {
                    if let Some(scrubbing) = &mut self.scrubbing {
                        scrubbing.feed(frame, &self.incoming);
                    }
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    if let Some(scrubbing) = &mut self.scrubbing {
                        scrubbing.end();
                    }
                }
            }
        }
        self.complete();
        Poll::Ready(None)
    }

    fn poll_upstream(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenBody>>> {
        match Pin::new(&mut self.incoming).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                self.idle.active = true;
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                self.break_off(Broken::Upstream(describe(&error)));
                Poll::Ready(Some(Err(BrokenBody::Upstream(error))))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => {
                ready!(self.idle.poll(cx));
                self.break_off(Broken::Upstream("it stopped sending".to_owned()));
                Poll::Ready(Some(Err(BrokenBody::Idle)))
            }
        }
    }

    fn count(&self, frame: &Frame<Bytes>) {
        if let (Some(data), Some(exchange)) = (frame.data_ref(), &self.exchange) {
            exchange.count_down(data.len());
        }
    }

    fn complete(&mut self) {
        self.lease.give_back();
        if let Some(exchange) = self.exchange.take() {
            exchange.finish();
        }
    }

    fn break_off(&mut self, why: Broken) {
        if let Some(exchange) = self.exchange.take() {
            exchange.break_off(why);
        }
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        // With a known length nobody asks for the end once all bytes are there.
        let all = match &mut self.scrubbing {
            Some(scrubbing) => scrubbing.is_drained(),
            None => self.incoming.is_end_stream() || self.incoming.size_hint().exact() == Some(0),
        };
        if all {
            self.complete();
        }
    }
}

/// Notices when nothing came for a while. Costs nothing as long as something does.
struct Idle {
    limit: Duration,
    active: bool,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Idle {
    fn new(limit: Duration) -> Self {
        Self {
            limit,
            active: false,
            sleep: None,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(self.limit)));
        loop {
            ready!(sleep.as_mut().poll(cx));
            if !std::mem::take(&mut self.active) {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(Instant::now() + self.limit);
        }
    }
}
