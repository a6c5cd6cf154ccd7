//! What can be wrong with a request to run an agent; all of it is found before anything starts.

use crate::{Agent, Effort};

/// Why an agent cannot be asked to do this.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No agent of that name is known.
    #[error("`{name}` is not an agent; there are claude, codex and gemini")]
    UnknownAgent {
        /// What was asked for.
        name: String,
    },
    /// No effort of that name is known.
    #[error("`{name}` is not an effort; there are low, medium, high, xhigh and max")]
    UnknownEffort {
        /// What was asked for.
        name: String,
    },
    /// The program has no such setting.
    #[error("{agent} cannot be run with effort `{effort}`")]
    EffortNotSupported {
        /// The program.
        agent: Agent,
        /// The setting it lacks.
        effort: Effort,
    },
    /// Not a name that can stand in an argument list.
    #[error("`{value}` is not a model name")]
    InvalidModel {
        /// What was given.
        value: String,
    },
    /// Not an id that can stand in an argument list.
    #[error("`{value}` is not a session id")]
    InvalidSessionId {
        /// What was given.
        value: String,
    },
    /// There is nothing to ask.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// The program refuses a prompt of this size, or cuts it without saying so.
    #[error("{agent} takes prompts of at most {limit} {unit}, this one has {size}")]
    PromptTooLarge {
        /// The program.
        agent: Agent,
        /// What it reads at most.
        limit: usize,
        /// How the program counts.
        unit: &'static str,
        /// The prompt's size.
        size: usize,
    },
    /// A limit on money needs a program that says what it spends.
    #[error("{agent} does not say what a run costs, so a limit on the cost cannot be kept")]
    CostNotReported {
        /// The program.
        agent: Agent,
    },
    /// A limit that no run could keep, or that is not a number.
    #[error("{what} must be above zero")]
    InvalidBudget {
        /// Which limit.
        what: &'static str,
    },
}
