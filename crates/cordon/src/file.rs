//! The configuration file, `.cordon/sandbox.yaml`.
//!
//! Read strictly, and in two steps: [`SandboxFile`] holds what was written, [`Resolved`] what it means on this host.
//! Only the second step looks at the environment, opens the secrets file or runs a command. Nothing here prints, and no
//! error, notice or debug output holds a value.

mod error;
mod host;
mod notice;
pub(crate) mod open;
mod pool;
mod resolve;
pub(crate) mod schema;
mod value;

use std::{
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use cordon_policy::{HostPattern, NamePattern};
use cordon_secrets::BodyRule;
use cordon_yaml::Position;
use pool::Sources;
use value::Value;

use crate::{BuildMode, ResourceLimits};

pub use error::{FileError, FileErrorKind};
pub(crate) use error::{Mistake, quoted, shell_word};
pub use host::HostEnv;
pub use notice::FileNotice;
pub use resolve::{PreparedEnv, Resolved};

/// What a configuration file says.
///
/// ```
/// # use cordon::{HostEnv, SandboxFile};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let file = SandboxFile::parse("
/// env:
///   CI: true
/// masked_secrets:
///   GH_TOKEN:
///     value: !secret GH_TOKEN
///     scopes: [api.github.com]
///     headers: [Authorization]
/// ", "sandbox.yaml")?;
/// let host = HostEnv::from_iter([("GH_TOKEN", "ghp_16C7e42F292c6912E7710c838347Ae178B4a")]);
/// let prepared = file.resolve(&host).await?.prepare()?;
/// let [(ci, yes), (gh_token, surrogate)] = prepared.env.as_slice() else { panic!() };
/// assert_eq!((ci.as_str(), yes.as_str(), gh_token.as_str()), ("CI", "true", "GH_TOKEN"));
/// assert!(surrogate.starts_with("ghp_") && surrogate != "ghp_16C7e42F292c6912E7710c838347Ae178B4a");
/// # Ok(())
/// # }
/// ```
pub struct SandboxFile {
    /// What errors call it.
    name: String,
    env: Vec<Variable>,
    pass_env: Vec<Passed>,
    masked: Vec<Masked>,
    signing: Vec<Signing>,
    network: NetworkKeys,
    limits: ResourceLimits,
    build_network: Option<BuildMode>,
    sources: Sources,
}

impl SandboxFile {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// When it cannot be read, says something that cannot be understood, or wants a command to be run and can be
    /// changed by other users.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let opened = open::regular(path).and_then(|file| file.text(MAX_SIZE));
        let (text, metadata) = opened.map_err(|error| FileError::unreadable(path, error))?;
        let file = Self::parse(&text, &path.display().to_string())?;
        match file.sources.command_position() {
            Some(at) if open::is_writable_by_others(&metadata) => {
                let path = path.to_owned();
                Err(FileErrorKind::Untrusted { path }.at(at, &file.name))
            }
            _ => Ok(file),
        }
    }

    /// Reads the text of a file. Paths in it are relative to the directory of `name`, which errors begin with.
    ///
    /// # Errors
    ///
    /// When it says something that cannot be understood.
    pub fn parse(text: &str, name: &str) -> Result<Self, FileError> {
        schema::sandbox_file(text, name).map_err(|mistake| mistake.in_file(name))
    }

    /// Whether the network sandbox is on; it is unless the file says otherwise.
    #[must_use]
    pub fn network_sandbox(&self) -> bool {
        self.network.enabled
    }

    /// The allowlist that the file names, from where the process runs.
    #[must_use]
    pub fn allowlist(&self) -> Option<PathBuf> {
        let named = self.network.allowlist.as_ref()?;
        Some(directory(&self.name).join(named))
    }

    /// The limits that the file sets.
    #[must_use]
    pub fn limits(&self) -> &ResourceLimits {
        &self.limits
    }

    /// What the build of the image may reach, where the file says so.
    #[must_use]
    pub fn build_network(&self) -> Option<BuildMode> {
        self.build_network
    }

    /// The masked secrets that have to be looked up again while a task runs, and how long a value is
    /// good for.
    pub fn expiring(&self) -> impl Iterator<Item = (&str, Duration)> {
        self.masked
            .iter()
            .filter_map(|entry| Some((entry.env_var.as_str(), entry.expires_after?)))
    }

    /// Whether secrets are asked of a command, which [`SandboxFile::resolve`] then runs on this host.
    #[must_use]
    pub fn runs_command(&self) -> bool {
        self.sources.command_position().is_some()
    }
}

impl fmt::Debug for SandboxFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SandboxFile")
            .field("name", &self.name)
            .field("network_sandbox", &self.network.enabled)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// An entry of `env`.
struct Variable {
    name: String,
    value: Value,
}

/// An entry of `pass_env`.
struct Passed {
    name: String,
    /// The path to it, for errors.
    place: String,
    at: Position,
}

/// An entry of `masked_secrets`.
struct Masked {
    env_var: String,
    at: Position,
    value: Value,
    scopes: Vec<HostPattern>,
    headers: Vec<NamePattern>,
    allow_foreign_credentials: bool,
    query: Vec<String>,
    path: bool,
    body: Option<BodyRule>,
    /// How long a value is good for once it was looked up.
    expires_after: Option<Duration>,
}

/// An entry of `signing_credentials`.
struct Signing {
    at: Position,
    access_key_id: Value,
    secret_access_key: Value,
    session_token: Option<Value>,
    scopes: Vec<HostPattern>,
    allow_credential_minting: bool,
    allow_foreign_credentials: bool,
}

/// What `network_sandbox` says.
struct NetworkKeys {
    enabled: bool,
    allowlist: Option<PathBuf>,
}

/// The directory that paths in a file of that name are relative to.
pub(crate) fn directory(name: &str) -> &Path {
    Path::new(name).parent().unwrap_or_else(|| Path::new(""))
}

/// People write a few kilobytes; whatever is larger is another file.
pub(crate) const MAX_SIZE: u64 = 1 << 20;

#[cfg(test)]
mod tests;
