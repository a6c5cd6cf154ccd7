//! What `cordon doctor` and `cordon clean` can be told.

use std::{net::SocketAddr, path::PathBuf, str::FromStr};

use cordon::{EngineChoice, Topology};

use super::container::name_server;

#[derive(Debug, clap::Args)]
#[command(after_help = DOCTOR_HELP)]
pub(crate) struct Doctor {
    /// Mend what can be mended: fetch or build images, remove what dead runs left
    #[arg(long)]
    pub(crate) fix: bool,

    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Look at this agent only
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,

    /// The agents to look at [default: ~/.config/cordon/agents.yaml if it is there]
    #[arg(long, value_name = "FILE")]
    pub(crate) agents: Option<PathBuf>,

    /// Container engine: podman, docker, or auto for the first that works
    #[arg(long, value_name = "ENGINE", default_value = "auto", value_parser = EngineChoice::from_str, hide_default_value = true)]
    pub(crate) engine: EngineChoice,

    /// How containers reach their proxy: door, proxy-container, or auto for the door where the engine is local
    #[arg(long, value_name = "TOPOLOGY", default_value = "auto", value_parser = Topology::from_str, hide_default_value = true)]
    pub(crate) topology: Topology,

    /// Name server for the world outside [default: the host's]
    #[arg(long, value_name = "ADDRESS[:PORT]", value_parser = name_server)]
    pub(crate) upstream_dns: Vec<SocketAddr>,

    /// Certificates to trust outside beside the host's, as a PEM file
    #[arg(long, value_name = "FILE")]
    pub(crate) upstream_ca: Option<PathBuf>,

    /// Never fetch an image from a registry
    #[arg(long)]
    pub(crate) no_pull: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Clean {
    /// Print what was removed as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const DOCTOR_HELP: &str = "\
Starts a real container and has it prove from inside that it is isolated. Changes nothing unless --fix
is given, and no mode or configuration then.

Exit code: 0 when nothing is wrong, 1 when errors were found, 125 when Cordon could not look.

Examples:
  cordon doctor
  cordon doctor --agents agents.yaml --agent coder --fix
  cordon doctor --json";
