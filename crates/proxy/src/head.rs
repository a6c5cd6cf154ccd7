//! What a request head means: which host, which target, and what kind of exchange.
//!
//! A head may name its host in up to three places, and TLS names it in a fourth. They all agree, or
//! the request is refused.

use bytes::Bytes;
use cordon_policy::{Authority, Denial, Host, HostPlace, Scheme, Target};
use http::{HeaderMap, HeaderValue, Method, Uri, Version, header, request::Parts, uri};
use hyper::ext::Protocol;

use crate::{
    log::{Location, Place},
    refusal::{MalformedHead, Refusal},
};

/// A head that means one thing.
#[derive(Debug)]
pub(crate) struct Head {
    /// Where it goes, with the port as written.
    pub(crate) authority: Authority,
    /// The port that is meant.
    pub(crate) port: u16,
    pub(crate) target: Target,
    pub(crate) kind: Kind,
}

/// What kind of exchange a request begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// A request and its response.
    Plain,
    /// A WebSocket by an HTTP/1 upgrade.
    Upgrade,
    /// A WebSocket on an HTTP/2 stream.
    ExtendedConnect,
}

/// How the connection was made.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) scheme: Scheme,
    /// The name of the TLS handshake, where there was one.
    pub(crate) sni: Option<Host>,
}

/// Reads a head. The location is what the log shows, as well as it can be told.
pub(crate) fn understand(parts: &Parts, arrival: &Arrival) -> (Location, Result<Head, Refusal>) {
    let kind = match kind(parts) {
        Ok(kind) => kind,
        Err(refusal) => return (any_location(parts, arrival), Err(refusal)),
    };
    let authority = match authority(parts, arrival) {
        Ok(authority) => authority,
        Err(refusal) => return (any_location(parts, arrival), Err(refusal)),
    };
    let raw = raw_target(&parts.uri);
    let location = Location::Url {
        scheme: arrival.scheme,
        place: place(&authority, arrival.scheme),
        target: raw.clone(),
    };
    let target = match Target::parse(&raw) {
        Ok(target) => target,
        Err(malformed) => return (location, Err(Denial::MalformedTarget(malformed).into())),
    };
    let port = authority
        .port
        .unwrap_or_else(|| arrival.scheme.default_port());
    (
        location,
        Ok(Head {
            authority,
            port,
            target,
            kind,
        }),
    )
}

fn kind(parts: &Parts) -> Result<Kind, Refusal> {
    if parts.method == Method::CONNECT {
        return match parts.extensions.get::<Protocol>() {
            Some(protocol) if protocol.as_str() == "websocket" => {
                no_body(&parts.headers)?;
                Ok(Kind::ExtendedConnect)
            }
            Some(protocol) => Err(Refusal::Upgrade(Bytes::copy_from_slice(
                protocol.as_str().as_bytes(),
            ))),
            None => Err(Refusal::Tunnel),
        };
    }
    let Some(protocol) = parts.headers.get(header::UPGRADE) else {
        return Ok(Kind::Plain);
    };
    let websocket = parts.method == Method::GET
        && parts.version == Version::HTTP_11
        && protocol.as_bytes().eq_ignore_ascii_case(b"websocket")
        && has_token(&parts.headers, &header::CONNECTION, "upgrade");
    if !websocket {
        return Err(Refusal::Upgrade(Bytes::copy_from_slice(
            protocol.as_bytes(),
        )));
    }
    no_body(&parts.headers)?;
    Ok(Kind::Upgrade)
}

/// The upstream would take the first frames for the body that was announced.
fn no_body(headers: &HeaderMap) -> Result<(), MalformedHead> {
    let announced = headers.contains_key(header::TRANSFER_ENCODING)
        || headers.contains_key(header::CONTENT_LENGTH);
    if announced {
        return Err(MalformedHead::UpgradeBody);
    }
    Ok(())
}

/// Whether a list header holds a token.
pub(crate) fn has_token(headers: &HeaderMap, name: &header::HeaderName, token: &str) -> bool {
    headers.get_all(name).iter().any(|value| {
        value
            .as_bytes()
            .split(|&byte| byte == b',')
            .any(|item| item.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
    })
}

fn authority(parts: &Parts, arrival: &Arrival) -> Result<Authority, Refusal> {
    if let Some(scheme) = parts.uri.scheme()
        && scheme.as_str() != arrival.scheme.as_str()
    {
        return Err(MalformedHead::Scheme.into());
    }
    let header = host_header(&parts.headers)?
        .map(|value| parse(value.as_bytes(), arrival))
        .transpose()?;
    let target = parts
        .uri
        .authority()
        .map(|authority| parse(authority.as_str().as_bytes(), arrival));
    let (head, other) = match (header, target.transpose()?) {
        (None, None) => return Err(MalformedHead::NoHost.into()),
        (Some(only), None) | (None, Some(only)) => (only, None),
        (Some(header), Some(target)) if parts.version == Version::HTTP_2 => {
            (target, Some((header, HostPlace::HostHeader)))
        }
        (Some(header), Some(target)) => (header, Some((target, HostPlace::Target))),
    };
    if let Some((other, place)) = other {
        let port = |authority: &Authority| {
            authority
                .port
                .unwrap_or_else(|| arrival.scheme.default_port())
        };
        if other.host != head.host || port(&other) != port(&head) {
            return Err(mismatch(&head, other.to_string(), place));
        }
    }
    if let Some(sni) = &arrival.sni
        && *sni != head.host
    {
        return Err(mismatch(&head, sni.to_string(), HostPlace::Sni));
    }
    Ok(head)
}

fn mismatch(head: &Authority, other: String, place: HostPlace) -> Refusal {
    Denial::HostMismatch {
        host: head.to_string(),
        other,
        place,
    }
    .into()
}

fn host_header(headers: &HeaderMap) -> Result<Option<&HeaderValue>, MalformedHead> {
    let mut values = headers.get_all(header::HOST).iter();
    let first = values.next();
    match values.next() {
        Some(_) => Err(MalformedHead::TwoHosts),
        None => Ok(first),
    }
}

fn parse(raw: &[u8], arrival: &Arrival) -> Result<Authority, Refusal> {
    // Most requests spell the host as TLS did, which has been normalised already.
    if let Some(sni) = &arrival.sni
        && sni.as_str().as_bytes() == raw
    {
        return Ok(Authority {
            host: sni.clone(),
            port: None,
        });
    }
    Authority::parse(raw).map_err(|error| Denial::InvalidHost(error).into())
}

fn place(authority: &Authority, scheme: Scheme) -> Place {
    let port = authority.port.filter(|&port| port != scheme.default_port());
    Place::Known {
        host: authority.host.clone(),
        port,
    }
}

/// The target as it was sent, without scheme and authority.
fn raw_target(uri: &Uri) -> Bytes {
    match uri.path_and_query().map(uri::PathAndQuery::as_str) {
        None | Some("") | Some("/") => Bytes::from_static(b"/"),
        Some(target) => Bytes::copy_from_slice(target.as_bytes()),
    }
}

/// For requests whose host nobody can tell.
fn any_location(parts: &Parts, arrival: &Arrival) -> Location {
    let from_header = || parts.headers.get(header::HOST).map(HeaderValue::as_bytes);
    let from_uri = parts
        .uri
        .authority()
        .map(|authority| authority.as_str().as_bytes());
    if parts.method == Method::CONNECT && parts.extensions.get::<Protocol>().is_none() {
        return Location::Tunnel(Bytes::copy_from_slice(from_uri.unwrap_or_default()));
    }
    let raw = from_header().or(from_uri).unwrap_or_default();
    let place = match Authority::parse(raw) {
        Ok(authority) => place(&authority, arrival.scheme),
        Err(_) => Place::Raw(Bytes::copy_from_slice(raw)),
    };
    Location::Url {
        scheme: arrival.scheme,
        place,
        target: raw_target(&parts.uri),
    }
}
