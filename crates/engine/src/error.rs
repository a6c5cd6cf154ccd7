//! What an engine can refuse, each with what to do about it.

use std::{io, path::PathBuf, process::ExitStatus, time::Duration};

use crate::Kind;

/// A call to an engine that did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No engine was found.
    #[error("neither podman nor docker is installed")]
    NoEngine,
    /// The program of the engine that was asked for is not there.
    #[error("{kind} is not installed")]
    Missing {
        /// Which engine.
        kind: Kind,
    },
    /// The engine is installed, but does not work.
    #[error("{kind} does not answer: {stderr}")]
    NotAnswering {
        /// Which engine.
        kind: Kind,
        /// What it said.
        stderr: String,
    },
    /// A program could not be started at all.
    #[error("cannot start {}", program.display())]
    Spawn {
        /// Which one.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The engine refused.
    #[error("{verb} ended with {status}: {stderr}")]
    Rejected {
        /// The engine and what it was asked to do.
        verb: String,
        /// How it ended.
        status: ExitStatus,
        /// The end of what it said.
        stderr: String,
    },
    /// The image is not in the engine's store.
    #[error("image `{image}` is not in {kind}'s store")]
    NoSuchImage {
        /// Which engine.
        kind: Kind,
        /// The reference that was asked for.
        image: String,
    },
    /// The image is not in the store, and cannot be fetched.
    #[error("image `{image}` is not in {kind}'s store and cannot be pulled: {stderr}")]
    PullFailed {
        /// Which engine.
        kind: Kind,
        /// The reference that was asked for.
        image: String,
        /// What the engine said.
        stderr: String,
    },
    /// A network cannot be made because there is one of that name, or with those addresses.
    #[error("network `{name}` cannot be made: {stderr}")]
    NetworkTaken {
        /// Its name.
        name: String,
        /// What the engine said.
        stderr: String,
    },
    /// A call took too long and was ended.
    #[error("{verb} did not finish within {} s", limit.as_secs())]
    TimedOut {
        /// The engine and what it was asked to do.
        verb: String,
        /// How long it had.
        limit: Duration,
    },
    /// The engine's answer is not in the form that it documents.
    #[error("{verb} answered something that cannot be read")]
    Unreadable {
        /// The engine and what it was asked to do.
        verb: String,
        /// What was wrong.
        source: serde_json::Error,
    },
    /// Talking to the engine's process failed.
    #[error("lost {verb}")]
    Lost {
        /// The engine and what it was asked to do.
        verb: String,
        /// Why.
        source: io::Error,
    },
    /// All of a build cannot be put into a network namespace.
    #[error("{kind} cannot build behind the door")]
    BuildOutside {
        /// Which engine.
        kind: Kind,
    },
    /// The engine's OCI runtime is not on the search path.
    #[error("the runtime `{name}` is not to be found")]
    NoRuntime {
        /// Its name.
        name: String,
    },
    /// A host path cannot be written as an engine's argument.
    #[error("{} holds both a comma and a colon, which no engine can mount", path.display())]
    MountPath {
        /// The path.
        path: PathBuf,
    },
    /// A variable would change the engine's client instead of the container alone.
    #[error("{name} cannot be handed to a container through the engine")]
    Variable {
        /// The variable.
        name: String,
    },
}

impl Error {
    /// What to type or check next, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoEngine => {
                Some("install one, for example with `apt-get install podman runc uidmap`".into())
            }
            Self::Missing { kind } => Some(format!(
                "install it with `apt-get install {}`",
                kind.package()
            )),
            Self::NotAnswering {
                kind: Kind::Docker,
                stderr,
            } if stderr.contains("permission denied") => {
                Some("add yourself to the group `docker` and log in again, or use podman".into())
            }
            Self::NotAnswering {
                kind: Kind::Docker, ..
            } => Some(
                "start it with `systemctl start docker`, or `dockerd` where there is no systemd"
                    .into(),
            ),
            Self::NotAnswering {
                kind: Kind::Podman, ..
            } => Some("run `podman info` and mend what it says".into()),
            Self::NoSuchImage { kind, image } => Some(format!(
                "list what is there with `{kind} images`, or fetch it with `{kind} pull {image}`"
            )),
            Self::PullFailed { kind, .. } => Some(format!(
                "list what is there with `{kind} images`; without a registry, make one with `{kind} import` or --dockerfile"
            )),
            Self::Rejected { stderr, .. } => hint_from(stderr),
            Self::MountPath { .. } => Some("rename the directory, or mount its parent".into()),
            Self::Variable { .. } => {
                Some("set it inside the container, with `env NAME=VALUE COMMAND`".into())
            }
            Self::TimedOut { .. } => Some(
                "see whether the engine hangs, for example with `podman ps` or `docker ps`".into(),
            ),
            Self::NetworkTaken { .. } => Some(
                "list the networks with `podman network ls` or `docker network ls`, and remove what nobody uses".into(),
            ),
            Self::BuildOutside { .. } => Some(
                "use a podman that runs on this machine, or say --build-network none, or host if you trust the Dockerfile".into(),
            ),
            Self::NoRuntime { name } => Some(format!("put `{name}` on the PATH")),
            Self::Spawn { .. } | Self::Unreadable { .. } | Self::Lost { .. } => None,
        }
    }
}

/// Hints for refusals that are known by what engines say.
fn hint_from(stderr: &str) -> Option<String> {
    let known = [
        (
            "newuidmap",
            "install `uidmap`, and see that /etc/subuid and /etc/subgid have a line for your user",
        ),
        (
            "subuid",
            "add a range to /etc/subuid and /etc/subgid, for example with `usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $USER`",
        ),
        (
            "XDG_RUNTIME_DIR",
            "log in through a session, or set XDG_RUNTIME_DIR to a directory of yours with mode 0700",
        ),
        (
            "no space left on device",
            "free some disk space, for example with `podman system prune`",
        ),
        (
            "cgroups in hybrid mode",
            "install `runc`; crun does not run on hybrid cgroups",
        ),
        (
            "setting rlimit",
            "lower the limit, or run where CAP_SYS_RESOURCE is held",
        ),
        (
            "unable to find user",
            "name a user of the image, or give numbers as UID:GID",
        ),
        (
            "unknown flag: --runtime",
            "podman in another machine takes its runtime from containers.conf there; leave it out here",
        ),
        (
            "is already in use",
            "another container has that name; remove it or choose another",
        ),
    ];
    known
        .iter()
        .find(|(sign, _)| stderr.contains(sign))
        .map(|(_, hint)| (*hint).to_owned())
}
