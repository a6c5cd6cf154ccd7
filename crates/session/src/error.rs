//! What can go wrong with a context on disk, and what is only worth a word.

use std::{fmt, io, path::PathBuf};

/// Why a context could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file system refused.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Another process, or another task of this one, is writing to the context.
    #[error("context `{}` is in use{}", dir.display(), by(*pid))]
    InUse {
        /// The context's directory.
        dir: PathBuf,
        /// Who holds it, where known.
        pid: Option<u32>,
    },
    /// A newer program has written the file; it is left as it is.
    #[error("`{}` has version {found}, and this program reads up to {known}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
        /// The newest version known here.
        known: u64,
    },
    /// The directory is that of another context.
    #[error("`{}` belongs to context `{found}`, not to `{expected}`", dir.display())]
    OtherContext {
        /// The directory.
        dir: PathBuf,
        /// The context that was asked for.
        expected: String,
        /// The context that it holds.
        found: String,
    },
    /// A value that JSON has no way to write.
    #[error("cannot write `{}` as JSON", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: serde_json::Error,
    },
}

fn by(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" by process {pid}"))
        .unwrap_or_default()
}

/// Something about a context's files that a person should hear of; nothing was lost.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// A file is not what it should be. The next writer will set it aside.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file was not what it should be and now has another name.
    SetAside {
        /// The file.
        path: PathBuf,
        /// Where its bytes are now.
        moved_to: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file of an older layout was taken over; the original is kept.
    TakenOver {
        /// The file.
        path: PathBuf,
        /// Where the original is now.
        kept_as: PathBuf,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, reason } => {
                write!(f, "`{}` cannot be read: {reason}", path.display())
            }
            Self::SetAside {
                path,
                moved_to,
                reason,
            } => write!(
                f,
                "`{}` cannot be read and is now `{}`: {reason}",
                path.display(),
                moved_to.display()
            ),
            Self::TakenOver { path, kept_as } => write!(
                f,
                "`{}` of an older layout was taken over and is kept as `{}`",
                path.display(),
                kept_as.display()
            ),
        }
    }
}
