//! Objects, each checked against its hash.
//!
//! Git trusts the names of the files in its own store; a workload that writes there can put any content under any name.

use std::{fmt, fs, path::PathBuf};

use sha1::{Digest as _, Sha1};
use sha2::Sha256;

use super::{GitError, Repository, program::Git};

/// The hash of an object, in lower case.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Id(String);

/// What an object is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Commit,
    Tree,
    Blob,
    Tag,
}

/// An object whose content is what its hash says.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) id: Id,
    pub(super) kind: Kind,
    pub(super) content: Vec<u8>,
}

/// Reads the objects of a repository, and nothing else of it.
#[derive(Debug)]
pub(super) struct Objects {
    git: Git,
    store: PathBuf,
}

impl Objects {
    /// `like` tells which hash the repository uses.
    pub(super) fn of(repository: &Repository, like: &Id) -> Result<Self, GitError> {
        let git = Git::new("")?;
        let objects = Self {
            store: repository.objects(),
            git,
        };
        objects.make_git_dir(like).map_err(GitError::Scratch)?;
        Ok(objects)
    }

    /// An object of at most `limit` bytes.
    pub(super) async fn one(&self, id: &Id, limit: u64) -> Result<Object, GitError> {
        let mut found = self.all(std::slice::from_ref(id), limit).await?;
        found.pop().ok_or_else(|| no_object(id))
    }

    /// Objects of at most `limit` bytes together, in the order of their hashes here.
    pub(super) async fn all(&self, ids: &[Id], limit: u64) -> Result<Vec<Object>, GitError> {
        let sizes = self.sizes(ids).await?;
        let mut sum: u64 = 0;
        for (id, size) in ids.iter().zip(&sizes) {
            sum = sum.saturating_add(*size);
            if sum > limit || *size > OBJECT_MAX {
                return Err(GitError::TooLarge {
                    what: format!("object {id}"),
                    limit: limit.min(OBJECT_MAX),
                });
            }
        }
        let mut objects = Vec::with_capacity(ids.len());
        let (mut from, mut bytes) = (0, 0);
        for (index, size) in sizes.iter().enumerate() {
            if bytes + size > ANSWER_MAX {
                objects.extend(self.batch(&ids[from..index]).await?);
                (from, bytes) = (index, 0);
            }
            bytes += size;
        }
        objects.extend(self.batch(&ids[from..]).await?);
        Ok(objects)
    }

    /// How large objects are. Asked first: git holds what it prints in memory.
    async fn sizes(&self, ids: &[Id]) -> Result<Vec<u64>, GitError> {
        let answer = self.ask("--batch-check", ids).await?;
        let text = String::from_utf8_lossy(&answer);
        let mut lines = text.lines();
        let mut sizes = Vec::with_capacity(ids.len());
        for id in ids {
            let (_, size) = head(lines.next().unwrap_or_default(), id)?;
            sizes.push(size);
        }
        Ok(sizes)
    }

    async fn batch(&self, ids: &[Id]) -> Result<Vec<Object>, GitError> {
        let answer = self.ask("--batch", ids).await?;
        let mut rest = answer.as_slice();
        let mut objects = Vec::with_capacity(ids.len());
        for id in ids {
            let end = rest.iter().position(|byte| *byte == b'\n');
            let (line, after) = rest.split_at(end.ok_or_else(|| no_object(id))?);
            let (kind, size) = head(&String::from_utf8_lossy(line), id)?;
            let size = usize::try_from(size).map_err(|_| no_object(id))?;
            // A line feed before the content, and one behind it.
            let content = after.get(1..=size).ok_or_else(|| no_object(id))?;
            rest = after.get(size + 2..).ok_or_else(|| no_object(id))?;
            if id.of_same_length(kind, content) != *id {
                return Err(GitError::Forged { id: id.to_string() });
            }
            objects.push(Object {
                id: id.clone(),
                kind,
                content: content.to_vec(),
            });
        }
        Ok(objects)
    }

    async fn ask(&self, how: &str, ids: &[Id]) -> Result<Vec<u8>, GitError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let input: String = ids.iter().map(|id| format!("{id}\n")).collect();
        let output = self
            .git
            .call("cat-file")
            .env("GIT_DIR", self.git_dir())
            .env("GIT_OBJECT_DIRECTORY", &self.store)
            .args(["cat-file", how])
            .output(input.as_bytes())
            .await
            .map_err(GitError::Process)?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(GitError::Refused {
            objects: self.store.clone(),
            said: output.stderr.trim().to_owned(),
        })
    }

    fn git_dir(&self) -> PathBuf {
        self.git.home().join("git")
    }

    /// A git directory that holds nothing but what git insists on.
    fn make_git_dir(&self, like: &Id) -> std::io::Result<()> {
        let directory = self.git_dir();
        for name in ["objects", "refs"] {
            fs::create_dir_all(directory.join(name))?;
        }
        fs::write(directory.join("HEAD"), "ref: refs/heads/none\n")?;
        fs::write(directory.join("config"), like.format())
    }
}

/// `HASH KIND SIZE`; anything else means that the object is not to be had.
fn head(line: &str, id: &Id) -> Result<(Kind, u64), GitError> {
    let words: Vec<_> = line.split(' ').collect();
    let parsed = match words.as_slice() {
        [name, kind, size] if *name == id.0 => Kind::parse(kind).zip(size.parse().ok()),
        _ => None,
    };
    parsed.ok_or_else(|| no_object(id))
}

fn no_object(id: &Id) -> GitError {
    GitError::NoObject { id: id.to_string() }
}

impl Kind {
    fn parse(word: &str) -> Option<Self> {
        match word {
            "commit" => Some(Self::Commit),
            "tree" => Some(Self::Tree),
            "blob" => Some(Self::Blob),
            "tag" => Some(Self::Tag),
            _ => None,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "blob",
            Self::Tag => "tag",
        }
    }
}

impl Id {
    /// A full hash, SHA-1 or SHA-256.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let full = text.len() == SHA1_DIGITS || text.len() == SHA256_DIGITS;
        (full && text.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .then(|| Self(text.to_ascii_lowercase()))
    }

    /// How many bytes a hash of this kind has.
    pub(super) fn bytes(&self) -> usize {
        self.0.len() / 2
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Self::parse(&hexadecimal(bytes))
    }

    /// The hash of a content, by the same algorithm as this one.
    fn of_same_length(&self, kind: Kind, content: &[u8]) -> Self {
        let head = format!("{} {}\0", kind.word(), content.len());
        Self(if self.is_sha256() {
            hexadecimal(
                &Sha256::new()
                    .chain_update(head)
                    .chain_update(content)
                    .finalize(),
            )
        } else {
            hexadecimal(
                &Sha1::new()
                    .chain_update(head)
                    .chain_update(content)
                    .finalize(),
            )
        })
    }

    fn is_sha256(&self) -> bool {
        self.0.len() == SHA256_DIGITS
    }

    fn format(&self) -> &'static str {
        if self.is_sha256() {
            "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectformat = sha256\n"
        } else {
            "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const SHA1_DIGITS: usize = 40;
const SHA256_DIGITS: usize = 64;

/// What is asked of git at once stays well below what a call's output may be.
const ANSWER_MAX: u64 = 24 << 20;

/// One object may be an answer alone.
const OBJECT_MAX: u64 = 48 << 20;
