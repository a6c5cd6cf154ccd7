//! `cordon run`.

use std::{ffi::OsString, path::PathBuf};

use super::Container;

#[derive(Debug, clap::Args)]
#[command(after_help = RUN_HELP)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) container: Container,

    /// Write what went through the door to FILE, and for programs to FILE with the ending .jsonl
    #[arg(long, value_name = "FILE", help_heading = "Network")]
    pub(crate) network_log: Option<PathBuf>,

    /// Where the command starts in the container
    #[arg(
        long,
        short,
        value_name = "DIR",
        default_value = "/workspace",
        help_heading = "Container"
    )]
    pub(crate) workdir: String,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

const RUN_HELP: &str = "\
Exit code: the command's own; 124 when its time was up, 125 when Cordon could not do its work, 126
and 127 when the command could not be started, 128+n when a signal ended it.

Examples:
  cordon run --image debian:12 -- make test
  cordon run --image node:22 --allow '*.example.com' --network-log net.log -- npm test
  cordon run --image debian:12 --mount .:/workspace:ro --timeout 60 -- ./check.sh";
