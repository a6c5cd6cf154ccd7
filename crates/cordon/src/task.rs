//! A task that runs a coding agent, with a context that lasts across runs.

mod record;
mod result;

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use cordon_agents::{Agent, Budget, Effort, Invocation, Model, SessionId, StreamEvent};
use cordon_door::Before;
use cordon_image::Entrypoint;
use cordon_policy::Allowlist;
use cordon_proxy::{NetworkLog, OnRecord};
use cordon_secrets::{Redactor, Secret, SecretReplacements};
use cordon_session::SessionStore;
use tokio::sync::mpsc;

use crate::{
    CommandSpec, ContainerEnv, ContextId, Input, Mount, Network, Notice, Profile, ResourceLimits,
    SandboxError,
    live::Live,
    run::{self, Orders, Plan},
    sandbox::{Shared, Turn, Turns},
    streams::{Io, Sink},
    user::User,
};

pub use result::ExecutionResult;

use record::Recorder;

/// What to run an agent in, and what it may see and reach.
#[derive(Clone)]
pub struct TaskSpec {
    /// The context that the run belongs to.
    pub execution_context_id: ContextId,
    /// Which agent.
    pub agent: Agent,
    /// The image's reference in the engine's store.
    pub image: String,
    /// What of the host it sees. The agent's own state must not be among it.
    pub mounts: Vec<Mount>,
    /// Its variables, over those of the image.
    pub env: ContainerEnv,
    /// Where `context.json`, `events.jsonl` and the agent's state are kept.
    pub session_dir: PathBuf,
    /// Where `network-sandbox.log` and `network-sandbox.jsonl` are kept.
    pub network_log_dir: Option<PathBuf>,
    /// What it may reach.
    pub network: Network,
    /// What it may use of the machine.
    pub limits: ResourceLimits,
    /// What it may use up.
    pub budget: Budget,
    /// Who it runs as, as `UID[:GID]`; the image's own user if `None`, which is taken to be root. Its
    /// state on the host belongs to that user, or under rootless podman to the caller.
    pub user: Option<String>,
    /// How far the container is closed.
    pub profile: Profile,
    /// The home directory of that user in the container; if `None`, the profile's, and else `/root` for
    /// root and an empty one that goes with the container for everybody else.
    pub home: Option<String>,
    /// The agent's program on the host, mounted read-only; the image's own if `None`.
    pub agent_binary: Option<PathBuf>,
    /// Brings the Python environment of `/workspace` up to date first, where it is a project of uv's.
    pub sync_python: bool,
    /// Called with every record of the network log as it is written.
    pub on_network: Option<OnRecord>,
}

/// What to ask an agent.
#[derive(Clone)]
pub struct Prompt {
    text: String,
    resume: Option<String>,
    model: Option<String>,
    effort: Option<Effort>,
    base_url: Option<String>,
}

/// An agent that can be executed, and stopped from elsewhere.
#[derive(Debug)]
pub struct Task {
    shared: Arc<Shared>,
    spec: TaskSpec,
    store: SessionStore,
    live: Live,
    turns: Turns,
}

impl TaskSpec {
    /// That agent in that image, with its state in `session_dir`, nothing mounted, nothing to reach,
    /// five minutes' time and the standard profile.
    pub fn new(
        agent: Agent,
        execution_context_id: ContextId,
        image: impl Into<String>,
        session_dir: impl Into<PathBuf>,
    ) -> Self {
        Self {
            execution_context_id,
            agent,
            image: image.into(),
            mounts: Vec::new(),
            env: Vec::new(),
            session_dir: session_dir.into(),
            network_log_dir: None,
            network: Network::None,
            limits: ResourceLimits {
                timeout: Some(AGENT_TIMEOUT),
                ..ResourceLimits::default()
            },
            budget: Budget::default(),
            user: None,
            profile: Profile::Standard,
            home: None,
            agent_binary: None,
            sync_python: false,
            on_network: None,
        }
    }

    fn state(&self) -> PathBuf {
        self.session_dir.join(self.agent.name())
    }

    /// Who it runs as, where that is not root.
    fn other_user(&self) -> Result<Option<User>, SandboxError> {
        match self.user.as_deref() {
            None | Some("root") => Ok(None),
            Some(text) => match User::parse(text) {
                Some(user) => Ok((!user.is_root()).then_some(user)),
                None => Err(SandboxError::NamedUser {
                    user: text.to_owned(),
                }),
            },
        }
    }

    /// The home directory, and it again where it has to be made.
    fn home(&self) -> Result<(String, Vec<String>), SandboxError> {
        let other = self.other_user()?;
        let given = self.home.as_deref().or_else(|| self.profile.home());
        Ok(match (given, other) {
            (Some(home), _) => (home.to_owned(), Vec::new()),
            (None, None) => ("/root".to_owned(), Vec::new()),
            (None, Some(_)) => (HOME.to_owned(), vec![HOME.to_owned()]),
        })
    }
}

impl Prompt {
    /// A prompt for a fresh session with the agent's own default model.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            resume: None,
            model: None,
            effort: None,
            base_url: None,
        }
    }

    /// Goes on with that session; `None` begins a fresh one.
    #[must_use]
    pub fn resume(mut self, session_id: Option<String>) -> Self {
        self.resume = session_id;
        self
    }

    /// Uses that model.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Lets the agent think that hard.
    #[must_use]
    pub fn effort(mut self, effort: Effort) -> Self {
        self.effort = Some(effort);
        self
    }

    /// Talks to another server than the agent's own.
    #[must_use]
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }
}

impl Task {
    pub(crate) fn new(shared: Arc<Shared>, spec: TaskSpec) -> Result<Self, SandboxError> {
        // The directory must be there to be compared with what is mounted.
        fs::create_dir_all(spec.state()).map_err(|source| SandboxError::Directory {
            path: spec.state(),
            source,
        })?;
        let redactor = match &spec.network {
            Network::Sandboxed(network) => Redactor::new(&network.replacements),
            Network::None | Network::Unrestricted => Redactor::new(&SecretReplacements::default()),
        };
        let store = SessionStore::new(&spec.session_dir).with_redactor(redactor);
        let task = Self {
            shared,
            live: Live::new(&spec.network),
            spec,
            store,
            turns: Turns::default(),
        };
        task.command(&Prompt::new(""))?;
        Ok(task)
    }

    /// The context that it belongs to.
    #[must_use]
    pub fn execution_context_id(&self) -> &ContextId {
        &self.spec.execution_context_id
    }

    /// What is kept of earlier runs.
    #[must_use]
    pub fn session_store(&self) -> &SessionStore {
        &self.store
    }

    /// What went through the door; `None` where it is not kept.
    #[must_use]
    pub fn network_log(&self) -> Option<NetworkLog> {
        let directory = self.spec.network_log_dir.as_ref()?;
        Some(NetworkLog::new(directory.join(NETWORK_LOG)))
    }

    /// Runs the agent to its end; `on_event` sees every event as it comes.
    ///
    /// Always a result, whatever the agent did. When the returned future is dropped, the container ends
    /// and everything of the run is released.
    ///
    /// # Errors
    ///
    /// When the sandbox cannot do its work, the task is being executed already, or another task or
    /// process is using the context.
    pub async fn execute(
        &self,
        prompt: Prompt,
        mut on_event: impl FnMut(&StreamEvent) + Send,
    ) -> Result<ExecutionResult, SandboxError> {
        let turn = Turn::begin(&self.turns, &self.shared)?;
        self.spec.agent.check_prompt(&prompt.text)?;
        let mut spec = self.command(&prompt)?;
        let orders = Orders {
            stop: turn.stop(),
            changes: self.live.follow(&mut spec.network),
        };
        let plan = Plan::new(&self.shared, &spec)?;
        let writer = self.store.write(self.spec.execution_context_id.as_str())?;
        for warning in writer.warnings() {
            let what = warning.to_string();
            self.shared.notice(&Notice::Session { what });
        }
        self.furnish()?;
        let recording = writer.begin_reply(self.spec.agent, Some(&prompt.text))?;
        let mut recorder = Recorder::new(&self.spec, recording);

        let (sender, mut pieces) = mpsc::channel(PIECES);
        let io = Io {
            input: Input::Bytes(prompt.text.into_bytes()),
            sink: Sink::Channel(sender),
            terminal: cordon_engine::Terminal::Input,
        };
        let mut running = std::pin::pin!(run::run(&self.shared, &plan, io, orders));
        let ended = loop {
            tokio::select! {
                biased;
                Some((stream, bytes)) = pieces.recv() => {
                    if recorder.push(stream, &bytes, &mut on_event).is_some() {
                        turn.halt();
                    }
                }
                ended = &mut running => break ended,
            }
        };
        while let Ok((stream, bytes)) = pieces.try_recv() {
            recorder.push(stream, &bytes, &mut on_event);
        }
        let (result, notices) = recorder.finish(ended, &mut on_event)?;
        for notice in &notices {
            self.shared.notice(notice);
        }
        Ok(result)
    }

    /// Ends the agent: `SIGTERM`, five seconds, `SIGKILL`; then waits until the container is gone.
    ///
    /// Returns whether there was something to stop. May be called from any thread or task.
    pub async fn stop(&self) -> bool {
        self.turns.stop().await
    }

    /// Judges the next request by another allowlist, in an execution under way too.
    pub fn replace_allowlist(&self, allowlist: Allowlist) {
        self.live.replace_allowlist(allowlist);
    }

    /// Gives a masked secret another value, in an execution under way too. Its surrogate stays.
    ///
    /// # Errors
    ///
    /// When the task masks no such variable, or the value cannot be masked.
    pub fn replace_secret(&self, env_var: &str, value: Secret) -> Result<(), SandboxError> {
        self.live.replace_secret(env_var, value)
    }

    /// The agent's state directory, with what it must find there.
    fn furnish(&self) -> Result<(), SandboxError> {
        for file in self.spec.agent.state_files() {
            let path = self.spec.state().join(file.name);
            if !path.exists() {
                fs::write(&path, file.text)
                    .map_err(|source| SandboxError::Write { path, source })?;
            }
        }
        match self.spec.other_user()? {
            Some(user) => user.take(&self.shared.engine()?, &self.spec.state()),
            None => Ok(()),
        }
    }

    /// The container that runs the agent with a prompt.
    fn command(&self, prompt: &Prompt) -> Result<CommandSpec, SandboxError> {
        let task = &self.spec;
        let (home, scratch) = task.home()?;
        let invocation = Invocation {
            model: prompt
                .model
                .as_deref()
                .map(str::parse::<Model>)
                .transpose()?,
            effort: prompt.effort,
            resume: prompt
                .resume
                .as_deref()
                .map(str::parse::<SessionId>)
                .transpose()?,
            budget: task.budget,
            home: home.clone(),
            base_url: prompt.base_url.clone(),
            ..Invocation::default()
        };
        let command = task.agent.command(&invocation)?;
        let program = match &task.agent_binary {
            Some(_) => AGENT_BINARY,
            None => task.agent.program(),
        };
        let own = |env: Vec<(&'static str, String)>| {
            env.into_iter()
                .map(|(name, value)| (name.to_owned(), value))
        };
        let mut env: Vec<_> = own(command.default_env).collect();
        env.extend(task.env.iter().cloned());
        env.push(("HOME".to_owned(), home.clone()));
        env.extend(own(command.forced_env));

        let mut entrypoint = Entrypoint::agent(program);
        if task.sync_python {
            entrypoint = entrypoint.sync_python();
        }
        let before = entrypoint.before().iter().map(|step| Before {
            where_exists: step.where_exists.clone(),
            command: step.command.clone(),
        });
        let mut spec = CommandSpec {
            before: before.collect(),
            mounts: task.mounts.clone(),
            env,
            scratch,
            user: task.user.clone(),
            profile: task.profile,
            network: task.network.clone(),
            limits: task.limits.clone(),
            network_log: task
                .network_log_dir
                .as_ref()
                .map(|directory| directory.join(NETWORK_LOG)),
            on_network: task.on_network.clone(),
            ..CommandSpec::new(&task.image, entrypoint.command(command.args))
        };
        self.shared.check(&mut spec, &[canonical(&task.state())])?;
        spec.mounts.push(Mount::read_write(
            canonical(&task.state()),
            task.agent.state_dir(&home),
        ));
        if let Some(binary) = &task.agent_binary {
            spec.mounts
                .push(Mount::read_only(canonical(binary), AGENT_BINARY));
        }
        Ok(spec)
    }
}

/// The path without symbolic links, or as it is where that cannot be told.
fn canonical(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

impl fmt::Debug for TaskSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskSpec")
            .field("execution_context_id", &self.execution_context_id)
            .field("agent", &self.agent)
            .field("image", &self.image)
            .field("session_dir", &self.session_dir)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt")
            .field("bytes", &self.text.len())
            .field("resume", &self.resume)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// What the network log is called.
const NETWORK_LOG: &str = "network-sandbox.log";

/// The home of an agent that is not root.
const HOME: &str = "/home/agent";

/// Where an agent's program from the host is in the container.
const AGENT_BINARY: &str = "/.cordon/agent";

/// What an agent gets unless it is told otherwise.
const AGENT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(300);

/// Pieces of output that may wait to be read before the agent is held back.
const PIECES: usize = 64;
