//! `cordon session`.

use std::{ffi::OsString, path::PathBuf};

use clap::Subcommand;

use super::{Container, Variable};

#[derive(Debug, Subcommand)]
pub(crate) enum Session {
    /// Start a container that waits for commands, and print its name
    #[command(after_help = START_HELP)]
    Start(Box<SessionStart>),

    /// Run a command in a session's container
    #[command(after_help = EXEC_HELP)]
    Exec(SessionExec),

    /// List the sessions that run
    List(SessionList),

    /// End a session: its commands, its container and its supervisor
    Stop(SessionStop),

    /// What `start` leaves behind: the process that a session's container lives with
    #[command(hide = true)]
    Supervise(Box<SessionStart>),
}

#[derive(Debug, clap::Args)]
pub(crate) struct SessionStart {
    /// Whose session it is; any text
    #[arg(long, value_name = "TEXT", default_value = "default")]
    pub(crate) agent: String,

    /// What tells it apart from the agent's other sessions; any text [default: the current directory]
    #[arg(long, value_name = "TEXT")]
    pub(crate) session: Option<String>,

    /// End the session when no command has run for so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1800, value_parser = clap::value_parser!(u64).range(1..=31_536_000), help_heading = "Limits")]
    pub(crate) idle: u64,

    #[command(flatten)]
    pub(crate) container: Container,

    /// Write what went through the door to FILE, and for programs to FILE with the ending .jsonl
    #[arg(long, value_name = "FILE", help_heading = "Network")]
    pub(crate) network_log: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SessionExec {
    /// The session's name, as `start` and `list` print it
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Set a variable for this command alone
    #[arg(long, short, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<Variable>,

    /// Where the command starts, below the workspace
    #[arg(long, short, value_name = "DIR")]
    pub(crate) workdir: Option<PathBuf>,

    /// End the command after so many seconds, with exit code 124 [default: the session's, else 120]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    pub(crate) timeout: Option<u64>,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SessionList {
    /// Print an array of objects
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SessionStop {
    /// The session's name
    #[arg(value_name = "NAME", required_unless_present = "all")]
    pub(crate) name: Option<String>,

    /// End every session of yours
    #[arg(long, conflicts_with = "name")]
    pub(crate) all: bool,
}

const START_HELP: &str = "\
The container has the mounts, the network, the secrets and the limits that `cordon run` would give it.
It ends with `stop`, when it has been idle, and when its supervisor ends, however that comes about.

Examples:
  name=$(cordon session start --image debian:12 --agent me --session work)
  cordon session exec \"$name\" -- make test
  cordon session stop \"$name\"";

const EXEC_HELP: &str = "\
Exit code: the command's own; 124 when its time was up, 125 when Cordon could not do its work, 126
and 127 when the command could not be started, 128+n when a signal ended it. Signals are handed to
the command, and it ends when this program does.";
