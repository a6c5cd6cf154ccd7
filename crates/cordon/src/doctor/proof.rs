//! A real container, started as any other and asked what it sees from inside.
//!
//! The program that looks is `cordon-init` itself, which is in every container, so that any image can
//! be proven in, an empty one too. What it tells is judged here, on the host.

mod look;

use std::{fs, io, os::unix::fs::PermissionsExt, path::PathBuf, time::Duration};

use cordon_engine::Engine;
use tempfile::TempDir;

use super::{Code, Finding, quiet};
use crate::{
    CommandSpec, Mount, Network, NetworkSandbox, ResourceLimits, Sandbox, SandboxConfig,
    SandboxError, Streams, error::with_causes, leftovers::EMPTY_IMAGES, modes::AgentSandbox,
};
pub(crate) use look::{Broken, Look};

/// What a container proved.
pub(crate) struct Proof {
    /// What is not as it should be; nothing where all is.
    pub(crate) broken: Vec<Broken>,
}

/// What is to be said of containers of an image, or of an empty one.
pub(super) async fn check(
    config: &SandboxConfig,
    engine: &Engine,
    image: Option<&str>,
    agent: Option<&AgentSandbox>,
) -> Finding {
    let kind = engine.kind();
    let what = match image {
        Some(image) => format!("a container of {image} on {kind}"),
        None => format!("a container on {kind}"),
    };
    let finding = match attempt(config, engine, image, agent).await {
        Err(error) => unproven(&what, &error),
        Ok(Proof { broken }) if broken.is_empty() => Finding::ok(
            Code::Isolation,
            format!("{what} sees no network but its door, and cannot get past it"),
        ),
        Ok(Proof { broken }) => {
            let broken: Vec<_> = broken.iter().map(ToString::to_string).collect();
            Finding::error(
                Code::IsolationBroken,
                format!("{what} is not isolated: {}", broken.join("; ")),
            )
            .hint("do not run anything in it that is not trusted, and report this")
        }
    };
    match agent {
        Some(agent) => finding.of(&agent.agent, "mode"),
        None => finding,
    }
}

fn unproven(what: &str, error: &SandboxError) -> Finding {
    let message = format!("{what} did not start: {}", with_causes(error));
    let finding = Finding::error(Code::IsolationUnproven, message);
    match error.hint() {
        Some(hint) => finding.hint(hint),
        None => finding,
    }
}

async fn attempt(
    config: &SandboxConfig,
    engine: &Engine,
    image: Option<&str>,
    agent: Option<&AgentSandbox>,
) -> Result<Proof, SandboxError> {
    let sandbox = quiet(config, engine, agent).await?;
    let empty = match image {
        Some(_) => None,
        None => Some(EmptyImage::import(&sandbox, engine).await?),
    };
    let image = match (&empty, image) {
        (Some(empty), _) => &empty.reference,
        (None, image) => image.unwrap_or_default(),
    };
    let proof = prove(&sandbox, image, NetworkSandbox::default(), agent).await;
    if let Some(empty) = empty {
        empty.remove(engine).await;
    }
    proof
}

/// Starts a container of that image under that policy, and judges what it tells.
pub(crate) async fn prove(
    sandbox: &Sandbox,
    image: &str,
    network: NetworkSandbox,
    agent: Option<&AgentSandbox>,
) -> Result<Proof, SandboxError> {
    let (_around, workspace) = scratch()?;
    let profile = agent.map(|agent| agent.profile).unwrap_or_default();
    let spec = CommandSpec {
        mounts: vec![Mount::read_write(workspace, WORKSPACE)],
        workdir: WORKSPACE.to_owned(),
        network: Network::Sandboxed(network),
        limits: ResourceLimits {
            timeout: Some(PATIENCE),
            ..agent.map(|agent| agent.limits.clone()).unwrap_or_default()
        },
        profile,
        ..CommandSpec::new(image, look::command(WORKSPACE))
    };
    let task = sandbox.create_command_task(spec)?;
    let result = task.execute(Streams::captured()).await?;
    let look = Look::read(&String::from_utf8_lossy(&result.stdout));
    Ok(Proof {
        broken: look.judge(sandbox.shared().wiring()?, profile),
    })
}

/// A directory that any user of a container may write; the one around it keeps everybody else away.
fn scratch() -> Result<(TempDir, PathBuf), SandboxError> {
    let parent = std::env::temp_dir();
    let parent = fs::canonicalize(&parent).unwrap_or(parent);
    let make = || {
        let around = tempfile::Builder::new()
            .prefix("cordon-doctor-")
            .tempdir_in(&parent)?;
        let inner = around.path().join("workspace");
        fs::create_dir(&inner)?;
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o777))?;
        Ok((around, inner))
    };
    make().map_err(|source: io::Error| SandboxError::Directory {
        path: parent.clone(),
        source,
    })
}

/// An image with nothing in it, for as long as it is needed.
struct EmptyImage {
    reference: String,
}

impl EmptyImage {
    /// Named after its owner, so that whoever finds it knows whether it is still needed.
    async fn import(sandbox: &Sandbox, engine: &Engine) -> Result<Self, SandboxError> {
        let shared = sandbox.shared();
        let reference = format!("{EMPTY_IMAGES}:{}", shared.owner);
        let runtime = &shared.config.directories.runtime;
        let archive = runtime.join(format!("doctor-{}.tar", shared.owner));
        // Two empty blocks are a whole archive.
        fs::write(&archive, [0; 1024]).map_err(|source| SandboxError::Write {
            path: archive.clone(),
            source,
        })?;
        let imported = engine.import(&archive, &reference).await;
        drop(fs::remove_file(&archive));
        imported?;
        Ok(Self { reference })
    }

    async fn remove(self, engine: &Engine) {
        if let Err(error) = engine.remove_image(&self.reference).await {
            tracing::debug!(%error, "an empty image is left");
        }
    }
}

const WORKSPACE: &str = "/workspace";

/// It takes a second; a machine that needs longer than this is in trouble.
const PATIENCE: Duration = Duration::from_secs(60);
