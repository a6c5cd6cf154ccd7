//! Which mode an agent's commands run in, and whether it can be had.
//!
//! The configuration decides, and `auto` only ever among the sandboxed modes. Nothing falls back: what
//! was asked for and cannot be had is an error.

use cordon_engine::{Choice, Engine};

use super::{AgentSandbox, AppleExecutor, HostUse, Mode, Probe, VibeboxExecutor};
use crate::{EngineKind, SandboxConfig, SandboxError};

/// The mode that an agent's configuration comes to: vibebox where its backend is enabled, whatever the
/// mode; else the mode.
#[must_use]
pub fn chosen(agent: &AgentSandbox) -> Mode {
    if agent.vibebox.enabled {
        Mode::Vibebox
    } else {
        agent.mode
    }
}

/// Whether a mode can be used for an agent, found out and not remembered.
pub async fn probe(agent: &AgentSandbox, mode: Mode, config: &SandboxConfig) -> Probe {
    match mode {
        Mode::Vibebox => probe_vibebox(agent, config, HostUse::from_environment()).await,
        Mode::Off => HostUse::from_environment().probe(),
        Mode::Podman | Mode::Docker | Mode::AppleVm => probe_sandboxed(agent, mode, config).await,
        Mode::Auto => match automatic(agent, config).await {
            Ok(probe) => probe,
            Err(error) => Probe {
                ok: false,
                mode,
                message: error.to_string(),
                hints: error.hint().into_iter().collect(),
            },
        },
    }
}

/// The first sandboxed mode that works, and why; never [`Mode::Off`].
///
/// # Errors
///
/// [`SandboxError::NoMode`] with everything that was tried.
pub async fn automatic(
    agent: &AgentSandbox,
    config: &SandboxConfig,
) -> Result<Probe, SandboxError> {
    let mut probes = Vec::new();
    for mode in candidates(config) {
        let probe = probe_sandboxed(agent, mode, config).await;
        if probe.ok {
            return Ok(probe);
        }
        probes.push(probe);
    }
    Err(SandboxError::NoMode { probes })
}

/// What `auto` looks at, in turn. An engine that was chosen is the only one of the two.
fn candidates(config: &SandboxConfig) -> Vec<Mode> {
    let mut modes = match &config.engine {
        Choice::Auto => vec![Mode::Podman, Mode::Docker],
        Choice::Kind(kind) | Choice::Program(kind, _) => vec![match kind {
            EngineKind::Podman => Mode::Podman,
            EngineKind::Docker => Mode::Docker,
        }],
    };
    if cfg!(target_os = "macos") {
        modes.push(Mode::AppleVm);
    }
    modes.push(Mode::Vibebox);
    modes
}

/// Whether a mode that isolates can be used; one that does not, or would not here, cannot.
async fn probe_sandboxed(agent: &AgentSandbox, mode: Mode, config: &SandboxConfig) -> Probe {
    match mode {
        Mode::Podman => probe_engine(EngineKind::Podman, mode, config).await,
        Mode::Docker => probe_engine(EngineKind::Docker, mode, config).await,
        Mode::AppleVm => AppleExecutor::new(agent.clone(), config).probe().await,
        Mode::Vibebox => probe_vibebox(agent, config, HostUse::Refused).await,
        Mode::Auto | Mode::Off => Probe {
            ok: false,
            mode,
            message: "it isolates nothing".to_owned(),
            hints: Vec::new(),
        },
    }
}

async fn probe_vibebox(agent: &AgentSandbox, config: &SandboxConfig, host: HostUse) -> Probe {
    let executor = VibeboxExecutor::new(agent.clone(), config, host);
    executor.probe().await
}

async fn probe_engine(kind: EngineKind, mode: Mode, config: &SandboxConfig) -> Probe {
    let choice = match &config.engine {
        chosen @ Choice::Program(of, _) if *of == kind => chosen.clone(),
        Choice::Auto | Choice::Kind(_) | Choice::Program(..) => Choice::Kind(kind),
    };
    let answered = match Engine::find(choice, &config.directories.cache).await {
        Ok(mut engine) => engine.refresh().await.map(|()| engine),
        Err(error) => Err(error),
    };
    let usable = match answered {
        Ok(engine) if engine.facts().local => Ok(engine),
        Ok(_) => Err(SandboxError::NotHeld { engine: kind }),
        Err(error) => Err(error.into()),
    };
    match usable {
        Ok(engine) => Probe {
            ok: true,
            mode,
            message: format!("{kind} {} answers", engine.facts().version),
            hints: Vec::new(),
        },
        Err(error) => Probe {
            ok: false,
            mode,
            message: error.to_string(),
            hints: error.hint().into_iter().collect(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(mode: Mode) -> AgentSandbox {
        AgentSandbox {
            mode,
            ..AgentSandbox::new("coder", "/srv")
        }
    }

    #[test]
    fn vibebox_is_chosen_where_it_is_enabled_whatever_the_mode() {
        for mode in [Mode::Off, Mode::Docker, Mode::Auto] {
            let mut agent = agent(mode);
            assert_eq!(chosen(&agent), mode);
            agent.vibebox.enabled = true;
            assert_eq!(chosen(&agent), Mode::Vibebox);
        }
    }

    #[test]
    fn auto_never_looks_at_the_host() {
        for engine in [
            Choice::Auto,
            Choice::Kind(EngineKind::Docker),
            Choice::Program(EngineKind::Podman, "/opt/podman".into()),
        ] {
            let config = SandboxConfig {
                engine,
                ..SandboxConfig::default()
            };
            assert!(!candidates(&config).contains(&Mode::Off));
        }
    }

    #[tokio::test]
    async fn where_nothing_works_auto_says_all_that_it_tried() {
        let config = SandboxConfig {
            engine: Choice::Program(EngineKind::Podman, "/nowhere/podman".into()),
            ..SandboxConfig::default()
        };
        let mut agent = agent(Mode::Auto);
        agent.vibebox.program = "/nowhere/vibebox".into();
        let error = automatic(&agent, &config).await.unwrap_err();
        let SandboxError::NoMode { probes } = &error else {
            panic!("{error}")
        };
        let modes: Vec<_> = probes.iter().map(|probe| probe.mode).collect();
        assert_eq!(modes, [Mode::Podman, Mode::Vibebox]);
        let said = error.to_string();
        assert!(
            said.contains("podman: ") && said.contains("/nowhere/vibebox"),
            "{said}"
        );
    }
}
