//! Which contexts there are under one directory, and removing those that nobody needs.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use crate::{
    Error, SessionStore,
    files::io_error,
    lock::Lock,
    store::{CONTEXT_FILE, JOURNAL_FILE, SESSION_FILE},
};

/// A context among others.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextEntry {
    /// Its directory.
    pub dir: PathBuf,
    /// The caller's name for it; none if its file cannot be read.
    pub execution_context_id: Option<String>,
    /// When one of its files was last written.
    pub last_activity: SystemTime,
    /// Whether somebody is writing to it.
    pub in_use: bool,
}

/// The contexts in the directories directly under `root`, the most recently active first.
///
/// # Errors
///
/// When `root` cannot be read. A root that does not exist has no contexts.
pub fn contexts(root: &Path) -> Result<Vec<ContextEntry>, Error> {
    let mut entries: Vec<_> = directories(root)?.into_iter().filter_map(context).collect();
    entries.sort_by(|a, b| (b.last_activity, &a.dir).cmp(&(a.last_activity, &b.dir)));
    Ok(entries)
}

/// What to keep; without a limit, everything.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Retention {
    /// At most this many contexts, the most recently active.
    pub keep: Option<usize>,
    /// Only contexts that were active within this time.
    pub max_idle: Option<Duration>,
}

impl Retention {
    /// A hundred contexts, and none that was idle for more than a week.
    pub const STANDARD: Self = Self {
        keep: Some(100),
        max_idle: Some(Duration::from_secs(7 * 24 * 60 * 60)),
    };

    /// The entries, listed with the most recently active first, that are beyond the limits.
    pub fn beyond(
        self,
        entries: Vec<ContextEntry>,
        now: SystemTime,
    ) -> impl Iterator<Item = ContextEntry> {
        let beyond = move |place: usize, entry: &ContextEntry| {
            let idle = now.duration_since(entry.last_activity).unwrap_or_default();
            self.keep.is_some_and(|keep| place >= keep)
                || self.max_idle.is_some_and(|max| idle > max)
        };
        let placed = entries.into_iter().enumerate();
        placed.filter_map(move |(place, entry)| beyond(place, &entry).then_some(entry))
    }
}

/// What was removed, and what could not be.
#[derive(Debug, Default)]
pub struct Pruned {
    /// The directories that are gone.
    pub removed: Vec<PathBuf>,
    /// The directories that should be gone, but somebody writes there.
    pub in_use: Vec<PathBuf>,
    /// The removals that failed.
    pub errors: Vec<Error>,
}

/// Removes the contexts under `root` that are beyond the limits, never one that is in use.
///
/// # Errors
///
/// When `root` cannot be read. A context that cannot be removed does not stop the others; it is
/// among the errors of the answer.
pub fn prune(root: &Path, retention: &Retention, now: SystemTime) -> Result<Pruned, Error> {
    let mut pruned = Pruned {
        errors: sweep(root)?,
        ..Pruned::default()
    };
    for entry in retention.beyond(contexts(root)?, now) {
        match remove(root, &entry.dir) {
            Ok(true) => pruned.removed.push(entry.dir),
            Ok(false) => pruned.in_use.push(entry.dir),
            Err(error) => pruned.errors.push(error),
        }
    }
    Ok(pruned)
}

/// Removes a context whole, under its lock; `false` if somebody else holds that.
fn remove(root: &Path, dir: &Path) -> Result<bool, Error> {
    let Some(_lock) = Lock::try_take(dir)? else {
        return Ok(false);
    };
    // Under the old name there must never be half a context for somebody to go on with.
    let mut name = OsString::from(DOOMED);
    name.push(dir.file_name().unwrap_or_default());
    let doomed = root.join(name);
    fs::rename(dir, &doomed).map_err(|source| io_error("remove", dir, source))?;
    remove_all(&doomed).map(|()| true)
}

/// Finishes removals that were cut short.
fn sweep(root: &Path) -> Result<Vec<Error>, Error> {
    let doomed = |dir: &&PathBuf| {
        let name = dir.file_name().unwrap_or_default();
        name.as_encoded_bytes().starts_with(DOOMED.as_bytes())
    };
    let dirs = directories(root)?;
    let swept = dirs.iter().filter(doomed).map(|dir| remove_all(dir));
    Ok(swept.filter_map(Result::err).collect())
}

fn remove_all(dir: &Path) -> Result<(), Error> {
    fs::remove_dir_all(dir).map_err(|source| io_error("remove", dir, source))
}

/// The directories in `root`, not what symlinks point to.
fn directories(root: &Path) -> Result<Vec<PathBuf>, Error> {
    let listing = match fs::read_dir(root) {
        Ok(listing) => listing,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(io_error("list", root, source)),
    };
    let mut dirs = Vec::new();
    for child in listing {
        let child = child.map_err(|source| io_error("list", root, source))?;
        if child.file_type().is_ok_and(|kind| kind.is_dir()) {
            dirs.push(child.path());
        }
    }
    Ok(dirs)
}

/// A directory that has a context's files.
fn context(dir: PathBuf) -> Option<ContextEntry> {
    if dir.file_name()?.as_encoded_bytes().starts_with(b".") {
        return None;
    }
    let written = |name: &str| fs::metadata(dir.join(name)).ok()?.modified().ok();
    let files = [CONTEXT_FILE, JOURNAL_FILE, SESSION_FILE];
    let last_activity = files.into_iter().filter_map(written).max()?;
    let store = SessionStore::new(dir.clone());
    let metadata = store.load().ok().and_then(|loaded| loaded.metadata);
    Some(ContextEntry {
        execution_context_id: metadata.map(|metadata| metadata.execution_context_id),
        last_activity,
        in_use: store.is_in_use(),
        dir,
    })
}

/// Before the name of a context that is being removed.
const DOOMED: &str = ".cordon-removed.";
