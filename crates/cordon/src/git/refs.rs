//! From a name to a hash, by reading the files in which refs are kept.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    str::FromStr,
};

use rustix::fs::OFlags;

use super::{GitError, Repository, objects::Id};

/// The name of a ref, or a hash.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Reference {
    /// A full hash: what it names cannot be exchanged.
    Hash(Id),
    /// `HEAD`, `main`, `v1`, `origin/main`, `refs/heads/main`.
    Name(String),
}

impl FromStr for Reference {
    type Err = GitError;

    fn from_str(text: &str) -> Result<Self, GitError> {
        if let Some(id) = Id::parse(text) {
            return Ok(Self::Hash(id));
        }
        if is_name(text) {
            return Ok(Self::Name(text.to_owned()));
        }
        Err(GitError::BadReference {
            name: text.to_owned(),
        })
    }
}

impl Reference {
    /// What it stands for at this moment.
    pub(super) fn resolve(&self, repository: &Repository) -> Result<Id, GitError> {
        let name = match self {
            Self::Hash(id) => return Ok(id.clone()),
            Self::Name(name) => name,
        };
        let refs = Refs { repository };
        if repository.git_dir().join("reftable").exists() {
            return Err(GitError::Reftable {
                path: repository.git_dir().to_owned(),
            });
        }
        let mut found: Option<(String, Id)> = None;
        for candidate in candidates(name) {
            let Some(id) = refs.follow(&candidate)? else {
                continue;
            };
            match found {
                Some((first, _)) => {
                    return Err(GitError::Ambiguous {
                        name: name.clone(),
                        first,
                        second: candidate,
                    });
                }
                None => found = Some((candidate, id)),
            }
        }
        match found {
            Some((_, id)) => Ok(id),
            None => Err(GitError::UnknownReference {
                name: name.clone(),
                repository: repository.git_dir().to_owned(),
            }),
        }
    }
}

/// The refs that a name can stand for.
fn candidates(name: &str) -> Vec<String> {
    if name == "HEAD" || name.starts_with("refs/") {
        return vec![name.to_owned()];
    }
    let below = |directory: &str| format!("refs/{directory}/{name}");
    vec![
        below("tags"),
        below("heads"),
        below("remotes"),
        format!("refs/remotes/{name}/HEAD"),
    ]
}

struct Refs<'a> {
    repository: &'a Repository,
}

impl Refs<'_> {
    fn follow(&self, name: &str) -> Result<Option<Id>, GitError> {
        let mut name = name.to_owned();
        for _ in 0..SYMBOLIC_MAX {
            let path = self.repository.git_dir().join(&name);
            let unreadable = |source| GitError::UnreadableReference {
                path: path.clone(),
                source,
            };
            let Some(text) = self.loose(&name)? else {
                return self.packed(&name);
            };
            match text.trim().strip_prefix("ref:").map(str::trim) {
                None => {
                    let id = Id::parse(text.trim());
                    return id.map(Some).ok_or_else(|| unreadable(not_a_hash()));
                }
                Some(next) if is_name(next) && next.starts_with("refs/") => {
                    next.clone_into(&mut name)
                }
                Some(_) => return Err(unreadable(not_a_hash())),
            }
        }
        Err(GitError::UnknownReference {
            name,
            repository: self.repository.git_dir().to_owned(),
        })
    }

    fn loose(&self, name: &str) -> Result<Option<String>, GitError> {
        let path = self.repository.git_dir().join(name);
        match fs::canonicalize(&path) {
            Ok(real) if real == path => {}
            Ok(_) => return Err(GitError::Symlink { path }),
            Err(_) => return Ok(None),
        }
        match small_text(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => Ok(None),
            Err(source) => Err(GitError::UnreadableReference { path, source }),
        }
    }

    fn packed(&self, name: &str) -> Result<Option<Id>, GitError> {
        let path = self.repository.git_dir().join("packed-refs");
        let unreadable = |source| GitError::UnreadableReference {
            path: path.clone(),
            source,
        };
        let file = match regular(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(unreadable(source)),
        };
        let mut lines = BufReader::new(file.take(PACKED_MAX)).lines();
        lines
            .find_map(|line| match line {
                Ok(line) => match line.split_once(' ') {
                    Some((id, packed)) if packed == name => {
                        Some(Id::parse(id).ok_or_else(not_a_hash))
                    }
                    Some(_) | None => None,
                },
                Err(source) => Some(Err(source)),
            })
            .transpose()
            .map_err(unreadable)
    }
}

/// The text of a small regular file, which no last link led to.
pub(super) fn small_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let size = regular(path)?
        .take(LOOSE_MAX + 1)
        .read_to_string(&mut text)?;
    if size as u64 > LOOSE_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(text)
}

/// A pipe is not waited for, and a device not opened twice.
fn regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(i32::try_from(flags.bits()).unwrap_or_default())
        .open(path)?;
    let metadata = file.metadata()?;
    match (metadata.is_file(), metadata.is_dir()) {
        (true, _) => Ok(file),
        (false, true) => Err(io::ErrorKind::IsADirectory.into()),
        (false, false) => Err(io::Error::other("it is not a regular file")),
    }
}

fn not_a_hash() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it holds no hash")
}

/// Git's own rules for names, with what its expressions are made of left out.
fn is_name(name: &str) -> bool {
    let forbidden = |c: char| c.is_control() || c.is_whitespace() || "~^:?*[\\@{}".contains(c);
    let part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    name.len() <= NAME_MAX
        && !name.starts_with('-')
        && !name.contains("..")
        && !name.ends_with('.')
        && !name.contains(forbidden)
        && name.split('/').all(part)
}

/// As deep as git itself follows refs that name refs.
const SYMBOLIC_MAX: usize = 5;

/// What file systems take as one path, and more than a ref's file ever holds.
const NAME_MAX: usize = 1024;
const LOOSE_MAX: u64 = 4096;

/// A million refs.
const PACKED_MAX: u64 = 128 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_hashes_are_taken_and_expressions_are_not() {
        for name in [
            "HEAD",
            "main",
            "feature/x-1",
            "origin/main",
            "refs/heads/main",
            "v1.0",
        ] {
            assert_eq!(
                name.parse::<Reference>().unwrap(),
                Reference::Name(name.into())
            );
        }
        let hash = "0123456789abcdef0123456789abcdef01234567";
        assert!(matches!(hash.parse().unwrap(), Reference::Hash(_)));
        assert!(matches!(
            format!("{hash}{}", &hash[..24]).parse().unwrap(),
            Reference::Hash(_)
        ));
        for text in [
            "",
            "-x",
            "--help",
            "a..b",
            "main~1",
            "main^{tree}",
            "main@{1}",
            "@",
            ":/fix",
            "a b",
            "../config",
            "refs/../config",
            "/etc/passwd",
            "a//b",
            "a/",
            ".hidden",
            "x.lock",
            "a\nb",
            "main:file",
            "*",
        ] {
            assert!(text.parse::<Reference>().is_err(), "{text:?}");
        }
    }
}
