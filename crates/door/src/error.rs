//! What can go wrong on the host's side of the door.

use std::{io, path::PathBuf, time::Duration};

use crate::Report;

/// A door that did not open.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A directory or file of ours could not be made.
    #[error("cannot write {path}")]
    Write {
        /// Which one.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The path of the unix socket does not fit into a socket address.
    #[error("the path of the door's socket, {path}, is longer than a socket address holds")]
    PathTooLong {
        /// The path that is too long.
        path: PathBuf,
    },
    /// The container did not hand over its sockets in time.
    #[error("the container did not hand over its sockets within {} s", limit.as_secs())]
    NotHandedOver {
        /// How long was waited.
        limit: Duration,
    },
    /// Something connected that is not `cordon-init`, or not the one that belongs to this program.
    #[error("the hand-over is not what cordon-init sends: {what}")]
    Foreign {
        /// What was wrong with it.
        what: &'static str,
    },
    /// The command and its environment are too large to be sent.
    #[error("the command and its environment are larger than 4 GiB")]
    TooLarge,
    /// The container ended instead of being held.
    #[error("the container ended before it could be held")]
    NotHeld {
        /// What PID 1 said, if it said something.
        report: Option<Report>,
    },
    /// The connection to the container broke.
    #[error("the connection to the container broke")]
    Connection(#[source] io::Error),
}
