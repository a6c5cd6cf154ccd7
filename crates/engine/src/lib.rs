//! Container engines, driven by their command lines.
//!
//! Podman and Docker are one type, [`Engine`], with a [`Kind`]. What was learned about an engine is
//! remembered between runs, so that a warm run makes one call and no more.
//!
//! ```no_run
//! # async fn example() -> Result<(), cordon_engine::Error> {
//! use cordon_engine::{Choice, ContainerSpec, Engine, Network};
//!
//! let engine = Engine::find(Choice::Auto, "/var/cache/cordon".as_ref()).await?;
//! let spec = ContainerSpec {
//!     command: vec!["true".into()],
//!     network: Network::None,
//!     ..ContainerSpec::new("localhost/debian:12")
//! };
//! let output = engine.run(&spec).await?;
//! assert!(output.status.success());
//! # Ok(())
//! # }
//! ```
//!
//! Knows nothing of sandboxes, policies or secrets. Values of environment variables never stand in an
//! argument list; every process is started in [`process`].

mod build;
mod container;
mod engine;
mod error;
mod facts;
mod image;
mod listing;
mod network;
pub mod process;
mod spec;
mod volume;

pub use build::{BuildNetwork, BuildSpec, Namespace};
pub use container::{Container, ContainerState, ExecSpec, Listed, shell_code};
pub use engine::{Choice, Engine, Kind, UnknownEngine};
pub use error::Error;
pub use facts::{CgroupVersion, Facts};
pub use image::Image;
pub use network::{NetworkSpec, Reach};
pub use spec::{ContainerSpec, Limits, Mount, Network, Resolver, Rlimit, Terminal, Tmpfs};
pub use volume::Volume;
