//! The files of one commit.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use cordon_image::{ContextPath, Entry as ContextEntry, Ignore, Recipe};

use super::{
    GitError, Repository,
    objects::{Id, Kind, Objects},
    refs::Reference,
    tree::{self, Entry, Mode},
};
use crate::SandboxError;

/// The files of one commit, read from a repository that a workload may have written to.
///
/// The commit is found once, when this is made; moving the ref later changes nothing. No program that the repository's
/// configuration names is run, nothing is fetched, and content that does not fit its hash is refused.
#[derive(Debug)]
pub struct GitSnapshot {
    objects: Objects,
    git_dir: PathBuf,
    reference: String,
    is_hash: bool,
    commit: Id,
    root: Id,
    /// The trees that were read, as most files have their directories in common.
    trees: Mutex<BTreeMap<String, Vec<Entry>>>,
}

impl GitSnapshot {
    /// The commit that `reference` stands for in a repository: the directory with `.git` in it, or a bare one. A ref is
    /// `HEAD`, a branch, a tag, `origin/main`, `refs/…` or a full hash.
    ///
    /// # Errors
    ///
    /// When there is no such repository or ref, or either cannot be trusted to be one.
    pub async fn open(repository: &Path, reference: &str) -> Result<Self, GitError> {
        Self::of(&Repository::open(repository)?, reference).await
    }

    pub(crate) async fn of(repository: &Repository, reference: &str) -> Result<Self, GitError> {
        let parsed: Reference = reference.parse()?;
        let mut id = parsed.resolve(repository)?;
        let objects = Objects::of(repository, &id)?;
        for _ in 0..TAGS_MAX {
            let object = objects.one(&id, HEADER_MAX).await?;
            match object.kind {
                Kind::Tag => id = tree::first_line(&object, "object")?,
                Kind::Commit => {
                    return Ok(Self {
                        root: tree::first_line(&object, "tree")?,
                        commit: id,
                        objects,
                        git_dir: repository.git_dir().to_owned(),
                        reference: reference.to_owned(),
                        is_hash: matches!(parsed, Reference::Hash(_)),
                        trees: Mutex::default(),
                    });
                }
                Kind::Tree | Kind::Blob => break,
            }
        }
        Err(GitError::NotACommit {
            name: reference.to_owned(),
        })
    }

    /// The commit's full hash.
    #[must_use]
    pub fn commit(&self) -> String {
        self.commit.to_string()
    }

    /// What was asked for.
    #[must_use]
    pub fn reference(&self) -> &str {
        &self.reference
    }

    /// Whether the commit was asked for by its hash. A name can be moved by whoever writes to the repository.
    #[must_use]
    pub fn is_hash(&self) -> bool {
        self.is_hash
    }

    /// The repository's git directory.
    #[must_use]
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The content of a file, by its path from the top of the repository; `None` if there is no such file.
    ///
    /// # Errors
    ///
    /// When it is something else than a file, lies behind a symbolic link or in a submodule, or is larger than a
    /// mebibyte.
    pub async fn file(&self, path: &Path) -> Result<Option<Vec<u8>>, GitError> {
        let Some(entry) = self.entry(path).await? else {
            return Ok(None);
        };
        match entry.mode {
            Mode::File | Mode::Program => {}
            Mode::Directory | Mode::Link | Mode::Submodule => {
                return Err(self.kind(path, entry.mode));
            }
        }
        match self.objects.one(&entry.id, FILE_MAX).await {
            Ok(object) => Ok(Some(object.content)),
            Err(GitError::TooLarge { limit, .. }) => Err(GitError::TooLarge {
                what: format!("`{}`", path.display()),
                limit,
            }),
            Err(error) => Err(error),
        }
    }

    /// A Dockerfile, and as its context everything below `context` that `.dockerignore` does not leave out.
    ///
    /// # Errors
    ///
    /// As [`GitSnapshot::file`], and when there is no such Dockerfile or directory, or a file's name cannot be in a build
    /// context.
    pub async fn recipe(&self, dockerfile: &Path, context: &Path) -> Result<Recipe, SandboxError> {
        let content = self.file(dockerfile).await?;
        let mut recipe = Recipe::new(content.ok_or_else(|| self.no_file(dockerfile))?);
        let ignore = match self.file(&context.join(Ignore::FILE)).await? {
            Some(text) => Ignore::parse(&String::from_utf8_lossy(&text)),
            None => Ignore::default(),
        };
        let files = self.walk(context, &ignore).await?;
        let ids: Vec<_> = files.iter().map(|(_, entry)| entry.id.clone()).collect();
        let objects = self.objects.all(&ids, Recipe::MAX_BYTES).await?;
        for ((path, entry), object) in files.into_iter().zip(objects) {
            let file = match entry.mode {
                Mode::Program => ContextEntry::program(object.content),
                Mode::File | Mode::Directory | Mode::Link | Mode::Submodule => {
                    ContextEntry::file(object.content)
                }
            };
            recipe.insert(path, file)?;
        }
        Ok(recipe)
    }

    /// Every file below a directory, by its path from there. Each level is asked for at once.
    async fn walk(
        &self,
        context: &Path,
        ignore: &Ignore,
    ) -> Result<Vec<(ContextPath, Entry)>, SandboxError> {
        let mut files = Vec::new();
        let mut seen = 0;
        let mut level = vec![(String::new(), self.directory(context).await?)];
        while !level.is_empty() {
            let found = self.entries_of(context, &level).await?;
            level.clear();
            seen += found.len();
            if seen > Recipe::MAX_FILES {
                return Err(cordon_image::Error::too_much(context).into());
            }
            for (path, entry) in found {
                match entry.mode {
                    Mode::Directory if ignore.may_hold(&path) => level.push((path, entry.id)),
                    Mode::Directory => {}
                    _ if ignore.excludes(&path) => {}
                    Mode::File | Mode::Program => {
                        let path = path.parse().map_err(cordon_image::Error::from)?;
                        files.push((path, entry));
                    }
                    Mode::Link | Mode::Submodule => {
                        return Err(self.kind(&context.join(path), entry.mode).into());
                    }
                }
            }
        }
        Ok(files)
    }

    /// What is in several directories of a context, by its path from there.
    async fn entries_of(
        &self,
        context: &Path,
        directories: &[(String, Id)],
    ) -> Result<Vec<(String, Entry)>, SandboxError> {
        let ids: Vec<_> = directories.iter().map(|(_, id)| id.clone()).collect();
        let trees = self.objects.all(&ids, TREES_MAX).await?;
        let mut found = Vec::new();
        for ((inside, _), object) in directories.iter().zip(&trees) {
            for entry in tree::entries(object)? {
                found.push((below(inside, &entry, context)?, entry));
            }
        }
        Ok(found)
    }

    /// The tree of a directory.
    async fn directory(&self, path: &Path) -> Result<Id, GitError> {
        if parts(path)?.is_empty() {
            return Ok(self.root.clone());
        }
        match self.entry(path).await? {
            Some(entry) if entry.mode == Mode::Directory => Ok(entry.id),
            Some(entry) => Err(self.kind(path, entry.mode)),
            None => Err(self.no_file(path)),
        }
    }

    /// What is at a path, if every part of the way is a directory.
    async fn entry(&self, path: &Path) -> Result<Option<Entry>, GitError> {
        let parts = parts(path)?;
        let Some((last, directories)) = parts.split_last() else {
            return Err(self.kind(path, Mode::Directory));
        };
        let mut here = self.root.clone();
        for (depth, part) in directories.iter().enumerate() {
            match find(self.tree(&here).await?, part) {
                None => return Ok(None),
                Some(entry) if entry.mode == Mode::Directory => here = entry.id,
                Some(entry) => {
                    let way: PathBuf = parts[..=depth].iter().collect();
                    return Err(self.kind(&way, entry.mode));
                }
            }
        }
        Ok(find(self.tree(&here).await?, last))
    }

    async fn tree(&self, id: &Id) -> Result<Vec<Entry>, GitError> {
        let key = id.to_string();
        let read = |trees: &Mutex<BTreeMap<String, Vec<Entry>>>| {
            let trees = trees.lock().unwrap_or_else(PoisonError::into_inner);
            trees.get(&key).cloned()
        };
        if let Some(entries) = read(&self.trees) {
            return Ok(entries);
        }
        let entries = tree::entries(&self.objects.one(id, TREE_MAX).await?)?;
        let mut trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner);
        if trees.len() < TREES_KEPT {
            trees.insert(key, entries.clone());
        }
        Ok(entries)
    }

    fn kind(&self, path: &Path, mode: Mode) -> GitError {
        GitError::Kind {
            path: path.to_owned(),
            what: mode.name(),
            reference: self.reference.clone(),
        }
    }

    fn no_file(&self, path: &Path) -> GitError {
        GitError::NoFile {
            path: path.to_owned(),
            reference: self.reference.clone(),
        }
    }
}

/// The path of an entry of the directory `inside`.
fn below(inside: &str, entry: &Entry, context: &Path) -> Result<String, SandboxError> {
    let name = std::str::from_utf8(&entry.name).map_err(|_| cordon_image::Error::NotUtf8 {
        path: context
            .join(inside)
            .join(String::from_utf8_lossy(&entry.name).as_ref()),
    })?;
    Ok(match inside {
        "" => name.to_owned(),
        _ => format!("{inside}/{name}"),
    })
}

fn find(entries: Vec<Entry>, name: &str) -> Option<Entry> {
    entries
        .into_iter()
        .find(|entry| entry.name == name.as_bytes())
}

/// The names on the way; a path that leaves the repository has none.
fn parts(path: &Path) -> Result<Vec<&str>, GitError> {
    let outside = || GitError::Path {
        path: path.to_owned(),
    };
    let components = path
        .components()
        .filter(|component| *component != Component::CurDir);
    components
        .map(|component| match component {
            Component::Normal(name) => name.to_str().ok_or_else(outside),
            Component::Prefix(_)
            | Component::RootDir
            | Component::CurDir
            | Component::ParentDir => Err(outside()),
        })
        .collect()
}

/// Commits and tags are a few lines; some carry a signature or a long message.
const HEADER_MAX: u64 = 1 << 20;

/// Configurations, allowlists and Dockerfiles are a few kilobytes.
const FILE_MAX: u64 = 1 << 20;

/// A directory with a hundred thousand names.
const TREE_MAX: u64 = 4 << 20;

/// The directories of one level of a build context, which may not hold more than [`Recipe::MAX_FILES`] names.
const TREES_MAX: u64 = 8 << 20;

/// Enough for the directories that rules lie in; a build context's own are read once.
const TREES_KEPT: usize = 16;

/// A tag of a tag is rare, and more than a few an endless chain.
const TAGS_MAX: usize = 5;

#[cfg(test)]
mod tests;
