//! What can be wrong with a repository, a ref or a clone.

use std::{io, path::PathBuf};

/// Git, or a repository, is not as it has to be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// There is no `git` on the search path.
    #[error("git is not installed")]
    Missing,
    /// `git` could not be run, or did not come to an end.
    #[error("cannot run git")]
    Process(#[source] cordon_engine::Error),
    /// `git` refused.
    #[error("git cannot read {}: {said}", objects.display())]
    Refused {
        /// The objects that were to be read.
        objects: PathBuf,
        /// Its own words.
        said: String,
    },
    /// A directory for git to work in cannot be made.
    #[error("cannot make a directory for git")]
    Scratch(#[source] io::Error),
    /// There is no repository there.
    #[error("{} is not in a git repository", path.display())]
    NotARepository {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// `.git` is a file that names another place.
    #[error("{} says that the repository is elsewhere, at {}", path.display(), target.display())]
    Linked {
        /// The file.
        path: PathBuf,
        /// What it names.
        target: PathBuf,
    },
    /// Something in the repository is a symbolic link that must not be.
    #[error("{} is a symbolic link, or lies behind one", path.display())]
    Symlink {
        /// Which one.
        path: PathBuf,
    },
    /// A repository that was come upon belongs to somebody else.
    #[error("the repository {} belongs to another user", path.display())]
    Foreign {
        /// Which one.
        path: PathBuf,
    },
    /// The repository takes objects from other places of the host.
    #[error("the repository {} borrows objects from elsewhere", path.display())]
    Borrowing {
        /// Which one.
        path: PathBuf,
    },
    /// The repository keeps its refs in a form that is not read.
    #[error("{} keeps its refs in a table", path.display())]
    Reftable {
        /// Which one.
        path: PathBuf,
    },
    /// A text that no ref is called.
    #[error("`{}` is neither the name of a ref nor a full hash", name.escape_debug())]
    BadReference {
        /// The text.
        name: String,
    },
    /// There is no such ref.
    #[error("{} has no ref `{name}`", repository.display())]
    UnknownReference {
        /// The name.
        name: String,
        /// The repository.
        repository: PathBuf,
    },
    /// One name stands for two refs.
    #[error("`{name}` is {first} as well as {second}")]
    Ambiguous {
        /// The name.
        name: String,
        /// One of them.
        first: String,
        /// Another.
        second: String,
    },
    /// A ref's file cannot be read, or holds something else.
    #[error("cannot read the ref {}", path.display())]
    UnreadableReference {
        /// Which one.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A ref does not lead to a commit.
    #[error("`{name}` does not lead to a commit")]
    NotACommit {
        /// The name.
        name: String,
    },
    /// The repository lacks an object; nothing is fetched.
    #[error("the repository has no object {id}")]
    NoObject {
        /// Its hash.
        id: String,
    },
    /// An object's content is not what its hash says.
    #[error("object {id} is forged or damaged: its content has another hash")]
    Forged {
        /// The hash that it was asked for by.
        id: String,
    },
    /// A commit or tree that says something else than such objects say.
    #[error("object {id} cannot be understood")]
    Malformed {
        /// Its hash.
        id: String,
    },
    /// Something is larger than it may be.
    #[error("{what} is larger than {} MiB", limit >> 20)]
    TooLarge {
        /// Its path or hash.
        what: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// Something in the commit is of a kind that is not read.
    #[error("`{}` is {what} at `{reference}`", path.display())]
    Kind {
        /// Its path.
        path: PathBuf,
        /// What it is, with its article.
        what: &'static str,
        /// The ref.
        reference: String,
    },
    /// Something that must be in the commit is not.
    #[error("there is no `{}` at `{reference}`", path.display())]
    NoFile {
        /// Its path.
        path: PathBuf,
        /// The ref.
        reference: String,
    },
    /// A path that cannot be in a commit.
    #[error("`{}` is not a path in a repository", path.display())]
    Path {
        /// The path.
        path: PathBuf,
    },
    /// A text that names no repository to clone.
    #[error("`{source_text}` is neither a directory nor the address of a repository")]
    BadSource {
        /// The text, without credentials.
        source_text: String,
    },
    /// An address that nothing vouches for on the way.
    #[error("`{scheme}` is not a way to clone")]
    Protocol {
        /// Its scheme.
        scheme: String,
    },
    /// The place for a clone is taken.
    #[error("{} is there already", path.display())]
    Occupied {
        /// The place.
        path: PathBuf,
    },
    /// The place for a clone cannot be made or finished.
    #[error("cannot write {}", path.display())]
    Write {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// `git` could not clone.
    #[error("cannot clone {from}: {said}")]
    CloneFailed {
        /// The address, without credentials.
        from: String,
        /// Its own words.
        said: String,
    },
    /// The operating system gave no randomness.
    #[error("no randomness from the operating system")]
    Randomness,
}

impl GitError {
    /// What to type or check next, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Missing => Some("install git".into()),
            Self::NotARepository { .. } => Some("change into one, or name its top directory".into()),
            Self::Linked { target, .. } => Some(format!(
                "name the repository itself instead; {} belongs to it",
                target.display()
            )),
            Self::Foreign { path } => Some(format!(
                "say --config-repo {} if you trust it",
                path.display()
            )),
            Self::Borrowing { path } => Some(format!(
                "make it whole with `git -C {} repack -a -d` and remove objects/info/alternates",
                path.display()
            )),
            Self::Reftable { .. } | Self::BadReference { .. } => {
                Some("name a branch, a tag, or a commit by its full hash".into())
            }
            Self::UnknownReference { repository, .. } => Some(format!(
                "see `git -C {} show-ref`",
                repository.display()
            )),
            Self::Ambiguous { first, .. } => Some(format!("say {first} if you mean that one")),
            Self::NoObject { .. } => {
                Some("fetch it; shallow and partial clones do not have everything".into())
            }
            Self::Forged { .. } | Self::Malformed { .. } => {
                Some("something wrote into the repository; see `git fsck`, and take it from elsewhere".into())
            }
            Self::Kind { .. } => Some("commit a plain file in its place".into()),
            Self::BadSource { .. } => {
                Some("write a directory, https://HOST/PATH or ssh://HOST/PATH, with #REF behind it if it is not the default branch".into())
            }
            Self::Protocol { .. } => Some("clone from a directory, or over https or ssh".into()),
            Self::Occupied { .. } => Some("name a directory that does not exist yet".into()),
            Self::Process(error) => error.hint(),
            Self::Refused { .. }
            | Self::Scratch(_)
            | Self::Symlink { .. }
            | Self::UnreadableReference { .. }
            | Self::NotACommit { .. }
            | Self::TooLarge { .. }
            | Self::NoFile { .. }
            | Self::Path { .. }
            | Self::Write { .. }
            | Self::CloneFailed { .. }
            | Self::Randomness => None,
        }
    }
}
