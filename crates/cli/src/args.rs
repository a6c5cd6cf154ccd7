//! The flags, as they are written: one file for each subcommand, and what they share.

mod agent;
mod container;
mod context;
mod doctor;
mod image;
mod run;
mod session;

use clap::{ArgAction, Parser, Subcommand};

use crate::printer::Verbosity;

pub(crate) use agent::AgentRun;
pub(crate) use container::{Container, Variable};
pub(crate) use context::{Context, ContextCommand, ContextPrune};
pub(crate) use doctor::{Clean, Doctor};
pub(crate) use image::{Form, From, Image, ImageCommand, Store};
pub(crate) use run::Run;
pub(crate) use session::{Session, SessionExec, SessionList, SessionStart, SessionStop};

/// Runs commands and coding agents in a container that has no network but one audited door.
#[derive(Debug, Parser)]
#[command(
    name = "cordon",
    version,
    propagate_version = true,
    max_term_width = 100
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Say more; twice for everything
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,

    /// Say nothing but errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command in a container; its only way out is what the allowlist names
    Run(Box<Run>),

    /// Run a coding agent in a container; its only way out is its own API and what the allowlist names
    Agent(Box<AgentRun>),

    /// The contexts that agents go on with: what there is, and removing what nobody needs
    Context(Context),

    /// The images that runs are made in: their names, building, keeping and removing them
    Image(Box<Image>),

    /// Check what runs need on this machine, and say what to type where something is missing
    Doctor(Box<Doctor>),

    /// Remove what runs that died have left
    Clean(Clean),

    /// Keep a container for several commands
    #[command(subcommand)]
    Session(Session),
}

impl Args {
    pub(crate) fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, 0) => Verbosity::Normal,
            (false, 1) => Verbosity::Verbose,
            (false, _) => Verbosity::Debug,
        }
    }
}
