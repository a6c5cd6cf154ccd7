//! Whether an engine is there, answers, and is new enough.

use std::path::Path;

use cordon_engine::{Choice, Engine, Error};

use super::{Code, Finding};
use crate::EngineKind;

/// What is to be said of an engine, and the engine itself where it answers. What was remembered of it is
/// not believed.
pub(super) async fn check(choice: Choice, cache: &Path) -> (Finding, Option<Engine>) {
    let found = match Engine::find(choice, cache).await {
        Ok(mut engine) => engine.refresh().await.map(|()| engine),
        Err(error) => Err(error),
    };
    match found {
        Ok(engine) => (answers(&engine), Some(engine)),
        Err(error) => (refuses(&error), None),
    }
}

/// There is none at all.
pub(super) fn none() -> Finding {
    let error = Error::NoEngine;
    Finding::error(Code::EngineMissing, error.to_string()).hint(install(EngineKind::Podman))
}

fn answers(engine: &Engine) -> Finding {
    let facts = engine.facts();
    let root = if facts.rootless {
        "without root"
    } else {
        "as root"
    };
    let place = if facts.local {
        "on this machine"
    } else {
        "in another machine"
    };
    let runtime = match &facts.runtime {
        Some(runtime) => runtime.display().to_string(),
        None => facts.default_runtime.clone(),
    };
    let kind = engine.kind();
    let said = format!("{kind} {} {root}, {runtime}, {place}", facts.version);
    let (oldest, package) = match kind {
        EngineKind::Podman => (OLDEST_PODMAN, "podman"),
        EngineKind::Docker => (OLDEST_DOCKER, "docker.io"),
    };
    if facts.major() < oldest {
        return Finding::warning(
            Code::EngineOld,
            format!("{said}; versions before {oldest} are not tested"),
        )
        .hint(format!("sudo apt-get install --only-upgrade {package}"));
    }
    Finding::ok(Code::Engine, said)
}

fn refuses(error: &Error) -> Finding {
    let message = error.to_string();
    match error {
        Error::NoEngine => none(),
        Error::Missing { kind } => {
            Finding::error(Code::EngineMissing, message).hint(install(*kind))
        }
        Error::NotAnswering { kind, stderr } => {
            let finding = Finding::error(Code::EngineNotAnswering, message);
            match kind {
                EngineKind::Docker if stderr.contains("permission denied") => {
                    finding.hint("sudo usermod --append --groups docker $USER && newgrp docker")
                }
                EngineKind::Docker => docker_is_down(finding),
                EngineKind::Podman => finding.hint("podman info"),
            }
        }
        Error::Spawn { .. }
        | Error::Rejected { .. }
        | Error::NoSuchImage { .. }
        | Error::BuildOutside { .. }
        | Error::NoRuntime { .. }
        | Error::PullFailed { .. }
        | Error::NetworkTaken { .. }
        | Error::TimedOut { .. }
        | Error::Unreadable { .. }
        | Error::Lost { .. }
        | Error::MountPath { .. }
        | Error::Variable { .. } => {
            let finding = Finding::error(Code::EngineNotAnswering, message);
            match error.hint() {
                Some(hint) => finding.hint(hint),
                None => finding,
            }
        }
    }
}

/// A client that was sent elsewhere is to be brought home before a daemon is started here.
fn docker_is_down(finding: Finding) -> Finding {
    if std::env::var_os("DOCKER_HOST").is_some() {
        return finding.hint("unset DOCKER_HOST");
    }
    if Path::new("/run/systemd/system").exists() {
        finding.hint("sudo systemctl start docker")
    } else {
        finding.hint("sudo sh -c 'dockerd >/var/log/dockerd.log 2>&1 &'")
    }
}

fn install(kind: EngineKind) -> String {
    let packages = match kind {
        EngineKind::Podman => "podman runc uidmap",
        EngineKind::Docker => "docker.io",
    };
    format!("sudo apt-get install {packages}")
}

/// The oldest that the tests run on.
const OLDEST_PODMAN: u32 = 4;
const OLDEST_DOCKER: u32 = 20;
