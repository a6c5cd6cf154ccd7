//! The only way out of a sandbox: serves its sockets under a policy and records what passes.
//!
//! Names resolve to the proxy, so every connection of the workload ends here. TLS is terminated with
//! leaves of an authority that only this sandbox trusts; each request is judged by the allowlist as
//! a whole, and only then is an upstream resolved, checked, dialled and verified. Bodies stream both
//! ways. Surrogates become real credentials on their way to hosts in their scope, and responses lose
//! them again. The crate knows nothing of containers: it is handed four sockets.
//!
//! ```no_run
//! # async fn run(sockets: cordon_proxy::Sockets) -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//!
//! use cordon_policy::Allowlist;
//! use cordon_proxy::{CertificateAuthority, Proxy, Settings};
//!
//! let authority = Arc::new(CertificateAuthority::generate()?);
//! let allowlist = Allowlist::from_yaml("domains: [api.example.com]")?;
//! let settings = Settings::new([127, 77, 0, 1].into(), allowlist);
//! let proxy = Proxy::start(sockets, settings, authority).await?;
//! // … the workload runs …
//! let summary = proxy.stop().await;
//! assert_eq!(summary.lost_records, 0);
//! # Ok(())
//! # }
//! ```

mod accept;
mod ahead;
mod body;
mod ca;
mod credentials;
mod dns;
mod error;
mod exchange;
mod forward;
mod frames;
mod front;
mod head;
mod inspect;
mod interim;
mod limits;
mod log;
mod memory;
mod program;
mod proxy;
mod refusal;
mod serve;
mod settings;
mod tasks;
mod through;
mod tls;
mod upload;
mod upstream;
mod websocket;

pub use ca::{AuthorityParts, CertificateAuthority};
pub use dns::{Answer, answer};
pub use error::Error;
pub use limits::Limits;
pub use log::{
    Broken, DnsRecord, DnsResult, Event, Follow, Location, LogTarget, NetworkLog, Notes, OnRecord,
    Place, Record, RequestRecord, Summary, Verdict,
};
pub use program::{Answers, Document, Order, RELAY_PORT, Token, serve};
pub use proxy::Proxy;
pub use settings::{Bypass, HostRoots, HttpProxy, Settings, Sockets, Upstream, read_ca_bundle};
pub use upstream::Roots;
