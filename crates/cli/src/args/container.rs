//! What every subcommand that starts a container can be told.

use std::{convert::Infallible, net::SocketAddr, path::PathBuf, str::FromStr};

use cordon::{
    BuildMode, Bypass, Cpus, EngineChoice, HttpProxy, Memory, Mount, Pids, Profile, Topology,
};

/// What every run in a container can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct Container {
    /// Image to run in, as the engine knows it
    #[arg(long, value_name = "REF", env = "CORDON_IMAGE", help_heading = "Image")]
    pub(crate) image: Option<String>,

    /// Build the image to run in from this file [default: .cordon/container/Dockerfile if no image is named]
    #[arg(
        long,
        value_name = "PATH",
        conflicts_with = "image",
        help_heading = "Image"
    )]
    pub(crate) dockerfile: Option<PathBuf>,

    /// What the build may copy from [default: the Dockerfile's directory]
    #[arg(long, value_name = "DIR", help_heading = "Image")]
    pub(crate) context_dir: Option<PathBuf>,

    /// Build anew what was built so many hours ago [default: 24]
    #[arg(long, value_name = "HOURS", help_heading = "Image")]
    pub(crate) max_image_age: Option<u64>,

    /// What the build may reach: host, none, or sandboxed for what the allowlist names [default: host]
    #[arg(long, value_name = "NETWORK", value_parser = BuildMode::from_str, help_heading = "Image")]
    pub(crate) build_network: Option<BuildMode>,

    /// Container engine: podman, docker, or auto for the first that works
    #[arg(long, value_name = "ENGINE", default_value = "auto", value_parser = EngineChoice::from_str, hide_default_value = true, help_heading = "Image")]
    pub(crate) engine: EngineChoice,

    /// OCI runtime to start containers with, such as runc, crun or runsc [default: the engine's own]
    #[arg(long, value_name = "NAME", help_heading = "Image")]
    pub(crate) runtime: Option<PathBuf>,

    /// Never fetch an image from a registry
    #[arg(long, help_heading = "Image")]
    pub(crate) no_pull: bool,

    /// Settings and secrets [default: .cordon/sandbox.yaml if it is there]
    #[arg(long, value_name = "FILE", help_heading = "Container")]
    pub(crate) config: Option<PathBuf>,

    /// Read the settings, the allowlist and the Dockerfile as they are at a branch, a tag or a commit
    #[arg(long, value_name = "REF", help_heading = "Container")]
    pub(crate) config_ref: Option<String>,

    /// The repository of --config-ref [default: the one of the current directory, or the clone]
    #[arg(
        long,
        value_name = "DIR",
        requires = "config_ref",
        help_heading = "Container"
    )]
    pub(crate) config_repo: Option<PathBuf>,

    /// Work on a fresh clone of a directory, or of an https or ssh address, instead of the current directory
    #[arg(long, value_name = "REPO[#REF]", help_heading = "Container")]
    pub(crate) clone: Option<CloneArg>,

    /// Where the clone is to be; it must not be there yet [default: a new place below the state directory]
    #[arg(
        long,
        value_name = "DIR",
        requires = "clone",
        help_heading = "Container"
    )]
    pub(crate) clone_dir: Option<PathBuf>,

    /// What the command may reach [default: .cordon/network-allowlist.yaml if it is there, else nothing]
    #[arg(long, value_name = "FILE", help_heading = "Network")]
    pub(crate) allowlist: Option<PathBuf>,

    /// Read the allowlist again whenever its file changes; a broken one changes nothing
    #[arg(long, conflicts_with = "config_ref", help_heading = "Network")]
    pub(crate) watch_allowlist: bool,

    /// A host that the command may reach, beside those of the allowlist; `*.example.com` for all below
    #[arg(long, value_name = "HOST", help_heading = "Network")]
    pub(crate) allow: Vec<String>,

    /// Give the command no network at all, not even the door
    #[arg(long, conflicts_with_all = ["allowlist", "allow", "watch_allowlist", "network_log_live"], help_heading = "Network")]
    pub(crate) no_network: bool,

    /// Show what goes through the door as it happens
    #[arg(long, help_heading = "Network")]
    pub(crate) network_log_live: bool,

    /// Name server for the world outside [default: the host's]
    #[arg(long, value_name = "ADDRESS[:PORT]", value_parser = name_server, help_heading = "Network")]
    pub(crate) upstream_dns: Vec<SocketAddr>,

    /// Certificates to trust outside beside the host's, as a PEM file
    #[arg(long, value_name = "FILE", help_heading = "Network")]
    pub(crate) upstream_ca: Option<PathBuf>,

    /// HTTP proxy on the way to the world outside; its USER:PASSWORD is taken from CORDON_UPSTREAM_PROXY_CREDENTIALS
    #[arg(long, value_name = "URL", value_parser = upstream_proxy, help_heading = "Network")]
    pub(crate) upstream_proxy: Option<HttpProxy>,

    /// Hosts and networks to reach without that proxy, written as in NO_PROXY
    #[arg(
        long,
        value_name = "LIST",
        requires = "upstream_proxy",
        help_heading = "Network"
    )]
    pub(crate) upstream_proxy_bypass: Option<Bypass>,

    /// How the container reaches its proxy: door, proxy-container, or auto for the door where the engine is local
    #[arg(long, value_name = "TOPOLOGY", default_value = "auto", value_parser = Topology::from_str, hide_default_value = true, help_heading = "Network")]
    pub(crate) topology: Topology,

    /// Show a host path in the container, writable unless `:ro` [default: .:/workspace]
    #[arg(long, short, value_name = "SRC:DST[:ro]", help_heading = "Container")]
    pub(crate) mount: Vec<Mount>,

    /// Set a variable for the command
    #[arg(long, short, value_name = "NAME=VALUE", help_heading = "Container")]
    pub(crate) env: Vec<Variable>,

    /// Hand a variable of yours to the command
    #[arg(long, value_name = "NAME", help_heading = "Container")]
    pub(crate) pass_env: Vec<String>,

    /// How far the container is closed: strict, or standard for root inside [default: strict for run, standard for agent]
    #[arg(long, value_name = "PROFILE", value_parser = Profile::from_str, help_heading = "Container")]
    pub(crate) profile: Option<Profile>,

    /// Run as this user [default: strict: you; standard: the image's]
    #[arg(
        long,
        value_name = "UID[:GID]",
        env = "CORDON_CONTAINER_USER",
        hide_env = true,
        help_heading = "Container"
    )]
    pub(crate) user: Option<String>,

    /// End the command after so many seconds, with exit code 124
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=31_536_000), help_heading = "Limits")]
    pub(crate) timeout: Option<u64>,

    /// Memory without swap, such as 512m or 4g
    #[arg(long, value_name = "AMOUNT", help_heading = "Limits")]
    pub(crate) memory: Option<Memory>,

    /// Processor cores, such as 2 or 0.5
    #[arg(long, value_name = "NUMBER", help_heading = "Limits")]
    pub(crate) cpus: Option<Cpus>,

    /// Processes and threads
    #[arg(long, value_name = "NUMBER", help_heading = "Limits")]
    pub(crate) pids: Option<Pids>,

    /// Give up when the container has not come up after so many seconds
    #[arg(long, value_name = "SECONDS", hide = true)]
    pub(crate) start_limit: Option<u64>,
}

/// `REPO[#REF]`. Not shown: the address may hold credentials.
#[derive(Clone)]
pub(crate) struct CloneArg(pub(crate) String);

impl FromStr for CloneArg {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

impl std::fmt::Debug for CloneArg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

/// `NAME=VALUE`. The value is never shown.
#[derive(Clone)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) value: String,
}

impl FromStr for Variable {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => Ok(Self {
                name: name.into(),
                value: value.into(),
            }),
            _ => Err("a variable is written NAME=VALUE; --pass-env NAME hands over one of yours"),
        }
    }
}

impl std::fmt::Debug for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}=…", self.name)
    }
}

/// Arguments are there for everybody on the machine to read, so credentials do not belong there.
fn upstream_proxy(url: &str) -> Result<HttpProxy, &'static str> {
    match HttpProxy::from_str(url) {
        Ok(proxy) if proxy.has_credentials() => {
            Err("credentials belong into CORDON_UPSTREAM_PROXY_CREDENTIALS, as USER:PASSWORD")
        }
        Ok(proxy) => Ok(proxy),
        Err(_) => Err("a proxy is written http://HOST[:PORT]"),
    }
}

/// An address, with a port or without.
pub(crate) fn name_server(text: &str) -> Result<SocketAddr, &'static str> {
    let address = text
        .parse()
        .ok()
        .or_else(|| Some(SocketAddr::new(text.parse().ok()?, 53)));
    address.ok_or("a name server is written as its address, with :PORT behind it unless that is 53")
}
