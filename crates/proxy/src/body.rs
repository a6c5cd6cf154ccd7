//! Bodies on their way through: counted, never kept.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant, Sleep},
};

use crate::{
    exchange::Exchange,
    inspect::Inspected,
    log::Broken,
    upstream::{Lease, describe},
};

/// Bytes of body that went each way.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) up: AtomicU64,
    pub(crate) down: AtomicU64,
}

/// A request body on its way to the upstream.
pub(crate) enum RequestBody {
    Empty,
    /// Read already, because its content had to be judged.
    Kept { bytes: Option<Bytes>, traffic: Arc<Traffic>, _place: OwnedSemaphorePermit },
    Passing { incoming: Incoming, traffic: Arc<Traffic> },
}

impl RequestBody {
    pub(crate) fn new(incoming: Incoming, traffic: &Arc<Traffic>) -> Self {
        if incoming.is_end_stream() {
            return Self::Empty;
        }
        Self::Passing { incoming, traffic: Arc::clone(traffic) }
    }

    pub(crate) fn kept(inspected: Inspected, traffic: &Arc<Traffic>) -> Self {
        let Inspected { bytes, place } = inspected;
        Self::Kept { bytes: Some(bytes), traffic: Arc::clone(traffic), _place: place }
    }

    /// Tells at any later time how many bytes were sent.
    pub(crate) fn progress(&self) -> impl Fn() -> u64 + Send + 'static {
        let traffic = match self {
            Self::Empty => None,
            Self::Kept { traffic, .. } | Self::Passing { traffic, .. } => Some(Arc::clone(traffic)),
        };
        move || traffic.as_ref().map_or(0, |traffic| traffic.up.load(Ordering::Relaxed))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let (frame, traffic) = match self.get_mut() {
            Self::Empty => return Poll::Ready(None),
            Self::Kept { bytes, traffic, .. } => (bytes.take().map(|bytes| Ok(Frame::data(bytes))), traffic),
            Self::Passing { incoming, traffic } => (ready!(Pin::new(incoming).poll_frame(cx)), traffic),
        };
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            traffic.up.fetch_add(data.len() as u64, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Kept { bytes, .. } => bytes.is_none(),
            Self::Passing { incoming, .. } => incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Kept { bytes, .. } => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Passing { incoming, .. } => incoming.size_hint(),
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
    pub(crate) fn passing(incoming: Incoming, lease: Lease, exchange: Exchange, idle: Duration) -> Self {
        let mut passing =
            Passing { incoming, lease, exchange: Some(exchange), idle: Idle::new(idle) };
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
            Self::Own(full) => Pin::new(full).poll_frame(cx).map_err(|never| match never {}),
            Self::Passing(passing) => passing.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own(full) => full.is_end_stream(),
            Self::Passing(passing) => passing.incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own(full) => full.size_hint(),
            Self::Passing(passing) => passing.incoming.size_hint(),
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
}

pub(crate) struct Passing {
    incoming: Incoming,
    lease: Lease,
    exchange: Option<Exchange>,
    idle: Idle,
}

impl Passing {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenBody>>> {
        match Pin::new(&mut self.incoming).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                self.idle.active = true;
                if let (Some(data), Some(exchange)) = (frame.data_ref(), &self.exchange) {
                    exchange.count_down(data.len());
                }
                if frame.is_trailers() || self.incoming.is_end_stream() {
                    self.complete();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                self.break_off(Broken::Upstream(describe(&error)));
                Poll::Ready(Some(Err(BrokenBody::Upstream(error))))
            }
            Poll::Ready(None) => {
                self.complete();
                Poll::Ready(None)
            }
            Poll::Pending => {
                ready!(self.idle.poll(cx));
                self.break_off(Broken::Upstream("it stopped sending".to_owned()));
                Poll::Ready(Some(Err(BrokenBody::Idle)))
            }
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
        if self.incoming.is_end_stream() {
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
        Self { limit, active: false, sleep: None }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.limit)));
        loop {
            ready!(sleep.as_mut().poll(cx));
            if !std::mem::take(&mut self.active) {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(Instant::now() + self.limit);
        }
    }
}
