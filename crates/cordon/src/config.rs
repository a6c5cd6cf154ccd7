//! How a sandbox is set up.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use cordon_proxy::{Limits, Upstream};

use crate::{BuildNetwork, Directories, EngineChoice, Notice, Topology};

/// Everything that all tasks of a sandbox share.
#[derive(Clone, Default)]
pub struct SandboxConfig {
    /// Which container engine to use.
    pub engine: EngineChoice,
    /// Where things are kept on the host.
    pub directories: Directories,
    /// How the proxy reaches the world.
    pub upstream: Upstream,
    /// What the proxy lets one task take.
    pub proxy_limits: Limits,
    /// Directories that mounts must be under; empty means anywhere that is not refused anyway.
    pub allowed_roots: Vec<PathBuf>,
    /// The OCI runtime that containers are started with, by name or path; else the engine's own.
    pub runtime: Option<PathBuf>,
    /// Whether images are fetched.
    pub pull: Pull,
    /// How old an image that was built may get before it is built anew.
    pub max_image_age: MaxImageAge,
    /// What the builds of images may reach.
    pub build_network: BuildNetwork,
    /// How long a container may take until it hands over its sockets.
    pub start_limit: StartLimit,
    /// How containers are connected to their proxy.
    pub topology: Topology,
    /// The static program of the proxy container; by default `cordon-proxy` beside the running program,
    /// else in the cache directory.
    pub proxy_program: Option<PathBuf>,
    /// Called with whatever a person should know that is no error.
    pub on_notice: Option<OnNotice>,
}

/// Called with a notice, from any thread.
pub type OnNotice = Arc<dyn Fn(&Notice) + Send + Sync>;

/// Whether images are fetched from a registry.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Pull {
    /// When they are not in the engine's store.
    #[default]
    Missing,
    /// Never: an image that is not in the store is an error.
    Never,
}

/// How old an image that was built may get before it is built anew; zero builds it every time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MaxImageAge(pub Duration);

impl Default for MaxImageAge {
    /// A day.
    fn default() -> Self {
        Self(Duration::from_secs(24 * 60 * 60))
    }
}

/// How long a container may take until it hands over its sockets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StartLimit(pub Duration);

impl Default for StartLimit {
    /// A minute: a loaded machine that starts twenty at once needs seconds; one that needs longer is
    /// broken.
    fn default() -> Self {
        Self(Duration::from_secs(60))
    }
}

impl fmt::Debug for SandboxConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SandboxConfig")
            .field("engine", &self.engine)
            .field("directories", &self.directories)
            .field("allowed_roots", &self.allowed_roots)
            .field("pull", &self.pull)
            .field("build_network", &self.build_network)
            .field("start_limit", &self.start_limit)
            .field("topology", &self.topology)
            .finish_non_exhaustive()
    }
}
