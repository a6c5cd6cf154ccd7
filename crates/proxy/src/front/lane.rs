//! Interim responses on their way to an HTTP/1 client, past the HTTP library, which cannot send them.
//!
//! Whoever hears of one puts its head into the lane; the front writes it when the library has nothing half-written. The
//! service closes the lane before it gives the library the response, so that no head can come behind or into it. A request
//! without interim responses costs the lane two atomic operations and no lock.

use std::{
    mem,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use bytes::BytesMut;
use futures_util::task::AtomicWaker;

/// The interim responses of one connection, whose requests are served one after another.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    /// [`OPEN`], [`WAITING`], and above these bits the turn.
    stage: AtomicU64,
    queue: Mutex<Queue>,
    front: AtomicWaker,
}

/// One request that may have interim responses. Those of an earlier one are turned away.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Turn(u64);

#[derive(Debug, Default)]
struct Queue {
    turn: u64,
    /// Whole heads, one behind the other.
    heads: BytesMut,
    /// What was let in since the turn began.
    count: usize,
    bytes: usize,
    /// Whether the client is about to be asked for its body.
    continued: bool,
}

impl Lane {
    /// For the service: from now on the client may be told of interim responses.
    pub(crate) fn open(&self) -> Turn {
        let turn = (self.stage.load(Ordering::Relaxed) & !(OPEN | WAITING)).wrapping_add(ONE_TURN);
        self.stage.store(turn | OPEN, Ordering::Release);
        Turn(turn)
    }

    /// For the service, before it answers: lets no more in and waits until what was let in is written.
    ///
    /// The front runs in the same task and wakes it.
    pub(crate) fn poll_close(&self) -> Poll<()> {
        if self.is_closed() {
            return Poll::Ready(());
        }
        let before = self.stage.fetch_and(!OPEN, Ordering::AcqRel);
        if before & WAITING == 0 {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// Whether there is nothing to write and nothing can come.
    pub(super) fn is_closed(&self) -> bool {
        self.stage.load(Ordering::Acquire) & (OPEN | WAITING) == 0
    }

    /// Whether one more head would be let in, as far as one can tell without it.
    pub(crate) fn admits(&self, turn: Turn) -> bool {
        self.queue_of(turn)
            .is_some_and(|queue| queue.count < MAX_HEADS)
    }

    /// Lets in a whole head, if it is the turn of its request and not too much.
    pub(crate) fn put(&self, turn: Turn, head: &[u8]) {
        let Some(mut queue) = self.queue_of(turn) else {
            return;
        };
        if queue.count == MAX_HEADS || queue.bytes + head.len() > MAX_BYTES {
            return;
        }
        let wait = |stage: u64| (stage & !WAITING == turn.0 | OPEN).then_some(stage | WAITING);
        if self
            .stage
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, wait)
            .is_err()
        {
            return;
        }
        queue.count += 1;
        queue.bytes += head.len();
        queue.heads.extend_from_slice(head);
        drop(queue);
        self.front.wake();
    }

    /// The upstream wants the body. The client is told so by the library, and of everything later after that.
    pub(crate) fn put_continue(&self, turn: Turn) {
        if let Some(mut queue) = self.queue_of(turn) {
            queue.continued = true;
        }
    }

    /// For the front: heads to write now. None once all are written, or while they must wait.
    ///
    /// `unread` says that the library has not begun to read the request's body, so it has not asked for it either.
    pub(super) fn next(&self, unread: bool, cx: &Context<'_>) -> Option<BytesMut> {
        self.front.register(cx.waker());
        if self.stage.load(Ordering::Acquire) & WAITING == 0 {
            return None;
        }
        let mut queue = self.lock();
        let open = self.stage.load(Ordering::Acquire) & OPEN != 0;
        if queue.heads.is_empty() {
            let before = self.stage.fetch_and(!WAITING, Ordering::AcqRel);
            if before & OPEN == 0 {
                // The service waits to close the lane.
                cx.waker().wake_by_ref();
            }
            return None;
        }
        // A service that has its answer may never read the body.
        if queue.continued && unread && open {
            return None;
        }
        Some(mem::take(&mut queue.heads))
    }

    /// The queue, if it is this turn's or can become so.
    fn queue_of(&self, turn: Turn) -> Option<MutexGuard<'_, Queue>> {
        let mut queue = self.lock();
        let stage = self.stage.load(Ordering::Acquire);
        if stage & !WAITING != turn.0 | OPEN {
            return None;
        }
        if queue.turn != turn.0 {
            *queue = Queue {
                turn: turn.0,
                ..Queue::default()
            };
        }
        Some(queue)
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // No code panics while it holds the lock.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Heads are let in.
const OPEN: u64 = 1;

/// Heads were let in that are not written to their end.
const WAITING: u64 = 2;

const ONE_TURN: u64 = 4;

/// Interim responses of one request; further ones are dropped. Servers send one or two. One that says every twenty
/// seconds that it is at work stays below, for as long as it may take to answer.
const MAX_HEADS: usize = 32;

/// Bytes of them, together; what does not fit is dropped. As much as a request head may have.
const MAX_BYTES: usize = 64 * 1024;
