//! Runs an agent's commands in whatever mode they run, with one executor for what is the same.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use cordon_engine::Choice;
use tokio::sync::OnceCell;

use super::{
    AgentSandbox, AppleExecutor, ExecOutput, ExecRequest, HostExecutor, HostUse, Mode, ModeNotice,
    Probe, SessionContainers, SessionKey, VibeboxExecutor, select,
};
use crate::{EngineKind, Entrypoint, Notice, Recipe, Sandbox, SandboxConfig, SandboxError};

/// Runs commands in one mode.
pub struct Executor {
    mode: Mode,
    agent: AgentSandbox,
    config: SandboxConfig,
    place: Place,
}

/// Where commands run.
enum Place {
    Containers(SessionContainers),
    Apple(AppleExecutor),
    Vibebox(VibeboxExecutor),
    Host(HostExecutor),
}

impl Executor {
    /// The mode, which is never [`Mode::Auto`].
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Runs a command of a session to its end.
    ///
    /// # Errors
    ///
    /// When it cannot be run where it should. Whatever it does is a result.
    pub async fn exec(
        &self,
        key: &SessionKey,
        request: &ExecRequest,
    ) -> Result<ExecOutput, SandboxError> {
        match &self.place {
            Place::Containers(containers) => containers.exec(key, request).await,
            Place::Apple(apple) => apple.exec(key, request).await,
            Place::Vibebox(vibebox) => vibebox.exec(key, request).await,
            Place::Host(host) => host.exec(key, request).await,
        }
    }

    /// Ends a session with all its commands. Returns whether there was something to end.
    pub async fn stop(&self, key: &SessionKey) -> bool {
        match &self.place {
            Place::Containers(containers) => containers.stop(key).await,
            Place::Apple(apple) => apple.stop(key).await,
            Place::Vibebox(vibebox) => vibebox.stop(key).await,
            Place::Host(host) => host.stop(key).await,
        }
    }

    /// Whether it can be used now.
    pub async fn probe(&self) -> Probe {
        match &self.place {
            Place::Containers(_) => select::probe(&self.agent, self.mode, &self.config).await,
            Place::Apple(apple) => apple.probe().await,
            Place::Vibebox(vibebox) => vibebox.probe().await,
            Place::Host(host) => host.probe(),
        }
    }

    /// Ends every session.
    pub async fn shutdown(&self) {
        match &self.place {
            Place::Containers(containers) => containers.stop_all().await,
            Place::Apple(apple) => apple.shutdown().await,
            // What they run ends with the call that runs it.
            Place::Vibebox(_) | Place::Host(_) => {}
        }
    }
}

/// The executors of all agents. Two agents have the same one if nothing about them makes a difference to
/// it; sessions are told apart by their keys.
#[derive(Debug)]
pub struct Executors {
    config: SandboxConfig,
    sandboxes: Mutex<Vec<(Engine, Slot<Sandbox>)>>,
    made: Mutex<Vec<(AgentSandbox, Slot<Executor>)>>,
}

/// Which engine, and the OCI runtime that it is to use.
type Engine = (EngineKind, Option<PathBuf>);

/// What is made once, by whoever needs it first.
type Slot<T> = Arc<OnceCell<Arc<T>>>;

impl Executors {
    /// None yet. `config` is what every sandbox of theirs is made with.
    #[must_use]
    pub fn new(config: SandboxConfig) -> Self {
        Self {
            config,
            sandboxes: Mutex::default(),
            made: Mutex::default(),
        }
    }

    /// The executor of an agent, made when it is first asked for: vibebox where its backend is enabled,
    /// else what the mode says. For [`Mode::Auto`] a notice says which mode was taken and why.
    ///
    /// # Errors
    ///
    /// When the mode cannot be had. Another one is never taken instead.
    pub async fn of(&self, agent: &AgentSandbox) -> Result<Arc<Executor>, SandboxError> {
        let slot = slot(&self.made, identity(agent));
        let made = slot.get_or_try_init(|| async { self.make(agent).await.map(Arc::new) });
        made.await.map(Arc::clone)
    }

    /// Ends the executors that none of those agents has, after their configuration has changed.
    pub async fn keep_only(&self, agents: &[AgentSandbox]) {
        let wanted: Vec<_> = agents.iter().map(identity).collect();
        let dropped: Vec<_> = {
            let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            made.extract_if(.., |(key, _)| !wanted.contains(key))
                .collect()
        };
        for executor in dropped.iter().filter_map(|(_, slot)| slot.get()) {
            executor.shutdown().await;
        }
    }

    /// Ends every session of every executor.
    pub async fn shutdown(&self) {
        self.keep_only(&[]).await;
        let sandboxes: Vec<_> = {
            let mut sandboxes = self
                .sandboxes
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            sandboxes.drain(..).collect()
        };
        for sandbox in sandboxes.iter().filter_map(|(_, slot)| slot.get()) {
            sandbox.shutdown().await;
        }
    }

    async fn make(&self, agent: &AgentSandbox) -> Result<Executor, SandboxError> {
        let (mode, host) = match select::chosen(agent) {
            Mode::Auto => {
                let probe = select::automatic(agent, &self.config).await?;
                self.say(ModeNotice::Taken {
                    agent: agent.agent.clone(),
                    mode: probe.mode,
                    why: probe.message,
                });
                // Nothing that was chosen for somebody may end on the host.
                (probe.mode, HostUse::Refused)
            }
            mode => (mode, HostUse::from_environment()),
        };
        let mut agent = agent.clone();
        agent.mode = mode;
        let place = match mode {
            Mode::Podman => Place::Containers(self.containers(&agent, EngineKind::Podman).await?),
            Mode::Docker => Place::Containers(self.containers(&agent, EngineKind::Docker).await?),
            Mode::AppleVm => Place::Apple(AppleExecutor::new(agent.clone(), &self.config)),
            Mode::Vibebox => {
                Place::Vibebox(VibeboxExecutor::new(agent.clone(), &self.config, host))
            }
            Mode::Off => Place::Host(HostExecutor::new(
                agent.clone(),
                host,
                self.config.on_notice.clone(),
            )?),
            // Resolved above, and never to itself.
            Mode::Auto => return Err(SandboxError::NoMode { probes: Vec::new() }),
        };
        Ok(Executor {
            mode,
            agent,
            config: self.config.clone(),
            place,
        })
    }

    async fn containers(
        &self,
        agent: &AgentSandbox,
        kind: EngineKind,
    ) -> Result<SessionContainers, SandboxError> {
        let sandbox = self
            .sandbox(kind, agent.runtime.as_ref().map(PathBuf::from))
            .await?;
        let image = match (&agent.image, &agent.dockerfile) {
            (Some(image), _) => image.clone(),
            (None, Some(dockerfile)) => {
                let context = dockerfile.parent().unwrap_or_else(|| Path::new("."));
                let recipe = Recipe::read(dockerfile, context)?;
                sandbox
                    .ensure_image(&recipe, &Entrypoint::passthrough(), |_| {})
                    .await?
            }
            (None, None) => {
                let agent = agent.agent.clone();
                return Err(SandboxError::NoImage { agent });
            }
        };
        SessionContainers::new(&sandbox, agent.session_spec(image), agent.idle)
    }

    /// The sandbox of an engine, started when it is first needed.
    async fn sandbox(
        &self,
        kind: EngineKind,
        runtime: Option<PathBuf>,
    ) -> Result<Arc<Sandbox>, SandboxError> {
        let slot = slot(&self.sandboxes, (kind, runtime.clone()));
        let started = slot.get_or_try_init(|| async {
            let engine = match &self.config.engine {
                chosen @ Choice::Program(of, _) if *of == kind => chosen.clone(),
                Choice::Auto | Choice::Kind(_) | Choice::Program(..) => Choice::Kind(kind),
            };
            let sandbox = Sandbox::new(SandboxConfig {
                engine,
                runtime: runtime.or_else(|| self.config.runtime.clone()),
                ..self.config.clone()
            });
            sandbox.startup().await?;
            Ok(Arc::new(sandbox))
        });
        started.await.map(Arc::clone)
    }

    fn say(&self, notice: ModeNotice) {
        if let Some(on_notice) = &self.config.on_notice {
            on_notice(&Notice::Mode(notice));
        }
    }
}

/// The place of what is made for a key.
fn slot<K: PartialEq, T>(slots: &Mutex<Vec<(K, Slot<T>)>>, key: K) -> Slot<T> {
    let mut slots = slots.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, slot)) = slots.iter().find(|(known, _)| *known == key) {
        return Arc::clone(slot);
    }
    let slot = Slot::default();
    slots.push((key, Arc::clone(&slot)));
    slot
}

/// What of an agent makes a difference to its executor, and nothing else.
fn identity(agent: &AgentSandbox) -> AgentSandbox {
    let mode = select::chosen(agent);
    let shared = AgentSandbox {
        mode,
        workspace_access: agent.workspace_access,
        env: agent.env.clone(),
        limits: agent.limits.clone(),
        ..AgentSandbox::new("", &agent.workspace)
    };
    let contained = || AgentSandbox {
        image: agent.image.clone(),
        mounts: agent.mounts.clone(),
        allowlist: agent.allowlist.clone(),
        idle: agent.idle,
        ..shared.clone()
    };
    match mode {
        Mode::Off => AgentSandbox {
            commands: agent.commands.clone(),
            ..shared
        },
        Mode::Vibebox => AgentSandbox {
            commands: agent.commands.clone(),
            vibebox: agent.vibebox.clone(),
            ..shared
        },
        Mode::AppleVm => AgentSandbox {
            apple: agent.apple.clone(),
            ..contained()
        },
        Mode::Podman | Mode::Docker => AgentSandbox {
            dockerfile: agent.dockerfile.clone(),
            profile: agent.profile,
            runtime: agent.runtime.clone(),
            ..contained()
        },
        Mode::Auto => AgentSandbox {
            agent: String::new(),
            bootstrap_on_start: false,
            ..agent.clone()
        },
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor")
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Allowlist, Mount};

    fn agent(mode: Mode) -> AgentSandbox {
        AgentSandbox {
            mode,
            ..AgentSandbox::new("coder", "/tmp")
        }
    }

    /// Whether a change makes another executor.
    fn matters(mode: Mode, change: impl FnOnce(&mut AgentSandbox)) -> bool {
        let mut changed = agent(mode);
        change(&mut changed);
        identity(&agent(mode)) != identity(&changed)
    }

    #[test]
    fn on_the_host_the_list_of_programs_matters_and_what_containers_have_does_not() {
        assert!(matters(Mode::Off, |agent| agent.commands = vec!["ls".into()]));
        assert!(matters(Mode::Off, |agent| agent.workspace = "/srv".into()));
        assert!(!matters(Mode::Off, |agent| agent.image = Some("a".into())));
        assert!(!matters(Mode::Off, |agent| agent.allowlist =
            Some(Allowlist::default())));
    }

    #[test]
    fn in_containers_the_configuration_matters_and_the_list_of_programs_does_not() {
        for mode in [Mode::Podman, Mode::Docker] {
            assert!(matters(mode, |agent| agent.image = Some("a".into())));
            assert!(matters(mode, |agent| agent.allowlist = Some(Allowlist::default())));
            assert!(matters(mode, |agent| agent.mounts =
                vec![Mount::read_only("/a", "/b")]));
            assert!(matters(mode, |agent| agent.idle = Some(Duration::from_secs(1))));
            assert!(matters(mode, |agent| agent.runtime = Some("runsc".into())));
            assert!(!matters(mode, |agent| agent.commands = vec!["ls".into()]));
            assert!(!matters(mode, |agent| agent.apple.program = "/opt/container".into()));
        }
        assert_ne!(
            identity(&agent(Mode::Podman)),
            identity(&agent(Mode::Docker))
        );
    }

    #[test]
    fn vibebox_has_its_own_configuration_whatever_the_mode() {
        let enabled = |mode| {
            let mut agent = agent(mode);
            agent.vibebox.enabled = true;
            agent
        };
        assert_eq!(
            identity(&enabled(Mode::Off)),
            identity(&enabled(Mode::Docker))
        );
        let mut other = enabled(Mode::Off);
        other.vibebox.program = "/opt/vibebox".into();
        assert_ne!(identity(&other), identity(&enabled(Mode::Off)));
    }

    #[test]
    fn a_name_makes_no_difference() {
        for mode in [
            Mode::Auto,
            Mode::Podman,
            Mode::AppleVm,
            Mode::Vibebox,
            Mode::Off,
        ] {
            assert!(!matters(mode, |agent| agent.agent = "other".into()));
            assert!(!matters(mode, |agent| agent.bootstrap_on_start = true));
        }
    }

    #[tokio::test]
    async fn the_same_executor_is_given_out_until_its_agent_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let mut one = agent(Mode::Off);
        one.workspace = directory.path().canonicalize().unwrap();
        one.commands = vec!["ls".into()];
        let executors = Executors::new(SandboxConfig::default());
        let first = executors.of(&one).await.unwrap();
        assert_eq!(first.mode(), Mode::Off);
        assert!(Arc::ptr_eq(&first, &executors.of(&one).await.unwrap()));
        let mut other = one.clone();
        other.commands.push("git".into());
        assert!(!Arc::ptr_eq(&first, &executors.of(&other).await.unwrap()));
        executors.keep_only(&[other]).await;
        assert!(!Arc::ptr_eq(&first, &executors.of(&one).await.unwrap()));
    }

    #[tokio::test]
    async fn a_mode_that_cannot_be_had_is_an_error_and_no_other_mode() {
        let mut config = SandboxConfig {
            engine: Choice::Program(EngineKind::Podman, "/nowhere/podman".into()),
            ..SandboxConfig::default()
        };
        let cache = tempfile::tempdir().unwrap();
        config.directories.cache = cache.path().to_owned();
        config.directories.runtime = cache.path().join("run");
        let executors = Executors::new(config);
        let mut wanted = agent(Mode::Podman);
        wanted.image = Some("localhost/none:1".into());
        executors.of(&wanted).await.unwrap_err();
        wanted.mode = Mode::Auto;
        wanted.vibebox.program = "/nowhere/vibebox".into();
        let error = executors.of(&wanted).await.unwrap_err();
        assert!(matches!(error, SandboxError::NoMode { .. }), "{error}");
    }
}
