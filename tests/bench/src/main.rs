//! Measures the proxy beside mitmproxy and beside no proxy at all, see `scripts/bench-proxy`, and what an event costs.
//!
//! The former in four parts, each a process of its own so that it can be pinned to a core: the
//! upstream, Cordon's proxy, the client, and the run that starts the others and compares.

mod events;
mod load;
mod origin;
mod proxy;
mod run;

use std::{env, path::Path, process::ExitCode};

use anyhow::{Context, Result, bail};

const USAGE: &str = "usage: bench run MITMDUMP ADDON | bench events";

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["events"] => events::run(),
        ["run", mitmdump, addon] => run::run(Path::new(mitmdump), Path::new(addon)),
        ["origin", directory] => done(on_one_thread(origin::serve(Path::new(directory)))),
        ["proxy", directory, origin, names, secrets] => done(proxy::serve(
            Path::new(directory),
            port(origin)?,
            port(names)?,
            *secrets == "secrets",
        )),
        ["load", what @ ..] => done(on_one_thread(load::load(what))),
        _ => bail!(USAGE),
    }
}

fn done(result: Result<()>) -> Result<ExitCode> {
    result.map(|()| ExitCode::SUCCESS)
}

fn port(text: &str) -> Result<u16> {
    text.parse().with_context(|| format!("{text} is no port"))
}

fn on_one_thread(work: impl Future<Output = Result<()>>) -> Result<()> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(work)
}

/// The name that everything is asked for.
const HOST: &str = "api.test";

/// What the processes tell each other: one line on stdout.
#[expect(
    clippy::print_stdout,
    reason = "the line that the parent process waits for"
)]
fn tell(line: &impl std::fmt::Display) {
    println!("{line}");
}
