//! The contents of commits, tags and trees.

use super::{
    GitError,
    objects::{Id, Kind, Object},
};

/// One line of a tree.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Entry {
    pub(super) name: Vec<u8>,
    pub(super) mode: Mode,
    pub(super) id: Id,
}

/// What stands in a tree.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Mode {
    Directory,
    File,
    Program,
    Link,
    Submodule,
}

impl Mode {
    fn parse(digits: &[u8]) -> Option<Self> {
        match digits {
            b"40000" => Some(Self::Directory),
            // Group-writable files are of git's first days.
            b"100644" | b"100664" => Some(Self::File),
            b"100755" => Some(Self::Program),
            b"120000" => Some(Self::Link),
            b"160000" => Some(Self::Submodule),
            _ => None,
        }
    }

    /// With its article, for errors.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Directory => "a directory",
            Self::File | Self::Program => "a file",
            Self::Link => "a symbolic link",
            Self::Submodule => "a submodule",
        }
    }
}

/// The lines of a tree.
pub(super) fn entries(tree: &Object) -> Result<Vec<Entry>, GitError> {
    let malformed = || GitError::Malformed {
        id: tree.id.to_string(),
    };
    if tree.kind != Kind::Tree {
        return Err(malformed());
    }
    let mut entries = Vec::new();
    let mut rest = tree.content.as_slice();
    while !rest.is_empty() {
        let entry;
        (entry, rest) = entry_of(rest, tree.id.bytes()).ok_or_else(malformed)?;
        entries.push(entry);
    }
    Ok(entries)
}

/// The first line, and what follows it. A name that could lead elsewhere is none.
fn entry_of(bytes: &[u8], hash: usize) -> Option<(Entry, &[u8])> {
    let space = bytes.iter().position(|byte| *byte == b' ')?;
    let (digits, rest) = bytes.split_at(space);
    let rest = &rest[1..];
    let end = rest.iter().position(|byte| *byte == 0)?;
    let (name, rest) = rest.split_at(end);
    let id = Id::from_bytes(rest.get(1..=hash)?)?;
    if name.is_empty() || name == b"." || name == b".." || name.contains(&b'/') {
        return None;
    }
    let entry = Entry {
        name: name.to_vec(),
        mode: Mode::parse(digits)?,
        id,
    };
    Some((entry, &rest[hash + 1..]))
}

/// The hash behind the first line's word: `tree` of a commit, `object` of a tag.
pub(super) fn first_line(object: &Object, word: &str) -> Result<Id, GitError> {
    let line = object.content.split(|byte| *byte == b'\n').next();
    let hash = line
        .and_then(|line| std::str::from_utf8(line).ok())
        .and_then(|line| line.strip_prefix(word)?.strip_prefix(' '));
    hash.and_then(Id::parse).ok_or_else(|| GitError::Malformed {
        id: object.id.to_string(),
    })
}
