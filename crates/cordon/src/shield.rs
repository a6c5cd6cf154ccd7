//! Keeps `.cordon` of a workspace out of the workload's hands.
//!
//! What is in it tells the sandbox how to behave, in the next run too. So it is mounted read-only over
//! itself; where there is none, an empty one is there as long as a run lasts, so that none can be made.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::{Mount, MountError};

/// The read-only mounts of one run.
#[derive(Debug, Default)]
pub(crate) struct Shield {
    mounts: Vec<Mount>,
    held: Vec<Held>,
}

impl Shield {
    /// Shields what lies in the mounts that can be written. A directory is made for the one at
    /// `workspace` only: it is where the next run would look.
    pub(crate) fn over(mounts: &[Mount], workspace: &str) -> Result<Self, MountError> {
        let mut shield = Self::default();
        for mount in mounts.iter().filter(|mount| !mount.read_only) {
            let path = mount.host_path.join(NAME);
            let target = format!("{}/{NAME}", mount.container_path);
            // The caller may have put something else there.
            if mounts.iter().any(|other| other.container_path == target)
                || !mount.host_path.is_dir()
            {
                continue;
            }
            let unreadable = |source| MountError::Unreadable {
                path: path.clone(),
                source,
            };
            match fs::symlink_metadata(&path) {
                Ok(metadata) if metadata.is_symlink() => {
                    let target = fs::canonicalize(&path).unwrap_or_default();
                    return Err(MountError::Symlink { path, target });
                }
                Ok(metadata) if metadata.is_dir() => {
                    shield.held.extend(Held::take(&path).map_err(unreadable)?);
                }
                Ok(_) => {}
                Err(_) if mount.container_path != workspace => continue,
                Err(_) => match Held::make(&path) {
                    Ok(held) => shield.held.push(held),
                    // What we may not write, a workload that is us may not write either.
                    Err(error) if is_refusal(&error) => continue,
                    Err(error) => return Err(unreadable(error)),
                },
            }
            shield.mounts.push(Mount::read_only(path, target));
        }
        Ok(shield)
    }

    pub(crate) fn mounts(&self) -> &[Mount] {
        &self.mounts
    }
}

/// A directory that is in use by this run. Removing one that another run has mounted would take the
/// mount away from it, so whoever uses it holds a lock on it.
#[derive(Debug)]
struct Held {
    path: PathBuf,
    directory: File,
}

impl Held {
    /// `None` when the directory has been removed on the way.
    fn take(path: &Path) -> io::Result<Option<Self>> {
        let directory = File::open(path)?;
        directory.lock_shared()?;
        let ours = directory.metadata()?.ino();
        let still_there = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.ino() == ours);
        Ok(still_there.then(|| Self {
            path: path.to_owned(),
            directory,
        }))
    }

    fn make(path: &Path) -> io::Result<Self> {
        loop {
            match fs::create_dir(path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            match Self::take(path) {
                Ok(Some(held)) => return Ok(held),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.directory.unlock());
        // Only an empty one goes, and only when no other run holds it.
        if self.directory.try_lock().is_ok() {
            drop(fs::remove_dir(&self.path));
        }
    }
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
    )
}

const NAME: &str = ".cordon";

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> (tempfile::TempDir, Vec<Mount>) {
        let directory = tempfile::tempdir().unwrap();
        let mounts = vec![Mount::read_write(directory.path(), "/workspace")];
        (directory, mounts)
    }

    #[test]
    fn what_is_there_is_mounted_read_only_over_itself_and_stays() {
        let (directory, mounts) = workspace();
        fs::create_dir(directory.path().join(NAME)).unwrap();
        fs::write(directory.path().join(NAME).join("sandbox.yaml"), "").unwrap();
        let shield = Shield::over(&mounts, "/workspace").unwrap();
        assert_eq!(
            shield.mounts(),
            [Mount::read_only(
                directory.path().join(NAME),
                "/workspace/.cordon"
            )]
        );
        drop(shield);
        assert!(directory.path().join(NAME).is_dir());
    }

    #[test]
    fn where_there_is_none_none_can_be_made_and_nothing_stays() {
        let (directory, mounts) = workspace();
        let first = Shield::over(&mounts, "/workspace").unwrap();
        let second = Shield::over(&mounts, "/workspace").unwrap();
        assert_eq!(second.mounts().len(), 1);
        drop(first);
        assert!(
            directory.path().join(NAME).is_dir(),
            "the other run still needs it"
        );
        drop(second);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_symbolic_link_is_refused() {
        let (directory, mounts) = workspace();
        std::os::unix::fs::symlink("/etc", directory.path().join(NAME)).unwrap();
        assert!(matches!(
            Shield::over(&mounts, "/workspace"),
            Err(MountError::Symlink { .. })
        ));
    }

    #[test]
    fn a_mount_that_cannot_be_written_needs_no_shield() {
        let (directory, _) = workspace();
        let mounts = [Mount::read_only(directory.path(), "/workspace")];
        assert!(
            Shield::over(&mounts, "/workspace")
                .unwrap()
                .mounts()
                .is_empty()
        );
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
