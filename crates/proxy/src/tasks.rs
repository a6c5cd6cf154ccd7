//! Everything a proxy runs in the background, and the way to end it all.

use std::future::Future;

use hyper::rt::Executor;
use tokio_util::{future::FutureExt, sync::CancellationToken, task::TaskTracker};

/// Spawns tasks that end together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tasks {
    tracker: TaskTracker,
    token: CancellationToken,
}

impl Tasks {
    /// Runs a future until it ends or everything is stopped.
    pub(crate) fn spawn<F>(&self, future: F)
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.tracker
            .spawn(future.with_cancellation_token_owned(self.token.clone()));
    }

    /// Tells all tasks to end, without waiting.
    pub(crate) fn cancel(&self) {
        self.token.cancel();
        self.tracker.close();
    }

    /// Waits until all tasks have ended.
    pub(crate) async fn ended(&self) {
        self.tracker.wait().await;
    }
}

impl<F> Executor<F> for Tasks
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, future: F) {
        self.spawn(future);
    }
}
