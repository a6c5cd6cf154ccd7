//! What can go wrong on the way to an image.

use std::{io, path::PathBuf};

use crate::{ContextPath, InvalidPath, Recipe};

/// An image that is not to be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name that is no place in a build context.
    #[error(transparent)]
    Path(#[from] InvalidPath),
    /// One path is a file and a directory.
    #[error("`{path}` is on the way to another file of the context, or has one on its own way")]
    Conflict {
        /// The path that was added last.
        path: ContextPath,
    },
    /// A file of the context, or the Dockerfile, cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A name in the context's directory is not UTF-8.
    #[error("{} has a name that is not UTF-8", path.display())]
    NotUtf8 {
        /// Which one.
        path: PathBuf,
    },
    /// Something in the context's directory is neither a file nor a link.
    #[error("{} is neither a file nor a directory nor a link", path.display())]
    NotAFile {
        /// Which one.
        path: PathBuf,
    },
    /// A context is larger than it may be.
    #[error("the build context is over {} MiB or {files} files at {}", bytes >> 20, path.display())]
    TooMuch {
        /// Where the limit was passed.
        path: PathBuf,
        /// The limit of all contents together.
        bytes: u64,
        /// The limit of files.
        files: usize,
    },
    /// The context cannot be written where the engine reads it.
    #[error("cannot lay out the build context at {}", path.display())]
    Layout {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file that keeps builds of one image apart cannot be used.
    #[error("cannot lock {}", path.display())]
    Lock {
        /// Which one.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// An archive of an image cannot be read or written.
    #[error("cannot use the archive {}", path.display())]
    Archive {
        /// Which one.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The engine could not build the image. Its own error holds the end of the output.
    #[error("cannot build `{tag}`")]
    Build {
        /// The image.
        tag: String,
        /// What the engine said.
        source: cordon_engine::Error,
    },
    /// An image is gone again although it was just built or found.
    #[error("`{tag}` was removed while it was prepared")]
    Vanished {
        /// The image.
        tag: String,
    },
    /// The engine refused something else.
    #[error(transparent)]
    Engine(#[from] cordon_engine::Error),
}

impl Error {
    /// A build context that is over its limits, noticed at `path`.
    #[must_use]
    pub fn too_much(path: impl Into<PathBuf>) -> Self {
        Self::TooMuch {
            path: path.into(),
            bytes: Recipe::MAX_BYTES,
            files: Recipe::MAX_FILES,
        }
    }

    /// What to type or check next, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::TooMuch { .. } => Some(
                "list what the build does not need in `.dockerignore`, or choose a smaller context directory"
                    .into(),
            ),
            Self::NotAFile { .. } | Self::NotUtf8 { .. } => {
                Some("list it in `.dockerignore`, or remove it".into())
            }
            Self::Vanished { .. } => {
                Some("something else removes images on this machine; try again".into())
            }
            Self::Build { source, .. } | Self::Engine(source) => source.hint(),
            Self::Path(_)
            | Self::Conflict { .. }
            | Self::Read { .. }
            | Self::Layout { .. }
            | Self::Lock { .. }
            | Self::Archive { .. } => None,
        }
    }

    /// The end of a failed build's output.
    #[must_use]
    pub fn build_output(&self) -> Option<&str> {
        match self {
            Self::Build {
                source: cordon_engine::Error::Rejected { stderr, .. },
                ..
            } => Some(stderr),
            Self::Build { .. }
            | Self::Path(_)
            | Self::Conflict { .. }
            | Self::Read { .. }
            | Self::NotUtf8 { .. }
            | Self::NotAFile { .. }
            | Self::TooMuch { .. }
            | Self::Layout { .. }
            | Self::Lock { .. }
            | Self::Archive { .. }
            | Self::Vanished { .. }
            | Self::Engine(_) => None,
        }
    }
}
