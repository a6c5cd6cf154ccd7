//! The same sandbox for callers without an asynchronous runtime.
//!
//! A [`Sandbox`] of this module brings its own runtime, which lives as long as it or one of its tasks
//! does. The methods are those of [`crate::Sandbox`], [`crate::Task`] and [`crate::CommandTask`]; they
//! return when the work is done. Whatever else they take and give is the same.
//!
//! ```no_run
//! # fn example() -> Result<(), cordon::SandboxError> {
//! use std::{thread, time::Duration};
//!
//! use cordon::{Agent, Prompt, SandboxConfig, TaskSpec, blocking::Sandbox};
//!
//! let sandbox = Sandbox::new(SandboxConfig::default())?;
//! sandbox.startup()?;
//! let spec = TaskSpec::new(Agent::Claude, "conv-42".parse()?, "localhost/agents:1", "state/conv-42");
//! let task = sandbox.create_task(spec)?;
//! let result = thread::scope(|scope| {
//!     scope.spawn(|| {
//!         thread::sleep(Duration::from_secs(60));
//!         task.stop(); // from another thread, while `execute` blocks this one
//!     });
//!     task.execute(Prompt::new("Say hello."), |event| println!("{}", event.raw()))
//! })?;
//! println!("{}: {}", result.outcome, result.response_text);
//! sandbox.shutdown();
//! # Ok(())
//! # }
//! ```
//!
//! # Panics
//!
//! Methods that wait panic when they are called on a thread of an asynchronous runtime, which they
//! would hold up; use the types of the crate's root there.

use std::{path::Path, sync::Arc};

use tokio::runtime::{Builder, Runtime};

use crate::{
    Allowlist, BuildNetwork, Cleaned, CommandResult, CommandSpec, ContextId, Entrypoint,
    ExecutionResult, ImageTags, LoadedImages, NetworkLog, Progress, Prompt, PrunedImages, Recipe,
    SandboxConfig, SandboxError, Secret, SessionStore, StoredImage, StreamEvent, Streams, TaskSpec,
    doctor::{BootstrapReport, Fix},
    modes::{AgentSandbox, AgentsFile},
};

/// Runs tasks in containers; [`crate::Sandbox`] for callers that block.
#[derive(Debug)]
pub struct Sandbox {
    sandbox: crate::Sandbox,
    runtime: Arc<Runtime>,
}

/// An agent that can be executed, and stopped from another thread; [`crate::Task`] for callers that
/// block.
#[derive(Debug)]
pub struct Task {
    task: crate::Task,
    runtime: Arc<Runtime>,
}

/// A command that can be executed, and stopped from another thread; [`crate::CommandTask`] for callers
/// that block.
#[derive(Debug)]
pub struct CommandTask {
    task: crate::CommandTask,
    runtime: Arc<Runtime>,
}

impl Sandbox {
    /// A sandbox that has done nothing yet but start its runtime.
    ///
    /// # Errors
    ///
    /// When the operating system gives no threads for it.
    pub fn new(config: SandboxConfig) -> Result<Self, SandboxError> {
        let runtime = Builder::new_multi_thread()
            .thread_name("cordon")
            .enable_all()
            .build()
            .map_err(SandboxError::Runtime)?;
        Ok(Self {
            sandbox: crate::Sandbox::new(config),
            runtime: Arc::new(runtime),
        })
    }

    /// Finds the engine, and removes what dead owners left. Must come before the first task.
    ///
    /// # Errors
    ///
    /// As for [`crate::Sandbox::startup`].
    pub fn startup(&self) -> Result<(), SandboxError> {
        self.runtime.block_on(self.sandbox.startup())
    }

    /// Finds the image of a recipe in the engine's store, or builds it; returns its reference.
    ///
    /// # Errors
    ///
    /// As for [`crate::Sandbox::ensure_image`].
    pub fn ensure_image(
        &self,
        recipe: &Recipe,
        entrypoint: &Entrypoint,
        progress: impl FnMut(Progress<'_>),
    ) -> Result<String, SandboxError> {
        self.runtime
            .block_on(self.sandbox.ensure_image(recipe, entrypoint, progress))
    }

    /// The same for a build with a network of its own.
    ///
    /// # Errors
    ///
    /// As for [`crate::Sandbox::ensure_image_on`].
    pub fn ensure_image_on(
        &self,
        network: &BuildNetwork,
        recipe: &Recipe,
        entrypoint: &Entrypoint,
        progress: impl FnMut(Progress<'_>),
    ) -> Result<String, SandboxError> {
        let sandbox = &self.sandbox;
        self.runtime
            .block_on(sandbox.ensure_image_on(network, recipe, entrypoint, progress))
    }

    /// The images that were built from recipes and are in the engine's store, the youngest first.
    ///
    /// # Errors
    ///
    /// As for [`crate::Sandbox::images`].
    pub fn images(&self) -> Result<Vec<StoredImage>, SandboxError> {
        self.runtime.block_on(self.sandbox.images())
    }

    /// Writes both images of a recipe to a directory, building what is missing.
    ///
    /// # Errors
    ///
    /// As for [`crate::Sandbox::save_image`].
    pub fn save_image(
        &self,
        network: &BuildNetwork,
        recipe: &Recipe,
        entrypoint: &Entrypoint,
        directory: &Path,
        progress: impl FnMut(Progress<'_>),
    ) -> Result<ImageTags, SandboxError> {
        let saved = self
            .sandbox
            .save_image(network, recipe, entrypoint, directory, progress);
        self.runtime.block_on(saved)
    }

    /// Reads what [`Sandbox::save_image`] wrote.
    ///
    /// # Errors
    ///
    /// As for [`crate::Sandbox::load_images`].
    pub fn load_images(&self, directory: &Path) -> Result<LoadedImages, SandboxError> {
        self.runtime.block_on(self.sandbox.load_images(directory))
    }

    /// Removes the images that are too old to be used again.
    ///
    /// # Errors
    ///
    /// As for [`crate::Sandbox::prune_images`].
    pub fn prune_images(&self) -> Result<PrunedImages, SandboxError> {
        self.runtime.block_on(self.sandbox.prune_images())
    }

    /// Checks everything that those agents need; see [`crate::Sandbox::bootstrap`].
    pub fn bootstrap(&self, agents: &[AgentSandbox], fix: Fix) -> BootstrapReport {
        self.runtime.block_on(self.sandbox.bootstrap(agents, fix))
    }

    /// Takes an agents file at the start, and checks the agents that ask for it.
    ///
    /// # Errors
    ///
    /// As for [`crate::Sandbox::load`].
    pub fn load(&self, path: &Path) -> Result<BootstrapReport, SandboxError> {
        self.runtime.block_on(self.sandbox.load(path))
    }

    /// Takes an agents file that has changed, and checks every agent in it.
    ///
    /// # Errors
    ///
    /// As for [`crate::Sandbox::reload`].
    pub fn reload(&self, path: &Path) -> Result<BootstrapReport, SandboxError> {
        self.runtime.block_on(self.sandbox.reload(path))
    }

    /// The agents file that holds now.
    #[must_use]
    pub fn agents(&self) -> Arc<AgentsFile> {
        self.sandbox.agents()
    }

    /// Removes what dead owners left on every engine that is installed.
    pub fn clean(&self) -> Cleaned {
        self.runtime.block_on(self.sandbox.clean())
    }

    /// Stops every task that runs and waits until they are gone.
    pub fn shutdown(&self) {
        self.runtime.block_on(self.sandbox.shutdown());
    }

    /// Makes a task of a command. Nothing runs yet.
    ///
    /// # Errors
    ///
    /// As for [`crate::Sandbox::create_command_task`].
    pub fn create_command_task(&self, spec: CommandSpec) -> Result<CommandTask, SandboxError> {
        Ok(CommandTask {
            task: self.sandbox.create_command_task(spec)?,
            runtime: Arc::clone(&self.runtime),
        })
    }

    /// Makes a task of an agent. Nothing runs yet.
    ///
    /// # Errors
    ///
    /// As for [`crate::Sandbox::create_task`].
    pub fn create_task(&self, spec: TaskSpec) -> Result<Task, SandboxError> {
        Ok(Task {
            task: self.sandbox.create_task(spec)?,
            runtime: Arc::clone(&self.runtime),
        })
    }
}

impl Task {
    /// The context that it belongs to.
    #[must_use]
    pub fn execution_context_id(&self) -> &ContextId {
        self.task.execution_context_id()
    }

    /// What is kept of earlier runs.
    #[must_use]
    pub fn session_store(&self) -> &SessionStore {
        self.task.session_store()
    }

    /// What went through the door; `None` where it is not kept.
    #[must_use]
    pub fn network_log(&self) -> Option<NetworkLog> {
        self.task.network_log()
    }

    /// Runs the agent to its end; `on_event` sees every event as it comes, on this thread.
    ///
    /// # Errors
    ///
    /// As for [`crate::Task::execute`].
    pub fn execute(
        &self,
        prompt: Prompt,
        on_event: impl FnMut(&StreamEvent) + Send,
    ) -> Result<ExecutionResult, SandboxError> {
        self.runtime.block_on(self.task.execute(prompt, on_event))
    }

    /// Ends the agent and waits until its container is gone; for another thread than the one that
    /// executes. Returns whether there was something to stop.
    pub fn stop(&self) -> bool {
        self.runtime.block_on(self.task.stop())
    }

    /// Judges the next request by another allowlist, in an execution under way too.
    pub fn replace_allowlist(&self, allowlist: Allowlist) {
        self.task.replace_allowlist(allowlist);
    }

    /// Gives a masked secret another value, in an execution under way too. Its surrogate stays.
    ///
    /// # Errors
    ///
    /// As for [`crate::Task::replace_secret`].
    pub fn replace_secret(&self, env_var: &str, value: Secret) -> Result<(), SandboxError> {
        self.task.replace_secret(env_var, value)
    }
}

impl CommandTask {
    /// The program that is to be run.
    #[must_use]
    pub fn program(&self) -> &Path {
        self.task.program()
    }

    /// Runs the command to its end.
    ///
    /// # Errors
    ///
    /// As for [`crate::CommandTask::execute`].
    pub fn execute(&self, streams: Streams) -> Result<CommandResult, SandboxError> {
        self.runtime.block_on(self.task.execute(streams))
    }

    /// Ends the command and waits until its container is gone; for another thread than the one that
    /// executes. Returns whether there was something to stop.
    pub fn stop(&self) -> bool {
        self.runtime.block_on(self.task.stop())
    }

    /// Judges the next request by another allowlist, in an execution under way too.
    pub fn replace_allowlist(&self, allowlist: Allowlist) {
        self.task.replace_allowlist(allowlist);
    }

    /// Gives a masked secret another value, in an execution under way too. Its surrogate stays.
    ///
    /// # Errors
    ///
    /// As for [`crate::CommandTask::replace_secret`].
    pub fn replace_secret(&self, env_var: &str, value: Secret) -> Result<(), SandboxError> {
        self.task.replace_secret(env_var, value)
    }
}
