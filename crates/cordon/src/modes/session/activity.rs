//! Who is busy with a container, and since when nobody is.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::Notify;

/// The comings and goings of commands.
#[derive(Debug)]
pub(super) struct Activity {
    limit: Option<Duration>,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    busy: usize,
    since: Instant,
    end: End,
}

/// Whether and how it came to an end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum End {
    NotYet,
    Ours,
    Lost,
}

/// Somebody is busy with the container, as long as this is not dropped.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Activity>);

impl Activity {
    pub(super) fn new(limit: Option<Duration>) -> Self {
        Self {
            limit,
            state: Mutex::new(State {
                busy: 0,
                since: Instant::now(),
                end: End::NotYet,
            }),
            changed: Notify::new(),
        }
    }

    /// `None` once the container ends: nothing may be begun in it any more.
    pub(super) fn enter(self: &Arc<Self>) -> Option<Busy> {
        let mut state = self.lock();
        if state.end != End::NotYet {
            return None;
        }
        state.busy += 1;
        Some(Busy(Arc::clone(self)))
    }

    /// How many are busy, and for how long nobody has been.
    pub(super) fn now(&self) -> (usize, Duration) {
        let state = self.lock();
        let idle = match state.busy {
            0 => state.since.elapsed(),
            _ => Duration::ZERO,
        };
        (state.busy, idle)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().end != End::NotYet
    }

    /// It ended because we wanted it to.
    pub(super) fn was_ended(&self) -> bool {
        self.lock().end == End::Ours
    }

    /// Nothing begins any more, because we end the container.
    pub(super) fn close(&self) {
        self.end(End::Ours);
    }

    /// Nothing begins any more, because the container is gone.
    pub(super) fn lose(&self) {
        self.end(End::Lost);
    }

    /// Returns, with everything closed, once nobody has been busy for as long as the limit says.
    pub(super) async fn idle(&self) {
        let Some(limit) = self.limit else {
            return std::future::pending().await;
        };
        loop {
            let changed = self.changed.notified();
            let wait = {
                let mut state = self.lock();
                let left = limit.saturating_sub(state.since.elapsed());
                match (state.busy, left) {
                    (0, Duration::ZERO) => {
                        state.end = End::Ours;
                        return;
                    }
                    (0, left) => Some(left),
                    _ => None,
                }
            };
            match wait {
                Some(left) => drop(tokio::time::timeout(left, changed).await),
                None => changed.await,
            }
        }
    }

    /// Returns once nobody is busy.
    pub(super) async fn quiet(&self) {
        loop {
            let changed = self.changed.notified();
            if self.lock().busy == 0 {
                return;
            }
            changed.await;
        }
    }

    fn end(&self, end: End) {
        let mut state = self.lock();
        if state.end == End::NotYet {
            state.end = end;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.busy -= 1;
        state.since = Instant::now();
        drop(state);
        self.0.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn idleness_is_counted_from_the_last_end_and_closes() {
        let activity = Arc::new(Activity::new(Some(Duration::from_millis(100))));
        let busy = activity.enter().unwrap();
        let watched = Arc::clone(&activity);
        let idle = tokio::spawn(async move { watched.idle().await });
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!idle.is_finished());
        assert_eq!(activity.now(), (1, Duration::ZERO));
        drop(busy);
        idle.await.unwrap();
        assert!(activity.enter().is_none());
        assert!(activity.was_ended());
    }

    #[tokio::test]
    async fn what_is_lost_was_not_ended() {
        let activity = Arc::new(Activity::new(None));
        activity.lose();
        activity.close();
        assert!(activity.is_closed());
        assert!(!activity.was_ended());
    }
}
