//! Where commands run: one interface over every mode.
//!
//! A mode is chosen by the configuration and by nothing else. There is no falling back from one to
//! another: what cannot be had is an error.

mod apple;
mod executor;
mod file;
mod host;
mod notice;
mod output;
mod select;
mod session;
mod vibebox;

use std::{ffi::OsString, fmt, path::PathBuf, str::FromStr, time::Duration};

pub use apple::{AppleError, AppleExecutor};
pub use executor::{Executor, Executors};
pub use file::AgentsFile;
pub use host::{HOST_OUTPUT_LIMIT, HostExecutor, HostUse};
pub use notice::ModeNotice;
pub(crate) use output::{Cut, collect};
pub use output::{OUTPUT_LIMIT, strip_ansi};
pub use select::{automatic, chosen, probe};
pub(crate) use session::Hold;
pub use session::{
    Pipes, SessionCommand, SessionContainers, SessionEnd, SessionSignals, SessionState,
};
pub use vibebox::{BridgeError, BridgeErrorKind, Init, Stage, VibeboxExecutor};

use crate::{Allowlist, Mount, Profile, ResourceLimits};

/// Where an agent's commands run.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Mode {
    /// The first of the sandboxed modes that works here; never [`Self::Off`].
    #[default]
    Auto,
    /// A podman container behind the door.
    Podman,
    /// A docker container behind the door.
    Docker,
    /// A virtual machine of Apple's `container`.
    AppleVm,
    /// Whatever the `vibebox` program selects.
    Vibebox,
    /// The host itself, with nothing isolated.
    Off,
}

/// What of the workspace a session sees.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum WorkspaceAccess {
    /// Nothing.
    None,
    /// Everything, and can change nothing.
    ReadOnly,
    /// Everything.
    #[default]
    ReadWrite,
}

/// A word of a configuration that is none of those expected.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{written}` is none of {known}")]
pub struct UnknownWord {
    /// What was written.
    pub written: String,
    /// What could have been.
    pub known: &'static str,
}

/// Which session a command belongs to. Both parts may be any text.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct SessionKey {
    /// The agent.
    pub agent: String,
    /// The conversation, or whatever the caller tells its sessions apart by.
    pub session: String,
}

/// How the commands of one agent are run, with nothing left to be looked up.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentSandbox {
    /// The agent's name in the configuration.
    pub agent: String,
    /// Where its commands run.
    pub mode: Mode,
    /// The directory that it works in, on the host.
    pub workspace: PathBuf,
    /// What of that its commands see.
    pub workspace_access: WorkspaceAccess,
    /// The image that its containers are made from.
    pub image: Option<String>,
    /// The file that the image is built from, where none is named.
    pub dockerfile: Option<PathBuf>,
    /// How far its containers are closed.
    pub profile: Profile,
    /// The OCI runtime of its containers; the engine's own if `None`.
    pub runtime: Option<String>,
    /// What else of the host its containers show.
    pub mounts: Vec<Mount>,
    /// Variables of every command.
    pub env: Vec<(String, String)>,
    /// What its containers may reach; `None` is nothing at all.
    pub allowlist: Option<Allowlist>,
    /// What its containers, or one command where there is no container, may use.
    pub limits: ResourceLimits,
    /// How long a container may be unused before it is removed.
    pub idle: Option<Duration>,
    /// The programs that may be run in [`Mode::Off`].
    pub commands: Vec<String>,
    /// How Apple's `container` is used.
    pub apple: AppleSettings,
    /// How `vibebox` is used.
    pub vibebox: VibeboxSettings,
    /// Whether a start-up run of the bootstrap looks at this agent.
    pub bootstrap_on_start: bool,
}

/// How Apple's `container` is used.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct AppleSettings {
    /// The program.
    pub program: PathBuf,
    /// What its virtual machines reach.
    pub network: AppleNetwork,
}

/// What a virtual machine of Apple's `container` reaches. There is nothing between the two: no proxy stands
/// before such a machine.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum AppleNetwork {
    /// Nothing: it has no network interface.
    #[default]
    None,
    /// Whatever the host reaches, under no policy.
    Unrestricted,
}

/// How `vibebox` is used.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct VibeboxSettings {
    /// It is used, whatever the mode says.
    pub enabled: bool,
    /// The program.
    pub program: PathBuf,
    /// Which backend it is to take.
    pub provider: Provider,
    /// The directory it calls the project's; the workspace if `None`.
    pub project_root: Option<PathBuf>,
    /// How long one of its commands may take where the request does not say.
    pub timeout: Duration,
}

/// Which backend `vibebox` is to take.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Provider {
    /// The first that works.
    #[default]
    Auto,
    /// Apple's virtual machines.
    AppleVm,
    /// Docker.
    Docker,
    /// None: the host.
    Off,
}

/// A command to be run in a mode.
#[derive(Clone)]
pub struct ExecRequest {
    /// What to run.
    pub command: ExecCommand,
    /// Its own variables, over those of the agent.
    pub env: Vec<(String, String)>,
    /// Where it starts, below the workspace; the workspace itself if `None`.
    pub cwd: Option<PathBuf>,
    /// What it reads.
    pub stdin: Vec<u8>,
    /// How long it may take; the mode's own limit if `None`.
    pub timeout: Option<Duration>,
    /// How much of each output stream is kept, in bytes.
    pub output_limit: usize,
}

/// What to run.
#[derive(Clone)]
pub enum ExecCommand {
    /// A program and its arguments, without any shell.
    Argv(Vec<OsString>),
    /// A line for `/bin/sh`.
    Shell(String),
}

/// What came of a command.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ExecOutput {
    /// What it wrote, cut at the limit with a notice.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error, cut likewise.
    pub stderr: Vec<u8>,
    /// As a shell would give it; 124 when its time was up.
    pub exit_code: i32,
    /// It was ended because its time was up.
    pub timed_out: bool,
    /// Some output is missing.
    pub truncated: bool,
}

/// Whether a mode can be used, and what to type where it cannot.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Probe {
    /// It can.
    pub ok: bool,
    /// Which mode was looked at; never [`Mode::Auto`] when one was found.
    pub mode: Mode,
    /// What was found.
    pub message: String,
    /// What to type or change next.
    pub hints: Vec<String>,
}

impl AgentSandbox {
    /// An agent of that name that works in that directory, with the defaults for everything else.
    pub fn new(agent: impl Into<String>, workspace: impl Into<PathBuf>) -> Self {
        Self {
            agent: agent.into(),
            mode: Mode::default(),
            workspace: workspace.into(),
            workspace_access: WorkspaceAccess::default(),
            image: None,
            dockerfile: None,
            profile: Profile::default(),
            runtime: None,
            mounts: Vec::new(),
            env: Vec::new(),
            allowlist: None,
            limits: ResourceLimits::default(),
            idle: None,
            commands: Vec::new(),
            apple: AppleSettings::default(),
            vibebox: VibeboxSettings::default(),
            bootstrap_on_start: false,
        }
    }
}

impl ExecRequest {
    /// That program with those arguments, in the workspace, with nothing to read.
    pub fn argv<A: Into<OsString>>(argv: impl IntoIterator<Item = A>) -> Self {
        Self::new(ExecCommand::Argv(
            argv.into_iter().map(Into::into).collect(),
        ))
    }

    /// That line of shell, in the workspace, with nothing to read.
    pub fn shell(line: impl Into<String>) -> Self {
        Self::new(ExecCommand::Shell(line.into()))
    }

    fn new(command: ExecCommand) -> Self {
        Self {
            command,
            env: Vec::new(),
            cwd: None,
            stdin: Vec::new(),
            timeout: None,
            output_limit: OUTPUT_LIMIT,
        }
    }
}

impl Default for AppleSettings {
    fn default() -> Self {
        Self {
            program: "container".into(),
            network: AppleNetwork::default(),
        }
    }
}

impl Default for VibeboxSettings {
    fn default() -> Self {
        Self {
            enabled: false,
            program: "vibebox".into(),
            provider: Provider::default(),
            project_root: None,
            timeout: Duration::from_secs(120),
        }
    }
}

impl Mode {
    /// The word for it in a configuration.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Podman => "podman",
            Self::Docker => "docker",
            Self::AppleVm => "apple-vm",
            Self::Vibebox => "vibebox",
            Self::Off => "off",
        }
    }
}

impl Provider {
    /// The word for it, in a configuration and for the program.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::AppleVm => "apple-vm",
            Self::Docker => "docker",
            Self::Off => "off",
        }
    }
}

impl FromStr for Mode {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = "auto, podman, docker, apple-vm, vibebox, off";
        let all = [
            Self::Auto,
            Self::Podman,
            Self::Docker,
            Self::AppleVm,
            Self::Vibebox,
            Self::Off,
        ];
        word(text, known, all, Self::word)
    }
}

impl FromStr for Provider {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = "auto, apple-vm, docker, off";
        let all = [Self::Auto, Self::AppleVm, Self::Docker, Self::Off];
        word(text, known, all, Self::word)
    }
}

impl FromStr for AppleNetwork {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let all = [Self::None, Self::Unrestricted];
        word(text, "none, unrestricted", all, |network| match network {
            Self::None => "none",
            Self::Unrestricted => "unrestricted",
        })
    }
}

impl FromStr for WorkspaceAccess {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let all = [Self::None, Self::ReadOnly, Self::ReadWrite];
        word(text, "none, ro, rw", all, |access| match access {
            Self::None => "none",
            Self::ReadOnly => "ro",
            Self::ReadWrite => "rw",
        })
    }
}

/// The value whose word was written.
fn word<T: Copy, const N: usize>(
    written: &str,
    known: &'static str,
    all: [T; N],
    word: impl Fn(T) -> &'static str,
) -> Result<T, UnknownWord> {
    let found = all.into_iter().find(|value| word(*value) == written);
    found.ok_or_else(|| UnknownWord {
        written: written.to_owned(),
        known,
    })
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session {:?} of agent {:?}", self.session, self.agent)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl fmt::Debug for ExecRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values of variables may be secrets, and arguments may hold prompts.
        f.debug_struct("ExecRequest")
            .field("command", &self.command)
            .field("cwd", &self.cwd)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ExecCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argv(argv) => f.debug_tuple("Argv").field(&argv.first()).finish(),
            Self::Shell(_) => f.debug_tuple("Shell").finish_non_exhaustive(),
        }
    }
}
