//! What can go wrong with Apple's `container`, each with what to do about it.

use std::{io, path::PathBuf, process::ExitStatus};

use crate::SandboxError;

/// Apple's `container` was not used, or did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppleError {
    /// There is no such program.
    #[error("{} is not installed", program.display())]
    Missing {
        /// The program.
        program: PathBuf,
    },
    /// A call of the program did not come to its end.
    #[error(transparent)]
    Call(#[from] cordon_engine::Error),
    /// Its service does not answer.
    #[error("the service of Apple's container does not run: {said}")]
    NotRunning {
        /// What the program said.
        said: String,
    },
    /// The program lacks options that a container cannot be held without.
    #[error("Apple's container is of version {version}, which cannot drop capabilities")]
    TooOld {
        /// The version it says.
        version: String,
    },
    /// The agent has no image.
    #[error("no image is configured for the agent `{agent}`")]
    NoImage {
        /// The agent.
        agent: String,
    },
    /// The image's name would be taken for an option.
    #[error("`{image}` cannot name an image")]
    ImageName {
        /// The name.
        image: String,
    },
    /// The image is not in the store, and may not be fetched.
    #[error("image `{image}` is not in the store of Apple's container")]
    NoSuchImage {
        /// The name.
        image: String,
    },
    /// The image is not in the store, and cannot be fetched.
    #[error("image `{image}` cannot be pulled: {said}")]
    PullFailed {
        /// The name.
        image: String,
        /// What the program said.
        said: String,
    },
    /// The program refused.
    #[error("{verb} ended with {status}: {said}")]
    Rejected {
        /// What it was asked to do.
        verb: String,
        /// How it ended.
        status: ExitStatus,
        /// The end of what it said.
        said: String,
    },
    /// The program's answer is not in the form that it documents.
    #[error("{verb} answered something that cannot be read")]
    Unreadable {
        /// What it was asked to do.
        verb: String,
        /// What was wrong.
        source: serde_json::Error,
    },
    /// The virtual machine did not come up.
    #[error("the virtual machine did not start{}", words(said))]
    NotStarted {
        /// What the program said meanwhile.
        said: String,
    },
    /// The machine has a network although it was to have none.
    #[error("container {container} was to have no network, and is on {}", networks.join(", "))]
    NetworkNotCut {
        /// The container.
        container: String,
        /// The networks it is on.
        networks: Vec<String>,
    },
    /// An allowlist is configured, and nothing before such a machine could hold it.
    #[error(
        "the agent `{agent}` has an allowlist, which cannot be held before a virtual machine of Apple's container"
    )]
    Allowlist {
        /// The agent.
        agent: String,
    },
    /// A runtime is configured, and there is none to choose.
    #[error("the runtime `{runtime}` cannot be used with Apple's container")]
    Runtime {
        /// The runtime.
        runtime: String,
    },
    /// Less memory was allowed than a machine can start with.
    #[error("a virtual machine needs at least {least} MiB of memory")]
    LittleMemory {
        /// How much it needs.
        least: u64,
    },
    /// A path cannot be written as an argument of the program.
    #[error("{} holds characters that Apple's container cannot mount", path.display())]
    MountPath {
        /// The path.
        path: PathBuf,
    },
    /// A path led elsewhere once the machine was up.
    #[error("{} was moved or replaced while the virtual machine started", path.display())]
    Moved {
        /// The path.
        path: PathBuf,
    },
    /// A variable would change the program instead of the command alone.
    #[error("{name} cannot be handed to a command through Apple's container")]
    Variable {
        /// The variable.
        name: String,
    },
    /// The command was not started, although the machine runs.
    #[error("the command was not started{}", words(said))]
    NotBegun {
        /// What the program said.
        said: String,
    },
    /// Talking to the program failed.
    #[error("the connection to container {container} was lost")]
    Lost {
        /// The container.
        container: String,
        /// Why.
        source: io::Error,
    },
    /// The container is still there after everything was tried.
    #[error("container {container} could not be removed{}", words(said))]
    LeftBehind {
        /// Its name.
        container: String,
        /// What the program said.
        said: String,
    },
}

impl AppleError {
    /// What to type or change next, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Missing { .. } => {
                "install Apple's container (macOS on Apple silicon), or choose another mode"
            }
            Self::NotRunning { .. } => "start it with `container system start`",
            Self::TooOld { .. } => "install version 0.12 or later",
            Self::NoImage { agent } => {
                return Some(format!(
                    "set `image` of the agent `{agent}`, or of `defaults`"
                ));
            }
            Self::NoSuchImage { image } | Self::PullFailed { image, .. } => {
                return Some(format!("fetch it with `container image pull {image}`"));
            }
            Self::ImageName { .. } => "name it as `registry/name:tag`",
            Self::Allowlist { .. } => {
                "leave the allowlist out for no network at all, set the network of `apple` to `unrestricted` to go without any policy, or choose another mode"
            }
            Self::Runtime { .. } => "leave the runtime out, or choose another mode",
            Self::LittleMemory { .. } => "allow more memory",
            Self::MountPath { .. } => "rename the directory, or mount its parent",
            Self::Variable { .. } => "set it in the command, with `env NAME=VALUE COMMAND`",
            Self::LeftBehind { container, .. } => {
                return Some(format!(
                    "remove it with `container delete --force {container}`"
                ));
            }
            Self::NotStarted { .. } => {
                "see whether the image has /bin/sh, and whether `container run --rm IMAGE true` works"
            }
            Self::NotBegun { .. } => {
                "see whether the directory is there, and whether the image has /bin/sh"
            }
            Self::NetworkNotCut { .. } => {
                "see whether `container` is Apple's, of version 0.12 or later"
            }
            Self::Call(error) => return error.hint(),
            Self::Rejected { .. } | Self::Unreadable { .. } => {
                "see what `container system status` and `container system logs` say"
            }
            Self::Moved { .. } | Self::Lost { .. } => return None,
        };
        Some(hint.to_owned())
    }
}

/// The program's own words, where it said something.
fn words(said: &str) -> String {
    match said.trim() {
        "" => String::new(),
        said => format!("; it said: {said}"),
    }
}

impl From<AppleError> for SandboxError {
    fn from(error: AppleError) -> Self {
        Self::Apple(Box::new(error))
    }
}
