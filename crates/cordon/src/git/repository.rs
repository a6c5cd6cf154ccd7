//! Where a repository's refs and objects are.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::process::geteuid;

use super::GitError;

/// A repository on disk. What is in it is believed in no respect.
#[derive(Clone, Debug)]
pub(crate) struct Repository {
    git_dir: PathBuf,
}

impl Repository {
    /// The repository whose working tree, or whose git directory, `directory` is.
    pub(crate) fn open(directory: &Path) -> Result<Self, GitError> {
        let directory = fs::canonicalize(directory).map_err(|_| nowhere(directory))?;
        if let Some(found) = Self::below(&directory)? {
            return Ok(found);
        }
        if directory.join("HEAD").is_file() {
            return Self { git_dir: directory }.check();
        }
        Err(nowhere(&directory))
    }

    /// The repository that `directory` is in, and the top of its working tree.
    pub(crate) fn around(directory: &Path) -> Result<(Self, PathBuf), GitError> {
        let directory = fs::canonicalize(directory).map_err(|_| nowhere(directory))?;
        for top in directory.ancestors() {
            if let Some(found) = Self::below(top)? {
                // Anybody can put a repository above somebody else's directory.
                let owner = fs::metadata(&found.git_dir).map(|metadata| metadata.uid());
                let ours = owner.is_ok_and(|owner| owner == 0 || owner == geteuid().as_raw());
                return if ours {
                    Ok((found, top.to_owned()))
                } else {
                    Err(GitError::Foreign {
                        path: top.to_owned(),
                    })
                };
            }
        }
        Err(nowhere(&directory))
    }

    /// Refuses a repository whose refs or objects lie elsewhere. Git follows links in both, so whoever writes to one
    /// repository could have another one of the host's cloned in its place.
    pub(super) fn stands_alone(&self) -> Result<(), GitError> {
        let common = self.git_dir.join("commondir");
        if fs::symlink_metadata(&common).is_ok() {
            let target = super::refs::small_text(&common).unwrap_or_default();
            return Err(GitError::Linked {
                path: common,
                target: target.trim().into(),
            });
        }
        let mut pending: Vec<_> = ["HEAD", "packed-refs", "refs", "objects"]
            .map(|name| self.git_dir.join(name))
            .into();
        while let Some(path) = pending.pop() {
            let Ok(metadata) = fs::symlink_metadata(&path) else {
                continue;
            };
            if metadata.is_symlink() {
                return Err(GitError::Symlink { path });
            }
            if metadata.is_dir() {
                let entries = fs::read_dir(&path).map_err(|_| nowhere(&path))?;
                pending.extend(entries.flatten().map(|entry| entry.path()));
            }
        }
        Ok(())
    }

    /// The directory with refs and objects.
    pub(crate) fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    pub(super) fn objects(&self) -> PathBuf {
        self.git_dir.join("objects")
    }

    /// `.git` in a directory, if there is one.
    fn below(top: &Path) -> Result<Option<Self>, GitError> {
        let path = top.join(".git");
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            return Ok(None);
        };
        if metadata.is_symlink() {
            return Err(GitError::Symlink { path });
        }
        if metadata.is_dir() {
            return Self { git_dir: path }.check().map(Some);
        }
        // Following it would let whoever writes this file choose among all repositories of the host.
        let text = super::refs::small_text(&path).unwrap_or_default();
        let target = text.trim().trim_start_matches("gitdir:").trim().into();
        Err(GitError::Linked { path, target })
    }

    fn check(self) -> Result<Self, GitError> {
        let objects = self.objects();
        match fs::symlink_metadata(&objects) {
            Ok(metadata) if metadata.is_symlink() => {
                return Err(GitError::Symlink { path: objects });
            }
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) | Err(_) => return Err(nowhere(&self.git_dir)),
        }
        match fs::symlink_metadata(objects.join("info/alternates")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(self),
            Ok(_) | Err(_) => Err(GitError::Borrowing { path: self.git_dir }),
        }
    }
}

fn nowhere(path: &Path) -> GitError {
    GitError::NotARepository {
        path: path.to_owned(),
    }
}
