//! The directory that commands start in, held by a handle.
//!
//! The kernel resolves a command's directory below the workspace's handle, and the command starts in what was resolved.
//! No name is looked up twice, so there is nothing to swap in between.

use std::{
    fs, io,
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use rustix::{
    fs::{Mode, OFlags, ResolveFlags, open, openat2},
    io::Errno,
};

use crate::SandboxError;

/// An agent's workspace.
pub(super) struct Workspace {
    path: PathBuf,
    written: PathBuf,
    handle: OwnedFd,
}

impl Workspace {
    /// Opens the workspace, for as long as this lives.
    pub(super) fn open(written: &Path) -> Result<Self, SandboxError> {
        let opened = || -> io::Result<Self> {
            let path = fs::canonicalize(written)?;
            let handle = open(&path, FLAGS | OFlags::NOFOLLOW, Mode::empty())?;
            Ok(Self {
                path,
                written: written.to_owned(),
                handle,
            })
        };
        opened().map_err(|source| SandboxError::Workspace {
            path: written.to_owned(),
            source,
        })
    }

    /// Its one true path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A handle on a directory that is inside, whatever links lead to it.
    pub(super) fn directory(&self, cwd: Option<&Path>) -> Result<Arc<OwnedFd>, SandboxError> {
        let cwd = cwd.unwrap_or_else(|| Path::new("."));
        let opened = self
            .relative(cwd)
            .and_then(|relative| self.resolve(&relative));
        opened.map(Arc::new).ok_or_else(|| SandboxError::Cwd {
            path: cwd.to_owned(),
        })
    }

    /// The path from the workspace on.
    fn relative(&self, cwd: &Path) -> Option<PathBuf> {
        let below = if cwd.is_absolute() {
            let inside = cwd.strip_prefix(&self.path);
            inside.or_else(|_| cwd.strip_prefix(&self.written)).ok()?
        } else {
            cwd
        };
        let climbs = below.components().any(|part| part == Component::ParentDir);
        (!climbs).then(|| Path::new(".").join(below))
    }

    fn resolve(&self, relative: &Path) -> Option<OwnedFd> {
        let rules = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..TRIES {
            match openat2(&self.handle, relative, FLAGS, Mode::empty(), rules) {
                Ok(handle) => return Some(handle),
                // Somebody renamed on the way while the kernel looked.
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => {
                    tracing::debug!(%error, path = %relative.display(), "not below the workspace");
                    return None;
                }
            }
        }
        None
    }
}

const FLAGS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// How often a resolution that was disturbed is begun anew.
const TRIES: usize = 64;
