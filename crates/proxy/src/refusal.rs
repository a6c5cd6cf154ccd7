//! Every way in which a request fails, and the one place that says so to the workload.
//!
//! A refusal knows whose fault it is: the request's (4xx), the policy's (403) or the upstream's (502,
//! 504). Its text tells the reader what was refused and what to change.

use bytes::Bytes;
use cordon_policy::Denial;
use cordon_secrets::Redactor;
use http::{HeaderValue, Response, StatusCode, header};
use hyper::ext::ReasonPhrase;
use serde::Serialize;

use crate::{
    body::ResponseBody,
    credentials::Refused,
    log::{Escaped, Location, escaped},
    upstream::Trouble,
};

/// Why a request gets an answer from the proxy and not from its upstream.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// The allowlist does not admit it.
    #[error(transparent)]
    Denied(#[from] Denial),
    /// It asks for a tunnel.
    #[error("CONNECT is refused: the sandbox is no HTTP proxy and opens no tunnels")]
    Tunnel,
    /// It asks to change to a protocol that nobody could look into.
    #[error("the upgrade to `{}` is refused; only WebSocket is passed on", Escaped(.0))]
    Upgrade(Bytes),
    /// Its head does not mean one thing.
    #[error(transparent)]
    Malformed(#[from] MalformedHead),
    /// It, or its response, does not pass for the sake of credentials.
    #[error(transparent)]
    Credentials(#[from] Refused),
    /// The upstream could not be reached or did not answer.
    #[error(transparent)]
    Upstream(#[from] Trouble),
    /// The proxy is being stopped.
    #[error("the network sandbox is shutting down")]
    Stopping,
}

/// What is wrong with a request head.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum MalformedHead {
    #[error("the request line is not one of HTTP")]
    RequestLine,
    #[error("the protocol version is not HTTP/1.0 or HTTP/1.1")]
    Version,
    #[error("a line ends neither with CR LF nor with a space")]
    LineEnd,
    #[error("a header line begins with no header name, or is folded")]
    FieldName,
    #[error("a header value holds a control character")]
    FieldValue,
    #[error("the request target is not a URL")]
    Target,
    #[error("the scheme of the request target is not that of the connection")]
    Scheme,
    #[error("the request names no host")]
    NoHost,
    #[error("the request has two Host headers")]
    TwoHosts,
    #[error("Content-Length is not a number")]
    Length,
    #[error("the request has two Content-Length headers")]
    TwoLengths,
    #[error("the request has both Content-Length and Transfer-Encoding")]
    LengthAndChunks,
    #[error("Transfer-Encoding is not `chunked`, once, in HTTP/1.1")]
    TransferEncoding,
    #[error("a request for a WebSocket announces a body")]
    UpgradeBody,
    #[error("the HTTP/2 request is malformed, or its connection ended before it was served")]
    Http2,
    #[error("the connection ended within a request head")]
    Incomplete,
    #[error("the request head is longer than the limit")]
    TooLarge,
    #[error("the request has more header fields than the limit")]
    TooManyFields,
    #[error("the request head took longer than the limit")]
    TooSlow,
}

impl Refusal {
    /// The status of the answer.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Denied(_) | Self::Tunnel | Self::Upgrade(_) => StatusCode::FORBIDDEN,
            Self::Malformed(malformed) => malformed.status(),
            Self::Credentials(refused) => refused.status(),
            Self::Upstream(trouble) => trouble.status(),
            Self::Stopping => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// A stable name for the reason.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Denied(denial) => denial.code(),
            Self::Tunnel => "tunnel_refused",
            Self::Upgrade(_) => "upgrade_refused",
            Self::Malformed(_) => "malformed_request",
            Self::Credentials(refused) => refused.code(),
            Self::Upstream(trouble) => trouble.code(),
            Self::Stopping => "stopping",
        }
    }

    /// The family of the reason, as clients of the older log format know it.
    fn family(&self) -> &'static str {
        match self {
            Self::Denied(_) | Self::Tunnel | Self::Upgrade(_) => BLOCKED,
            Self::Malformed(_) => "malformed_request",
            Self::Credentials(refused) => refused.code(),
            Self::Upstream(Trouble::Address(_)) => BLOCKED,
            Self::Upstream(_) => "upstream_failure",
            Self::Stopping => "stopping",
        }
    }

    /// What the text log adds in parentheses. The plain cases speak for themselves.
    pub(crate) fn note(&self) -> Option<String> {
        match self {
            Self::Denied(denial) | Self::Upstream(Trouble::Address(denial)) => denial_note(denial),
            Self::Tunnel => Some("tunneling not allowed".to_owned()),
            Self::Upgrade(protocol) => Some(format!("upgrade not allowed: {}", escaped(protocol))),
            Self::Malformed(malformed) => Some(format!("malformed request: {malformed}")),
            Self::Credentials(refused) => Some(refused.to_string()),
            Self::Upstream(trouble) => Some(trouble.to_string()),
            Self::Stopping => Some("shutting down".to_owned()),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Denied(denial) => Some(denial.hint()),
            Self::Credentials(refused) => refused.hint().map(str::to_owned),
            Self::Upstream(trouble) => trouble.hint(),
            Self::Tunnel => {
                Some("connect to the host itself; the sandbox answers for every name".to_owned())
            }
            Self::Upgrade(_) | Self::Malformed(_) | Self::Stopping => None,
        }
    }

    /// The answer, as JSON, without real values.
    pub(crate) fn response(
        &self,
        id: u64,
        method: &[u8],
        location: &Location,
        redactor: Option<&Redactor>,
    ) -> Response<ResponseBody> {
        let (host, path) = match location {
            Location::Url { place, target, .. } => (place.text(), Some(escaped(target))),
            Location::Tunnel(authority) => (escaped(authority), None),
        };
        let url_host = match self {
            Self::Denied(Denial::HostMismatch { other, .. }) => Some(other.as_str()),
            _ => None,
        };
        let body = Answer {
            error: self.family(),
            code: self.code(),
            host,
            url_host,
            path,
            method: escaped(method),
            message: self.to_string(),
            hint: self.hint(),
            record: id,
        };
        // Strings and numbers always serialise.
        let mut body = serde_json::to_string(&body).unwrap_or_default();
        if let Some(redactor) = redactor {
            body = redactor.redact(&body).into_owned();
        }
        let mut response = Response::new(ResponseBody::own(body.into_bytes()));
        *response.status_mut() = self.status();
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        if self.family() == BLOCKED {
            response.extensions_mut().insert(BLOCKED_REASON);
        }
        if matches!(self, Self::Malformed(_)) {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        response
    }
}

impl MalformedHead {
    fn status(self) -> StatusCode {
        match self {
            Self::TooLarge | Self::TooManyFields => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::RequestLine
            | Self::Version
            | Self::LineEnd
            | Self::FieldName
            | Self::FieldValue
            | Self::Target
            | Self::Scheme
            | Self::NoHost
            | Self::TwoHosts
            | Self::Length
            | Self::TwoLengths
            | Self::LengthAndChunks
            | Self::TransferEncoding
            | Self::UpgradeBody
            | Self::Http2
            | Self::Incomplete => StatusCode::BAD_REQUEST,
        }
    }
}

fn denial_note(denial: &Denial) -> Option<String> {
    match denial {
        Denial::HostNotListed { .. }
        | Denial::PathNotListed { .. }
        | Denial::QueryNotListed { .. }
        | Denial::MethodNotListed { .. } => None,
        Denial::HostMismatch { host, other, .. } => {
            Some(format!("host mismatch: header={host}, url={other}"))
        }
        Denial::SchemeNotListed { .. }
        | Denial::PortNotListed { .. }
        | Denial::AddressRefused { .. }
        | Denial::InvalidHost(_)
        | Denial::MalformedTarget(_)
        | Denial::Graphql { .. } => Some(denial.to_string()),
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    error: &'static str,
    code: &'static str,
    host: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    url_host: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    method: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    record: u64,
}

const BLOCKED: &str = "blocked_by_network_allowlist";

/// Many clients show of a 403 only its status line, and people look for the mistake at the server's.
const BLOCKED_REASON: ReasonPhrase =
    ReasonPhrase::from_static(b"Blocked by the sandbox's network allowlist");
