//! What is written of one agent, and what it comes to.

use std::{
    env, fs,
    path::{Path, PathBuf},
    time::Duration,
};

use cordon_yaml::{ErrorKind, Key, Position};

use super::is_within_reach;
use crate::{
    Allowlist, FileErrorKind, Mount, Profile, ResourceLimits,
    file::{self, Mistake, schema::mistake},
    modes::{
        AgentSandbox, AppleNetwork, AppleSettings, Mode, Provider, VibeboxSettings, WorkspaceAccess,
    },
};

/// The keys of one agent, or of the defaults; what is not written is `None` or empty.
#[derive(Clone, Default)]
pub(super) struct Block {
    pub(super) mode: Option<Mode>,
    pub(super) workspace: Option<PathBuf>,
    pub(super) workspace_access: Option<WorkspaceAccess>,
    pub(super) image: Option<Image>,
    pub(super) profile: Option<Profile>,
    pub(super) runtime: Option<String>,
    pub(super) mounts: Option<Vec<Mount>>,
    pub(super) env: Vec<(String, String)>,
    pub(super) allowlist: Option<(PathBuf, Position)>,
    pub(super) limits: ResourceLimits,
    pub(super) idle: Option<Duration>,
    pub(super) commands: Option<Vec<String>>,
    pub(super) apple: AppleKeys,
    pub(super) vibebox: VibeboxKeys,
    pub(super) bootstrap_on_start: Option<bool>,
}

/// Where an image comes from: one or the other, so that an agent's own replaces the defaults'.
#[derive(Clone)]
pub(super) enum Image {
    Named(String),
    Built(PathBuf),
}

#[derive(Clone, Default)]
pub(super) struct AppleKeys {
    pub(super) program: Option<PathBuf>,
    pub(super) network: Option<AppleNetwork>,
}

#[derive(Clone, Default)]
pub(super) struct VibeboxKeys {
    pub(super) enabled: Option<bool>,
    pub(super) program: Option<PathBuf>,
    pub(super) provider: Option<Provider>,
    pub(super) project_root: Option<PathBuf>,
    pub(super) timeout: Option<Duration>,
}

impl Block {
    /// What holds where these keys stand over those.
    pub(super) fn over(self, under: &Self) -> Self {
        let inherited = under.env.iter().filter(|(name, _)| {
            let own = |(other, _): &(String, String)| other == name;
            !self.env.iter().any(own)
        });
        Self {
            mode: self.mode.or(under.mode),
            workspace: self.workspace.or_else(|| under.workspace.clone()),
            workspace_access: self.workspace_access.or(under.workspace_access),
            image: self.image.or_else(|| under.image.clone()),
            profile: self.profile.or(under.profile),
            runtime: self.runtime.or_else(|| under.runtime.clone()),
            mounts: self.mounts.or_else(|| under.mounts.clone()),
            env: inherited.chain(&self.env).cloned().collect(),
            allowlist: self.allowlist.or_else(|| under.allowlist.clone()),
            limits: ResourceLimits {
                timeout: self.limits.timeout.or(under.limits.timeout),
                memory: self.limits.memory.or(under.limits.memory),
                cpus: self.limits.cpus.or(under.limits.cpus),
                pids: self.limits.pids.or(under.limits.pids),
            },
            idle: self.idle.or(under.idle),
            commands: self.commands.or_else(|| under.commands.clone()),
            apple: AppleKeys {
                program: self.apple.program.or_else(|| under.apple.program.clone()),
                network: self.apple.network.or(under.apple.network),
            },
            vibebox: self.vibebox.over(&under.vibebox),
            bootstrap_on_start: self.bootstrap_on_start.or(under.bootstrap_on_start),
        }
    }

    /// The agent that the keys describe; `file` is what paths are relative to.
    pub(super) fn resolve(self, key: Key, file: &str) -> Result<AgentSandbox, Mistake> {
        let place = format!("agents.{}", key.name);
        let beside = |path: PathBuf| located(&path, file, &place, key.at);
        let Some(workspace) = self.workspace else {
            return Err(ErrorKind::missing(&place, "workspace").at(key.at).into());
        };
        let (image, dockerfile) = match self.image {
            None => (None, None),
            Some(Image::Named(name)) => (Some(name), None),
            Some(Image::Built(path)) => (None, Some(beside(path)?)),
        };
        let mounts = self.mounts.unwrap_or_default().into_iter().map(|mount| {
            let host_path = beside(mount.host_path)?;
            Ok(Mount { host_path, ..mount })
        });
        let agent = AgentSandbox {
            mode: self.mode.unwrap_or_default(),
            workspace_access: self.workspace_access.unwrap_or_default(),
            image,
            dockerfile,
            profile: self.profile.unwrap_or_default(),
            runtime: self.runtime,
            mounts: mounts.collect::<Result<_, Mistake>>()?,
            env: self.env,
            limits: self.limits,
            idle: self.idle,
            commands: self.commands.unwrap_or_default(),
            apple: self.apple.resolve(),
            vibebox: self.vibebox.resolve(&beside)?,
            bootstrap_on_start: self.bootstrap_on_start.unwrap_or_default(),
            ..AgentSandbox::new(key.name.clone(), beside(workspace)?)
        };
        let keep_out = |path: &Path, key: &str, at| {
            if !is_within_reach(path, &agent) {
                return Ok(());
            }
            let (place, path) = (format!("{place}.{key}"), path.to_owned());
            Err(mistake(at, FileErrorKind::WithinReach { place, path }))
        };
        if let Some(path) = &agent.dockerfile {
            keep_out(path, "dockerfile", key.at)?;
        }
        let allowlist = match self.allowlist {
            None => None,
            Some((path, at)) => {
                let path = beside(path)?;
                keep_out(&path, "allowlist", at)?;
                Some(read_allowlist(path, &place, at)?)
            }
        };
        Ok(AgentSandbox { allowlist, ..agent })
    }
}

impl AppleKeys {
    fn resolve(self) -> AppleSettings {
        let usual = AppleSettings::default();
        AppleSettings {
            program: self.program.unwrap_or(usual.program),
            network: self.network.unwrap_or(usual.network),
        }
    }
}

impl VibeboxKeys {
    fn over(self, under: &Self) -> Self {
        Self {
            enabled: self.enabled.or(under.enabled),
            program: self.program.or_else(|| under.program.clone()),
            provider: self.provider.or(under.provider),
            project_root: self.project_root.or_else(|| under.project_root.clone()),
            timeout: self.timeout.or(under.timeout),
        }
    }

    fn resolve(
        self,
        beside: &impl Fn(PathBuf) -> Result<PathBuf, Mistake>,
    ) -> Result<VibeboxSettings, Mistake> {
        let usual = VibeboxSettings::default();
        Ok(VibeboxSettings {
            enabled: self.enabled.unwrap_or(usual.enabled),
            program: self.program.unwrap_or(usual.program),
            provider: self.provider.unwrap_or(usual.provider),
            project_root: self.project_root.map(beside).transpose()?,
            timeout: self.timeout.unwrap_or(usual.timeout),
        })
    }
}

/// A path from where the process runs: `~/` is the user's home, and what is relative is so to the file.
fn located(path: &Path, file: &str, place: &str, at: Position) -> Result<PathBuf, Mistake> {
    match path.strip_prefix("~") {
        Ok(rest) => match env::home_dir() {
            Some(home) if home.is_absolute() => Ok(home.join(rest)),
            _ => {
                let expected = "a path without `~`, as HOME is not set";
                let written = path.display().to_string();
                Err(ErrorKind::wrong_value(place, written, expected)
                    .at(at)
                    .into())
            }
        },
        Err(_) => Ok(file::directory(file).join(path)),
    }
}

fn read_allowlist(path: PathBuf, place: &str, at: Position) -> Result<Allowlist, Mistake> {
    let place = format!("{place}.allowlist");
    match fs::read_to_string(&path) {
        Err(source) => Err(mistake(
            at,
            FileErrorKind::AllowlistUnreadable {
                place,
                path,
                source,
            },
        )),
        Ok(text) => Allowlist::from_yaml(&text).map_err(|reason| {
            mistake(
                at,
                FileErrorKind::Allowlist {
                    place,
                    path,
                    reason: Box::new(reason),
                },
            )
        }),
    }
}
