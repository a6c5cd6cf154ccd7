//! Credentials that never enter the container.
//!
//! Inside it there are only surrogates: look-alikes that open nothing. On its way out, a request to a host in a secret's
//! scope gets the real value; on its way back, a response loses it again. This crate decides and rewrites; it opens no
//! socket and prints nothing.
//!
//! ```
//! use cordon_policy::{Host, HostPattern, NamePattern};
//! use cordon_secrets::{Channel, MaskedSecret, Secret, prepare_secrets};
//! use http::{HeaderMap, uri::PathAndQuery};
//!
//! let token = MaskedSecret::new(
//!     "GH_TOKEN",
//!     Secret::new("ghp_16C7e42F292c6912E7710c838347Ae178B4a"),
//!     vec![HostPattern::parse("api.github.com")?],
//!     vec![NamePattern::new("Authorization")],
//! );
//! let prepared = prepare_secrets(vec![token], Vec::new())?;
//!
//! let mut headers = HeaderMap::new();
//! headers.insert("authorization", format!("Bearer {}", prepared.env["GH_TOKEN"]).parse()?);
//! let mut target = PathAndQuery::from_static("/user");
//! let host = Host::parse("api.github.com")?;
//! let applied = prepared.replacements.apply(&host, Channel::VerifiedTls, &mut headers, &mut target)?;
//!
//! assert_eq!(applied.masked, 1);
//! assert_eq!(headers["authorization"], "Bearer ghp_16C7e42F292c6912E7710c838347Ae178B4a");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod credential;
mod error;
#[cfg(test)]
mod fixture;
mod forms;
mod prepare;
mod redact;
mod replacements;
mod request;
mod response;
mod rewrite;
mod secret;
mod surrogate;

pub use credential::{BodyRule, MaskedSecret, SigningCredential};
pub use error::SecretsError;
pub use prepare::{PreparedSecrets, prepare_secrets};
pub use redact::Redactor;
pub use replacements::{SecretReplacements, SessionToken, SigningEntry};
pub use request::{Alarm, AlarmKind, Applied, BodyReplacer, Channel, Field, Note, Place, basic};
pub use response::{BodyScrubber, Coding, FrameScrubber, Scrub, ScrubError, Scrubber};
pub use secret::Secret;
pub use surrogate::{Shape, Surrogate};
