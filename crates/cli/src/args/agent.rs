//! `cordon agent`.

use std::{path::PathBuf, str::FromStr};

use cordon::{Agent, ContextId, Effort};

use super::Container;

#[derive(Debug, clap::Args)]
#[command(after_help = AGENT_HELP)]
pub(crate) struct AgentRun {
    /// Which agent: claude, codex or gemini
    #[arg(value_name = "AGENT", value_parser = Agent::from_str)]
    pub(crate) agent: Agent,

    /// What to ask; read from standard input if it is left out
    #[arg(long, short, value_name = "TEXT")]
    pub(crate) prompt: Option<String>,

    /// The context that the run belongs to [default: one for the current directory]
    #[arg(long, value_name = "ID")]
    pub(crate) context: Option<ContextId>,

    /// Go on with the context's last session
    #[arg(long = "continue")]
    pub(crate) resume: bool,

    /// Begin a fresh session, which is the default
    #[arg(long, conflicts_with = "resume")]
    pub(crate) fresh: bool,

    /// The model, as the agent calls it
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// How hard the agent is to think, as it calls that
    #[arg(long, value_name = "EFFORT", value_parser = Effort::from_str)]
    pub(crate) effort: Option<Effort>,

    /// Another server than the agent's own API
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,

    /// Print the agent's events as JSON lines, and a last line with the result
    #[arg(long)]
    pub(crate) json: bool,

    /// The agent's program on the host, shown to the container [default: the image's own]
    #[arg(long, value_name = "PATH")]
    pub(crate) agent_binary: Option<PathBuf>,

    /// Run `uv sync` first, where the workspace has a pyproject.toml
    #[arg(long)]
    pub(crate) sync_python: bool,

    /// End the agent when it has cost more, in US dollars
    #[arg(long, value_name = "USD", help_heading = "Limits")]
    pub(crate) max_cost_usd: Option<f64>,

    /// End the agent after so many answers of the model
    #[arg(long, value_name = "NUMBER", help_heading = "Limits")]
    pub(crate) max_turns: Option<u32>,

    #[command(flatten)]
    pub(crate) container: Container,
}

const AGENT_HELP: &str = "\
The agent's API keys are taken from your environment, and reach nobody but its API: the container
sees look-alikes. Its answers go to standard output, what it does to standard error.

Exit code: 0 success, 1 the agent failed, 124 its time was up, 125 Cordon could not do its work;
10 the prompt is too long, 11 the session cannot go on (try --fresh), 12 rate limited, 13 the API
cannot answer, 14 the API refuses the key, 15 out of memory, 16 over budget; 128+n when a signal
ended it.

Examples:
  cordon agent claude --image localhost/agents:1 -p 'Fix the failing test'
  cordon agent claude --image localhost/agents:1 --continue -p 'Now add a changelog entry'
  git diff | cordon agent codex --image localhost/agents:1 --json";
