//! The agents of an operator, `agents.yaml`: where each one's commands run.
//!
//! Read strictly. What `agents.defaults` says holds for every agent that does not say otherwise: maps
//! are merged key by key, everything else is replaced. An agent must not be able to write what it is
//! judged by, so a file within its reach is refused.

mod block;
mod schema;

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use super::{AgentSandbox, WorkspaceAccess};
use crate::{
    FileError, FileErrorKind,
    file::{MAX_SIZE, open},
};

/// What an agents file says, with nothing left to be looked up.
///
/// ```
/// # use cordon::modes::{AgentsFile, Mode};
/// let file = AgentsFile::parse("
/// agents:
///   defaults:
///     mode: podman
///     image: localhost/agents:1
///     limits: { memory: 2g }
///   coder:
///     workspace: /srv/coder
///     limits: { timeout: 300 }
/// ", "agents.yaml")?;
/// let coder = file.agent("coder").unwrap();
/// assert_eq!(coder.mode, Mode::Podman);
/// assert!(coder.limits.memory.is_some() && coder.limits.timeout.is_some());
/// # Ok::<(), cordon::FileError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct AgentsFile {
    name: String,
    agents: Vec<AgentSandbox>,
}

impl AgentsFile {
    /// Reads a file and the allowlists that it names.
    ///
    /// # Errors
    ///
    /// When one of them cannot be read or understood, can be changed by other users, or lies where an
    /// agent can write.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let opened = open::regular(path).and_then(|file| file.text(MAX_SIZE));
        let (text, metadata) = opened.map_err(|error| FileError::unreadable(path, error))?;
        if open::is_writable_by_others(&metadata) {
            let path = path.to_owned();
            return Err(FileErrorKind::Shared { path: path.clone() }.of(&path));
        }
        let file = Self::parse(&text, &path.display().to_string())?;
        for agent in &file.agents {
            if is_within_reach(path, agent) {
                let place = format!("agents.{}", agent.agent);
                let path = path.to_owned();
                return Err(FileErrorKind::WithinReach {
                    place,
                    path: path.clone(),
                }
                .of(&path));
            }
        }
        Ok(file)
    }

    /// Reads the text of a file, and the allowlists that it names. Paths in it are relative to the
    /// directory of `name`, which errors begin with.
    ///
    /// # Errors
    ///
    /// When it says something that cannot be understood.
    pub fn parse(text: &str, name: &str) -> Result<Self, FileError> {
        let written = schema::agents(text).map_err(|mistake| mistake.in_file(name))?;
        let agents = written.agents.into_iter();
        let agents = agents.map(|(key, block)| {
            let merged = block.over(&written.defaults);
            merged.resolve(key, name)
        });
        Ok(Self {
            name: name.to_owned(),
            agents: agents
                .collect::<Result<_, _>>()
                .map_err(|mistake| mistake.in_file(name))?,
        })
    }

    /// Where a user's file is: `$XDG_CONFIG_HOME/cordon/agents.yaml`, or `~/.config/cordon/agents.yaml`.
    #[must_use]
    pub fn default_path() -> Option<PathBuf> {
        let absolute = |name| {
            env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let config = absolute("XDG_CONFIG_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".config")))?;
        Some(config.join("cordon/agents.yaml"))
    }

    /// What errors and findings call the file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Every agent, in the order of the file.
    #[must_use]
    pub fn agents(&self) -> &[AgentSandbox] {
        &self.agents
    }

    /// The agent of that name.
    #[must_use]
    pub fn agent(&self, name: &str) -> Option<&AgentSandbox> {
        self.agents.iter().find(|agent| agent.agent == name)
    }
}

/// Whether the commands of an agent can write a file of the host. `.cordon` of its workspace they
/// cannot.
fn is_within_reach(path: &Path, agent: &AgentSandbox) -> bool {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let path = real(path);
    let workspace = match agent.workspace_access {
        WorkspaceAccess::ReadWrite => Some(agent.workspace.as_path()),
        WorkspaceAccess::ReadOnly | WorkspaceAccess::None => None,
    };
    let mounts = agent.mounts.iter().filter(|mount| !mount.read_only);
    workspace
        .into_iter()
        .chain(mounts.map(|mount| mount.host_path.as_path()))
        .map(real)
        .any(|writable| path.starts_with(&writable) && !path.starts_with(writable.join(".cordon")))
}

#[cfg(test)]
mod tests;
