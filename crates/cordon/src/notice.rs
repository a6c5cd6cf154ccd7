//! What a person should know that is no error.

use std::{fmt, path::PathBuf};

use crate::{EngineKind, Wiring, modes::ModeNotice};

/// Something that was adapted, weakened or cleaned up. Nothing of that kind happens in silence.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Notice {
    /// The engine's default OCI runtime cannot start containers here; another one is used.
    RuntimeReplaced {
        /// The one that failed.
        from: String,
        /// The one that is used from now on.
        to: PathBuf,
        /// What the engine said.
        reason: String,
    },
    /// Limits were asked for that the engine cannot enforce on this host.
    LimitsIgnored {
        /// Which engine.
        engine: EngineKind,
        /// Which limits.
        limits: Vec<&'static str>,
    },
    /// The host does not let the engine give containers as many open files as it would by itself.
    OpenFilesLowered {
        /// How many they get.
        to: u64,
    },
    /// Containers do not share this machine's kernel, so nobody can tell whether they were shown the very
    /// directories that were judged.
    MountsUnverified,
    /// A container that was to have no network has an interface all the same, by which it is kept in another
    /// machine. Nobody answers there.
    KeptByNetwork,
    /// SELinux keeps containers from the door; its separation is off for this container.
    SelinuxOff,
    /// Things that dead owners left were removed.
    LeftoversRemoved {
        /// How many.
        count: usize,
    },
    /// Something that a dead owner left cannot be removed.
    LeftoversKept {
        /// What, and why.
        what: String,
    },
    /// How containers are connected to their proxy was chosen for this engine.
    TopologyTaken {
        /// How.
        wiring: Wiring,
        /// For which engine.
        engine: EngineKind,
    },
    /// The container is connected to the engine's network, with no door and no policy.
    NetworkUnrestricted,
    /// An image is being fetched.
    Pulling {
        /// Its reference.
        image: String,
    },
    /// The context on disk was mended, or does not hold all of the run.
    Session {
        /// What happened.
        what: String,
    },
    /// The container of a session was lost, and another one takes its place. What ran in the old one,
    /// and what was written there outside of its mounts, is gone.
    SessionRestarted {
        /// The session's agent.
        agent: String,
        /// The session.
        session: String,
    },
    /// A policy could not be replaced; the one before still holds.
    PolicyKept {
        /// Why.
        what: String,
    },
    /// Something about where an agent's commands run.
    Mode(ModeNotice),
    /// Lines of the network log were lost.
    LogLost {
        /// How many.
        lost: u64,
        /// Why.
        cause: String,
    },
}

/// How loud a notice is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Level {
    /// Good to know when looking closer.
    Info,
    /// Less protection or less data than was asked for.
    Warning,
}

impl Notice {
    /// How loud it is.
    #[must_use]
    pub fn level(&self) -> Level {
        match self {
            Self::Mode(notice) => notice.level(),
            Self::RuntimeReplaced { .. }
            | Self::OpenFilesLowered { .. }
            | Self::LeftoversRemoved { .. }
            | Self::TopologyTaken {
                wiring: Wiring::Door,
                ..
            }
            | Self::Pulling { .. } => Level::Info,
            Self::LimitsIgnored { .. }
            | Self::MountsUnverified
            | Self::KeptByNetwork
            | Self::SelinuxOff
            | Self::LeftoversKept { .. }
            | Self::TopologyTaken {
                wiring: Wiring::ProxyContainer,
                ..
            }
            | Self::NetworkUnrestricted
            | Self::Session { .. }
            | Self::SessionRestarted { .. }
            | Self::PolicyKept { .. }
            | Self::LogLost { .. } => Level::Warning,
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RuntimeReplaced { from, to, reason } => {
                write!(
                    f,
                    "{from} cannot start containers here ({reason}); using {} from now on",
                    to.display()
                )
            }
            Self::LimitsIgnored { engine, limits } => write!(
                f,
                "{engine} cannot enforce {} here: limits without root need version 2 of the control groups",
                limits.join(", ")
            ),
            Self::OpenFilesLowered { to } => {
                write!(
                    f,
                    "containers get {to} open files at most: this host does not allow more"
                )
            }
            Self::MountsUnverified => f.write_str(
                "the container does not share this kernel: whether its mounts are what was judged cannot be verified",
            ),
            Self::KeptByNetwork => f.write_str(
                "the container has an interface after all, by which it is kept in another machine; nobody answers there",
            ),
            Self::SelinuxOff => f.write_str(
                "SELinux's separation is off for this container, because it closes the door",
            ),
            Self::LeftoversRemoved { count: 1 } => {
                f.write_str("removed what one run that died had left")
            }
            Self::LeftoversRemoved { count } => {
                write!(f, "removed what {count} runs that died had left")
            }
            Self::LeftoversKept { what } => write!(f, "cannot remove what a dead run left: {what}"),
            Self::TopologyTaken {
                wiring: Wiring::Door,
                engine,
            } => {
                write!(
                    f,
                    "containers are connected by the door: {engine} runs them on this machine"
                )
            }
            Self::TopologyTaken {
                wiring: Wiring::ProxyContainer,
                engine,
            } => write!(
                f,
                "containers are connected by a proxy container: {engine} runs them in another machine, where no door can be opened"
            ),
            Self::NetworkUnrestricted => f.write_str(
                "the network sandbox is off: this container reaches whatever the host reaches",
            ),
            Self::Pulling { image } => write!(f, "fetching image {image}"),
            Self::Session { what } => f.write_str(what),
            Self::SessionRestarted { agent, session } => write!(
                f,
                "the container of session {session:?} of agent {agent:?} was lost; a new one is started"
            ),
            Self::PolicyKept { what } => write!(f, "the policy is still the one before: {what}"),
            Self::Mode(notice) => notice.fmt(f),
            Self::LogLost { lost, cause } => {
                write!(
                    f,
                    "the network log is incomplete: {lost} lines are lost: {cause}"
                )
            }
        }
    }
}
