//! One command in a session's container.

use std::{ffi::OsString, io, os::fd::OwnedFd, sync::Arc, time::Duration};

use cordon_door::{Begun, Ended, Ending, Error as DoorError, Exec, ExecId};
use cordon_engine::shell_code;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::unix::pipe,
    sync::watch,
    time::timeout,
};

use super::{Busy, Container, argv, directory};
use crate::{
    CommandSpec, SandboxError,
    modes::{Cut, ExecOutput, ExecRequest},
};

/// A command that runs in a session's container. When it is dropped before its end, it is killed.
#[derive(Debug)]
pub struct SessionCommand {
    container: Arc<Container>,
    id: ExecId,
    pipes: Option<Pipes>,
    end: Ending,
    limit: Duration,
    over: bool,
    _busy: Busy,
}

/// The way to a command that runs.
#[derive(Clone, Debug)]
pub struct SessionSignals {
    container: Arc<Container>,
    id: ExecId,
}

impl SessionSignals {
    /// Sends a signal to the command's process group. One that has ended is none to signal, and no error.
    ///
    /// # Errors
    ///
    /// When the container is gone.
    pub async fn send(&self, number: u8) -> Result<(), SandboxError> {
        let sent = self.container.holder.signal(self.id, number).await;
        sent.map_err(|_| SandboxError::SessionLost)
    }
}

/// The host's ends of a command's streams. They go to the container and pass through nobody.
#[derive(Debug)]
pub struct Pipes {
    /// To its standard input; closing it is the end of that.
    pub stdin: OwnedFd,
    /// From its standard output.
    pub stdout: OwnedFd,
    /// From its standard error.
    pub stderr: OwnedFd,
}

/// How a command in a session ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SessionEnd {
    /// As a shell would give it; 124 when its time was up.
    pub exit_code: i32,
    /// It was ended because its time was up.
    pub timed_out: bool,
    /// The kernel killed something in the container for want of memory while it ran.
    pub out_of_memory: bool,
}

impl SessionCommand {
    /// The command's streams, once.
    pub fn take_pipes(&mut self) -> Option<Pipes> {
        self.pipes.take()
    }

    /// How to signal the command while its end is waited for.
    #[must_use]
    pub fn signals(&self) -> SessionSignals {
        SessionSignals {
            container: Arc::clone(&self.container),
            id: self.id,
        }
    }

    /// Waits for the command's end, and sees to it when its time is up: `SIGTERM`, a while, then
    /// `SIGKILL` for it and all that descends from it. What it has detached stays in the container.
    ///
    /// # Errors
    ///
    /// When the container ends first.
    pub async fn ended(&mut self) -> Result<SessionEnd, SandboxError> {
        let holder = Arc::clone(&self.container.holder);
        let mut timed_out = false;
        let report = match timeout(self.limit, self.end.ended()).await {
            Ok(report) => report,
            Err(_) => {
                timed_out = true;
                // A container that is gone shows in the wait below.
                drop(holder.signal(self.id, SIGTERM).await);
                match timeout(GRACE, self.end.ended()).await {
                    Ok(report) => report,
                    Err(_) => {
                        drop(holder.kill(self.id).await);
                        self.end.ended().await
                    }
                }
            }
        };
        self.over = true;
        let report = report.ok_or(SandboxError::SessionLost)?;
        let exit_code = match report.ended {
            _ if timed_out => TIMED_OUT,
            Ended::Status(status) => shell_code(status),
            Ended::NotStarted { .. } | Ended::MountMoved { .. } => {
                return Err(SandboxError::SessionLost);
            }
        };
        Ok(SessionEnd {
            exit_code,
            timed_out,
            out_of_memory: report.out_of_memory_kills > 0,
        })
    }

    /// Feeds the command and keeps what it writes, up to the request's limit.
    pub(super) async fn output(
        mut self,
        request: &ExecRequest,
    ) -> Result<ExecOutput, SandboxError> {
        let pipes = self.pipes.take().ok_or(SandboxError::SessionLost)?;
        let open = |source| SandboxError::Pipe { source };
        let stdin = pipe::Sender::from_owned_fd(pipes.stdin).map_err(open)?;
        let stdout = pipe::Receiver::from_owned_fd(pipes.stdout).map_err(open)?;
        let stderr = pipe::Receiver::from_owned_fd(pipes.stderr).map_err(open)?;
        let (over, ends) = watch::channel(false);
        let ending = async {
            let end = self.ended().await;
            over.send_replace(true);
            end
        };
        let (end, stdout, stderr, ()) = tokio::join!(
            ending,
            keep(stdout, request.output_limit, ends.clone()),
            keep(stderr, request.output_limit, ends.clone()),
            feed(stdin, &request.stdin, ends.clone()),
        );
        let end = end?;
        let ((stdout, cut_stdout), (stderr, cut_stderr)) = (stdout.finish(), stderr.finish());
        Ok(ExecOutput {
            stdout,
            stderr,
            exit_code: end.exit_code,
            timed_out: end.timed_out,
            truncated: cut_stdout || cut_stderr,
        })
    }
}

impl Drop for SessionCommand {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        // Without a runtime there is no connection either, and the container has ended.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (container, id) = (Arc::clone(&self.container), self.id);
            runtime.spawn(async move { drop(container.holder.kill(id).await) });
        }
    }
}

impl Container {
    /// Starts a command. It is killed when the returned future is dropped on the way.
    pub(super) async fn begin(
        self: Arc<Self>,
        order: Arc<Order>,
        busy: Busy,
    ) -> Result<SessionCommand, SandboxError> {
        let begun = tokio::spawn(async move {
            let exec = Exec {
                command: &order.command,
                environment: &order.env,
                directory: Some(&order.directory),
            };
            match self.holder.exec(exec).await {
                Ok(Begun::Running(running)) => Ok(SessionCommand {
                    container: self,
                    id: running.id,
                    pipes: Some(Pipes {
                        stdin: running.stdin,
                        stdout: running.stdout,
                        stderr: running.stderr,
                    }),
                    end: running.end,
                    limit: order.limit,
                    over: false,
                    _busy: busy,
                }),
                Ok(Begun::NotStarted { errno }) => Err(SandboxError::CommandNotStarted {
                    program: order.program(),
                    source: io::Error::from_raw_os_error(errno),
                }),
                Ok(Begun::NoDirectory { .. }) => Err(SandboxError::Cwd {
                    path: order.directory.clone().into(),
                }),
                Err(source @ DoorError::TooLarge) => Err(SandboxError::Door {
                    source,
                    engine: String::new(),
                }),
                Err(_) => Err(SandboxError::SessionLost),
            }
        });
        begun.await.unwrap_or(Err(SandboxError::SessionLost))
    }
}

/// A request that has been judged.
#[derive(Debug)]
pub(super) struct Order {
    command: Vec<OsString>,
    env: Vec<(String, String)>,
    directory: String,
    limit: Duration,
}

impl Order {
    pub(super) fn new(request: &ExecRequest, spec: &CommandSpec) -> Result<Self, SandboxError> {
        crate::sandbox::check_variables(&request.env)?;
        let limit = request.timeout.or(spec.limits.timeout);
        Ok(Self {
            command: argv(&request.command)?,
            env: request.env.clone(),
            directory: directory(&spec.workdir, request.cwd.as_deref())?,
            limit: limit.unwrap_or(LIMIT),
        })
    }

    fn program(&self) -> String {
        let program = self.command.first().cloned().unwrap_or_default();
        program.to_string_lossy().into_owned()
    }
}

/// Keeps the beginning of a stream. It is read until its end; or, once the command is over, until
/// nothing is left in the pipe, because what the command left running may hold the other end open.
async fn keep(mut pipe: pipe::Receiver, limit: usize, mut over: watch::Receiver<bool>) -> Cut {
    let mut cut = Cut::default();
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = tokio::select! {
            biased;
            read = pipe.read(&mut buffer) => read,
            _ = over.wait_for(|over| *over) => break,
        };
        match read {
            Ok(count @ 1..) => cut.push(&buffer[..count], limit),
            Ok(0) | Err(_) => return cut,
        }
    }
    let mut rest = PIPE_MOST;
    while let Ok(count @ 1..) = rustix::io::read(&pipe, &mut buffer) {
        cut.push(&buffer[..count], limit);
        rest = rest.saturating_sub(count);
        if rest == 0 {
            break;
        }
    }
    cut
}

async fn feed(mut pipe: pipe::Sender, bytes: &[u8], mut over: watch::Receiver<bool>) {
    tokio::select! {
        // A command that ends without reading all of its input is no trouble of ours.
        _ = pipe.write_all(bytes) => {}
        _ = over.wait_for(|over| *over) => {}
    }
}

/// How long a command may take that nobody gave a limit.
const LIMIT: Duration = Duration::from_secs(120);

/// How long a command has between `SIGTERM` and `SIGKILL`.
const GRACE: Duration = Duration::from_secs(2);

const BUFFER: usize = 16 * 1024;

/// More than a pipe of an ordinary user holds, so that whoever still writes cannot keep us reading.
const PIPE_MOST: usize = 1 << 20;

const SIGTERM: u8 = 15;
const TIMED_OUT: i32 = 124;
