//! `cordon session start`: leaves a supervisor behind.

use std::{env, ffi::OsString, process::Stdio};

use anyhow::Context;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::{exit::Exit, printer::Printer};

/// Starts this program again, as the supervisor and with the same flags, and waits until it has said
/// the session's name. Until then it complains where we would.
pub(super) async fn start(printer: &Printer) -> anyhow::Result<Exit> {
    let program = env::current_exe().context("cannot tell where this program is")?;
    let mut child = supervisor(program)
        .args(supervisor_arguments(env::args_os().skip(1)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the session's supervisor")?;
    let said = match child.stdout.take() {
        Some(stdout) => BufReader::new(stdout).lines().next_line().await?,
        None => None,
    };
    match said {
        Some(name) => {
            printer.answer(name);
            Ok(Exit::Command(0))
        }
        None => {
            let status = child.wait().await?;
            Ok(Exit::Command(status.code().unwrap_or(SETUP)))
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the supervisor outlives this process, with its environment; it is this very program"
)]
fn supervisor(program: impl AsRef<std::ffi::OsStr>) -> tokio::process::Command {
    tokio::process::Command::new(program)
}

/// The same arguments with the hidden verb. Nothing before the verb takes a value that could be mistaken
/// for it.
fn supervisor_arguments(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<_> = arguments.collect();
    let session = arguments.iter().position(|word| word == "session");
    let verbs = arguments.iter_mut().skip(session.unwrap_or_default());
    if let Some(verb) = verbs.into_iter().find(|word| *word == "start") {
        *verb = "supervise".into();
    }
    arguments
}

const SETUP: i32 = 125;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verb_is_replaced_and_nothing_else() {
        let words = |line: &str| -> Vec<OsString> { line.split(' ').map(Into::into).collect() };
        for (said, meant) in [
            ("session start", "session supervise"),
            (
                "-v session -q start --agent start",
                "-v session -q supervise --agent start",
            ),
            (
                "session start --session session",
                "session supervise --session session",
            ),
        ] {
            assert_eq!(supervisor_arguments(words(said).into_iter()), words(meant));
        }
    }
}
