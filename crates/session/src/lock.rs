//! One writer per context, in this process and in others.
//!
//! The lock is the kernel's, on a file of its own: it ends with the process that holds it, however
//! that ends, and is not lost when `context.json` is replaced.

use std::{
    fs::{self, File, TryLockError},
    io::{Read, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use crate::{
    Error,
    files::{io_error, open_append},
};

/// The right to write to a context; given back when dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of the context in `dir`, which must exist.
    pub(crate) fn take(dir: &Path) -> Result<Self, Error> {
        for _ in 0..PATIENCE {
            if let Some(lock) = Self::try_take(dir)? {
                return Ok(lock);
            }
            thread::sleep(PAUSE);
        }
        Err(Error::InUse {
            dir: dir.to_owned(),
            pid: holder(&path(dir)),
        })
    }

    /// Takes the lock, unless somebody holds it.
    pub(crate) fn try_take(dir: &Path) -> Result<Option<Self>, Error> {
        let path = path(dir);
        let mut file = open_append(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(source)) => return Err(io_error("lock", &path, source)),
        }
        // Whoever removed the context meanwhile has removed this file with it.
        if !is_still(&file, &path) {
            return Ok(None);
        }
        let note = |file: &mut File| {
            file.set_len(0)?;
            writeln!(file, "{}", std::process::id())
        };
        note(&mut file).map_err(|source| io_error("lock", &path, source))?;
        Ok(Some(Self { _file: file }))
    }

    /// Whether somebody holds the lock of the context in `dir`.
    pub(crate) fn is_held(dir: &Path) -> bool {
        let Ok(file) = File::open(path(dir)) else {
            return false;
        };
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
    }
}

pub(crate) const LOCK_FILE: &str = "context.lock";

fn path(dir: &Path) -> PathBuf {
    dir.join(LOCK_FILE)
}

fn is_still(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(held), Ok(there)) => (held.dev(), held.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

fn holder(path: &Path) -> Option<u32> {
    let mut text = String::new();
    let file = File::open(path).ok()?;
    file.take(MAX_PID_DIGITS).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

const MAX_PID_DIGITS: u64 = 20;

/// Somebody who only asks whether a context is in use holds its lock for a moment.
const PATIENCE: u32 = 20;
const PAUSE: Duration = Duration::from_millis(10);
