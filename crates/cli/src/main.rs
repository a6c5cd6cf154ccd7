//! `cordon`: runs a command in a container whose only way out is an audited door.
//!
//! Flags are read in [`args`], each subcommand is a file below [`commands`], and only [`printer`]
//! prints. Standard output belongs to the command that is run; whatever Cordon itself says goes to
//! standard error.

mod args;
mod commands;
mod exit;
mod printer;

use std::process::ExitCode;

use clap::Parser;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::{
    args::{Args, Command},
    exit::Exit,
    printer::Printer,
};

fn main() -> ExitCode {
    let args = Args::parse();
    let printer = Printer::new(args.verbosity());
    printer.answer_for_panics();
    raise_open_files();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build();
    let exit = match runtime {
        Ok(runtime) => {
            let exit = runtime.block_on(run(args, &printer));
            // Threads that wait for a closed terminal must not keep a finished run from ending.
            runtime.shutdown_background();
            exit
        }
        Err(error) => Err(error.into()),
    };
    match exit {
        Ok(exit) => exit.into(),
        Err(error) => {
            printer.error(&error);
            Exit::Setup.into()
        }
    }
}

/// A proxy with a thousand connections on either side needs more descriptors than shells give. What
/// runs in the container has limits of its own.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    // Where that is refused, the proxy takes fewer connections at a time.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            ..limit
        },
    );
}

async fn run(args: Args, printer: &Printer) -> anyhow::Result<Exit> {
    match args.command {
        Command::Run(args) => commands::run::run(*args, printer).await,
        Command::Agent(args) => commands::agent::run(*args, printer).await,
        Command::Doctor(args) => commands::doctor::run(*args, printer).await,
        Command::Clean(args) => commands::clean::run(args, printer).await,
        Command::Context(args) => commands::context::run(&args, printer),
        Command::Image(args) => commands::image::run(*args, printer).await,
        Command::Session(args) => commands::session::run(args, printer).await,
    }
}

/// One for the command's streams, one for its traffic.
const WORKERS: usize = 2;
