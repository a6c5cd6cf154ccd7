//! What a repo image is made of: a Dockerfile and the files it may copy.

use std::{
    collections::BTreeMap,
    fs, io,
    ops::Bound,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use bytes::Bytes;

use crate::{ContextPath, Digest, Error, Ignore, tag::Fields};

/// A Dockerfile with its build context, held in memory.
///
/// The Dockerfile stands beside the context, not in it: a context file of that name is only a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Recipe {
    dockerfile: Bytes,
    entries: BTreeMap<ContextPath, Entry>,
    conditions: Bytes,
}

/// One thing in a build context.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Entry {
    /// A regular file.
    File {
        /// Its bytes.
        content: Bytes,
        /// Its permission bits.
        mode: u32,
    },
    /// A symbolic link, which the engine resolves inside the context.
    Link {
        /// Where it points.
        target: PathBuf,
    },
}

impl Recipe {
    /// The context is held in memory while it is hashed and laid out; what is larger belongs in a mount.
    pub const MAX_BYTES: u64 = 256 << 20;

    /// A context of more files than this is a whole project that wants a `.dockerignore`.
    pub const MAX_FILES: usize = 20_000;

    /// A recipe without context files.
    #[must_use]
    pub fn new(dockerfile: impl Into<Bytes>) -> Self {
        Self {
            dockerfile: dockerfile.into(),
            entries: BTreeMap::new(),
            conditions: Bytes::new(),
        }
    }

    /// The same recipe under conditions that may change what comes of it, such as what its commands can reach. They
    /// are part of the hash and nothing else.
    #[must_use]
    pub fn under(mut self, conditions: impl Into<Bytes>) -> Self {
        self.conditions = conditions.into();
        self
    }

    /// Adds a file to the context, or replaces it.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] when something is a directory on the way to one file and a file itself.
    pub fn insert(&mut self, path: ContextPath, entry: Entry) -> Result<(), Error> {
        let below = format!("{path}/");
        let covered = self
            .entries
            .range::<str, _>((Bound::Included(below.as_str()), Bound::Unbounded))
            .next()
            .is_some_and(|(next, _)| next.as_str().starts_with(&below));
        let covering = path
            .parents()
            .any(|parent| self.entries.contains_key(parent));
        if covered || covering {
            return Err(Error::Conflict { path });
        }
        self.entries.insert(path, entry);
        Ok(())
    }

    /// Reads a Dockerfile, and as its context everything below `context` that `.dockerignore` does not
    /// leave out. Modes are kept, links stay links, empty directories are left out.
    ///
    /// # Errors
    ///
    /// When something cannot be read, is neither a file nor a link, or is more than a recipe may hold.
    pub fn read(dockerfile: &Path, context: &Path) -> Result<Self, Error> {
        let mut recipe = Self::new(read(dockerfile)?);
        let ignore = match fs::read_to_string(context.join(Ignore::FILE)) {
            Ok(text) => Ignore::parse(&text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ignore::default(),
            Err(source) => {
                return Err(Error::Read {
                    path: context.join(Ignore::FILE),
                    source,
                });
            }
        };
        let mut size = 0;
        recipe.collect(context, "", &ignore, &mut size)?;
        Ok(recipe)
    }

    /// The hash of every byte that goes into the image, kinds, names, modes and contents, and of the conditions.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let start = match self.conditions.as_ref() {
            [] => Fields::new("cordon repo image 1"),
            conditions => Fields::new("cordon repo image under conditions 1").field(conditions),
        };
        let start = start.field(&self.dockerfile);
        let all = self.entries.iter().fold(start, |fields, (path, entry)| {
            let fields = fields.field(path.as_str().as_bytes());
            match entry {
                Entry::File { content, mode } => fields
                    .field(b"file")
                    .field(&mode.to_be_bytes())
                    .field(content),
                Entry::Link { target } => fields
                    .field(b"link")
                    .field(target.as_os_str().as_encoded_bytes()),
            }
        });
        all.digest()
    }

    pub(crate) fn dockerfile(&self) -> &Bytes {
        &self.dockerfile
    }

    pub(crate) fn entries(&self) -> &BTreeMap<ContextPath, Entry> {
        &self.entries
    }

    fn collect(
        &mut self,
        directory: &Path,
        inside: &str,
        ignore: &Ignore,
        size: &mut u64,
    ) -> Result<(), Error> {
        let at = |source| Error::Read {
            path: directory.to_owned(),
            source,
        };
        for found in fs::read_dir(directory).map_err(at)? {
            let found = found.map_err(at)?;
            let name = found.file_name();
            let name = name
                .to_str()
                .ok_or_else(|| Error::NotUtf8 { path: found.path() })?;
            let path = match inside {
                "" => name.to_owned(),
                _ => format!("{inside}/{name}"),
            };
            let kind = found.file_type().map_err(at)?;
            if kind.is_dir() {
                if ignore.may_hold(&path) {
                    self.collect(&found.path(), &path, ignore, size)?;
                }
            } else if !ignore.excludes(&path) {
                let entry = Entry::read(&found.path(), kind)?;
                *size += entry.size();
                self.entries.insert(path.parse()?, entry);
            }
            if *size > Self::MAX_BYTES || self.entries.len() > Self::MAX_FILES {
                return Err(Error::too_much(found.path()));
            }
        }
        Ok(())
    }
}

impl Entry {
    /// A file that is read.
    #[must_use]
    pub fn file(content: impl Into<Bytes>) -> Self {
        Self::File {
            content: content.into(),
            mode: 0o644,
        }
    }

    /// A file that is run.
    #[must_use]
    pub fn program(content: impl Into<Bytes>) -> Self {
        Self::File {
            content: content.into(),
            mode: 0o755,
        }
    }

    fn read(path: &Path, kind: fs::FileType) -> Result<Self, Error> {
        let at = |source| Error::Read {
            path: path.to_owned(),
            source,
        };
        if kind.is_symlink() {
            let target = fs::read_link(path).map_err(at)?;
            return Ok(Self::Link { target });
        }
        if !kind.is_file() {
            return Err(Error::NotAFile {
                path: path.to_owned(),
            });
        }
        let metadata = fs::metadata(path).map_err(at)?;
        if metadata.len() > Recipe::MAX_BYTES {
            return Err(Error::too_much(path));
        }
        Ok(Self::File {
            content: read(path)?,
            mode: metadata.mode() & PERMISSIONS,
        })
    }

    fn size(&self) -> u64 {
        match self {
            Self::File { content, .. } => content.len() as u64,
            Self::Link { .. } => 0,
        }
    }
}

fn read(path: &Path) -> Result<Bytes, Error> {
    match fs::read(path) {
        Ok(bytes) => Ok(bytes.into()),
        Err(source) => Err(Error::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Who may do what, without the kind of file.
const PERMISSIONS: u32 = 0o7777;

#[cfg(test)]
mod tests;
