//! The network log: exactly one record for each request and each DNS question.
//!
//! A request reserves its place in the log before it is served and fills it when it ends, so a slow
//! disk slows the workload and never loses or grows a queue. Formatting happens on the writer's own
//! thread, away from the request path.

mod escape;
mod json;
mod read;
mod record;
mod redact;
mod text;
mod wire;
mod write;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use jiff::Timestamp;
use tokio::sync::{
    OwnedSemaphorePermit, Semaphore,
    mpsc::{self, OwnedPermit},
};

pub(crate) use escape::{Escaped, EscapedLabel, escaped};
pub use read::{Follow, NetworkLog};
pub use record::{
    Broken, DnsRecord, DnsResult, Event, Location, Notes, Place, Record, RequestRecord, Verdict,
};
pub(crate) use write::Writer;
pub use write::{LogTarget, OnRecord, Summary};

/// The sending end, shared by everything that serves.
#[derive(Clone)]
pub(crate) struct Log {
    sender: mpsc::Sender<Record>,
    requests: Arc<Semaphore>,
    ids: Arc<AtomicU64>,
}

impl Log {
    /// A log for this many requests at one time. There is room beside them, so that a workload whose
    /// requests all wait can still resolve names.
    pub(crate) fn new(requests: usize) -> (Self, mpsc::Receiver<Record>) {
        let (sender, receiver) = mpsc::channel(requests + BESIDE);
        (
            Self {
                sender,
                requests: Arc::new(Semaphore::new(requests)),
                ids: Arc::new(AtomicU64::new(1)),
            },
            receiver,
        )
    }

    /// Waits for a place in the log. None when the writer is gone: then nothing may be served.
    pub(crate) async fn reserve(&self) -> Option<Slot> {
        let place = Arc::clone(&self.requests).acquire_owned().await.ok()?;
        let permit = self.sender.clone().reserve_owned().await.ok()?;
        Some(self.slot(permit, Some(place)))
    }

    /// Takes a place if one is free.
    pub(crate) fn try_reserve(&self) -> Option<Slot> {
        let permit = self.sender.clone().try_reserve_owned().ok()?;
        Some(self.slot(permit, None))
    }

    fn slot(&self, permit: OwnedPermit<Record>, place: Option<OwnedSemaphorePermit>) -> Slot {
        Slot {
            id: self.ids.fetch_add(1, Ordering::Relaxed),
            time: Timestamp::now(),
            permit,
            _place: place,
        }
    }
}

/// A place in the log that is paid for: filling it cannot fail or wait.
pub(crate) struct Slot {
    id: u64,
    time: Timestamp,
    permit: OwnedPermit<Record>,
    _place: Option<OwnedSemaphorePermit>,
}

impl Slot {
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn fill(self, event: Event) {
        let Self {
            id, time, permit, ..
        } = self;
        permit.send(Record { id, time, event });
    }
}

/// Records of other kinds than requests that may wait to be written.
const BESIDE: usize = 1024;
