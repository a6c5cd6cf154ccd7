//! Which requests may leave a sandbox: hosts, patterns, the allowlist, and [`Allowlist::decide`].
//!
//! Pure: opens no socket, reads no file and no clock, and knows nothing of secrets. What cannot be understood is
//! refused; what is refused says why and how to allow it.
//!
//! ```
//! use cordon_policy::{Allowlist, Decision, Host, RequestHead, Scheme, Target};
//!
//! let allowlist = Allowlist::from_yaml("domains: [api.example.com]")?;
//! let (host, target) = (Host::parse("evil.example")?, Target::parse(b"/")?);
//! let head = RequestHead { scheme: Scheme::Https, host: &host, port: 443, method: "GET", target: &target };
//! let Decision::Deny(denial) = allowlist.decide(&head) else { panic!("allowed") };
//! assert_eq!(denial.to_string(), "the host `evil.example` is not in the allowlist");
//! assert_eq!(denial.hint(), "add `evil.example` to `domains` in the allowlist");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address;
mod allowlist;
mod decision;
mod glob;
mod graphql;
mod host;
mod pattern;
mod scheme;
mod target;

pub use address::{AddressKind, address_kind};
pub use allowlist::{
    Allowlist, AllowlistDomain, AllowlistError, AllowlistErrorKind, AllowlistUrlPattern, Reach,
    RequestHead, parse_allowlist_yaml, serialize_allowlist_json,
};
pub use decision::{Decision, Denial, Grant, HostPlace, RuleRef};
pub use glob::{Glob, NamePattern};
pub use graphql::{GraphqlDenial, GraphqlRules, MAX_GRAPHQL_BODY, OperationKind};
pub use host::{Authority, Host, InvalidHost};
pub use pattern::{HostPattern, InvalidPattern, PathPattern};
pub use scheme::{Scheme, Schemes};
pub use target::{MalformedTarget, Target};
