//! What a person should know about where commands run.

use std::fmt;

use super::{Mode, Provider, SessionKey};
use crate::{Level, Notice};

/// Something that happened to a session, or that a mode cannot do.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ModeNotice {
    /// A session's container was removed without anybody having asked for it.
    SessionEnded {
        /// Which session.
        key: SessionKey,
        /// Why.
        why: &'static str,
    },
    /// Limits were asked for that the mode cannot enforce.
    LimitsUnheld {
        /// Which mode.
        mode: Mode,
        /// Which limits.
        limits: Vec<&'static str>,
    },
    /// The backend of `vibebox` was chosen by it; it stays the one.
    BackendTaken {
        /// Which one.
        backend: Provider,
    },
    /// Variables are handed over in an argument list, which every user of the host can read.
    VariablesShown {
        /// Their names.
        names: Vec<String>,
    },
    /// Mode `auto` came to a decision.
    Taken {
        /// For which agent.
        agent: String,
        /// Which mode.
        mode: Mode,
        /// Why that one.
        why: String,
    },
    /// An agents file could not be taken; the one before still holds.
    AgentsKept {
        /// Why.
        what: String,
    },
    /// Commands run on the host.
    NothingIsolated {
        /// In which mode.
        mode: Mode,
    },
}

impl ModeNotice {
    /// How loud it is.
    #[must_use]
    pub fn level(&self) -> Level {
        match self {
            Self::BackendTaken { .. } | Self::Taken { .. } => Level::Info,
            Self::SessionEnded { .. }
            | Self::AgentsKept { .. }
            | Self::LimitsUnheld { .. }
            | Self::VariablesShown { .. }
            | Self::NothingIsolated { .. } => Level::Warning,
        }
    }
}

impl fmt::Display for ModeNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SessionEnded { key, why } => {
                write!(f, "the container of {key} was removed: {why}")
            }
            Self::LimitsUnheld { mode, limits } => {
                write!(f, "{mode} cannot enforce {}", limits.join(", "))
            }
            Self::BackendTaken { backend } => {
                write!(f, "vibebox uses {} from now on", backend.word())
            }
            Self::Taken { agent, mode, why } => {
                write!(f, "auto takes {mode} for {agent}: {why}")
            }
            Self::AgentsKept { what } => write!(f, "the agents are still those before: {what}"),
            Self::VariablesShown { names } => write!(
                f,
                "{} reach vibebox in its argument list, which every user of this host can read",
                names.join(", ")
            ),
            Self::NothingIsolated { mode } => write!(
                f,
                "commands run on this host with your rights: nothing is isolated in mode {mode}"
            ),
        }
    }
}

impl From<ModeNotice> for Notice {
    fn from(notice: ModeNotice) -> Self {
        Self::Mode(notice)
    }
}
