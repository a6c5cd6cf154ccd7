//! Who the user of a container is on the host, where the files that it writes stay.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt, lchown},
    path::Path,
};

use cordon_engine::{Engine, Kind};

use crate::SandboxError;

/// A user of a container, by number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct User {
    uid: u32,
    gid: u32,
}

impl User {
    /// The user that is written `UID[:GID]`, in the group of the same number unless it says another.
    /// `None` for a name, whose number only the image knows.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (uid, gid) = text.split_once(':').unwrap_or((text, text));
        Some(Self {
            uid: uid.parse().ok()?,
            gid: gid.parse().ok()?,
        })
    }

    pub(crate) fn is_root(self) -> bool {
        self.uid == 0
    }

    /// The user namespace that makes this user the caller outside of it. Without root, podman gives
    /// every number but 0 to somebody whose files the caller can neither read nor remove.
    pub(crate) fn namespace(self, engine: &Engine) -> Option<String> {
        let foreign = engine.kind() == Kind::Podman && engine.facts().rootless && !self.is_root();
        foreign.then(|| format!("keep-id:uid={},gid={}", self.uid, self.gid))
    }

    /// Sees to it that the user can write a directory of the host and all that is in it.
    pub(crate) fn take(self, engine: &Engine, directory: &Path) -> Result<(), SandboxError> {
        // Another machine gives its files to whoever asks.
        if self.namespace(engine).is_some() || !engine.facts().local {
            return Ok(());
        }
        let caller = rustix::process::getuid();
        if caller.is_root() && !engine.facts().rootless {
            return self
                .give(directory)
                .map_err(|source| SandboxError::Directory {
                    path: directory.to_owned(),
                    source,
                });
        }
        if caller.as_raw() == self.uid && !engine.facts().rootless {
            return Ok(());
        }
        Err(SandboxError::StateOutOfReach {
            user: self.uid,
            path: directory.to_owned(),
        })
    }

    /// Gives it a file or directory with all that is in it. Links are given themselves: what they
    /// point to was chosen in the container.
    fn give(self, path: &Path) -> io::Result<()> {
        let metadata = fs::symlink_metadata(path)?;
        if metadata.uid() != self.uid {
            lchown(path, Some(self.uid), Some(self.gid))?;
        }
        if metadata.is_dir() {
            for entry in fs::read_dir(path)? {
                self.give(&entry?.path())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_a_number_and_perhaps_a_group() {
        let user = |uid, gid| Some(User { uid, gid });
        assert_eq!(User::parse("1000"), user(1000, 1000));
        assert_eq!(User::parse("1000:50"), user(1000, 50));
        assert_eq!(User::parse("node"), None);
        assert_eq!(User::parse("1000:staff"), None);
        assert_eq!(User::parse("-1"), None);
    }
}
