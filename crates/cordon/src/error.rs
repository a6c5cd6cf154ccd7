//! Trouble with the infrastructure. What a command or agent does is never an error.

use std::{io, path::PathBuf};

use crate::{
    FileError, GitError, InvalidContextId, InvalidLimit, MountError,
    modes::{AppleError, BridgeError, Probe},
};

/// The sandbox could not do its work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// There is no container engine that could be asked: none is installed, or none answers.
    #[error(transparent)]
    EngineNotAvailable(cordon_engine::Error),
    /// The container engine refuses.
    #[error(transparent)]
    Engine(cordon_engine::Error),
    /// What a container reaches is not what its policy says, as it is seen from inside.
    #[error("what the container reaches is not what its policy says: {found}")]
    EgressNotConfigured {
        /// What was found.
        found: String,
    },
    /// The container did not come up to the point where its command could start.
    #[error("the container did not start{}", said(engine))]
    Door {
        /// What happened at the door.
        source: cordon_door::Error,
        /// What the engine said meanwhile.
        engine: String,
    },
    /// The proxy could not start or lost its work.
    #[error("the proxy failed")]
    Proxy(#[from] cordon_proxy::Error),
    /// The context on disk cannot be read or written, or is in use.
    #[error(transparent)]
    Session(#[from] cordon_session::Error),
    /// The agent cannot be asked for that.
    #[error(transparent)]
    Agent(#[from] cordon_agents::Error),
    /// The configuration file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// A repository, or something in it, cannot be used.
    #[error(transparent)]
    Git(#[from] GitError),
    /// An allowlist, a configuration or a Dockerfile cannot be read.
    #[error("cannot read {}", path.display())]
    Rules {
        /// Which one.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A secret cannot be masked.
    #[error(transparent)]
    Secrets(#[from] cordon_secrets::SecretsError),
    /// A context's name cannot be used.
    #[error(transparent)]
    Context(#[from] InvalidContextId),
    /// An image could not be found or built.
    #[error(transparent)]
    Image(#[from] cordon_image::Error),
    /// The allowlist cannot be read.
    #[error(transparent)]
    Allowlist(#[from] cordon_policy::AllowlistError),
    /// A mount is refused.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// A mount shows something else than what was judged: its host path was changed on the way.
    #[error("what is mounted at `{path}` is not what was checked")]
    MountMoved {
        /// The path in the container.
        path: String,
    },
    /// A limit cannot be read.
    #[error(transparent)]
    Limit(#[from] InvalidLimit),
    /// A directory of the sandbox cannot be used.
    #[error("cannot use the directory {}", path.display())]
    Directory {
        /// Which one.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A directory of the sandbox belongs to somebody else.
    #[error("{} belongs to another user", path.display())]
    ForeignDirectory {
        /// Which one.
        path: PathBuf,
    },
    /// A file for the container cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// Which one.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// What a dead run left cannot be removed.
    #[error("cannot remove {}", path.display())]
    Remove {
        /// Where it is.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// An agent's containers are to be made of nothing.
    #[error("no image is named for {agent}")]
    NoImage {
        /// The agent.
        agent: String,
    },
    /// Mode `auto` found no sandboxed mode that works here.
    #[error("no sandboxed mode works here: {}", tried(probes))]
    NoMode {
        /// What was looked at, in turn.
        probes: Vec<Probe>,
    },
    /// An agent's user was given by name, and only the image knows its number.
    #[error("the agent's user `{user}` is a name, and its state must belong to a number")]
    NamedUser {
        /// The name.
        user: String,
    },
    /// The agent's user would not be able to write its state.
    #[error("user {user} of the container cannot write the agent's state in {}", path.display())]
    StateOutOfReach {
        /// The user's number.
        user: u32,
        /// Where the state is kept.
        path: PathBuf,
    },
    /// The engine's containers do not share this machine's kernel, so no door can be opened.
    #[error("{engine} runs its containers in another machine, where the door cannot be opened")]
    NotLocal {
        /// Which engine.
        engine: cordon_engine::Kind,
    },
    /// The engine's containers are kept by their own network, and this one would have the engine's.
    #[error(
        "{engine} runs its containers in another machine, where one without a network policy cannot be kept"
    )]
    NotKept {
        /// Which engine.
        engine: cordon_engine::Kind,
    },
    /// The engine's containers do not share this machine's kernel, so the pipes of commands in a session
    /// cannot be handed over.
    #[error("{engine} runs its containers in another machine, where no session can be held")]
    NotHeld {
        /// Which engine.
        engine: cordon_engine::Kind,
    },
    /// The OCI runtime keeps its sockets to itself, so no door can be opened.
    #[error("a container under gVisor cannot hand over the sockets of the door")]
    RuntimeWithoutDoor,
    /// The proxy's program, which goes into a container of its own, is nowhere.
    #[error("the proxy's program is not at {}", listed(places))]
    NoProxyProgram {
        /// Where it was looked for.
        places: Vec<PathBuf>,
    },
    /// The proxy's program cannot be read.
    #[error("cannot read the proxy's program {}", path.display())]
    ProxyUnreadable {
        /// Where it is.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The proxy's program needs libraries, and its image has none.
    #[error("{} is not a static program", path.display())]
    ProxyNotStatic {
        /// Where it is.
        path: PathBuf,
    },
    /// The proxy container did not come to serve.
    #[error("the proxy container does not serve: {said}")]
    ProxyNotReady {
        /// What it said.
        said: String,
    },
    /// The proxy container ended before the workload did.
    #[error("the proxy container was lost: {said}")]
    ProxyLost {
        /// What is known.
        said: String,
    },
    /// The engine's client ended in the middle of a run, without the container having ended.
    #[error("the connection to the running container was lost: {stderr}")]
    Lost {
        /// The end of what the engine said.
        stderr: String,
    },
    /// The container is still there after everything was tried.
    #[error("container {container} could not be removed")]
    LeftBehind {
        /// Its name.
        container: String,
    },
    /// The container of a session ended before a command in it did.
    #[error("the session's container ended before the command did")]
    SessionLost,
    /// A command in a session could not be started.
    #[error("cannot start `{program}` in the container")]
    CommandNotStarted {
        /// The program.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// A command is to start in a directory that is not in its workspace.
    #[error("{} is no directory in the workspace", path.display())]
    Cwd {
        /// The directory.
        path: PathBuf,
    },
    /// The pipe to a command cannot be used.
    #[error("cannot use the pipes of the command")]
    Pipe {
        /// Why not.
        source: io::Error,
    },
    /// `vibebox` was not used, or did not do what it was asked.
    #[error(transparent)]
    Bridge(#[from] Box<BridgeError>),
    /// Apple's `container` was not used, or did not do what it was asked.
    #[error(transparent)]
    Apple(Box<AppleError>),
    /// The configuration names no directory that workspaces may be below.
    #[error("no directory is allowed to hold workspaces")]
    NoWorkdirRoots,
    /// A command on the host is refused.
    #[error(transparent)]
    Refused(#[from] cordon_shell::Refusal),
    /// A list of programs cannot be read.
    #[error(transparent)]
    Program(#[from] cordon_shell::InvalidProgram),
    /// The mode is `off`, and this process may not run commands on the host.
    #[error("running commands on the host itself is not allowed")]
    HostNotAllowed,
    /// Commands run on the host in the mode `off` only.
    #[error("the mode is `{mode}`, and commands run on the host in the mode `off` only")]
    NotHostMode {
        /// The mode of the agent.
        mode: crate::modes::Mode,
    },
    /// On the host, a command can do with the workspace what it likes.
    #[error("the mode `off` cannot keep a command from writing to the workspace")]
    HostAccess,
    /// An agent's workspace cannot be used.
    #[error("cannot use the workspace {}", path.display())]
    Workspace {
        /// Where it should be.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Processes are still there after everything was tried.
    #[error("process group {group} could not be ended")]
    StillRunning {
        /// Its number.
        group: i32,
    },
    /// There is nothing to run.
    #[error("no command to run")]
    NoCommand,
    /// `startup` has not been called, or failed.
    #[error("the sandbox has not been started")]
    NotStarted,
    /// The task is being executed already; one task runs one thing at a time.
    #[error("the task is being executed already")]
    Busy,
    /// A variable's name or value cannot stand in an environment.
    #[error("`{name}` is not a variable that a process can have")]
    Variable {
        /// Its name.
        name: String,
    },
    /// The operating system gave no threads for the runtime that [`crate::blocking`] brings.
    #[error("cannot start a runtime")]
    Runtime(#[source] io::Error),
    /// The operating system gave no randomness.
    #[error("no randomness from the operating system")]
    Randomness,
}

impl SandboxError {
    /// What to type or check next, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::EngineNotAvailable(error) | Self::Engine(error) => error.hint(),
            Self::NoImage { agent } => Some(format!(
                "add `image:` or `dockerfile:` to agents.{agent} or agents.defaults"
            )),
            Self::NoMode { probes } => probes.iter().find_map(|probe| probe.hints.first().cloned()),
            Self::EgressNotConfigured { .. } => Some(
                "see that the allowlist names what is needed and nothing else, and what `cordon doctor` says of this machine".into(),
            ),
            Self::Image(error) => error.hint(),
            Self::File(error) => error.hint(),
            Self::Git(error) => error.hint(),
            Self::Allowlist(error) => Some(error.hint()),
            Self::Door { engine, .. } if engine.contains("noexec") => {
                Some("the cache directory is on a file system mounted noexec; set XDG_CACHE_HOME to another".into())
            }
            Self::Door { .. } => Some(
                "see whether the machine is overloaded, and whether the engine can run `podman run --rm --network none IMAGE true`".into(),
            ),
            Self::Bridge(error) => error.hint(),
            Self::Apple(error) => error.hint(),
            Self::Mount(error) => mount_hint(error),
            Self::MountMoved { .. } => Some(
                "somebody replaced the mounted directory, or one above it, while the container started; see who writes there, and run it again".into(),
            ),
            Self::Directory { .. } => Some("set XDG_RUNTIME_DIR and XDG_CACHE_HOME to directories of yours".into()),
            Self::ForeignDirectory { path } => Some(format!("remove {}, or set XDG_RUNTIME_DIR", path.display())),
            Self::NotLocal { .. } => Some("use --topology proxy-container, or a podman or docker that runs on this machine".into()),
            Self::NotKept { .. } => Some("leave `network_sandbox` on, and allow what is needed".into()),
            Self::NotHeld { .. } => Some("run each command by itself with `cordon run`, or use a podman or docker that runs on this machine".into()),
            Self::RuntimeWithoutDoor => Some("run it with --no-network, or with another --runtime".into()),
            Self::NoProxyProgram { .. } | Self::ProxyNotStatic { .. } => Some(
                "build it with `make release`, and put target/release/cordon-proxy beside the program that runs".into(),
            ),
            Self::ProxyNotReady { .. } => Some(
                "see whether the machine is overloaded, and whether cordon-proxy is of the same version".into(),
            ),
            Self::LeftBehind { container } => Some(format!("remove it with `podman rm -f {container}` or `docker rm -f {container}`")),
            Self::SessionLost => Some("run it again; a new container is started for it".into()),
            Self::Cwd { .. } => Some("name one below the workspace, relative to it".into()),
            Self::NamedUser { .. } => Some("look its number up with `id` in the image, and say --user UID[:GID]".into()),
            Self::StateOutOfReach { .. } => Some(format!(
                "run it as yourself with --user {}, or as the image's own user",
                rustix::process::getuid().as_raw()
            )),
            Self::NoWorkdirRoots => Some("name one at least in allowed_workdir_roots".into()),
            Self::Refused(refusal) => Some(refusal.hint()),
            Self::Program(_) => Some("name a program as it is typed, with a `!` behind it if it may run any code".into()),
            Self::HostNotAllowed => Some("set CORDON_ALLOW_HOST_EXEC=1 for this process, or a sandboxed mode for the agent".into()),
            Self::NotHostMode { .. } => Some("set the agent's `mode` to `off`".into()),
            Self::HostAccess => Some("set `workspace_access` to `rw`, or choose a sandboxed mode".into()),
            Self::Workspace { .. } => Some("make the directory, or name another as the agent's `workspace`".into()),
            Self::StillRunning { group } => Some(format!("see what it waits for with `ps -o pid,stat,wchan,args -g {group}`")),
            Self::NoCommand => Some("put the command behind `--`".into()),
            Self::Write { .. } => Some("see whether the disk is full".into()),
            Self::Remove { path, .. } => Some(format!("see whose it is with `ls -la {}`", path.display())),
            Self::Session(cordon_session::Error::InUse { .. }) => {
                Some("wait for the other run to end, or use another context".into())
            }
            Self::Context(_) => Some("use letters, digits, `-`, `_` and `.`".into()),
            Self::Session(_)
            | Self::Agent(_)
            | Self::Secrets(_)
            | Self::Proxy(_)
            | Self::Rules { .. }
            | Self::Limit(_)
            | Self::Lost { .. }
            | Self::ProxyUnreadable { .. }
            | Self::ProxyLost { .. }
            | Self::CommandNotStarted { .. }
            | Self::Pipe { .. }
            | Self::NotStarted
            | Self::Busy
            | Self::Variable { .. }
            | Self::Runtime(_)
            | Self::Randomness => None,
        }
    }
}

impl From<cordon_engine::Error> for SandboxError {
    fn from(error: cordon_engine::Error) -> Self {
        use cordon_engine::Error;
        match error {
            Error::NoEngine | Error::Missing { .. } | Error::NotAnswering { .. } => {
                Self::EngineNotAvailable(error)
            }
            Error::Spawn { .. }
            | Error::Rejected { .. }
            | Error::NoSuchImage { .. }
            | Error::PullFailed { .. }
            | Error::NetworkTaken { .. }
            | Error::TimedOut { .. }
            | Error::Unreadable { .. }
            | Error::Lost { .. }
            | Error::BuildOutside { .. }
            | Error::NoRuntime { .. }
            | Error::MountPath { .. }
            | Error::Variable { .. } => Self::Engine(error),
        }
    }
}

fn tried(probes: &[Probe]) -> String {
    let tried: Vec<_> = probes
        .iter()
        .map(|probe| format!("{}: {}", probe.mode, probe.message))
        .collect();
    tried.join("; ")
}

/// An error with its causes, in one line.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

fn listed(places: &[PathBuf]) -> String {
    let places: Vec<_> = places
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    places.join(" or ")
}

/// The engine's own words, where it said something.
fn said(engine: &str) -> String {
    match engine.trim() {
        "" => String::new(),
        words => format!("; the engine said: {words}"),
    }
}

fn mount_hint(error: &MountError) -> Option<String> {
    match error {
        MountError::Symlink { target, .. } => Some(format!("say {} instead", target.display())),
        MountError::Root => Some("change into a project's directory first".into()),
        MountError::EngineSocket { .. } => Some(
            "whoever holds that socket holds the whole machine; mount something smaller".into(),
        ),
        MountError::OutsideRoots { .. } => {
            Some("mount a directory below one of the allowed ones".into())
        }
        MountError::Unreadable { .. } => Some("see whether it is there and you may read it".into()),
        MountError::State { .. }
        | MountError::Target { .. }
        | MountError::Reserved { .. }
        | MountError::Twice { .. } => None,
    }
}
