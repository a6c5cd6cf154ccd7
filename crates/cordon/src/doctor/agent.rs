//! What one agent needs: its mode, its workspace, its image, and a container that is closed.

use cordon_engine::Engine;

use super::{Action, Checkup, Code, Finding, Fix, image};
use crate::{
    EngineKind, Pull, SandboxError,
    error::with_causes,
    file::quoted,
    modes::{
        self, AgentSandbox, AppleExecutor, HostUse, Init, Mode, Probe, VibeboxExecutor,
        WorkspaceAccess,
    },
    mount::{MountRules, check_all},
};

impl Checkup<'_> {
    /// Everything that an agent needs. Its mode is what it says, whatever is found.
    pub(super) async fn agent(&mut self, agent: &AgentSandbox) {
        match modes::chosen(agent) {
            Mode::Podman => self.contained(agent, EngineKind::Podman).await,
            Mode::Docker => self.contained(agent, EngineKind::Docker).await,
            Mode::Auto => self.automatic(agent).await,
            mode @ (Mode::AppleVm | Mode::Vibebox | Mode::Off) => {
                self.elsewhere(agent, mode).await;
            }
        }
    }

    /// A mode without engine of ours.
    async fn elsewhere(&mut self, agent: &AgentSandbox, mode: Mode) {
        let mut probe = modes::probe(agent, mode, self.config).await;
        if self.fix == Fix::Yes {
            match self.mend(agent, &probe).await {
                Ok(None) => {}
                Ok(Some(message)) => {
                    let agent_name = Some(agent.agent.clone());
                    self.report.actions.push(Action {
                        agent: agent_name,
                        message,
                    });
                    probe = modes::probe(agent, mode, self.config).await;
                }
                Err(error) => {
                    let mut finding = Finding::warning(Code::ModeUnavailable, with_causes(&error));
                    finding.hints.extend(error.hint());
                    self.report.push(finding.of(&agent.agent, "mode"));
                }
            }
        }
        self.report.push(probed(agent, &probe));
    }

    /// Has the other program fetch or set up what it lacks; says what was done.
    async fn mend(
        &self,
        agent: &AgentSandbox,
        probe: &Probe,
    ) -> Result<Option<String>, SandboxError> {
        match probe.mode {
            Mode::Vibebox => {
                let host = HostUse::from_environment();
                let executor = VibeboxExecutor::new(agent.clone(), self.config, host);
                let made = executor.init().await? == Init::Made;
                Ok(made.then(|| "had vibebox set up its configuration".to_owned()))
            }
            Mode::AppleVm if !probe.ok && self.config.pull == Pull::Missing => {
                let fetched = AppleExecutor::new(agent.clone(), self.config)
                    .pull()
                    .await?;
                let image = agent.image.as_deref().unwrap_or_default();
                Ok(fetched.then(|| format!("fetched {image}")))
            }
            Mode::AppleVm | Mode::Auto | Mode::Podman | Mode::Docker | Mode::Off => Ok(None),
        }
    }

    /// The first of the sandboxed modes that works, as a run would take it.
    async fn automatic(&mut self, agent: &AgentSandbox) {
        match modes::automatic(agent, self.config).await {
            Ok(found) => {
                let message = format!(
                    "auto takes {} for {}: {}",
                    found.mode, agent.agent, found.message
                );
                self.report
                    .push(Finding::info(Code::Mode, message).of(&agent.agent, "mode"));
                match found.mode {
                    Mode::Podman => self.contained(agent, EngineKind::Podman).await,
                    Mode::Docker => self.contained(agent, EngineKind::Docker).await,
                    Mode::AppleVm | Mode::Vibebox | Mode::Auto | Mode::Off => {}
                }
            }
            Err(error) => {
                let mut finding = Finding::error(Code::ModeUnavailable, error.to_string());
                finding.hints.extend(error.hint());
                self.report.push(finding.of(&agent.agent, "mode"));
            }
        }
    }

    async fn contained(&mut self, agent: &AgentSandbox, kind: EngineKind) {
        self.workspace(agent);
        let Some(engine) = self.engine(kind).await else {
            let message = format!("{} cannot run: {kind} cannot be used", agent.agent);
            self.report
                .push(Finding::error(Code::ModeUnavailable, message).of(&agent.agent, "mode"));
            return;
        };
        self.image(agent, &engine).await;
    }

    async fn image(&mut self, agent: &AgentSandbox, engine: &Engine) {
        let checked = image::check(self.config, engine, agent, self.fix).await;
        self.report.push(checked.finding);
        self.report.actions.extend(checked.actions);
        if let Some(image) = checked.present {
            self.prove(engine, Some(&image), Some(agent)).await;
        }
    }

    fn workspace(&mut self, agent: &AgentSandbox) {
        let directories = &self.config.directories;
        let state = [directories.runtime.clone(), directories.cache.clone()];
        let rules = MountRules {
            state: &state,
            roots: &self.config.allowed_roots,
        };
        let workspace = match agent.workspace_access {
            WorkspaceAccess::None => None,
            WorkspaceAccess::ReadOnly | WorkspaceAccess::ReadWrite => {
                Some(crate::Mount::read_write(&agent.workspace, "/workspace"))
            }
        };
        for (mount, key) in workspace
            .iter()
            .map(|mount| (mount, "workspace"))
            .chain(agent.mounts.iter().map(|mount| (mount, "mounts")))
        {
            if let Err(error) = check_all(std::slice::from_ref(mount), &rules) {
                let error = SandboxError::from(error);
                let mut finding = Finding::error(Code::WorkspaceUnusable, with_causes(&error));
                finding.hints.extend(match mount.host_path.exists() {
                    true => error.hint(),
                    false => Some(format!("mkdir -p {}", quoted(&mount.host_path))),
                });
                self.report.push(finding.of(&agent.agent, key));
            }
        }
    }
}

/// What a mode without engine of ours says of itself.
fn probed(agent: &AgentSandbox, probe: &Probe) -> Finding {
    let mut finding = match (probe.mode, probe.ok) {
        (Mode::Off, true) => Finding::warning(Code::HostMode, &probe.message),
        (Mode::Off, false) => Finding::error(Code::HostModeLocked, &probe.message),
        (_, true) => Finding::ok(Code::Mode, &probe.message),
        (_, false) => Finding::error(Code::ModeUnavailable, &probe.message),
    };
    finding.hints.extend(probe.hints.iter().cloned());
    finding.of(&agent.agent, "mode")
}
