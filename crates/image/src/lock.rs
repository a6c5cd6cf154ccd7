//! Keeps builds of one image apart, in this process and in others.
//!
//! The lock is the kernel's, on a file that stays behind: it ends with the process that holds it, however that ends.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::Path,
    time::Duration,
};

use crate::Error;

/// The right to build one image; given back when dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock of `tag`. Calls `waiting` once if somebody else holds it.
    pub(crate) async fn take(
        directory: &Path,
        tag: &str,
        waiting: impl FnOnce(),
    ) -> Result<Self, Error> {
        let mut waiting = Some(waiting);
        loop {
            if let Some(lock) = Self::try_take(directory, tag)? {
                return Ok(lock);
            }
            if let Some(waiting) = waiting.take() {
                waiting();
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The lock of `tag`, unless somebody else holds it.
    pub(crate) fn try_take(directory: &Path, tag: &str) -> Result<Option<Self>, Error> {
        let path = directory.join(format!("{}.lock", tag.replace([':', '/'], "-")));
        let locked = open(directory, &path).and_then(|file| match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        });
        locked.map_err(|source| Error::Lock { path, source })
    }
}

fn open(directory: &Path, path: &Path) -> io::Result<File> {
    fs::create_dir_all(directory)?;
    File::options().create(true).append(true).open(path)
}

/// Asked again and again rather than waited for in a thread, so that a caller who gives up leaves nothing behind.
const PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::{
        process::Command,
        sync::atomic::{AtomicBool, Ordering},
        time::Instant,
    };

    use super::*;

    const TAG: &str = "cordon-repo:abc";

    #[tokio::test]
    async fn one_tag_has_one_holder() {
        let directory = tempfile::tempdir().unwrap();
        let first = Lock::take(directory.path(), TAG, || {}).await.unwrap();
        let waited = AtomicBool::new(false);
        let second = async {
            let mark = || waited.store(true, Ordering::Relaxed);
            Lock::take(directory.path(), TAG, mark).await.unwrap()
        };
        let release = async {
            tokio::time::sleep(PAUSE * 3).await;
            assert!(waited.load(Ordering::Relaxed));
            drop(first);
        };
        tokio::join!(second, release);
    }

    #[tokio::test]
    async fn tags_do_not_wait_for_each_other() {
        let directory = tempfile::tempdir().unwrap();
        let _one = Lock::take(directory.path(), TAG, || {}).await.unwrap();
        let unexpected = || panic!("waited");
        Lock::take(directory.path(), "cordon:abc", unexpected)
            .await
            .unwrap();
    }

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "tests drive real programs")]
    async fn another_process_is_waited_for_and_its_death_releases_the_lock() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cordon-repo-abc.lock");
        let mut holder = Command::new("flock")
            .arg("--no-fork")
            .arg(&path)
            .args(["sleep", "60"])
            .spawn()
            .unwrap();
        while File::open(&path).is_err() || File::open(&path).unwrap().try_lock().is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let started = Instant::now();
        let kill = async {
            tokio::time::sleep(PAUSE * 2).await;
            holder.kill().unwrap();
            holder.wait().unwrap();
        };
        let (lock, ()) = tokio::join!(Lock::take(directory.path(), TAG, || {}), kill);
        lock.unwrap();
        assert!(started.elapsed() >= PAUSE * 2);
    }

    #[tokio::test]
    async fn a_directory_that_cannot_be_made_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = Lock::take(file.path(), TAG, || {}).await.unwrap_err();
        assert!(matches!(error, Error::Lock { .. }), "{error}");
    }
}
