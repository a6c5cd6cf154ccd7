//! One prompt for a coding agent, or one command, closed to the limit.
//!
//! Both run under the strict profile in a workspace below one of the roots that the configuration
//! names. The agent reaches its own API and nothing else, and is not asked before that was seen from
//! inside a container; the command reaches nothing at all.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cordon_agents::Agent;
use cordon_policy::Allowlist;
use cordon_secrets::{MaskedSecret, prepare_secrets};
use tempfile::TempDir;

use crate::{
    CommandSpec, ContextId, ExecutionResult, Input, Mount, MountError, Network, NetworkSandbox,
    Output, Profile, Prompt, ResourceLimits, Sandbox, SandboxConfig, SandboxError, Stream, Streams,
    TaskSpec,
    doctor::{prove, quiet},
    modes::{Cut, ExecOutput, OUTPUT_LIMIT, strip_ansi},
};

/// How agents and commands are closed in.
#[derive(Clone, Debug)]
pub struct HardenedConfig {
    /// The image that has the agents.
    pub cli_image: String,
    /// The image that has what commands need.
    pub executor_image: String,
    /// How long an agent may take.
    pub cli_timeout: Duration,
    /// How long a command may take.
    pub executor_timeout: Duration,
    /// What an agent reaches; its own API if `None`.
    pub allowed_egress: Option<Allowlist>,
    /// Whether what is reached is seen from inside a container before an agent is asked.
    pub verify_egress: bool,
    /// Directories that a workspace must be below. There must be one at least.
    pub allowed_workdir_roots: Vec<PathBuf>,
    /// Who agents and commands run as, as `UID[:GID]`; one whose files are the caller's if `None`.
    pub container_user: Option<String>,
    /// Memory, processors and processes, where they are not to be the profile's.
    pub limits: ResourceLimits,
    /// How much of each output stream of a command is kept, in bytes.
    pub output_limit: usize,
    /// Everything else.
    pub sandbox: SandboxConfig,
}

impl HardenedConfig {
    /// Those images and roots, five minutes for an agent, ten for a command.
    pub fn new(
        cli_image: impl Into<String>,
        executor_image: impl Into<String>,
        allowed_workdir_roots: impl IntoIterator<Item = PathBuf>,
    ) -> Self {
        Self {
            cli_image: cli_image.into(),
            executor_image: executor_image.into(),
            cli_timeout: Duration::from_secs(300),
            executor_timeout: Duration::from_secs(600),
            allowed_egress: None,
            verify_egress: true,
            allowed_workdir_roots: allowed_workdir_roots.into_iter().collect(),
            container_user: None,
            limits: ResourceLimits::default(),
            output_limit: OUTPUT_LIMIT,
            sandbox: SandboxConfig::default(),
        }
    }

    /// A sandbox that mounts nothing but what is below the roots.
    async fn start(&self) -> Result<Sandbox, SandboxError> {
        if self.allowed_workdir_roots.is_empty() {
            return Err(SandboxError::NoWorkdirRoots);
        }
        let sandbox = Sandbox::new(SandboxConfig {
            allowed_roots: self.allowed_workdir_roots.clone(),
            ..self.sandbox.clone()
        });
        sandbox.startup().await?;
        Ok(sandbox)
    }

    fn limits(&self, timeout: Duration) -> ResourceLimits {
        ResourceLimits {
            timeout: Some(timeout),
            ..self.limits.clone()
        }
    }
}

/// Asks a coding agent that reaches its own API and nothing else.
#[derive(Debug)]
pub struct SandboxedLlmClient {
    agent: Agent,
    config: HardenedConfig,
    sandbox: Sandbox,
    allowlist: Allowlist,
    /// The image that was seen to be closed, and need not be looked at again.
    verified: tokio::sync::OnceCell<()>,
}

impl SandboxedLlmClient {
    /// Starts a sandbox for that agent.
    ///
    /// # Errors
    ///
    /// When no root is configured, no engine is there, or what is to be reached cannot be read.
    pub async fn start(agent: Agent, config: HardenedConfig) -> Result<Self, SandboxError> {
        let allowlist = match &config.allowed_egress {
            Some(allowlist) => allowlist.clone(),
            None => own_api(agent)?,
        };
        Ok(Self {
            sandbox: config.start().await?,
            agent,
            config,
            allowlist,
            verified: tokio::sync::OnceCell::new(),
        })
    }

    /// Runs the agent to its end in that workspace, with nothing remembered from before. The `secrets`
    /// are its keys, of which it sees look-alikes.
    ///
    /// # Errors
    ///
    /// When the workspace is refused, what is reached is not what it should be, or the sandbox cannot do
    /// its work.
    pub async fn execute(
        &self,
        prompt: Prompt,
        workdir: &Path,
        secrets: Vec<MaskedSecret>,
    ) -> Result<ExecutionResult, SandboxError> {
        let workspace = workspace(workdir)?;
        let prepared = prepare_secrets(secrets, Vec::new())?;
        let state = state()?;
        let spec = TaskSpec {
            mounts: vec![workspace],
            env: prepared.env.into_iter().collect(),
            network: Network::Sandboxed(NetworkSandbox {
                allowlist: self.allowlist.clone(),
                replacements: prepared.replacements,
            }),
            limits: self.config.limits(self.config.cli_timeout),
            user: self.config.container_user.clone(),
            profile: Profile::Strict,
            ..TaskSpec::new(
                self.agent,
                "hardened".parse::<ContextId>()?,
                &self.config.cli_image,
                state.path(),
            )
        };
        let task = self.sandbox.create_task(spec)?;
        if self.config.verify_egress {
            self.verified.get_or_try_init(|| self.verify()).await?;
        }
        task.execute(prompt, |_| {}).await
    }

    /// Looks from inside a container of the image whether anything is reached that should not be.
    ///
    /// # Errors
    ///
    /// [`SandboxError::EgressNotConfigured`] when something is, and when that cannot be told.
    pub async fn verify(&self) -> Result<(), SandboxError> {
        let network = NetworkSandbox {
            allowlist: self.allowlist.clone(),
            ..NetworkSandbox::default()
        };
        // What is looked from is no workspace, and below none of the roots.
        let engine = self.sandbox.shared().engine()?;
        let sandbox = quiet(&self.config.sandbox, &engine, None).await?;
        let proof = prove(&sandbox, &self.config.cli_image, network, None).await?;
        if proof.broken.is_empty() {
            return Ok(());
        }
        let found: Vec<_> = proof.broken.iter().map(ToString::to_string).collect();
        Err(SandboxError::EgressNotConfigured {
            found: found.join("; "),
        })
    }

    /// Stops whatever runs and waits until it is gone.
    pub async fn shutdown(&self) {
        self.sandbox.shutdown().await;
    }
}

/// Runs commands that reach nothing at all.
#[derive(Debug)]
pub struct SandboxedExecutor {
    config: HardenedConfig,
    sandbox: Sandbox,
}

impl SandboxedExecutor {
    /// Starts a sandbox for commands.
    ///
    /// # Errors
    ///
    /// When no root is configured, or no engine is there.
    pub async fn start(config: HardenedConfig) -> Result<Self, SandboxError> {
        Ok(Self {
            sandbox: config.start().await?,
            config,
        })
    }

    /// Runs a command to its end in that workspace.
    ///
    /// What it writes is cut at the limit while it streams, and has no escape sequences of terminals. The
    /// exit code of one whose time was up is -1.
    ///
    /// # Errors
    ///
    /// When the workspace is refused, or the sandbox cannot do its work.
    pub async fn run<A: Into<OsString>>(
        &self,
        command: impl IntoIterator<Item = A>,
        workdir: &Path,
    ) -> Result<ExecOutput, SandboxError> {
        let spec = CommandSpec {
            mounts: vec![workspace(workdir)?],
            user: self.config.container_user.clone(),
            profile: Profile::Strict,
            network: Network::None,
            limits: self.config.limits(self.config.executor_timeout),
            ..CommandSpec::new(&self.config.executor_image, command)
        };
        let task = self.sandbox.create_command_task(spec)?;
        let kept: Arc<Mutex<[Cut; 2]>> = Arc::default();
        let limit = self.config.output_limit;
        let sink = Arc::clone(&kept);
        let streams = Streams {
            input: Input::Empty,
            output: Output::Callback(Arc::new(move |stream, bytes| {
                let mut kept = sink.lock().unwrap_or_else(PoisonError::into_inner);
                kept[usize::from(stream == Stream::Stderr)].push(bytes, limit);
            })),
        };
        let result = task.execute(streams).await?;
        let kept = std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner));
        let [(stdout, less_stdout), (stderr, less_stderr)] = kept.map(Cut::finish);
        Ok(ExecOutput {
            stdout: strip_ansi(&stdout),
            stderr: strip_ansi(&stderr),
            exit_code: if result.timed_out {
                TIMED_OUT
            } else {
                result.exit_code
            },
            timed_out: result.timed_out,
            truncated: less_stdout || less_stderr,
        })
    }

    /// Stops whatever runs and waits until it is gone.
    pub async fn shutdown(&self) {
        self.sandbox.shutdown().await;
    }
}

/// What an agent needs, and nothing else.
fn own_api(agent: Agent) -> Result<Allowlist, SandboxError> {
    let hosts = agent.api_hosts().join(", ");
    Ok(Allowlist::from_yaml(&format!("domains: [{hosts}]"))?)
}

/// A workspace must be a directory.
fn workspace(workdir: &Path) -> Result<Mount, MountError> {
    let unreadable = |source| MountError::Unreadable {
        path: workdir.to_owned(),
        source,
    };
    if !fs::metadata(workdir).map_err(unreadable)?.is_dir() {
        return Err(unreadable(io::ErrorKind::NotADirectory.into()));
    }
    Ok(Mount::read_write(workdir, "/workspace"))
}

/// A directory for what an agent keeps for as long as it runs.
fn state() -> Result<TempDir, SandboxError> {
    let parent = std::env::temp_dir();
    let made = tempfile::Builder::new()
        .prefix("cordon-hardened-")
        .tempdir_in(&parent);
    made.map_err(|source| SandboxError::Directory {
        path: parent,
        source,
    })
}

const TIMED_OUT: i32 = -1;
