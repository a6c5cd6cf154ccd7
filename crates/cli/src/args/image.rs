//! `cordon image`.

use std::{path::PathBuf, str::FromStr};

use clap::Subcommand;
use cordon::{BuildMode, EngineChoice};

#[derive(Debug, clap::Args)]
pub(crate) struct Image {
    #[command(subcommand)]
    pub(crate) command: ImageCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ImageCommand {
    /// Print the name of the image that a Dockerfile makes, by its content; asks no engine
    Hash {
        #[command(flatten)]
        from: From,

        #[command(flatten)]
        form: Form,
    },

    /// Build the image that a run would use, unless it is there and young enough, and print its name
    Build {
        #[command(flatten)]
        from: From,

        #[command(flatten)]
        store: Store,

        #[command(flatten)]
        form: Form,
    },

    /// Show the images that were built, the youngest first
    List {
        #[command(flatten)]
        store: Store,

        #[command(flatten)]
        form: Form,
    },

    /// Write the image of a Dockerfile to a directory, for the cache of a CI; builds it if it is not there
    Save {
        /// Where the archives are to be
        directory: PathBuf,

        #[command(flatten)]
        from: From,

        #[command(flatten)]
        store: Store,
    },

    /// Read what `save` wrote; archives that are not there are no error
    Load {
        /// Where the archives are
        directory: PathBuf,

        #[command(flatten)]
        store: Store,

        #[command(flatten)]
        form: Form,
    },

    /// Remove the images that are too old to be used again
    Prune {
        #[command(flatten)]
        store: Store,

        #[command(flatten)]
        form: Form,
    },
}

/// What an image is made from.
#[derive(Debug, clap::Args)]
pub(crate) struct From {
    /// Build from this file [default: .cordon/container/Dockerfile]
    #[arg(long, value_name = "PATH")]
    pub(crate) dockerfile: Option<PathBuf>,

    /// What the build may copy from [default: the Dockerfile's directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) context_dir: Option<PathBuf>,

    /// What the build may reach: host, none, or sandboxed for what the allowlist names [default: host]
    #[arg(long, value_name = "NETWORK", value_parser = BuildMode::from_str)]
    pub(crate) build_network: Option<BuildMode>,

    /// Settings, which may say what builds reach [default: .cordon/sandbox.yaml if it is there]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// What a sandboxed build may reach [default: .cordon/network-allowlist.yaml if it is there, else nothing]
    #[arg(long, value_name = "FILE")]
    pub(crate) allowlist: Option<PathBuf>,

    /// A host that a sandboxed build may reach, beside those of the allowlist
    #[arg(long, value_name = "HOST")]
    pub(crate) allow: Vec<String>,

    /// Take all of them as they are at a branch, a tag or a commit
    #[arg(long, value_name = "REF")]
    pub(crate) config_ref: Option<String>,

    /// The repository of --config-ref [default: the one of the current directory]
    #[arg(long, value_name = "DIR", requires = "config_ref")]
    pub(crate) config_repo: Option<PathBuf>,
}

/// Where images are, and how old they may get.
#[derive(Debug, clap::Args)]
pub(crate) struct Store {
    /// Container engine: podman, docker, or auto for the first that works
    #[arg(long, value_name = "ENGINE", default_value = "auto", value_parser = EngineChoice::from_str, hide_default_value = true)]
    pub(crate) engine: EngineChoice,

    /// Too old is what was built so many hours ago [default: 24]
    #[arg(long, value_name = "HOURS")]
    pub(crate) max_image_age: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Form {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
