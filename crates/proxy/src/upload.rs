//! The body of a request as it comes from the workload.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::Version;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::tasks::Tasks;

/// A request body that nobody need read to its end.
///
/// An HTTP/2 stream whose body is dropped is reset, and clients that still send then lose the answer they
/// were given. So what is left of such a body is read for a while and thrown away. On HTTP/1 the
/// front does the same for the connection.
pub(crate) struct Upload {
    incoming: Option<Incoming>,
    tasks: Option<Tasks>,
}

impl Upload {
    pub(crate) fn new(incoming: Incoming, version: Version, tasks: &Tasks) -> Self {
        let tasks = (version == Version::HTTP_2).then(|| tasks.clone());
        Self {
            incoming: Some(incoming),
            tasks,
        }
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut self.get_mut().incoming {
            Some(incoming) => Pin::new(incoming).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming
            .as_ref()
            .map(Incoming::size_hint)
            .unwrap_or_default()
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let (Some(incoming), Some(tasks)) = (self.incoming.take(), &self.tasks)
            && !incoming.is_end_stream()
        {
            tasks.spawn(tokio::time::timeout(DRAIN_TIME, drain(incoming)));
        }
    }
}

async fn drain(mut incoming: Incoming) {
    let mut left = DRAIN_BYTES;
    while let Some(Ok(frame)) = incoming.frame().await {
        let length = frame.data_ref().map_or(0, Bytes::len);
        match left.checked_sub(length) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}

/// Long enough for a client to notice that it was answered.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// What a client has under way by then.
const DRAIN_BYTES: usize = 4 * 1024 * 1024;
