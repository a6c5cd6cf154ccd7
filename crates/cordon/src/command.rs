//! A task that runs one command.

use std::{
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use cordon_door::Before;
use cordon_engine::Terminal;
use cordon_policy::Allowlist;
use cordon_proxy::{OnRecord, Summary};
use cordon_secrets::{Secret, SecretReplacements};

use crate::{
    Mount, Profile, ResourceLimits, SandboxError, Streams,
    live::Live,
    run::{self, Orders, Plan},
    sandbox::{Shared, Turn, Turns},
    streams::Io,
};

/// What to run, and what it may see and reach.
#[derive(Clone)]
pub struct CommandSpec {
    /// The image's reference in the engine's store.
    pub image: String,
    /// The program and its arguments. The image's own entrypoint plays no part.
    pub command: Vec<OsString>,
    /// What is run first, where there is something for it to do; when it fails, so does the command.
    pub before: Vec<Before>,
    /// What of the host it sees.
    pub mounts: Vec<Mount>,
    /// Its variables, over those of the image. Values appear in no argument list, no log, and nothing
    /// that the engine keeps.
    pub env: ContainerEnv,
    /// Directories that begin empty, that everybody in the container may write, and that go with it.
    pub scratch: Vec<String>,
    /// Where it starts.
    pub workdir: String,
    /// Who it runs as, as `UID[:GID]` or a name of the image; if `None`, the image's own user in
    /// [`Profile::Standard`], and in [`Profile::Strict`] one whose files are the caller's.
    pub user: Option<String>,
    /// How far the container is closed.
    pub profile: Profile,
    /// What it may reach.
    pub network: Network,
    /// What it may use of the machine.
    pub limits: ResourceLimits,
    /// Where the network log goes, and beside it the same for programs, with the ending `jsonl`.
    pub network_log: Option<PathBuf>,
    /// Called with every record of the network log as it is written.
    pub on_network: Option<OnRecord>,
}

/// Variables of a container, by name. Specs that hold them do not show the values.
pub type ContainerEnv = Vec<(String, String)>;

/// What a container may reach.
#[derive(Clone, Debug, Default)]
pub enum Network {
    /// Nothing at all: there is no door.
    #[default]
    None,
    /// The door, and behind it what the policy allows.
    Sandboxed(NetworkSandbox),
    /// Whatever the host reaches, through the engine's own network. Nothing is checked or recorded.
    Unrestricted,
}

/// The policy behind the door.
#[derive(Clone, Debug, Default)]
pub struct NetworkSandbox {
    /// What may be reached; the default allows nothing.
    pub allowlist: Allowlist,
    /// Which surrogates stand for which secrets, from [`crate::prepare_secrets`].
    pub replacements: SecretReplacements,
}

/// A command that can be executed, and stopped from elsewhere.
#[derive(Debug)]
pub struct CommandTask {
    shared: Arc<Shared>,
    spec: CommandSpec,
    live: Live,
    turns: Turns,
}

/// How a command ended.
#[derive(Debug)]
pub struct CommandResult {
    /// As a shell would give it: the command's own code, 128+n for a signal, 126 and 127 when it
    /// could not be started.
    pub exit_code: i32,
    /// It was ended because its time was up.
    pub timed_out: bool,
    /// It was ended by [`CommandTask::stop`] or [`crate::Sandbox::shutdown`].
    pub stopped: bool,
    /// The kernel killed something in the container for want of memory.
    pub out_of_memory: bool,
    /// Why the command could not be started, if it could not.
    pub not_started: Option<std::io::Error>,
    /// From the start of the container to its end.
    pub duration: Duration,
    /// The end of standard output, unless it was the caller's own.
    pub stdout: Vec<u8>,
    /// The end of standard error.
    pub stderr: Vec<u8>,
    /// What went through the door.
    pub network: Option<Summary>,
}

impl CommandSpec {
    /// That command in that image, in `/workspace`, with nothing mounted and nothing to reach, under the
    /// strict profile.
    pub fn new<A: Into<OsString>>(
        image: impl Into<String>,
        command: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            image: image.into(),
            command: command.into_iter().map(Into::into).collect(),
            before: Vec::new(),
            mounts: Vec::new(),
            env: Vec::new(),
            scratch: Vec::new(),
            workdir: "/workspace".to_owned(),
            user: None,
            profile: Profile::Strict,
            network: Network::None,
            limits: ResourceLimits::default(),
            network_log: None,
            on_network: None,
        }
    }
}

impl CommandTask {
    pub(crate) fn new(shared: Arc<Shared>, spec: CommandSpec) -> Self {
        Self {
            shared,
            live: Live::new(&spec.network),
            spec,
            turns: Turns::default(),
        }
    }

    /// The program that is to be run.
    #[must_use]
    pub fn program(&self) -> &Path {
        self.spec
            .command
            .first()
            .map_or_else(|| Path::new(""), Path::new)
    }

    /// Runs the command to its end.
    ///
    /// When the returned future is dropped, the container ends and everything of the run is released.
    ///
    /// # Errors
    ///
    /// When the sandbox cannot do its work, or the task is being executed already.
    pub async fn execute(&self, streams: Streams) -> Result<CommandResult, SandboxError> {
        let turn = Turn::begin(&self.turns, &self.shared)?;
        let mut spec = self.spec.clone();
        let orders = Orders {
            stop: turn.stop(),
            changes: self.live.follow(&mut spec.network),
        };
        let io = Io::from(streams);
        let mut plan = Plan::new(&self.shared, &spec)?;
        // Whoever sits at a terminal ends it by hand.
        if io.terminal == Terminal::Full {
            plan = plan.untimed();
        }
        run::run(&self.shared, &plan, io, orders).await
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

    /// Ends the command: `SIGTERM`, five seconds, `SIGKILL`; then waits until the container is gone.
    ///
    /// Returns whether there was something to stop. May be called from any thread or task.
    pub async fn stop(&self) -> bool {
        self.turns.stop().await
    }
}

impl fmt::Debug for CommandSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values of variables may be secrets, and arguments may hold prompts.
        f.debug_struct("CommandSpec")
            .field("image", &self.image)
            .field("program", &self.command.first())
            .field("mounts", &self.mounts)
            .field(
                "env",
                &self.env.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            )
            .field("workdir", &self.workdir)
            .field("user", &self.user)
            .field("profile", &self.profile)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
