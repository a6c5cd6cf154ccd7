//! What became of a request: allowed and by which entry, or denied and why.

use std::{fmt, net::IpAddr};

use crate::{
    AddressKind, GraphqlDenial, GraphqlRules, Host, HostPattern, InvalidHost, MalformedTarget,
    Scheme, address_kind,
};

/// The answer to one request head.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum Decision<'a> {
    /// An entry allows it.
    Allow(Grant<'a>),
    /// An entry allows it if the body, once read, passes the entry's GraphQL rules.
    Inspect(Grant<'a>, &'a GraphqlRules),
    /// Nothing allows it.
    Deny(Denial),
}

/// What an entry grants to a request that it allows.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant<'a> {
    /// The entry that allows the request.
    pub rule: RuleRef,
    /// Whether the upstream may have an address outside the public internet.
    pub private_addresses: bool,
    pub(crate) host: &'a HostPattern,
}

impl Grant<'_> {
    /// Checks the very address that is about to be dialled.
    ///
    /// A metadata service is reachable only where the entry's host is its address, letter for letter: an entry for an
    /// internal network must not hand out the machine's credentials to a name that resolves there.
    pub fn check_address(&self, host: &Host, ip: IpAddr) -> Result<(), Denial> {
        let kind = address_kind(ip);
        let allowed = match kind {
            AddressKind::Public => true,
            AddressKind::Loopback
            | AddressKind::Private
            | AddressKind::LinkLocal
            | AddressKind::Shared
            | AddressKind::Reserved => self.private_addresses,
            AddressKind::Metadata => self.host.is_address(ip),
            AddressKind::Multicast | AddressKind::Unspecified => false,
        };
        if allowed {
            return Ok(());
        }
        Err(Denial::AddressRefused {
            host: host.to_string(),
            address: ip,
            kind,
        })
    }
}

/// An entry of the allowlist, by its place: `domains[2]`, `url_prefixes[0]`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum RuleRef {
    /// An entry of `domains`.
    Domain(usize),
    /// An entry of `url_prefixes`.
    UrlPrefix(usize),
}

impl fmt::Display for RuleRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Domain(index) => write!(f, "domains[{index}]"),
            Self::UrlPrefix(index) => write!(f, "url_prefixes[{index}]"),
        }
    }
}

/// Why a request is refused. Display says what was refused, [`Denial::hint`] how to allow it.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Denial {
    /// No entry names the host.
    #[error("the host `{host}` is not in the allowlist")]
    HostNotListed {
        /// The host asked for.
        host: String,
    },
    /// Entries name the host, but not this path.
    #[error("the path `{path}` of `{host}` is not in the allowlist")]
    PathNotListed {
        /// The host asked for.
        host: String,
        /// The decoded path.
        path: String,
    },
    /// An entry names the path, but without a query.
    #[error("the path `{path}` of `{host}` is in the allowlist only without a query")]
    QueryNotListed {
        /// The host asked for.
        host: String,
        /// The decoded path.
        path: String,
    },
    /// An entry names host and path, but not this method.
    #[error("the method {method} is not allowed for `{path}` of `{host}` by {rule}")]
    MethodNotListed {
        /// The entry that came closest.
        rule: RuleRef,
        /// The host asked for.
        host: String,
        /// The decoded path.
        path: String,
        /// The method asked for.
        method: String,
        /// The methods that the entry allows.
        listed: Vec<String>,
    },
    /// The entry does not speak this scheme.
    #[error("{scheme} is not allowed for `{host}` by {rule}")]
    SchemeNotListed {
        /// The entry that came closest.
        rule: RuleRef,
        /// The host asked for.
        host: String,
        /// The scheme asked for.
        scheme: Scheme,
    },
    /// The entry does not have this port.
    #[error("port {port} of `{host}` is not allowed by {rule}")]
    PortNotListed {
        /// The entry that came closest.
        rule: RuleRef,
        /// The host asked for.
        host: String,
        /// The port asked for.
        port: u16,
        /// The ports that the entry allows.
        listed: Vec<u16>,
    },
    /// The host is, or resolves to, an address outside the public internet.
    #[error("`{host}` is at {address}, a {kind} address")]
    AddressRefused {
        /// The host asked for.
        host: String,
        /// The address that would have been dialled.
        address: IpAddr,
        /// The network it belongs to.
        kind: AddressKind,
    },
    /// Two places of the request name different hosts.
    #[error("the request names two hosts: `{host}` in its head, `{other}` in {place}")]
    HostMismatch {
        /// The host of the Host header or `:authority`.
        host: String,
        /// The host named elsewhere.
        other: String,
        /// Where the other one stands.
        place: HostPlace,
    },
    /// The host is not one.
    #[error(transparent)]
    InvalidHost(#[from] InvalidHost),
    /// The target is refused before any entry is asked.
    #[error(transparent)]
    MalformedTarget(#[from] MalformedTarget),
    /// The body is not a GraphQL operation that the entry allows.
    #[error("{rule} does not allow this GraphQL request: {reason}")]
    Graphql {
        /// The entry with the rules.
        rule: RuleRef,
        /// What is wrong with the body.
        reason: GraphqlDenial,
    },
}

impl Denial {
    /// A stable name for the reason, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::HostNotListed { .. } => "host_not_listed",
            Self::PathNotListed { .. } => "path_not_listed",
            Self::QueryNotListed { .. } => "query_not_listed",
            Self::MethodNotListed { .. } => "method_not_listed",
            Self::SchemeNotListed { .. } => "scheme_not_listed",
            Self::PortNotListed { .. } => "port_not_listed",
            Self::AddressRefused { .. } => "address_refused",
            Self::HostMismatch { .. } => "host_mismatch",
            Self::InvalidHost(_) => "invalid_host",
            Self::MalformedTarget(_) => "malformed_target",
            Self::Graphql { .. } => "graphql_operation_not_listed",
        }
    }

    /// What to write into the allowlist, or what to change in the request.
    pub fn hint(&self) -> String {
        match self {
            Self::HostNotListed { host } => format!("add `{host}` to `domains` in the allowlist"),
            Self::PathNotListed { host, path } => {
                format!(
                    "add `{{host: {host:?}, path: {path:?}}}` to `url_prefixes` in the allowlist"
                )
            }
            Self::QueryNotListed { path, .. } => {
                format!("end the path of the entry with `*` to allow queries: `{path}*`")
            }
            Self::MethodNotListed { rule, method, .. } => {
                format!("add `{method}` to `methods` of {rule}")
            }
            Self::SchemeNotListed { rule, scheme, .. } => match scheme {
                Scheme::Http => format!("use https, or add `schemes: [https, http]` to {rule}"),
                Scheme::Https => format!("add `https` to `schemes` of {rule}"),
            },
            Self::PortNotListed {
                rule, port, listed, ..
            } => {
                let ports = listed.iter().chain([port]).map(u16::to_string);
                let ports = Vec::from_iter(ports).join(", ");
                format!("write `ports: [{ports}]` into {rule}")
            }
            Self::AddressRefused { address, kind, .. } => match kind {
                AddressKind::Metadata => format!(
                    "metadata services hand out credentials; an entry whose host is `{address}` allows this one"
                ),
                AddressKind::Multicast | AddressKind::Unspecified => {
                    "no entry can allow such an address".to_owned()
                }
                AddressKind::Public
                | AddressKind::Loopback
                | AddressKind::Private
                | AddressKind::LinkLocal
                | AddressKind::Shared
                | AddressKind::Reserved => {
                    "add `private_addresses: true` to the entry of this host".to_owned()
                }
            },
            Self::HostMismatch { .. } => {
                "send the same host in SNI, Host and the target".to_owned()
            }
            Self::InvalidHost(_) => {
                "send the host as a plain name or a canonical address".to_owned()
            }
            Self::MalformedTarget(_) => "send the path as it is to be served, resolved".to_owned(),
            Self::Graphql { rule, reason } => reason.hint(*rule),
        }
    }
}

/// Where a request names its host, beside its Host header or `:authority`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum HostPlace {
    /// The server name of the TLS handshake.
    Sni,
    /// The Host header, beside an `:authority`.
    HostHeader,
    /// A target in absolute form.
    Target,
}

impl fmt::Display for HostPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sni => "the TLS handshake",
            Self::HostHeader => "the Host header",
            Self::Target => "the request target",
        })
    }
}
