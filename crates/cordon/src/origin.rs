//! Where the rules of a run are read from.

use std::{
    env, fs, io,
    path::{Component, Path, PathBuf},
};

use cordon_image::Recipe;

use crate::{GitError, GitSnapshot, Mount, SandboxError, SandboxFile, git::Repository};

/// Where configuration, allowlist, Dockerfile and build context are read from.
///
/// Paths are given as they would be for the working tree. Where rules come from a commit, a path outside of its
/// repository is a file of the host all the same: nobody in the container can write it.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use cordon::{Allowlist, ConfigSource};
///
/// let rules = ConfigSource::repository("/srv/mirrors/project.git".as_ref(), "main").await?;
/// let file = rules.sandbox_file(".cordon/sandbox.yaml".as_ref()).await?;
/// let text = rules.text(".cordon/network-allowlist.yaml".as_ref()).await?;
/// let allowlist = Allowlist::from_yaml(&text.unwrap_or_default())?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub enum ConfigSource {
    /// Files as they are now, from where the process runs.
    Worktree,
    /// Files as one commit has them.
    Commit {
        /// The commit.
        snapshot: Box<GitSnapshot>,
        /// The working tree that paths are relative to the top of; `None` takes relative paths as they are.
        top: Option<PathBuf>,
    },
}

impl ConfigSource {
    /// A ref of the repository that `directory` is in.
    ///
    /// # Errors
    ///
    /// When there is no such repository or ref, or it belongs to somebody else.
    pub async fn around(directory: &Path, reference: &str) -> Result<Self, GitError> {
        let (repository, top) = Repository::around(directory)?;
        Ok(Self::Commit {
            snapshot: Box::new(GitSnapshot::of(&repository, reference).await?),
            top: Some(top),
        })
    }

    /// A ref of a repository that is named: a directory with `.git` in it, or a bare one. Relative paths are relative to
    /// its top.
    ///
    /// # Errors
    ///
    /// When there is no such repository or ref.
    pub async fn repository(repository: &Path, reference: &str) -> Result<Self, GitError> {
        Ok(Self::Commit {
            snapshot: Box::new(GitSnapshot::open(repository, reference).await?),
            top: None,
        })
    }

    /// The text of a file; `None` if there is none.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or is not UTF-8.
    pub async fn text(&self, path: &Path) -> Result<Option<String>, SandboxError> {
        let unreadable = |source| SandboxError::Rules {
            path: path.to_owned(),
            source,
        };
        match self.place(path) {
            Place::Host(path) => match fs::read_to_string(path) {
                Ok(text) => Ok(Some(text)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(unreadable(error)),
            },
            Place::Commit(snapshot, inside) => {
                let content = snapshot.file(&inside).await?;
                content.map(String::from_utf8).transpose().map_err(|_| {
                    unreadable(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "it is not UTF-8",
                    ))
                })
            }
        }
    }

    /// A configuration file; `None` if there is none.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or says something that cannot be understood.
    pub async fn sandbox_file(&self, path: &Path) -> Result<Option<SandboxFile>, SandboxError> {
        match self.place(path) {
            Place::Host(path) if !path.exists() => Ok(None),
            Place::Host(path) => Ok(Some(SandboxFile::read(path)?)),
            Place::Commit(..) => {
                let text = self.text(path).await?;
                let parsed =
                    text.map(|text| SandboxFile::parse(&text, &path.display().to_string()));
                Ok(parsed.transpose()?)
            }
        }
    }

    /// Whether a Dockerfile is there.
    ///
    /// # Errors
    ///
    /// When that cannot be told.
    pub async fn has(&self, path: &Path) -> Result<bool, SandboxError> {
        match self.place(path) {
            Place::Host(path) => Ok(path.exists()),
            Place::Commit(snapshot, inside) => Ok(snapshot.file(&inside).await?.is_some()),
        }
    }

    /// A Dockerfile with its build context. Where one of them is in the commit, so is the other.
    ///
    /// # Errors
    ///
    /// When something cannot be read, or cannot be in a build context.
    pub async fn recipe(&self, dockerfile: &Path, context: &Path) -> Result<Recipe, SandboxError> {
        match (self.place(dockerfile), self.place(context)) {
            (Place::Host(dockerfile), Place::Host(context)) => {
                Ok(Recipe::read(dockerfile, context)?)
            }
            (Place::Commit(snapshot, dockerfile), Place::Commit(_, context)) => {
                snapshot.recipe(&dockerfile, &context).await
            }
            (Place::Host(host), Place::Commit(..)) | (Place::Commit(..), Place::Host(host)) => {
                Err(GitError::Path {
                    path: host.to_owned(),
                }
                .into())
            }
        }
    }

    /// Whether what runs with these mounts can choose what the next run finds here: the rules are those of a ref, the ref
    /// has a name, and its repository can be written. A commit that is named by its hash cannot be exchanged.
    #[must_use]
    pub fn can_be_moved_by(&self, mounts: &[Mount]) -> bool {
        let Self::Commit { snapshot, .. } = self else {
            return false;
        };
        let touches = |mount: &&Mount| {
            fs::canonicalize(&mount.host_path).is_ok_and(|path| {
                snapshot.git_dir().starts_with(&path) || path.starts_with(snapshot.git_dir())
            })
        };
        !snapshot.is_hash()
            && mounts
                .iter()
                .filter(|mount| !mount.read_only)
                .any(|mount| touches(&mount))
    }

    fn place<'a>(&'a self, path: &'a Path) -> Place<'a> {
        match self {
            Self::Worktree => Place::Host(path),
            Self::Commit {
                snapshot,
                top: None,
            } if path.is_relative() => Place::Commit(snapshot, path.to_owned()),
            Self::Commit { top: None, .. } => Place::Host(path),
            Self::Commit {
                snapshot,
                top: Some(top),
            } => match inside(top, path) {
                Some(inside) => Place::Commit(snapshot, inside),
                None => Place::Host(path),
            },
        }
    }
}

enum Place<'a> {
    Host(&'a Path),
    Commit(&'a GitSnapshot, PathBuf),
}

/// A path from `top`, if it lies below, by its words and by where they really lead.
fn inside(top: &Path, path: &Path) -> Option<PathBuf> {
    let absolute = env::current_dir().unwrap_or_default().join(path);
    let mut written = PathBuf::new();
    for component in absolute.components() {
        match component {
            Component::ParentDir => drop(written.pop()),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                written.push(component);
            }
        }
    }
    let real = fs::canonicalize(&written).ok();
    let below = |path: PathBuf| path.strip_prefix(top).map(Path::to_owned).ok();
    below(written).or_else(|| below(real?))
}

#[cfg(test)]
mod tests;
