//! Commands on the host itself, for [`Mode::Off`]: judged, bounded, and isolated from nothing.
//!
//! Runs only where the configuration says `off` and the host program's environment allows it, and says on every run
//! that nothing is isolated. The judgement of a line is `cordon_shell`'s; here it is only obeyed.

mod environment;
mod group;
mod run;
mod workspace;

use std::{
    env,
    ffi::OsString,
    fmt,
    path::Path,
    sync::{Arc, Mutex, Once, PoisonError},
    time::Duration,
};

use cordon_engine::process::Call;
use cordon_shell::Programs;
use tokio::sync::watch;

use environment::Environment;
use workspace::Workspace;

use super::{
    AgentSandbox, ExecCommand, ExecOutput, ExecRequest, Mode, ModeNotice, Probe, SessionKey,
    WorkspaceAccess,
};
use crate::{OnNotice, SandboxError};

/// Runs the commands of one agent on the host.
pub struct HostExecutor {
    sandbox: AgentSandbox,
    programs: Programs,
    workspace: Workspace,
    host: HostUse,
    on_notice: Option<OnNotice>,
    told: Once,
    running: Arc<Mutex<Vec<Running>>>,
}

/// Whether commands may run on the host itself, with nothing isolated.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum HostUse {
    /// They may not.
    #[default]
    Refused,
    /// Whoever runs this has said so, beside the configuration.
    Allowed,
}

impl HostUse {
    /// What the environment of this process says: `CORDON_ALLOW_HOST_EXEC=1` is the only word that allows it.
    #[must_use]
    pub fn from_environment() -> Self {
        match env::var_os(ALLOW_HOST) {
            Some(value) if value == "1" => Self::Allowed,
            Some(_) | None => Self::Refused,
        }
    }

    /// Whether commands can run on the host, and what to type where they cannot.
    pub(super) fn probe(self) -> Probe {
        let (message, hints) = match self {
            Self::Allowed => (
                "commands run on the host itself, and nothing is isolated".to_owned(),
                Vec::new(),
            ),
            Self::Refused => (
                format!("mode off is not allowed here: {ALLOW_HOST} is not 1"),
                vec![format!("export {ALLOW_HOST}=1")],
            ),
        };
        Probe {
            ok: self == Self::Allowed,
            mode: Mode::Off,
            message,
            hints,
        }
    }
}

impl HostExecutor {
    /// An executor for an agent whose mode is `off`.
    ///
    /// # Errors
    ///
    /// When the mode is another one, when something is asked for that a host cannot keep, when the list of programs
    /// cannot be read, or when the workspace is not there.
    pub fn new(
        sandbox: AgentSandbox,
        host: HostUse,
        on_notice: Option<OnNotice>,
    ) -> Result<Self, SandboxError> {
        if sandbox.mode != Mode::Off {
            return Err(SandboxError::NotHostMode { mode: sandbox.mode });
        }
        if sandbox.workspace_access != WorkspaceAccess::ReadWrite {
            return Err(SandboxError::HostAccess);
        }
        Ok(Self {
            programs: Programs::parse(&sandbox.commands)?,
            workspace: Workspace::open(&sandbox.workspace)?,
            sandbox,
            host,
            on_notice,
            told: Once::new(),
            running: Arc::default(),
        })
    }

    /// Runs a command of a session to its end.
    ///
    /// # Errors
    ///
    /// When it is not allowed, or refused, or cannot be started. Whatever it does is a result.
    pub async fn exec(
        &self,
        session: &SessionKey,
        request: &ExecRequest,
    ) -> Result<ExecOutput, SandboxError> {
        if self.host == HostUse::Refused {
            return Err(SandboxError::HostNotAllowed);
        }
        let environment =
            Environment::build(self.workspace.path(), [&self.sandbox.env, &request.env])?;
        let directory = self.workspace.directory(request.cwd.as_deref())?;
        let call = match self.call(&request.command, &environment)? {
            Ok(call) => call.directory(directory),
            Err(missing) => return Ok(missing.into()),
        };
        self.tell();
        let mut running = self.enter(session);
        let limits = run::Limits {
            time: request
                .timeout
                .or(self.sandbox.limits.timeout)
                .unwrap_or(TIMEOUT),
            output: request.output_limit.min(HOST_OUTPUT_LIMIT),
        };
        let call = environment.apply(call);
        run::to_the_end(call, request.stdin.clone(), limits, &mut running.stopped).await
    }

    /// Ends the commands of a session, and waits until they are gone. Whether there were any.
    pub async fn stop(&self, session: &SessionKey) -> bool {
        let stops: Vec<_> = {
            let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            let of_session = running.iter().filter(|running| running.session == *session);
            of_session
                .map(|running| Arc::clone(&running.stop))
                .collect()
        };
        for stop in &stops {
            // A command that ended meanwhile needs no stop.
            let _ = stop.send(());
        }
        for stop in &stops {
            stop.closed().await;
        }
        !stops.is_empty()
    }

    /// Whether commands can run, and what to type where they cannot.
    #[must_use]
    pub fn probe(&self) -> Probe {
        self.host.probe()
    }

    /// Says what does not hold: that nothing is isolated every time, and limits that nobody keeps once.
    fn tell(&self) {
        let Some(on_notice) = &self.on_notice else {
            return;
        };
        let mode = Mode::Off;
        on_notice(&ModeNotice::NothingIsolated { mode }.into());
        self.told.call_once(|| {
            let limits = &self.sandbox.limits;
            let asked = [
                ("memory", limits.memory.is_some()),
                ("cpus", limits.cpus.is_some()),
                ("pids", limits.pids.is_some()),
            ];
            let asked = asked.into_iter().filter(|(_, asked)| *asked);
            let limits: Vec<_> = asked.map(|(name, _)| name).collect();
            if !limits.is_empty() {
                on_notice(&ModeNotice::LimitsUnheld { mode, limits }.into());
            }
        });
    }

    /// What is started for a command that is let through, or which program of it is not installed.
    fn call(
        &self,
        command: &ExecCommand,
        environment: &Environment,
    ) -> Result<Result<Call, Missing>, SandboxError> {
        match command {
            ExecCommand::Shell(line) => {
                let script = self.programs.judge_line(line, self.workspace.path())?;
                // A login shell would read the profiles of the machine and of the user, which set the search path anew
                // and run whatever stands in them.
                Ok(Ok(
                    Call::new(Path::new(SHELL), "sh").args(["-c", script.as_str()])
                ))
            }
            ExecCommand::Argv(argv) => {
                let text: Vec<_> = argv
                    .iter()
                    .map(|argument| argument.to_string_lossy())
                    .collect();
                self.programs.judge_argv(&text, self.workspace.path())?;
                let [program, arguments @ ..] = argv.as_slice() else {
                    return Err(SandboxError::NoCommand);
                };
                let Some(path) = environment.find(program) else {
                    return Ok(Err(Missing(program.clone())));
                };
                let verb = program.to_string_lossy();
                Ok(Ok(Call::new(&path, &verb).args(arguments)))
            }
        }
    }

    fn enter(&self, session: &SessionKey) -> Entered {
        let (stop, stopped) = watch::channel(());
        let stop = Arc::new(stop);
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.push(Running {
            session: session.clone(),
            stop: Arc::clone(&stop),
        });
        Entered {
            stopped,
            stop,
            running: Arc::clone(&self.running),
        }
    }
}

impl fmt::Debug for HostExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostExecutor")
            .field("agent", &self.sandbox.agent)
            .field("programs", &self.programs)
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}

/// A command that runs, as [`HostExecutor::stop`] sees it.
struct Running {
    session: SessionKey,
    stop: Arc<watch::Sender<()>>,
}

/// A command that runs, as it sees itself. Leaves the list when it is over.
struct Entered {
    stopped: watch::Receiver<()>,
    stop: Arc<watch::Sender<()>>,
    running: Arc<Mutex<Vec<Running>>>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|running| !Arc::ptr_eq(&running.stop, &self.stop));
    }
}

/// A listed program that is not installed.
struct Missing(OsString);

impl From<Missing> for ExecOutput {
    fn from(missing: Missing) -> Self {
        Self {
            stderr: format!("{}: not found\n", missing.0.display()).into_bytes(),
            exit_code: NOT_FOUND,
            ..Self::default()
        }
    }
}

/// How long a command may take where nobody says.
const TIMEOUT: Duration = Duration::from_secs(120);

/// How much of each output stream is kept at most: less than elsewhere, because nothing else bounds what a command on the
/// host can write.
pub const HOST_OUTPUT_LIMIT: usize = 4 * 1024 * 1024;

/// What allows all this, beside the configuration.
const ALLOW_HOST: &str = "CORDON_ALLOW_HOST_EXEC";

const SHELL: &str = "/bin/sh";

/// What shells give for a program that is not there.
const NOT_FOUND: i32 = 127;

#[cfg(test)]
mod tests;
