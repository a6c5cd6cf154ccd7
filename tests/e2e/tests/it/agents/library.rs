//! Claude Code run by the library, in this process.

mod blocking;
mod many;
mod result;
mod stop;

use std::{fs, path::Path, time::Duration};

use cordon::{
    Agent, Allowlist, EngineChoice, EngineKind, ExecutionResult, HostPattern, MaskedSecret, Mount,
    NamePattern, Network, NetworkSandbox, Prompt, Pull, ResourceLimits, Sandbox, SandboxConfig,
    Secret, Task, TaskSpec, Upstream, prepare_secrets, read_ca_bundle,
};
use tempfile::TempDir;
use tokio::{
    runtime::Runtime,
    time::{sleep, timeout},
};

use super::{
    api::Api,
    bench::{CLAUDE_KEY, unique},
};
use crate::setup::{AGENTS, Setup};

/// A sandbox with the stand-in as its world, and directories for what it keeps.
struct World {
    sandbox: Sandbox,
    api: Api,
    scratch: TempDir,
    runtime: Runtime,
}

impl World {
    fn of(setup: Setup) -> Self {
        let api = Api::start();
        let sandbox = Sandbox::new(config(setup, &api));
        let runtime = Runtime::new().unwrap();
        runtime.block_on(sandbox.startup()).unwrap();
        Self {
            sandbox,
            api,
            scratch: tempfile::tempdir().unwrap(),
            runtime,
        }
    }

    fn show(&self, claim: impl AsyncFnOnce(&Self)) {
        self.runtime.block_on(claim(self));
    }

    /// A task of Claude Code in a context of its own.
    fn task(&self) -> Task {
        self.task_of(self.spec(&unique()))
    }

    fn task_of(&self, spec: TaskSpec) -> Task {
        self.sandbox.create_task(spec).unwrap()
    }

    /// Waits until an agent waits for the rest of an answer.
    async fn hanging(&self) {
        let hanging = async {
            while !self.api.has_reached("hang") {
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(Duration::from_secs(60), hanging).await.unwrap();
    }

    fn spec(&self, context: &str) -> TaskSpec {
        spec(&self.scratch.path().join(context), context)
    }
}

fn config(setup: Setup, api: &Api) -> SandboxConfig {
    SandboxConfig {
        engine: EngineChoice::Kind(match setup {
            Setup::Podman | Setup::Rootless => EngineKind::Podman,
            Setup::Docker => EngineKind::Docker,
        }),
        upstream: Upstream {
            dns_servers: vec![(api.address(), 53).into()],
            extra_roots: read_ca_bundle(&api.authority()).unwrap(),
            ..Upstream::default()
        },
        pull: Pull::Never,
        ..SandboxConfig::default()
    }
}

/// Claude Code in a context that is kept in `directory`, with its workspace beside its state.
fn spec(directory: &Path, context: &str) -> TaskSpec {
    let workspace = directory.join("workspace");
    fs::create_dir_all(&workspace).unwrap();
    let key = MaskedSecret::new(
        "ANTHROPIC_API_KEY",
        Secret::new(CLAUDE_KEY),
        vec![HostPattern::parse("api.anthropic.com").unwrap()],
        vec![NamePattern::new("x-api-key")],
    );
    let prepared = prepare_secrets(vec![key], Vec::new()).unwrap();
    let mut env: Vec<_> = prepared.env.into_iter().collect();
    env.push(("CLAUDE_CODE_MAX_RETRIES".into(), "1".into()));
    TaskSpec {
        mounts: vec![Mount::read_write(workspace, "/workspace")],
        env,
        network_log_dir: Some(directory.to_owned()),
        network: Network::Sandboxed(NetworkSandbox {
            allowlist: Allowlist::from_yaml(&Api::allowlist()).unwrap(),
            replacements: prepared.replacements,
        }),
        limits: ResourceLimits {
            timeout: Some(Duration::from_secs(120)),
            ..ResourceLimits::default()
        },
        ..TaskSpec::new(Agent::Claude, context.parse().unwrap(), AGENTS, directory)
    }
}

/// Runs a task in a fresh session.
async fn ask(task: &Task, prompt: &str) -> ExecutionResult {
    task.execute(Prompt::new(prompt), |_| {}).await.unwrap()
}

/// Runs a task in its last session.
async fn resume(task: &Task, prompt: &str) -> ExecutionResult {
    let session = task.session_store().session_id_for_resume().unwrap();
    assert!(session.is_some());
    let prompt = Prompt::new(prompt).resume(session);
    task.execute(prompt, |_| {}).await.unwrap()
}
