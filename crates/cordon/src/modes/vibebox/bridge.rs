//! One call of `vibebox`: what it is asked, how that is shown, and what comes back.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use cordon_engine::process::{self, Call, Group, Streams};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    time::{sleep, timeout},
};

use super::{BridgeError, BridgeErrorKind, Stage};
use crate::modes::strip_ansi;

/// A call that has not been made yet.
#[derive(Debug)]
pub(super) struct Question {
    stage: Stage,
    arguments: Vec<OsString>,
    /// The arguments as an error may show them.
    shown: String,
    limit: Duration,
}

/// What a call came to.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    stderr: Vec<u8>,
    stage: Stage,
    command: String,
}

impl Question {
    pub(super) fn new(stage: Stage, limit: Duration) -> Self {
        let question = Self {
            stage,
            arguments: Vec::new(),
            shown: String::new(),
            limit,
        };
        question.word(&stage.to_string())
    }

    pub(super) fn word(mut self, word: &str) -> Self {
        self.push(word, word);
        self
    }

    pub(super) fn pair(mut self, flag: &str, value: impl AsRef<OsStr>) -> Self {
        let value = value.as_ref();
        self.push(flag, flag);
        self.push(value, &value.to_string_lossy());
        self
    }

    /// A pair whose value is shown by its beginning only.
    pub(super) fn shortened(mut self, flag: &str, value: &str) -> Self {
        let mut shown: String = value.chars().take(SHOWN).collect();
        if shown.len() < value.len() {
            shown.push('…');
        }
        self.push(flag, flag);
        self.push(value, &format!("{shown:?}"));
        self
    }

    /// A variable, of which the name alone is shown.
    pub(super) fn variable(mut self, name: &str, value: &str) -> Self {
        self.push("--env", "--env");
        self.push(format!("{name}={value}"), &format!("{name}=…"));
        self
    }

    fn push(&mut self, argument: impl Into<OsString>, shown: &str) {
        self.arguments.push(argument.into());
        if !self.shown.is_empty() {
            self.shown.push(' ');
        }
        self.shown.push_str(shown);
    }

    /// Calls the program and waits for its answer, of whatever form.
    pub(super) async fn ask(self, program: &Path) -> Result<Reply, Box<BridgeError>> {
        let Self {
            stage,
            arguments,
            shown,
            limit,
        } = self;
        let command = format!("{} {shown}", program.display());
        let early = |kind| {
            let mut error = BridgeError::early(stage, kind);
            error.command.clone_from(&command);
            error
        };
        let Some(program) = process::find(program) else {
            return Err(early(BridgeErrorKind::Missing {
                program: program.to_owned(),
            }));
        };
        let streams = Streams {
            stdout: Stdio::piped(),
            stderr: Stdio::piped(),
            ..Streams::default()
        };
        let group = Call::new(&program, "vibebox")
            .args(arguments)
            .spawn_group(streams)
            .map_err(|source| early(not_started(&program, source)))?;
        let mut heard = Heard::default();
        let end = timeout(limit, heard.listen(group)).await;
        let kind = match end {
            Ok(Ok(End::Status(status))) => {
                let reply = Reply {
                    status,
                    stdout: heard.stdout,
                    stderr: heard.stderr,
                    stage,
                    command,
                };
                return match status.signal() {
                    Some(signal) => Err(reply.error(BridgeErrorKind::Killed { signal })),
                    None => Ok(reply),
                };
            }
            Ok(Ok(End::TooMuch)) => BridgeErrorKind::TooMuch { limit: ANSWER_MAX },
            Ok(Err(source)) => BridgeErrorKind::Lost { source },
            Err(_) => BridgeErrorKind::TimedOut { limit },
        };
        let mut error = early(kind);
        error.stdout = last_words(&heard.stdout);
        error.stderr = last_words(&heard.stderr);
        Err(error)
    }
}

impl Reply {
    /// What is wrong with this reply, with all that is known of the call.
    pub(super) fn error(&self, kind: BridgeErrorKind) -> Box<BridgeError> {
        let mut error = BridgeError::early(self.stage, kind);
        error.command.clone_from(&self.command);
        error.status = Some(self.status);
        error.stdout = last_words(&self.stdout);
        error.stderr = last_words(&self.stderr);
        error
    }
}

/// What the program has said so far.
#[derive(Debug, Default)]
struct Heard {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

enum End {
    Status(ExitStatus),
    TooMuch,
}

impl Heard {
    /// Listens until the program has ended. What it left running may keep its streams open; they are not
    /// waited for much longer.
    async fn listen(&mut self, mut group: Group) -> io::Result<End> {
        let mut stdout = group.child().stdout.take();
        let mut stderr = group.child().stderr.take();
        let mut ended = None;
        let (mut from_out, mut from_err) = (vec![0; CHUNK], vec![0; CHUNK]);
        loop {
            if let Some(status) = ended
                && stdout.is_none()
                && stderr.is_none()
            {
                return Ok(End::Status(status));
            }
            tokio::select! {
                size = next(&mut stdout, &mut from_out), if stdout.is_some() => match size {
                    0 => stdout = None,
                    _ if self.stdout.len() + size > ANSWER_MAX => return Ok(End::TooMuch),
                    _ => self.stdout.extend_from_slice(&from_out[..size]),
                },
                size = next(&mut stderr, &mut from_err), if stderr.is_some() => match size {
                    0 => stderr = None,
                    _ => keep_tail(&mut self.stderr, &from_err[..size]),
                },
                status = group.wait(), if ended.is_none() => ended = Some(status?),
                () = sleep(DRAIN), if ended.is_some() => {
                    stdout = None;
                    stderr = None;
                }
            }
        }
    }
}

/// The next piece of a stream; nothing at its end, and one that breaks has ended.
async fn next(stream: &mut Option<impl AsyncRead + Unpin>, buffer: &mut [u8]) -> usize {
    match stream {
        Some(stream) => stream.read(buffer).await.unwrap_or_default(),
        None => 0,
    }
}

fn keep_tail(kept: &mut Vec<u8>, piece: &[u8]) {
    kept.extend_from_slice(piece);
    if kept.len() > 2 * STDERR_MAX {
        kept.drain(..kept.len() - STDERR_MAX);
    }
}

/// The end of what was written, on one line where it is one, without what terminals obey.
fn last_words(bytes: &[u8]) -> String {
    let tail = &bytes[bytes.len().saturating_sub(TAIL)..];
    let plain = strip_ansi(tail);
    let text = String::from_utf8_lossy(&plain);
    text.trim_matches(|c: char| c.is_whitespace() || c == char::REPLACEMENT_CHARACTER)
        .to_owned()
}

fn not_started(program: &Path, source: cordon_engine::Error) -> BridgeErrorKind {
    match &source {
        cordon_engine::Error::Spawn { source: cause, .. }
            if cause.kind() == io::ErrorKind::PermissionDenied =>
        {
            BridgeErrorKind::NotExecutable {
                program: program.to_owned(),
                source,
            }
        }
        _ => BridgeErrorKind::Start { source },
    }
}

/// Two outputs at their limit, with every byte escaped as JSON may, would be larger; such a command is
/// refused rather than kept in memory.
const ANSWER_MAX: usize = 64 << 20;

/// Programs say why they failed in their last lines.
const STDERR_MAX: usize = 16 << 10;

/// How much of that an error shows.
const TAIL: usize = 2 << 10;

/// How much of a command an error shows.
const SHOWN: usize = 60;

/// How long a stream may stay open after the program has ended.
const DRAIN: Duration = Duration::from_secs(2);

const CHUNK: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_no_value_of_a_variable_and_no_long_text() {
        let question = Question::new(Stage::Exec, Duration::from_secs(1))
            .word("--json")
            .shortened("--command", &"x".repeat(500))
            .variable("NAME", "value");
        assert!(question.shown.starts_with("exec --json --command \"xxx"));
        assert!(question.shown.ends_with("x…\" --env NAME=…"));
        assert!(question.shown.len() < 120);
        assert_eq!(question.arguments.last().unwrap(), "NAME=value");
    }

    #[test]
    fn last_words_are_plain_text() {
        assert_eq!(last_words(b"\x1b[31mred\x1b[0m\n"), "red");
        let long = "é".repeat(TAIL);
        assert!(last_words(long.as_bytes()).chars().all(|c| c == 'é'));
    }
}
