//! One command on the host, from its start to the end of everything it started.

use std::{
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cordon_engine::{
    process::{Call, Streams},
    shell_code,
};
use tokio::{
    io::{AsyncRead, AsyncWriteExt},
    process::ChildStdin,
    sync::watch,
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::group::Group;
use crate::{
    SandboxError,
    modes::{Cut, ExecOutput, collect},
};

/// What a command may take.
pub(super) struct Limits {
    pub(super) time: Duration,
    pub(super) output: usize,
}

/// Runs a call until it ends, its time is up, or it is stopped; then ends what it left running.
pub(super) async fn to_the_end(
    call: Call,
    input: Vec<u8>,
    limits: Limits,
    stopped: &mut watch::Receiver<()>,
) -> Result<ExecOutput, SandboxError> {
    let verb = call.verb().to_owned();
    let streams = Streams {
        stdin: if input.is_empty() {
            Stdio::null()
        } else {
            Stdio::piped()
        },
        stdout: Stdio::piped(),
        stderr: Stdio::piped(),
    };
    let mut group = Group::start(call, streams)?;
    let child = group.child();
    let feeding = child
        .stdin
        .take()
        .map(|stdin| tokio::spawn(feed(stdin, input)));
    let stdout = Kept::reading(child.stdout.take(), limits.output);
    let stderr = Kept::reading(child.stderr.take(), limits.output);

    let timed_out = tokio::select! {
        _ = child.wait() => false,
        _ = stopped.changed() => false,
        () = sleep(limits.time) => true,
    };
    let ended = group.end().await;
    if let Some(feeding) = feeding {
        feeding.abort();
    }
    ended?;
    let lost = |source| cordon_engine::Error::Lost { verb, source };
    let status = group.child().wait().await.map_err(lost)?;
    let (stdout, stdout_cut) = stdout.finish().await;
    let (stderr, stderr_cut) = stderr.finish().await;
    Ok(ExecOutput {
        stdout,
        stderr,
        exit_code: if timed_out {
            TIMED_OUT
        } else {
            shell_code(status)
        },
        timed_out,
        truncated: stdout_cut || stderr_cut,
    })
}

async fn feed(mut stdin: ChildStdin, input: Vec<u8>) {
    // A command that does not read all of its input says why by its status.
    let _ = stdin.write_all(&input).await;
}

/// What is kept of a stream while it is read.
struct Kept {
    cut: Arc<Mutex<Cut>>,
    reading: JoinHandle<()>,
}

impl Kept {
    fn reading(stream: Option<impl AsyncRead + Send + Unpin + 'static>, limit: usize) -> Self {
        let cut = Arc::new(Mutex::new(Cut::default()));
        let filled = Arc::clone(&cut);
        let reading = tokio::spawn(async move {
            if let Some(stream) = stream {
                collect(&filled, stream, limit).await;
            }
        });
        Self { cut, reading }
    }

    /// What came until now, and whether something is missing. A process that left the group may keep the stream open
    /// for ever; it is not waited for.
    async fn finish(mut self) -> (Vec<u8>, bool) {
        if timeout(DRAIN, &mut self.reading).await.is_err() {
            self.reading.abort();
        }
        let mut cut = self.cut.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *cut).finish()
    }
}

/// As `timeout` gives it.
const TIMED_OUT: i32 = 124;

/// How long is read on when every process of the group is gone: what they wrote is in the pipe already.
const DRAIN: Duration = Duration::from_secs(2);
