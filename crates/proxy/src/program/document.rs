//! What the program is told, as lines of JSON. They hold real secrets and the authority's key: they
//! travel over a pipe and never to a file.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use cordon_policy::{Allowlist, Authority};
use cordon_secrets::SecretReplacements;
use data_encoding::BASE64;
use http::HeaderValue;
use rustls::{RootCertStore, pki_types::CertificateDer};
use serde::{Deserialize, Serialize, Serializer};
use zeroize::Zeroizing;

use super::Token;
use crate::{
    AuthorityParts, CertificateAuthority, Error, HostRoots, HttpProxy, Limits, Settings, Upstream,
};

/// How to serve. Where records go is the keeper's business and stays behind.
#[derive(Debug)]
pub struct Document {
    /// Everything but the authority.
    pub settings: Settings,
    /// What signs the leaves.
    pub authority: CertificateAuthority,
    /// What PID 1 of the workload's container brings, where it is to be passed on.
    pub relay: Option<Token>,
}

/// What a program that serves can be told.
#[derive(Debug)]
pub enum Order {
    /// Judge by another allowlist from now on.
    Allowlist(Allowlist),
    /// Use other secrets from now on.
    Secrets(SecretReplacements),
    /// Pass these bytes on to PID 1; none at all are the end.
    Relay(Vec<u8>),
    /// Cut every connection, print the last records and end.
    Stop,
}

impl Document {
    /// The line that makes a program serve as `settings` say, for whoever trusts `authority`, and pass on
    /// who brings the token of `relay`.
    pub fn line(
        settings: &Settings,
        authority: &CertificateAuthority,
        relay: Option<&Token>,
    ) -> Result<Zeroizing<Vec<u8>>, Error> {
        let parts = authority.to_parts();
        let replacements = settings
            .replacements
            .to_stdin_bytes()
            .map_err(Error::Handover)?;
        let upstream = &settings.upstream;
        line(&Wire {
            version: VERSION,
            address: settings.address,
            allowlist: settings.allowlist.to_json().into(),
            replacements: text(&replacements)?.to_owned().into(),
            certificate: parts.certificate_pem.clone(),
            key: parts.key_pem.as_str().to_owned().into(),
            not_before: parts.not_before,
            not_after: parts.not_after,
            upstream: WireUpstream {
                dns_servers: upstream.dns_servers.clone(),
                roots: WireRoots::of(upstream),
                http_proxy: upstream.http_proxy.as_ref().map(WireHttpProxy::of),
                resolve_time: upstream.resolve_time,
                connect_time: upstream.connect_time,
                tls_time: upstream.tls_time,
                first_byte_time: upstream.first_byte_time,
                idle_time: upstream.idle_time,
                keep_alive_time: upstream.keep_alive_time,
            },
            limits: settings.limits.clone(),
            relay: relay.map(|token| token.encode().into()),
        })
    }

    /// The line that makes a program pass on who brings the token at that address, and serve nothing.
    pub fn relay_line(address: Ipv4Addr, relay: &Token) -> Result<Zeroizing<Vec<u8>>, Error> {
        line(&WireRelay {
            version: VERSION,
            address,
            relay: relay.encode().into(),
        })
    }

    /// Reads what [`Document::line`] wrote.
    pub(super) fn from_line(line: &[u8]) -> Result<Self, Error> {
        let wire: Wire = serde_json::from_slice(line).map_err(|_| Error::BadDocument)?;
        if wire.version != VERSION {
            return Err(Error::BadDocument);
        }
        let authority = CertificateAuthority::from_parts(&AuthorityParts {
            certificate_pem: wire.certificate,
            key_pem: Zeroizing::new(wire.key.0.to_string()),
            not_before: wire.not_before,
            not_after: wire.not_after,
        })?;
        let relay = wire
            .relay
            .map(|token| Token::decode(&token.0))
            .transpose()?;
        let settings = Settings {
            replacements: replacements(&wire.replacements)?,
            upstream: wire.upstream.into_upstream()?,
            limits: wire.limits,
            ..Settings::new(wire.address, allowlist(&wire.allowlist)?)
        };
        Ok(Self {
            settings,
            authority,
            relay,
        })
    }
}

/// What a program is told first.
pub(super) enum Told {
    /// To serve.
    Serve(Box<Document>),
    /// To pass a connection on, and nothing else.
    Relay(Ipv4Addr, Token),
}

impl Told {
    pub(super) fn from_line(line: &[u8]) -> Result<Self, Error> {
        match serde_json::from_slice::<WireRelay>(line) {
            Ok(wire) if wire.version == VERSION => {
                Ok(Self::Relay(wire.address, Token::decode(&wire.relay.0)?))
            }
            Ok(_) => Err(Error::BadDocument),
            Err(_) => Document::from_line(line).map(|document| Self::Serve(Box::new(document))),
        }
    }
}

impl Order {
    /// The line that says so.
    pub fn line(&self) -> Result<Zeroizing<Vec<u8>>, Error> {
        line(&match self {
            Self::Allowlist(allowlist) => WireOrder::Allowlist(allowlist.to_json().into()),
            Self::Secrets(replacements) => {
                let bytes = replacements.to_stdin_bytes().map_err(Error::Handover)?;
                WireOrder::Secrets(text(&bytes)?.to_owned().into())
            }
            Self::Relay(bytes) => WireOrder::Relay(BASE64.encode(bytes).into()),
            Self::Stop => WireOrder::Stop,
        })
    }

    /// Reads what [`Order::line`] wrote.
    pub(super) fn from_line(line: &[u8]) -> Result<Self, Error> {
        match serde_json::from_slice(line).map_err(|_| Error::BadDocument)? {
            WireOrder::Allowlist(text) => Ok(Self::Allowlist(allowlist(&text)?)),
            WireOrder::Secrets(text) => Ok(Self::Secrets(replacements(&text)?)),
            WireOrder::Relay(text) => {
                let bytes = BASE64.decode(text.0.as_bytes());
                let bytes = bytes.map_err(|_| Error::BadDocument)?;
                Ok(Self::Relay(bytes))
            }
            WireOrder::Stop => Ok(Self::Stop),
        }
    }
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    version: u32,
    address: Ipv4Addr,
    allowlist: Kept,
    replacements: Kept,
    certificate: String,
    key: Kept,
    not_before: u64,
    not_after: u64,
    upstream: WireUpstream,
    limits: Limits,
    relay: Option<Kept>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WireRelay {
    version: u32,
    address: Ipv4Addr,
    relay: Kept,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum WireOrder {
    Allowlist(Kept),
    Secrets(Kept),
    Relay(Kept),
    Stop,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WireUpstream {
    dns_servers: Vec<SocketAddr>,
    roots: WireRoots,
    http_proxy: Option<WireHttpProxy>,
    resolve_time: Duration,
    connect_time: Duration,
    tls_time: Duration,
    first_byte_time: Duration,
    idle_time: Duration,
    keep_alive_time: Duration,
}

/// Certificates as base64 of their DER.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WireRoots {
    /// Whether the program's own are trusted too: an image from scratch has Mozilla's.
    own: bool,
    given: Vec<String>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WireHttpProxy {
    authority: String,
    authorization: Option<Kept>,
    bypass: String,
}

impl WireRoots {
    /// What this host trusts goes along, so that the container trusts the same and nothing else.
    fn of(upstream: &Upstream) -> Self {
        let mut given = match upstream.host_roots {
            HostRoots::Trusted => rustls_native_certs::load_native_certs().certs,
            HostRoots::Ignored => Vec::new(),
        };
        // A host's store may hold what nobody can use as a root.
        given.retain(|certificate| RootCertStore::empty().add(certificate.clone()).is_ok());
        let own = upstream.host_roots == HostRoots::Trusted && given.is_empty();
        let all = given.iter().chain(&upstream.extra_roots);
        Self {
            own,
            given: all.map(|certificate| BASE64.encode(certificate)).collect(),
        }
    }
}

impl WireHttpProxy {
    fn of(proxy: &HttpProxy) -> Self {
        Self {
            authority: proxy.authority.to_string(),
            authorization: proxy
                .authorization
                .as_ref()
                .and_then(|value| value.to_str().ok())
                .map(|value| value.to_owned().into()),
            bypass: proxy.bypass.to_string(),
        }
    }

    fn into_http_proxy(self) -> Result<HttpProxy, Error> {
        let authority = Authority::parse(self.authority.as_bytes());
        let authorization = self
            .authorization
            .map(|value| {
                let mut value = HeaderValue::try_from(value.0.as_str())?;
                value.set_sensitive(true);
                Ok(value)
            })
            .transpose()
            .map_err(|_: http::header::InvalidHeaderValue| Error::BadDocument)?;
        Ok(HttpProxy {
            authority: authority.map_err(|_| Error::BadDocument)?,
            authorization,
            bypass: self.bypass.parse()?,
        })
    }
}

impl WireUpstream {
    fn into_upstream(self) -> Result<Upstream, Error> {
        let decode = |text: &String| match BASE64.decode(text.as_bytes()) {
            Ok(der) => Ok(CertificateDer::from(der)),
            Err(_) => Err(Error::BadDocument),
        };
        Ok(Upstream {
            dns_servers: self.dns_servers,
            host_roots: if self.roots.own {
                HostRoots::Trusted
            } else {
                HostRoots::Ignored
            },
            extra_roots: self
                .roots
                .given
                .iter()
                .map(decode)
                .collect::<Result<_, _>>()?,
            http_proxy: self
                .http_proxy
                .map(WireHttpProxy::into_http_proxy)
                .transpose()?,
            resolve_time: self.resolve_time,
            connect_time: self.connect_time,
            tls_time: self.tls_time,
            first_byte_time: self.first_byte_time,
            idle_time: self.idle_time,
            keep_alive_time: self.keep_alive_time,
        })
    }
}

/// A text that is wiped when it is no longer needed.
#[derive(Deserialize)]
#[serde(from = "String")]
struct Kept(Zeroizing<String>);

impl Serialize for Kept {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl From<String> for Kept {
    fn from(text: String) -> Self {
        Self(Zeroizing::new(text))
    }
}

fn line(wire: &impl Serialize) -> Result<Zeroizing<Vec<u8>>, Error> {
    let mut line = Zeroizing::new(Vec::new());
    serde_json::to_writer(&mut *line, wire).map_err(|_| Error::BadDocument)?;
    line.push(b'\n');
    Ok(line)
}

fn text(bytes: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(bytes).map_err(|_| Error::BadDocument)
}

fn allowlist(text: &Kept) -> Result<Allowlist, Error> {
    Allowlist::from_json(&text.0).map_err(|_| Error::BadDocument)
}

fn replacements(text: &Kept) -> Result<SecretReplacements, Error> {
    SecretReplacements::from_stdin_bytes(text.0.as_bytes()).map_err(Error::Handover)
}

/// Of the lines of both sides; they always come from one build, and this says so when they do not.
const VERSION: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_survive_the_way_into_the_container() {
        let allowlist =
            Allowlist::from_yaml("domains: [{ host: api.example.com, ports: [8443] }]").unwrap();
        let http_proxy: HttpProxy = "http://user:pass@proxy.example:3128".parse().unwrap();
        let settings = Settings {
            upstream: Upstream {
                dns_servers: vec!["192.0.2.1:53".parse().unwrap()],
                http_proxy: Some(http_proxy.bypassing("corp.example, 10.0.0.0/8".parse().unwrap())),
                idle_time: Duration::from_millis(1234),
                ..Upstream::default()
            },
            limits: Limits {
                connections: 3,
                ..Limits::default()
            },
            ..Settings::new([10, 1, 2, 3].into(), allowlist.clone())
        };
        let authority = CertificateAuthority::generate().unwrap();
        let token = Token::new([7; 32]);
        let mut line = Document::line(&settings, &authority, Some(&token)).unwrap();
        assert_eq!(line.pop(), Some(b'\n'));
        let read = Document::from_line(&line).unwrap();
        assert_eq!(
            read.authority.certificate_pem(),
            authority.certificate_pem()
        );
        assert_eq!(read.settings.allowlist, allowlist);
        assert_eq!(read.relay, Some(token));
        assert_eq!(read.settings.address, settings.address);
        assert_eq!(
            format!("{:?}", read.settings.limits),
            format!("{:?}", settings.limits)
        );
        let (was, is) = (&settings.upstream, &read.settings.upstream);
        assert_eq!(
            (&was.dns_servers, was.idle_time),
            (&is.dns_servers, is.idle_time)
        );
        let proxy = is.http_proxy.as_ref().unwrap();
        assert_eq!(proxy.authority.to_string(), "proxy.example:3128");
        assert_eq!(
            proxy.authorization,
            was.http_proxy.as_ref().unwrap().authorization
        );
        assert_eq!(proxy.bypass.to_string(), "corp.example,10.0.0.0/8");
    }

    #[test]
    fn orders_survive_and_other_lines_are_refused() {
        let allowlist = Allowlist::from_yaml("domains: [a.example]").unwrap();
        let line = Order::Allowlist(allowlist.clone()).line().unwrap();
        assert!(matches!(Order::from_line(&line), Ok(Order::Allowlist(read)) if read == allowlist));
        assert!(matches!(
            Order::from_line(&Order::Stop.line().unwrap()),
            Ok(Order::Stop)
        ));
        let line = Order::Relay(b"G\0".to_vec()).line().unwrap();
        assert!(matches!(Order::from_line(&line), Ok(Order::Relay(read)) if read == b"G\0"));
        for bad in [
            "",
            "{}",
            "{\"relay\": \"no base64\"}",
            "\"go\"",
            "{\"allowlist\": \"{}x\"}",
            "{\"version\": 2}",
        ] {
            assert!(Order::from_line(bad.as_bytes()).is_err(), "{bad}");
            assert!(Told::from_line(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
