//! Checks what a sandbox needs, says what to type where something is missing, and mends what it may.
//!
//! A check changes no mode and no configuration. With [`Fix::Yes`] images are fetched or built and
//! what dead owners left is removed; nothing else is touched, ever.

mod agent;
mod disk;
mod engine;
mod finding;
mod image;
mod leftovers;
mod limits;
mod machine;
mod proof;
mod reload;
mod rootless;
mod upstream;

use std::path::{Path, PathBuf};

use cordon_engine::{Choice, Engine};

use crate::{EngineKind, Pull, Sandbox, SandboxConfig, SandboxError, modes::AgentSandbox};
pub use finding::{Action, BootstrapReport, Code, Finding, Severity};
use machine::Machine;
pub(crate) use proof::prove;

/// Whether what can be mended is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Fix {
    /// It is only said how.
    #[default]
    No,
    /// Images are fetched or built, vibebox sets up its configuration, and leftovers are removed.
    Yes,
}

impl Sandbox {
    /// Checks everything that those agents need, or without any what a run on this machine needs. The
    /// sandbox need not have been started.
    ///
    /// A real container is started for each image, and asked to prove from inside that it is isolated.
    pub async fn bootstrap(&self, agents: &[AgentSandbox], fix: Fix) -> BootstrapReport {
        let mut checkup = Checkup {
            config: &self.shared().config,
            machine: Machine::this(),
            fix,
            engines: Vec::new(),
            proven: Vec::new(),
            report: BootstrapReport::new(agents.len()),
        };
        checkup.run(agents).await;
        checkup.report.finish()
    }
}

/// One look at everything.
struct Checkup<'a> {
    config: &'a SandboxConfig,
    machine: Machine,
    fix: Fix,
    /// What became of every engine that was looked at.
    engines: Vec<(EngineKind, Option<Engine>)>,
    /// The images that were proven in.
    proven: Vec<(EngineKind, String)>,
    report: BootstrapReport,
}

impl Checkup<'_> {
    async fn run(&mut self, agents: &[AgentSandbox]) {
        let needs_network = agents.iter().any(|agent| agent.allowlist.is_some());
        if agents.is_empty() {
            self.any_engine().await;
        }
        for agent in agents {
            self.agent(agent).await;
        }
        self.report
            .extend(upstream::check(&self.config.upstream, needs_network).await);
        self.report
            .extend(disk::cache(&self.config.directories.cache));
    }

    /// The engine that a run without any configuration would take, with a container to prove it.
    async fn any_engine(&mut self) {
        let kinds = match &self.config.engine {
            Choice::Auto => vec![EngineKind::Podman, EngineKind::Docker],
            Choice::Kind(kind) | Choice::Program(kind, _) => vec![*kind],
        };
        let mut missing = Vec::new();
        for kind in &kinds {
            if kinds.len() > 1 && !self.is_installed(*kind) {
                missing.push(*kind);
                continue;
            }
            if let Some(engine) = self.engine(*kind).await {
                self.prove(&engine, None, None).await;
                return;
            }
        }
        if missing.len() == kinds.len() {
            self.report.push(engine::none());
        }
    }

    /// An engine that answers, looked at once.
    async fn engine(&mut self, kind: EngineKind) -> Option<Engine> {
        if let Some((_, engine)) = self.engines.iter().find(|(known, _)| *known == kind) {
            return engine.clone();
        }
        let (found, engine) =
            engine::check(self.choice(kind), &self.config.directories.cache).await;
        self.report.push(found);
        if kind == EngineKind::Podman {
            self.report.extend(rootless::check(&self.machine));
        }
        if let Some(engine) = &engine {
            self.report.push(limits::check(engine, &self.machine));
            self.report.extend(disk::store(engine).await);
            let runtime = &self.config.directories.runtime;
            let (finding, actions) = leftovers::check(engine, runtime, self.fix).await;
            self.report.push(finding);
            self.report.actions.extend(actions);
        }
        self.engines.push((kind, engine.clone()));
        engine
    }

    /// The program that was chosen for an engine, where one was.
    fn choice(&self, kind: EngineKind) -> Choice {
        match &self.config.engine {
            chosen @ Choice::Program(of, _) if *of == kind => chosen.clone(),
            Choice::Auto | Choice::Kind(_) | Choice::Program(..) => Choice::Kind(kind),
        }
    }

    fn is_installed(&self, kind: EngineKind) -> bool {
        match self.choice(kind) {
            Choice::Program(_, program) => Path::new(&program).exists(),
            Choice::Auto | Choice::Kind(_) => {
                cordon_engine::process::which(kind.program()).is_some()
            }
        }
    }

    /// Starts a container of an image, or of an empty one, and judges what it sees.
    async fn prove(&mut self, engine: &Engine, image: Option<&str>, agent: Option<&AgentSandbox>) {
        let key = (engine.kind(), image.unwrap_or_default().to_owned());
        if self.proven.contains(&key) {
            return;
        }
        self.proven.push(key);
        let finding = proof::check(self.config, engine, image, agent).await;
        self.report.push(finding);
    }
}

/// A started sandbox for an agent on that engine, which fetches nothing, says nothing and sweeps nothing
/// away before it was seen.
pub(crate) async fn quiet(
    config: &SandboxConfig,
    engine: &Engine,
    agent: Option<&AgentSandbox>,
) -> Result<Sandbox, SandboxError> {
    let runtime = agent.and_then(|agent| agent.runtime.as_ref().map(PathBuf::from));
    let sandbox = Sandbox::new(SandboxConfig {
        engine: Choice::Program(engine.kind(), engine.program().to_owned()),
        runtime: runtime.or_else(|| config.runtime.clone()),
        pull: Pull::Never,
        allowed_roots: Vec::new(),
        on_notice: None,
        ..config.clone()
    });
    sandbox.startup_without_sweep().await?;
    Ok(sandbox)
}
