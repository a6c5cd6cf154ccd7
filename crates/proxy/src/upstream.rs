//! The way out: resolves, checks, dials, verifies and sends what the policy has admitted.
//!
//! Nothing here decides whether a request may go; it only makes sure that it goes where the grant
//! says, to an address that the grant admits.

mod dial;
mod pool;
mod reach;
mod resolve;
mod send;
mod stream;
mod trust;

use std::{io, net::SocketAddr};

use cordon_policy::{Denial, Grant, Host, Scheme};
use http::StatusCode;

pub(crate) use pool::Lease;
pub use reach::Roots;
pub(crate) use send::{Sent, Upstreams, describe};

/// Where a request goes, and by what right.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route<'a> {
    pub(crate) scheme: Scheme,
    pub(crate) host: &'a Host,
    pub(crate) port: u16,
    pub(crate) leg: Leg,
    pub(crate) grant: &'a Grant<'a>,
}

impl Route<'_> {
    fn check(&self, address: SocketAddr) -> Result<(), Trouble> {
        self.grant
            .check_address(self.host, address.ip())
            .map_err(Trouble::Address)
    }
}

/// Which protocol the upstream connection speaks.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Leg {
    /// What TLS negotiates; HTTP/1.1 in the clear.
    Auto,
    /// HTTP/1.1, for WebSocket.
    Http1,
    /// HTTP/2 in the clear, because the client began so.
    Http2,
}

/// Why an upstream did not answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// The address is not one that the grant admits.
    #[error(transparent)]
    Address(Denial),
    #[error("the host's DNS settings cannot be used: {reason}")]
    Resolver { reason: String },
    #[error("the name `{host}` does not exist")]
    NoSuchName { host: String },
    #[error("the name `{host}` could not be resolved: {reason}")]
    Resolve { host: String, reason: String },
    #[error("the name `{host}` was not resolved in time")]
    ResolveTimeout { host: String },
    #[error("cannot connect to `{host}` port {port}: {source}")]
    Connect {
        host: String,
        port: u16,
        source: io::Error,
    },
    #[error("`{host}` port {port} did not accept a connection in time")]
    ConnectTimeout { host: String, port: u16 },
    #[error("the certificate of `{host}` is not trusted: {reason}")]
    Certificate { host: String, reason: String },
    #[error("the TLS handshake with `{host}` failed: {reason}")]
    Tls { host: String, reason: String },
    #[error("`{host}` did not finish the TLS handshake in time")]
    TlsTimeout { host: String },
    #[error("the proxy {proxy} refused to connect to `{host}`: {reason}")]
    Proxy {
        proxy: String,
        host: String,
        reason: String,
    },
    #[error("`{host}` broke off the exchange: {reason}")]
    Broken { host: String, reason: String },
    #[error("`{host}` did not answer in time")]
    AnswerTimeout { host: String },
    /// No fault of the upstream's: the workload broke off its own request.
    #[error("the client broke off its request")]
    ClientGone,
}

impl Trouble {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Address(_) => StatusCode::FORBIDDEN,
            Self::ClientGone => StatusCode::BAD_REQUEST,
            Self::ResolveTimeout { .. }
            | Self::ConnectTimeout { .. }
            | Self::TlsTimeout { .. }
            | Self::AnswerTimeout { .. } => StatusCode::GATEWAY_TIMEOUT,
            Self::Resolver { .. }
            | Self::NoSuchName { .. }
            | Self::Resolve { .. }
            | Self::Connect { .. }
            | Self::Certificate { .. }
            | Self::Tls { .. }
            | Self::Proxy { .. }
            | Self::Broken { .. } => StatusCode::BAD_GATEWAY,
        }
    }

    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Address(denial) => denial.code(),
            Self::Resolver { .. } | Self::NoSuchName { .. } | Self::Resolve { .. } => "dns_failure",
            Self::ResolveTimeout { .. } => "dns_timeout",
            Self::Connect { .. } => "connect_failure",
            Self::ConnectTimeout { .. } => "connect_timeout",
            Self::Certificate { .. } => "certificate_not_trusted",
            Self::Tls { .. } => "tls_failure",
            Self::TlsTimeout { .. } => "tls_timeout",
            Self::Proxy { .. } => "proxy_failure",
            Self::Broken { .. } => "upstream_broke_off",
            Self::AnswerTimeout { .. } => "answer_timeout",
            Self::ClientGone => "client_gone",
        }
    }

    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Address(denial) => Some(denial.hint()),
            Self::Resolver { .. } => {
                Some("name the upstream DNS servers in the settings".to_owned())
            }
            Self::Certificate { .. } => {
                Some("if a private CA issued it, add that CA to the upstream CA bundle".to_owned())
            }
            Self::NoSuchName { .. }
            | Self::Resolve { .. }
            | Self::ResolveTimeout { .. }
            | Self::Connect { .. }
            | Self::ConnectTimeout { .. }
            | Self::Tls { .. }
            | Self::TlsTimeout { .. }
            | Self::Proxy { .. }
            | Self::Broken { .. }
            | Self::AnswerTimeout { .. }
            | Self::ClientGone => None,
        }
    }
}
