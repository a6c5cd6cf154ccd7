//! Steps on files that survive a kill between any two of them.
//!
//! Only the holder of the context's lock may call what writes here: names are fixed, so that a
//! half-written file is overwritten by the next attempt instead of piling up.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use jiff::Timestamp;

use crate::Error;

/// Replaces a file so that readers see the old bytes or the new ones, even across a crash.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let new = beside(path, ".new");
    let io = |action| move |source| io_error(action, path, source);
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(PRIVATE_FILE)
        .open(&new)
        .map_err(io("write"))?;
    file.write_all(bytes).map_err(io("write"))?;
    file.sync_all().map_err(io("write"))?;
    fs::rename(&new, path).map_err(io("replace"))?;
    sync_parent(path)
}

/// Gives a file another name, never that of another file, and returns it.
pub(crate) fn set_aside(path: &Path) -> Result<PathBuf, Error> {
    let stamp = Timestamp::now().strftime("%Y%m%dT%H%M%S%.6fZ");
    let mut aside = beside(path, &format!(".broken-{stamp}"));
    let mut again = 1;
    while exists(&aside) {
        again += 1;
        aside = beside(path, &format!(".broken-{stamp}-{again}"));
    }
    fs::rename(path, &aside).map_err(|source| io_error("set aside", path, source))?;
    sync_parent(path)?;
    Ok(aside)
}

/// Keeps the present bytes of a file under a second name, never that of another file.
pub(crate) fn keep_copy(path: &Path, suffix: &str) -> Result<PathBuf, Error> {
    let mut copy = beside(path, suffix);
    let mut again = 1;
    loop {
        match fs::hard_link(path, &copy) {
            Ok(()) => break,
            // A kill came after this step the last time.
            Err(_) if is_same(path, &copy) => break,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                again += 1;
                copy = beside(path, &format!("{suffix}-{again}"));
            }
            Err(error) => return Err(io_error("keep a copy of", path, error)),
        }
    }
    sync_parent(path)?;
    Ok(copy)
}

/// Reads a file; `None` if there is none.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error("read", path, error)),
    }
}

/// Creates the directory and those above it, for this user alone.
pub(crate) fn create_dir(dir: &Path) -> Result<(), Error> {
    DirBuilder::new()
        .recursive(true)
        .mode(PRIVATE_DIR)
        .create(dir)
        .map_err(|source| io_error("create", dir, source))
}

/// Opens a file for appending, for this user alone.
pub(crate) fn open_append(path: &Path) -> Result<File, Error> {
    OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(PRIVATE_FILE)
        .open(path)
        .map_err(|source| io_error("open", path, source))
}

pub(crate) fn sync_parent(path: &Path) -> Result<(), Error> {
    let parent = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let dir = parent.unwrap_or_else(|| Path::new("."));
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(|source| io_error("sync", dir, source))
}

pub(crate) fn io_error(action: &'static str, path: &Path, source: io::Error) -> Error {
    Error::Io {
        action,
        path: path.to_owned(),
        source,
    }
}

/// The path with something added to its last part.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Whether both paths name one file.
fn is_same(one: &Path, other: &Path) -> bool {
    match (one.symlink_metadata(), other.symlink_metadata()) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Prompts and replies are nobody else's business.
const PRIVATE_FILE: u32 = 0o600;
const PRIVATE_DIR: u32 = 0o700;
