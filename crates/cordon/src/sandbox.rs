//! The sandbox: what its tasks share, and who is running.

use std::{
    fmt,
    path::PathBuf,
    sync::{
        Arc, OnceLock, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use cordon_engine::Engine;
use cordon_image::{Entrypoint, Progress, Recipe};
use cordon_proxy::CertificateAuthority;
use tokio::sync::watch;

use crate::{
    BuildNetwork, CommandSpec, CommandTask, Network, Notice, SandboxConfig, SandboxError, Task,
    TaskSpec, build, leftovers,
    modes::AgentsFile,
    mount::{self, MountRules},
    owner::Owner,
    topology::{Surroundings, Wiring},
};

/// Runs tasks in containers.
///
/// Cheap to share: every method takes `&self`, and tasks may run side by side.
#[derive(Debug)]
pub struct Sandbox {
    shared: Arc<Shared>,
}

/// What the tasks of a sandbox share.
pub(crate) struct Shared {
    pub(crate) config: SandboxConfig,
    pub(crate) owner: Owner,
    /// The agents file that holds now.
    pub(crate) agents: RwLock<Arc<AgentsFile>>,
    ready: OnceLock<Ready>,
    authority: OnceLock<Arc<CertificateAuthority>>,
    /// Counts up when everything that runs is to stop.
    halts: watch::Sender<u64>,
    running: watch::Sender<usize>,
}

/// What is known once the sandbox has started.
struct Ready {
    engine: RwLock<Engine>,
    init: PathBuf,
    wiring: Wiring,
    proxies: tokio::sync::OnceCell<Surroundings>,
}

/// Whether what dead owners left is removed at the start.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Sweep {
    Yes,
    No,
}

impl Sandbox {
    /// A sandbox that has done nothing yet.
    #[must_use]
    pub fn new(config: SandboxConfig) -> Self {
        Self {
            shared: Arc::new(Shared {
                config,
                owner: Owner::current(),
                agents: RwLock::default(),
                ready: OnceLock::new(),
                authority: OnceLock::new(),
                halts: watch::Sender::new(0),
                running: watch::Sender::new(0),
            }),
        }
    }

    /// Finds the engine, and removes what dead owners left. Must come before the first task.
    ///
    /// # Errors
    ///
    /// When there is no engine that works, or the sandbox's directories cannot be used.
    pub async fn startup(&self) -> Result<(), SandboxError> {
        self.start(Sweep::Yes).await
    }

    /// Finds the engine, and leaves what dead owners left to whoever wants to see it.
    pub(crate) async fn startup_without_sweep(&self) -> Result<(), SandboxError> {
        self.start(Sweep::No).await
    }

    async fn start(&self, sweep: Sweep) -> Result<(), SandboxError> {
        let shared = &self.shared;
        let directories = &shared.config.directories;
        directories.prepare()?;
        let mut engine = Engine::find(shared.config.engine.clone(), &directories.cache).await?;
        if let Some(runtime) = &shared.config.runtime {
            engine = engine.with_runtime(runtime);
        }
        let (wiring, notice) = shared
            .config
            .topology
            .resolve(engine.kind(), engine.facts().local)?;
        if let Some(notice) = notice {
            shared.notice(&notice);
        }
        if sweep == Sweep::Yes {
            for notice in leftovers::sweep(&directories.runtime, &engine, wiring).await {
                shared.notice(&notice);
            }
        }
        let init =
            cordon_door::install(&directories.cache).map_err(|source| SandboxError::Door {
                source,
                engine: String::new(),
            })?;
        // A second startup finds everything as the first one left it.
        drop(shared.ready.set(Ready {
            engine: RwLock::new(engine),
            init,
            wiring,
            proxies: tokio::sync::OnceCell::new(),
        }));
        Ok(())
    }

    /// Finds the image of a recipe in the engine's store, or builds it; returns its reference.
    ///
    /// # Errors
    ///
    /// When the sandbox has not been started, or the build fails.
    pub async fn ensure_image(
        &self,
        recipe: &Recipe,
        entrypoint: &Entrypoint,
        progress: impl FnMut(Progress<'_>),
    ) -> Result<String, SandboxError> {
        let network = &self.shared.config.build_network;
        build::ensure(&self.shared, network, recipe, entrypoint, progress).await
    }

    /// The same for a build with a network of its own, whatever the sandbox's configuration says.
    ///
    /// # Errors
    ///
    /// When the sandbox has not been started, the build fails, or the engine cannot build behind the door.
    pub async fn ensure_image_on(
        &self,
        network: &BuildNetwork,
        recipe: &Recipe,
        entrypoint: &Entrypoint,
        progress: impl FnMut(Progress<'_>),
    ) -> Result<String, SandboxError> {
        build::ensure(&self.shared, network, recipe, entrypoint, progress).await
    }

    pub(crate) fn engine(&self) -> Result<Engine, SandboxError> {
        self.shared.engine()
    }

    pub(crate) fn config(&self) -> &SandboxConfig {
        &self.shared.config
    }

    /// Stops every task that runs and waits until they are gone.
    pub async fn shutdown(&self) {
        self.shared.halts.send_modify(|count| *count += 1);
        let mut running = self.shared.running.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        drop(running.wait_for(|count| *count == 0).await);
    }

    /// Makes a task of a command. Nothing runs yet.
    ///
    /// # Errors
    ///
    /// When the sandbox has not been started, or the spec is refused.
    pub fn create_command_task(&self, mut spec: CommandSpec) -> Result<CommandTask, SandboxError> {
        if spec.command.is_empty() {
            return Err(SandboxError::NoCommand);
        }
        self.shared.check(&mut spec, &[])?;
        Ok(CommandTask::new(Arc::clone(&self.shared), spec))
    }

    /// Makes a task of an agent. Nothing runs yet.
    ///
    /// # Errors
    ///
    /// When the sandbox has not been started, or the spec is refused.
    pub fn create_task(&self, spec: TaskSpec) -> Result<Task, SandboxError> {
        Task::new(Arc::clone(&self.shared), spec)
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Shared {
    /// Checks what can be checked before a run; mounts are canonical afterwards. `state` are further
    /// directories that may not be mounted.
    pub(crate) fn check(
        &self,
        spec: &mut CommandSpec,
        state: &[PathBuf],
    ) -> Result<(), SandboxError> {
        if self.engine()?.is_gvisor() && !matches!(spec.network, Network::None) {
            return Err(SandboxError::RuntimeWithoutDoor);
        }
        check_variables(&spec.env)?;
        let directories = &self.config.directories;
        let ours = [directories.runtime.clone(), directories.cache.clone()];
        let rules = MountRules {
            state: &[&ours, state].concat(),
            roots: &self.config.allowed_roots,
        };
        spec.mounts = mount::check_all(&spec.mounts, &rules)?;
        Ok(())
    }

    pub(crate) fn engine(&self) -> Result<Engine, SandboxError> {
        let ready = self.ready.get().ok_or(SandboxError::NotStarted)?;
        Ok(ready
            .engine
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone())
    }

    /// Puts what was learned about the engine to everybody's use.
    pub(crate) fn replace_engine(&self, engine: Engine) {
        if let Some(ready) = self.ready.get() {
            *ready.engine.write().unwrap_or_else(PoisonError::into_inner) = engine;
        }
    }

    /// Where `cordon-init` is on the host.
    pub(crate) fn init(&self) -> Result<&PathBuf, SandboxError> {
        self.ready
            .get()
            .map(|ready| &ready.init)
            .ok_or(SandboxError::NotStarted)
    }

    /// How containers are connected to their proxy.
    pub(crate) fn wiring(&self) -> Result<Wiring, SandboxError> {
        self.ready
            .get()
            .map(|ready| ready.wiring)
            .ok_or(SandboxError::NotStarted)
    }

    /// What proxy containers need, seen to when the first of them is wanted.
    pub(crate) async fn proxy_surroundings(
        &self,
        engine: &Engine,
    ) -> Result<&Surroundings, SandboxError> {
        let ready = self.ready.get().ok_or(SandboxError::NotStarted)?;
        ready
            .proxies
            .get_or_try_init(|| Surroundings::ensure(self, engine))
            .await
    }

    /// The certificate authority, made when it is first needed. Its key is never on disk.
    pub(crate) fn authority(&self) -> Result<Arc<CertificateAuthority>, SandboxError> {
        if let Some(authority) = self.authority.get() {
            return Ok(Arc::clone(authority));
        }
        let made = Arc::new(CertificateAuthority::generate()?);
        Ok(Arc::clone(self.authority.get_or_init(|| made)))
    }

    pub(crate) fn notice(&self, notice: &Notice) {
        tracing::info!("{notice}");
        if let Some(callback) = &self.config.on_notice {
            callback(notice);
        }
    }
}

/// Whether a process can have such an environment.
pub(crate) fn check_variables(env: &[(String, String)]) -> Result<(), SandboxError> {
    let wrong = env.iter().find(|(name, value)| {
        name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')
    });
    match wrong {
        None => Ok(()),
        Some((name, _)) => Err(SandboxError::Variable { name: name.clone() }),
    }
}

/// Which execution of a task is under way, if any.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Odd while an execution is under way.
    state: watch::Sender<u64>,
    /// The executions that are to stop: all up to this one.
    stopped: Arc<AtomicU64>,
    wake: Arc<tokio::sync::Notify>,
}

impl Turns {
    /// Asks the execution that is under way to stop, and waits until it has.
    pub(crate) async fn stop(&self) -> bool {
        let now = *self.state.borrow();
        if now.is_multiple_of(2) {
            return false;
        }
        self.stopped.store(now, Ordering::SeqCst);
        self.wake.notify_waiters();
        // The sender lives in `self`, so waiting cannot fail.
        drop(self.state.subscribe().wait_for(|state| *state != now).await);
        true
    }
}

/// One execution of a task; the next may begin when this is dropped.
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    shared: &'a Shared,
    number: u64,
    halts: watch::Receiver<u64>,
}

impl<'a> Turn<'a> {
    pub(crate) fn begin(turns: &'a Turns, shared: &'a Shared) -> Result<Self, SandboxError> {
        let mut number = 0;
        let began = turns.state.send_if_modified(|state| {
            let free = state.is_multiple_of(2);
            if free {
                *state += 1;
                number = *state;
            }
            free
        });
        if !began {
            return Err(SandboxError::Busy);
        }
        shared.running.send_modify(|count| *count += 1);
        Ok(Self {
            turns,
            shared,
            number,
            halts: shared.halts.subscribe(),
        })
    }

    /// Ends this execution from within.
    pub(crate) fn halt(&self) {
        self.turns.stopped.store(self.number, Ordering::SeqCst);
        self.turns.wake.notify_waiters();
    }

    /// How the execution learns that it is to stop.
    pub(crate) fn stop(&self) -> Stop {
        Stop {
            number: self.number,
            stopped: Arc::clone(&self.turns.stopped),
            wake: Arc::clone(&self.turns.wake),
            halts: self.halts.clone(),
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.state.send_modify(|state| *state += 1);
        self.shared.running.send_modify(|count| *count -= 1);
    }
}

/// How an execution learns that it is to stop.
#[derive(Debug)]
pub(crate) struct Stop {
    number: u64,
    stopped: Arc<AtomicU64>,
    wake: Arc<tokio::sync::Notify>,
    halts: watch::Receiver<u64>,
}

impl Stop {
    /// Returns once the execution is to stop.
    pub(crate) async fn requested(&mut self) {
        loop {
            let woken = self.wake.notified();
            if self.stopped.load(Ordering::SeqCst) >= self.number {
                return;
            }
            tokio::select! {
                () = woken => {}
                Ok(()) = self.halts.changed() => return,
            }
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
