//! `cordon context`.

use clap::Subcommand;

#[derive(Debug, clap::Args)]
pub(crate) struct Context {
    #[command(subcommand)]
    pub(crate) command: ContextCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ContextCommand {
    /// Show the contexts of agents, the most recently active first
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },

    /// Remove contexts that nobody needs any more; never one in use
    Prune(ContextPrune),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ContextPrune {
    /// Keep at most so many, the most recently active
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    pub(crate) keep: usize,

    /// Keep only what was active within so many days
    #[arg(long, value_name = "DAYS", default_value_t = 7, value_parser = clap::value_parser!(u64).range(..=36_500))]
    pub(crate) idle: u64,

    /// Only say what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
