//! What a session's container does instead of running one command: it is held.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cordon_door::Holder;
use tokio::{sync::oneshot, time::timeout};

use super::activity::Activity;
use crate::SandboxError;

/// Told of by a container that is held, and how long it is.
#[derive(Debug)]
pub(crate) struct Hold {
    ready: Mutex<Option<Waiter>>,
    activity: Arc<Activity>,
}

/// Whoever waits for the container's start.
type Waiter = oneshot::Sender<Result<Arc<Holder>, SandboxError>>;

impl Hold {
    pub(super) fn new(ready: Waiter, activity: Arc<Activity>) -> Self {
        Self {
            ready: Mutex::new(Some(ready)),
            activity,
        }
    }

    /// Tells whoever waits that the container is there; `false` when nobody does any more.
    pub(crate) fn ready(&self, holder: &Arc<Holder>) -> bool {
        match self.waiter() {
            Some(waiter) => waiter.send(Ok(Arc::clone(holder))).is_ok(),
            None => false,
        }
    }

    /// Tells whoever waits that there will be no container; gives the error back when nobody does.
    pub(super) fn fail(&self, error: SandboxError) -> Option<SandboxError> {
        match self.waiter() {
            Some(waiter) => waiter.send(Err(error)).err().and_then(Result::err),
            None => Some(error),
        }
    }

    /// Returns once the container is gone, or was idle for too long.
    pub(crate) async fn over(&self, holder: &Holder) {
        tokio::select! {
            () = holder.gone() => self.activity.lose(),
            () = self.activity.idle() => {}
        }
    }

    /// Ends the container: nothing begins any more, what runs is asked to end, then everything is
    /// killed.
    pub(crate) async fn end(&self, holder: &Holder) {
        self.activity.close();
        if holder.signal_each(SIGTERM).await.is_ok() {
            drop(timeout(GRACE, self.activity.quiet()).await);
        }
        holder.close().await;
    }

    fn waiter(&self) -> Option<Waiter> {
        self.ready
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

/// How long commands have between `SIGTERM` and the end of their container.
const GRACE: Duration = Duration::from_secs(5);

const SIGTERM: u8 = 15;
