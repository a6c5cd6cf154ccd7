//! Where the supervisors of a user are found: a socket, a log and a lock for each, in a directory that
//! nobody else may enter.
//!
//! A supervisor holds its lock as long as it lives. Files whose lock is free are a dead one's.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use anyhow::Context;
use cordon::Directories;
use tokio::net::{UnixListener, UnixStream};

use crate::printer::Hinted;

/// The files of one session.
pub(super) struct Desk {
    name: String,
    directory: PathBuf,
}

/// The files of a session whose supervisor is this process; they are removed when it is dropped.
pub(super) struct OwnDesk {
    desk: Desk,
    _lock: File,
}

impl Desk {
    /// The desk of the session of that name, whether there is one or not.
    pub(super) fn of(name: &str) -> anyhow::Result<Self> {
        let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name.len() > NAME_MOST || !name.chars().all(valid) {
            return Err(unknown(name));
        }
        Ok(Self {
            name: name.to_owned(),
            directory: directory()?,
        })
    }

    /// Every desk whose supervisor lives. What dead ones left is removed.
    pub(super) fn all() -> anyhow::Result<Vec<Self>> {
        let directory = directory()?;
        let entries = fs::read_dir(&directory)
            .with_context(|| format!("cannot read {}", directory.display()))?;
        let mut names: Vec<_> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter_map(|file| Some(file.strip_suffix(LOCK)?.to_owned()))
            .collect();
        names.sort();
        let mut desks = Vec::new();
        for name in names {
            let desk = Self::of(&name)?;
            if desk.is_alive() {
                desks.push(desk);
            }
        }
        Ok(desks)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether a supervisor has it. One that is free is cleared.
    pub(super) fn is_alive(&self) -> bool {
        match self.lock() {
            Ok(Some(lock)) => {
                self.clear();
                drop(lock);
                false
            }
            Ok(None) => true,
            Err(_) => false,
        }
    }

    /// Makes this process its supervisor.
    pub(super) fn take(self) -> anyhow::Result<OwnDesk> {
        let at = || format!("cannot write {}", self.directory.display());
        // Whoever looks whether it is free has it for a moment too.
        let mut lock = self.lock_new().with_context(at)?;
        for _ in 0..LOCK_TRIES {
            if lock.is_some() {
                break;
            }
            thread::sleep(LOCK_PAUSE);
            lock = self.lock_new().with_context(at)?;
        }
        let Some(lock) = lock else {
            let hint = format!("use it with `cordon session exec {} -- COMMAND`", self.name);
            return Err(
                Hinted::new(format_args!("session {} runs already", self.name), hint).into(),
            );
        };
        // What a dead supervisor left would be in the way.
        drop(fs::remove_file(self.path(SOCKET)));
        Ok(OwnDesk {
            desk: self,
            _lock: lock,
        })
    }

    /// Reaches the supervisor.
    pub(super) async fn connect(&self) -> anyhow::Result<UnixStream> {
        let stream = UnixStream::connect(self.path(SOCKET)).await;
        stream.map_err(|_| unknown(&self.name))
    }

    /// The lock, if it is there and free; `None` when somebody has it.
    fn lock(&self) -> io::Result<Option<File>> {
        locked(File::open(self.path(LOCK))?)
    }

    fn lock_new(&self) -> io::Result<Option<File>> {
        loop {
            let mut options = OpenOptions::new();
            options.create(true).truncate(false).write(true).mode(0o600);
            let path = self.path(LOCK);
            let Some(lock) = locked(options.open(&path)?)? else {
                return Ok(None);
            };
            // Somebody may have removed it between our opening and our locking it.
            if same_file(&lock, &path) {
                return Ok(Some(lock));
            }
        }
    }

    fn path(&self, ending: &str) -> PathBuf {
        self.directory.join(format!("{}{ending}", self.name))
    }

    fn clear(&self) {
        for ending in [SOCKET, LOG, LOCK] {
            drop(fs::remove_file(self.path(ending)));
        }
    }
}

impl OwnDesk {
    pub(super) fn name(&self) -> &str {
        &self.desk.name
    }

    /// Begins to listen.
    pub(super) fn open(&self) -> anyhow::Result<UnixListener> {
        let path = self.desk.path(SOCKET);
        let at = || format!("cannot listen at {}", path.display());
        let listener = UnixListener::bind(&path).with_context(at)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).with_context(at)?;
        Ok(listener)
    }

    /// Where the supervisor writes what it has to say once nobody listens.
    pub(super) fn log(&self) -> anyhow::Result<File> {
        let path = self.desk.path(LOG);
        let mut options = OpenOptions::new();
        options.create(true).truncate(true).write(true).mode(0o600);
        options
            .open(&path)
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

impl Drop for OwnDesk {
    fn drop(&mut self) {
        self.desk.clear();
    }
}

fn locked(file: File) -> io::Result<Option<File>> {
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn same_file(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let numbers = |found: fs::Metadata| (found.dev(), found.ino());
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(ours), Ok(there)) => numbers(ours) == numbers(there),
        _ => false,
    }
}

/// The directory of all desks, which the sandbox's own directory keeps private.
fn directory() -> anyhow::Result<PathBuf> {
    let directories = Directories::default();
    directories.prepare()?;
    let directory = directories.runtime.join("sessions");
    let at = || format!("cannot use the directory {}", directory.display());
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&directory)
        .with_context(at)?;
    Ok(directory)
}

fn unknown(name: &str) -> anyhow::Error {
    let name = name.escape_debug();
    let hint = "see `cordon session list`; `cordon session start` makes one";
    Hinted::new(format_args!("there is no session `{name}`"), hint).into()
}

const SOCKET: &str = ".sock";
const LOG: &str = ".log";
const LOCK: &str = ".lock";

const LOCK_TRIES: u32 = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// As long as the library makes them.
const NAME_MOST: usize = 63;
