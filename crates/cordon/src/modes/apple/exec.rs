//! One command in a machine that runs.
//!
//! The program ends with 1 both when a command did and when it could not start one. So the command is begun
//! by a word of ours on standard error: without it, nothing was started, and it is safe to try again.

use std::{
    io,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cordon_engine::{
    process::{Call, Group, Streams},
    shell_code,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::ChildStdin,
    task::JoinHandle,
    time::timeout,
};

use super::AppleError;
use crate::modes::{Cut, ExecOutput};

/// What a command needs beside its arguments.
#[derive(Debug)]
pub(super) struct Order<'a> {
    pub(super) marker: &'a str,
    pub(super) stdin: &'a [u8],
    pub(super) output_limit: usize,
    pub(super) timeout: Option<Duration>,
}

/// What came of a command.
#[derive(Debug)]
pub(super) enum Ran {
    /// The program ended after the command had begun.
    Ended(ExecOutput),
    /// The command's time was up. What it started may still run.
    TimedOut(ExecOutput),
    /// Nothing was started.
    NotBegun {
        /// What the program said.
        said: String,
    },
}

impl Order<'_> {
    pub(super) async fn run(&self, call: Call, container: &str) -> Result<Ran, AppleError> {
        let stdin = if self.stdin.is_empty() {
            Stdio::null()
        } else {
            Stdio::piped()
        };
        let streams = Streams {
            stdin,
            stdout: Stdio::piped(),
            stderr: Stdio::piped(),
        };
        let mut program = call.spawn_group(streams)?;
        let child = program.child();
        let feed = tokio::spawn(feed(child.stdin.take(), self.stdin.to_vec()));
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(AppleError::NotBegun {
                said: String::new(),
            });
        };
        let stdout = Collector::start(stdout, None, self.output_limit);
        let stderr = Collector::start(stderr, Some(self.marker), self.output_limit);
        let ended = end(&mut program, self.timeout).await;
        let (stdout, stderr) = (stdout.finish().await, stderr.finish().await);
        feed.abort();
        let lost = |source| AppleError::Lost {
            container: container.to_owned(),
            source,
        };
        let status = ended.map_err(lost)?;
        if status.is_some() && !stderr.begun {
            return Ok(Ran::NotBegun {
                said: String::from_utf8_lossy(&stderr.before).trim().to_owned(),
            });
        }
        let (stdout, less_output) = stdout.after.finish();
        let (stderr, less_errors) = stderr.after.finish();
        let output = ExecOutput {
            stdout,
            stderr,
            exit_code: status.map_or(TIMED_OUT, shell_code),
            timed_out: status.is_none(),
            truncated: less_output || less_errors,
        };
        Ok(match status {
            Some(_) => Ran::Ended(output),
            None => Ran::TimedOut(output),
        })
    }
}

/// Waits for the end of a program; `None` when its time was up, and it was killed.
async fn end(
    program: &mut Group,
    limit: Option<Duration>,
) -> io::Result<Option<std::process::ExitStatus>> {
    let Some(limit) = limit else {
        return program.wait().await.map(Some);
    };
    match timeout(limit, program.wait()).await {
        Ok(status) => status.map(Some),
        Err(_) => {
            program.kill();
            program.wait().await?;
            Ok(None)
        }
    }
}

async fn feed(stdin: Option<ChildStdin>, bytes: Vec<u8>) {
    if let Some(mut stdin) = stdin {
        // A command that does not read all of its input is within its rights.
        drop(stdin.write_all(&bytes).await);
    }
}

/// Reads a stream beside everything else.
struct Collector {
    collected: Arc<Mutex<Marked>>,
    task: JoinHandle<()>,
}

impl Collector {
    /// Collects what comes behind a line with that word, or all of it.
    fn start(
        mut stream: impl AsyncRead + Send + Unpin + 'static,
        marker: Option<&str>,
        limit: usize,
    ) -> Self {
        let marked = Marked {
            begun: marker.is_none(),
            ..Marked::default()
        };
        let marker = format!("{}\n", marker.unwrap_or_default());
        let collected = Arc::new(Mutex::new(marked));
        let sink = Arc::clone(&collected);
        let task = tokio::spawn(async move {
            let mut buffer = vec![0; BUFFER];
            // A stream that breaks has ended.
            while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                let mut marked = sink.lock().unwrap_or_else(PoisonError::into_inner);
                marked.push(&buffer[..count], marker.as_bytes(), limit);
            }
        });
        Self { collected, task }
    }

    /// What there was up to the end of the stream. Somebody who has inherited it and keeps it open is not
    /// waited for.
    async fn finish(mut self) -> Marked {
        drop(timeout(DRAIN, &mut self.task).await);
        self.task.abort();
        let mut marked = self
            .collected
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *marked)
    }
}

/// A stream with a word in it that stands before what counts.
#[derive(Debug, Default)]
struct Marked {
    begun: bool,
    before: Vec<u8>,
    after: Cut,
}

impl Marked {
    fn push(&mut self, piece: &[u8], marker: &[u8], limit: usize) {
        if self.begun {
            self.after.push(piece, limit);
            return;
        }
        self.before.extend_from_slice(piece);
        let found = self
            .before
            .windows(marker.len())
            .position(|part| part == marker);
        if let Some(at) = found {
            self.begun = true;
            let rest = self.before.split_off(at + marker.len());
            self.after.push(&rest, limit);
        } else if self.before.len() > BEFORE_MAX {
            self.before.drain(..self.before.len() - BEFORE_MAX / 2);
        }
    }
}

/// What the program itself may say that is kept.
const BEFORE_MAX: usize = 32 << 10;

const BUFFER: usize = 16 << 10;

/// How long a stream may stay open after the program has ended.
const DRAIN: Duration = Duration::from_secs(2);

/// What a shell gives for a command whose time was up.
const TIMED_OUT: i32 = 124;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_before_the_word_is_not_the_commands() {
        let text = b"warning\nmarker\nerror\n";
        for cut in 0..text.len() {
            let mut marked = Marked::default();
            let (first, second) = text.split_at(cut);
            marked.push(first, b"marker\n", 100);
            marked.push(second, b"marker\n", 100);
            assert!(marked.begun);
            assert_eq!(marked.after.finish().0, b"error\n");
        }
    }

    #[test]
    fn without_the_word_nothing_has_begun_and_the_end_is_kept() {
        let mut marked = Marked::default();
        for _ in 0..100 {
            marked.push(&[b'x'; 1024], b"marker\n", 10);
        }
        marked.push(b"why", b"marker\n", 10);
        assert!(!marked.begun && marked.before.ends_with(b"why"));
        assert!(marked.before.len() <= BEFORE_MAX + 1024);
    }
}
