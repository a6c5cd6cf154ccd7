//! The door: how a container without any network gets its one way out.
//!
//! `cordon-init`, a static program that this crate embeds, is PID 1 of the container. It binds
//! `127.77.0.1` TCP 80, 443, 53 and UDP 53 in the container's own network namespace and hands the four
//! sockets to the host. The host serves them in its own process; the container keeps a loopback
//! interface and nothing else.
//!
//! ```no_run
//! # async fn example(runtime: &std::path::Path, cache: &std::path::Path) -> Result<(), cordon_door::Error> {
//! use std::time::Duration;
//!
//! use cordon_door::{Access, Door, Go};
//!
//! let door = Door::open(runtime)?;
//! let init = cordon_door::install(cache)?;
//! // Start a container with `init` and `door.directory()` mounted, `init` as its entrypoint and
//! // `Door::arguments(…)` as its command; then:
//! let (sockets, keeper) = door.handover(Access::Open, Duration::from_secs(20)).await?;
//! // Serve `sockets`, let the workload start, and wait for its end.
//! let go = Go {
//!     before: &[],
//!     command: &["make".into(), "test".into()],
//!     environment: &[("LANG".into(), "C".into())],
//!     mounts: &[],
//! };
//! keeper.go(go).await?;
//! let report = keeper.ended().await;
//! # Ok(())
//! # }
//! ```
//!
//! Knows nothing of policies, engines or images.

mod door;
mod error;
mod far;
mod holder;
mod install;
mod keeper;

pub use door::{ADDRESS, Access, Door, Sockets};
pub use error::Error;
pub use far::Far;
pub use holder::{Begun, Ending, Exec, ExecId, Holder, Running};
pub use install::install;
pub use keeper::{Before, Ended, Go, Keeper, Mounted, Report};
