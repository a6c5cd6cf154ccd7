//! Holds on to what a mount was judged to be.
//!
//! Engines mount by path, and a path that was judged may lead elsewhere a moment later. So what it led
//! to is opened, without following any link on the way, and PID 1 compares what it finds in the
//! container before the workload starts. The open handle keeps the numbers from being given away.

use std::{
    fs::File,
    io,
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    path::{Component, Path},
};

use cordon_door::Mounted;
use rustix::{
    fs::{Mode, OFlags, openat},
    io::Errno,
};

use super::{Mount, MountError};

/// What the mounts of one run refer to.
#[derive(Debug, Default)]
pub(crate) struct Handles {
    mounted: Vec<Mounted>,
    _open: Vec<File>,
}

impl Handles {
    /// Opens what the canonical paths of `mounts` lead to.
    pub(crate) fn open<'a>(
        mounts: impl IntoIterator<Item = &'a Mount>,
    ) -> Result<Self, MountError> {
        let mut handles = Self::default();
        for mount in mounts {
            let path = &mount.host_path;
            let opened = open(path).and_then(|file| Ok((file.metadata()?, file)));
            let (metadata, file) = opened.map_err(|source| MountError::Unreadable {
                path: path.clone(),
                source,
            })?;
            if metadata.is_symlink() {
                return Err(MountError::Symlink {
                    path: path.clone(),
                    target: std::fs::canonicalize(path).unwrap_or_default(),
                });
            }
            handles.mounted.push(Mounted {
                path: mount.container_path.clone(),
                device: metadata.dev(),
                inode: metadata.ino(),
            });
            handles._open.push(file);
        }
        Ok(handles)
    }

    /// What PID 1 must find in the container.
    pub(crate) fn mounted(&self) -> &[Mounted] {
        &self.mounted
    }
}

/// Opens a path step by step. A link on the way is opened as what it is, so that the next step, or the
/// caller, finds that it is no directory.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at: OwnedFd = rustix::fs::open("/", flags, Mode::empty())?;
    for component in path.components() {
        match component {
            Component::RootDir => {}
            Component::Normal(name) => at = openat(&at, name, flags, Mode::empty())?,
            Component::Prefix(_) | Component::CurDir | Component::ParentDir => {
                return Err(Errno::INVAL.into());
            }
        }
    }
    Ok(at.into())
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::symlink,
        sync::atomic::{AtomicBool, Ordering},
        thread,
    };

    use super::*;

    #[test]
    fn a_link_anywhere_on_the_way_is_no_mount() {
        let scratch = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(scratch.path()).unwrap();
        fs::create_dir_all(root.join("real/inner")).unwrap();
        symlink(root.join("real"), root.join("link")).unwrap();
        for path in ["link", "link/inner"] {
            let mount = Mount::read_write(root.join(path), "/workspace");
            Handles::open([&mount]).unwrap_err();
        }
        let mount = Mount::read_write(root.join("real/inner"), "/workspace");
        assert_eq!(Handles::open([&mount]).unwrap().mounted().len(), 1);
    }

    /// Swaps the workspace for a link to the outside as fast as it can, while it is opened, and then
    /// looked up by its path as an engine would.
    #[test]
    fn a_workspace_that_is_swapped_while_it_is_mounted_never_shows_the_outside() {
        let scratch = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(scratch.path()).unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::create_dir(root.join("work")).unwrap();
        symlink(outside.path(), root.join("trap")).unwrap();
        let forbidden = fs::metadata(outside.path()).unwrap();
        let forbidden = (forbidden.dev(), forbidden.ino());

        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let (work, trap) = (root.join("work"), root.join("trap"));
                while !done.load(Ordering::Relaxed) {
                    swap(&work, &trap);
                }
            });
            let mount = Mount::read_write(root.join("work"), "/workspace");
            let (mut tries, mut opened, mut astray) = (0, 0, 0);
            // On a machine with one core it may take more of them until the two meet.
            while tries < TRIES || (astray == 0 && tries < 100 * TRIES) {
                tries += 1;
                let Ok(handles) = Handles::open([&mount]) else {
                    continue;
                };
                opened += 1;
                let judged = &handles.mounted()[0];
                let judged = (judged.device, judged.inode);
                assert_ne!(judged, forbidden);
                let by_path = fs::metadata(&mount.host_path).unwrap();
                astray += usize::from((by_path.dev(), by_path.ino()) != judged);
            }
            done.store(true, Ordering::Relaxed);
            assert!(opened > 0 && astray > 0, "{opened} opened, {astray} astray");
        });
    }

    fn swap(one: &Path, other: &Path) {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
    }

    const TRIES: usize = 10_000;
}
