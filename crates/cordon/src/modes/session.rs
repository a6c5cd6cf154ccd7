//! Containers that live as long as a session: one for each agent and session, started when its first
//! command comes, used by all later ones, and gone when it has been idle, is stopped, or its owner ends.
//!
//! A command costs a fork of PID 1 and no call of the engine. One that was started is never repeated:
//! when its container is lost, so is it.

mod activity;
mod command;
mod hold;
mod name;

use std::{
    collections::HashMap,
    ffi::OsString,
    io,
    path::{Component, Path},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use cordon_door::Holder;
use tokio::{
    sync::{oneshot, watch},
    task::JoinHandle,
};

pub use command::{Pipes, SessionCommand, SessionEnd, SessionSignals};
pub(crate) use hold::Hold;

use super::{AgentSandbox, ExecCommand, ExecOutput, ExecRequest, SessionKey, WorkspaceAccess};
use crate::{
    Allowlist, CommandSpec, EngineKind, Mount, Network, NetworkSandbox, Notice, ResourceLimits,
    Sandbox, SandboxError, Secret, Streams,
    live::Live,
    run::{self, Orders, Plan},
    sandbox::{Shared, Turn, Turns},
};
use activity::{Activity, Busy};
use command::Order;

/// The session containers of one agent's configuration.
///
/// When it is dropped, every container of it ends.
#[derive(Debug)]
pub struct SessionContainers {
    shared: Arc<Shared>,
    spec: CommandSpec,
    idle: Option<Duration>,
    live: Arc<Live>,
    sessions: Mutex<HashMap<SessionKey, Arc<Session>>>,
}

/// What is known of a session whose container runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SessionState {
    /// Which engine runs its container.
    pub engine: EngineKind,
    /// How long the container has been there.
    pub age: Duration,
    /// How long no command has run; zero while one does.
    pub idle: Duration,
    /// How many commands run.
    pub running: usize,
}

impl SessionContainers {
    /// Containers after that spec, whose command plays no part; its time limit is one command's.
    /// Nothing runs yet. One that is unused for `idle` ends.
    ///
    /// # Errors
    ///
    /// When the sandbox has not been started, or the spec is refused.
    pub fn new(
        sandbox: &Sandbox,
        mut spec: CommandSpec,
        idle: Option<Duration>,
    ) -> Result<Self, SandboxError> {
        let shared = Arc::clone(sandbox.shared());
        spec.command = Vec::new();
        shared.check(&mut spec, &[])?;
        Ok(Self {
            shared,
            live: Arc::new(Live::new(&spec.network)),
            spec,
            idle,
            sessions: Mutex::default(),
        })
    }

    /// Runs a command in the session's container, which is started if there is none.
    ///
    /// When the returned future is dropped, the command is killed.
    ///
    /// # Errors
    ///
    /// When the container cannot be started or is lost while the command runs, or the request cannot be
    /// met. Whatever the command does is a result.
    pub async fn exec(
        &self,
        key: &SessionKey,
        request: &ExecRequest,
    ) -> Result<ExecOutput, SandboxError> {
        match self.begin(key, request).await {
            Ok(command) => command.output(request).await,
            Err(SandboxError::CommandNotStarted { program, source }) => Ok(ExecOutput {
                exit_code: match source.kind() {
                    io::ErrorKind::NotFound => NOT_FOUND,
                    _ => NOT_EXECUTABLE,
                },
                stderr: format!("cordon: cannot start {program}: {source}\n").into_bytes(),
                ..ExecOutput::default()
            }),
            Err(error) => Err(error),
        }
    }

    /// Starts a command in the session's container, which is started if there is none. What the request
    /// says about input and output is left to the caller, who has the pipes.
    ///
    /// # Errors
    ///
    /// As [`Self::exec`]; and when the command itself could not be started.
    pub async fn begin(
        &self,
        key: &SessionKey,
        request: &ExecRequest,
    ) -> Result<SessionCommand, SandboxError> {
        let order = Arc::new(Order::new(request, &self.spec)?);
        let session = self.session(key);
        let (container, busy) = session.enter(self, key).await?;
        match Arc::clone(&container).begin(Arc::clone(&order), busy).await {
            Err(SandboxError::SessionLost) => {}
            begun => return begun,
        }
        // It died before the command ran, so another one may run it.
        let (container, busy) = session.enter(self, key).await?;
        container.begin(order, busy).await
    }

    /// Starts the session's container if there is none.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub async fn start(&self, key: &SessionKey) -> Result<(), SandboxError> {
        self.session(key).enter(self, key).await.map(drop)
    }

    /// What is known of a session; `None` when it has no container.
    pub async fn state(&self, key: &SessionKey) -> Option<SessionState> {
        let container = self.container(key).await?;
        let (running, idle) = container.activity.now();
        Some(SessionState {
            engine: self.shared.engine().ok()?.kind(),
            age: container.since.elapsed(),
            idle,
            running,
        })
    }

    /// Returns once the session has no container.
    pub async fn ended(&self, key: &SessionKey) {
        if let Some(container) = self.container(key).await {
            // An error means that the task, and with it the sender, is gone.
            drop(container.finished.clone().wait_for(|done| *done).await);
        }
    }

    /// Ends a session: its commands are asked to end, then killed, and the container is gone when this
    /// returns. Says whether there was one.
    pub async fn stop(&self, key: &SessionKey) -> bool {
        let session = self.lock().remove(key);
        let Some(session) = session else {
            return false;
        };
        let container = session.current.lock().await.take();
        match container {
            Some(container) => container.turns.stop().await,
            None => false,
        }
    }

    /// Ends every session.
    pub async fn stop_all(&self) {
        let keys: Vec<_> = self.lock().keys().cloned().collect();
        for key in keys {
            self.stop(&key).await;
        }
    }

    /// Judges the next request by another allowlist, in every container.
    pub fn replace_allowlist(&self, allowlist: Allowlist) {
        self.live.replace_allowlist(allowlist);
    }

    /// Gives a masked secret another value, in every container. Its surrogate stays.
    ///
    /// # Errors
    ///
    /// When the spec masks no such variable, or the value cannot be masked.
    pub fn replace_secret(&self, env_var: &str, value: Secret) -> Result<(), SandboxError> {
        self.live.replace_secret(env_var, value)
    }

    /// The session of that key. Those that came to their end meanwhile are forgotten.
    fn session(&self, key: &SessionKey) -> Arc<Session> {
        let mut sessions = self.lock();
        sessions.retain(|other, session| other == key || session.is_remembered());
        Arc::clone(sessions.entry(key.clone()).or_default())
    }

    async fn container(&self, key: &SessionKey) -> Option<Arc<Container>> {
        let session = self.lock().get(key).map(Arc::clone)?;
        let current = session.current.lock().await;
        current
            .as_ref()
            .filter(|container| container.is_there())
            .map(Arc::clone)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<SessionKey, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AgentSandbox {
    /// The spec of the agent's session containers, made from that image.
    #[must_use]
    pub fn session_spec(&self, image: impl Into<String>) -> CommandSpec {
        let workspace = match self.workspace_access {
            WorkspaceAccess::None => None,
            WorkspaceAccess::ReadOnly => Some(Mount::read_only(&self.workspace, WORKSPACE)),
            WorkspaceAccess::ReadWrite => Some(Mount::read_write(&self.workspace, WORKSPACE)),
        };
        CommandSpec {
            mounts: workspace
                .into_iter()
                .chain(self.mounts.iter().cloned())
                .collect(),
            env: self.env.clone(),
            network: match &self.allowlist {
                Some(allowlist) => Network::Sandboxed(NetworkSandbox {
                    allowlist: allowlist.clone(),
                    ..NetworkSandbox::default()
                }),
                None => Network::None,
            },
            limits: self.limits.clone(),
            profile: self.profile,
            ..CommandSpec::new(image, [""; 0])
        }
    }
}

/// A session and the container that it has now. Who starts one holds the lock, so that there is never
/// a second.
#[derive(Debug, Default)]
struct Session {
    current: tokio::sync::Mutex<Option<Arc<Container>>>,
}

impl Session {
    /// Whether something is known of it: a container that is there, that is being started, or that was
    /// lost, which is to be told.
    fn is_remembered(&self) -> bool {
        match self.current.try_lock() {
            Ok(current) => current
                .as_ref()
                .is_some_and(|container| container.is_there() || container.was_lost()),
            Err(_) => true,
        }
    }

    /// The session's container, which is there and stays as long as somebody is busy with it.
    async fn enter(
        &self,
        containers: &SessionContainers,
        key: &SessionKey,
    ) -> Result<(Arc<Container>, Busy), SandboxError> {
        let mut current = self.current.lock().await;
        if let Some(container) = current.as_ref().filter(|container| container.is_there())
            && let Some(busy) = container.activity.enter()
        {
            return Ok((Arc::clone(container), busy));
        }
        if let Some(before) = current.take()
            && before.was_lost()
        {
            containers.shared.notice(&Notice::SessionRestarted {
                agent: key.agent.clone(),
                session: key.session.clone(),
            });
        }
        let container = Container::start(containers, key).await?;
        *current = Some(Arc::clone(&container));
        match container.activity.enter() {
            Some(busy) => Ok((container, busy)),
            None => Err(SandboxError::SessionLost),
        }
    }
}

/// A container that is held.
#[derive(Debug)]
struct Container {
    holder: Arc<Holder>,
    activity: Arc<Activity>,
    turns: Arc<Turns>,
    since: Instant,
    finished: watch::Receiver<bool>,
    task: JoinHandle<()>,
}

impl Container {
    async fn start(
        containers: &SessionContainers,
        key: &SessionKey,
    ) -> Result<Arc<Self>, SandboxError> {
        let (ready, readiness) = oneshot::channel();
        let (finishes, finished) = watch::channel(false);
        let turns = Arc::new(Turns::default());
        let activity = Arc::new(Activity::new(containers.idle));
        let hold = Hold::new(ready, Arc::clone(&activity));
        let life = Life {
            shared: Arc::clone(&containers.shared),
            spec: containers.spec.clone(),
            labels: name::labels(key),
            live: Arc::clone(&containers.live),
            turns: Arc::clone(&turns),
        };
        let task = tokio::spawn(async move {
            life.live(hold).await;
            finishes.send_replace(true);
        });
        let aborting = AbortOnDrop(Some(task));
        let holder = readiness.await.unwrap_or(Err(SandboxError::SessionLost))?;
        let Some(task) = aborting.keep() else {
            return Err(SandboxError::SessionLost);
        };
        Ok(Arc::new(Self {
            holder,
            activity,
            turns,
            since: Instant::now(),
            finished,
            task,
        }))
    }

    fn is_there(&self) -> bool {
        !self.holder.is_gone() && !self.activity.is_closed()
    }

    /// It is gone, and not because we ended it.
    fn was_lost(&self) -> bool {
        self.holder.is_gone() && !self.activity.was_ended()
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // One that ends by itself is left to do so, because it verifies that nothing stays.
        if self.is_there() {
            self.task.abort();
        }
    }
}

/// A start that is given up takes its container with it.
struct AbortOnDrop(Option<JoinHandle<()>>);

impl AbortOnDrop {
    fn keep(mut self) -> Option<JoinHandle<()>> {
        self.0.take()
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// What the task of one container has.
struct Life {
    shared: Arc<Shared>,
    spec: CommandSpec,
    labels: Vec<(String, String)>,
    live: Arc<Live>,
    turns: Arc<Turns>,
}

impl Life {
    /// From the container's start to its verified end.
    async fn live(mut self, hold: Hold) {
        // A time limit is one command's, and never the container's.
        self.spec.limits = ResourceLimits {
            timeout: None,
            ..self.spec.limits
        };
        let lived = async {
            let turn = Turn::begin(&self.turns, &self.shared)?;
            let mut spec = self.spec.clone();
            let orders = Orders {
                stop: turn.stop(),
                changes: self.live.follow(&mut spec.network),
            };
            let plan = Plan::new(&self.shared, &spec)?
                .labelled(self.labels.clone())
                .untimed();
            run::hold(
                &self.shared,
                &plan,
                Streams::captured().into(),
                orders,
                &hold,
            )
            .await
        };
        if let Err(error) = lived.await {
            // Whoever waits for the start is told; after that, nobody is left but the log.
            if let Some(error) = hold.fail(error) {
                tracing::warn!("a session's container: {error}");
            }
        }
    }
}

/// The directory that a command starts in, which must be the workspace or below it.
fn directory(workdir: &str, cwd: Option<&Path>) -> Result<String, SandboxError> {
    let Some(cwd) = cwd else {
        return Ok(workdir.to_owned());
    };
    let outside = || SandboxError::Cwd {
        path: cwd.to_owned(),
    };
    let below = match cwd.strip_prefix(workdir) {
        Ok(below) => below,
        Err(_) if cwd.is_relative() => cwd,
        Err(_) => return Err(outside()),
    };
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if !below.components().all(plain) {
        return Err(outside());
    }
    let path = Path::new(workdir).join(below);
    match path.to_str() {
        Some(path) if !path.contains('\0') => Ok(path.to_owned()),
        _ => Err(outside()),
    }
}

/// The program and its arguments; a line goes to a login shell, which knows the image's paths.
fn argv(command: &ExecCommand) -> Result<Vec<OsString>, SandboxError> {
    match command {
        ExecCommand::Argv(argv) if argv.is_empty() => Err(SandboxError::NoCommand),
        ExecCommand::Argv(argv) => Ok(argv.clone()),
        ExecCommand::Shell(line) => Ok(["/bin/sh", "-lc", line].map(Into::into).into()),
    }
}

/// Where the workspace is in a session's container.
const WORKSPACE: &str = "/workspace";

const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_starts_in_the_workspace_or_below() {
        let at = |cwd: &str| directory("/workspace", Some(Path::new(cwd)));
        assert_eq!(directory("/workspace", None).unwrap(), "/workspace");
        for (cwd, expected) in [
            ("src", "/workspace/src"),
            ("./src", "/workspace/./src"),
            ("/workspace", "/workspace/"),
            ("/workspace/a b/ü", "/workspace/a b/ü"),
        ] {
            assert_eq!(at(cwd).unwrap(), expected, "{cwd}");
        }
        for cwd in [
            "/",
            "/etc",
            "..",
            "a/../../etc",
            "/workspace/..",
            "/workspaces",
            "a\0b",
        ] {
            assert!(matches!(at(cwd), Err(SandboxError::Cwd { .. })), "{cwd:?}");
        }
    }

    #[test]
    fn there_must_be_a_command() {
        let none = ExecCommand::Argv(Vec::new());
        assert!(matches!(argv(&none), Err(SandboxError::NoCommand)));
    }
}
