//! The proxy of a company, between us and the outside, and the hosts that are reached without it.

use std::{fmt, net::IpAddr, str::FromStr};

use cordon_policy::{Authority, Host};
use data_encoding::BASE64;
use http::HeaderValue;

use crate::Error;

/// An HTTP proxy between us and the outside, asked with CONNECT.
///
/// It resolves the names itself, so the addresses behind them cannot be checked here: with a proxy
/// set, what private addresses are reachable is the proxy's decision. Hosts that are written as
/// addresses, and those that bypass it, are checked as ever.
#[derive(Clone)]
pub struct HttpProxy {
    pub(crate) authority: Authority,
    pub(crate) authorization: Option<HeaderValue>,
    pub(crate) bypass: Bypass,
}

impl HttpProxy {
    /// The same proxy, asked with these credentials: `user:password`, as they are.
    pub fn with_credentials(mut self, credentials: &[u8]) -> Result<Self, Error> {
        self.authorization = Some(basic(credentials).ok_or(Error::ProxyCredentials)?);
        Ok(self)
    }

    /// The same proxy, but for these hosts.
    #[must_use]
    pub fn bypassing(self, bypass: Bypass) -> Self {
        Self { bypass, ..self }
    }

    /// Whether it is asked with credentials.
    pub fn has_credentials(&self) -> bool {
        self.authorization.is_some()
    }

    pub(crate) fn port(&self) -> u16 {
        self.authority.port.unwrap_or(80)
    }
}

impl FromStr for HttpProxy {
    type Err = Error;

    /// Reads `http://[user:password@]host[:port]`; the scheme may be left out.
    fn from_str(url: &str) -> Result<Self, Error> {
        let rest = url.strip_prefix("http://").unwrap_or(url);
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (user, place) = match rest.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, rest),
        };
        let bad = || Error::ProxyUrl {
            url: place.to_owned(),
        };
        let authority = Authority::parse(place.as_bytes()).map_err(|_| bad())?;
        let authorization = match user {
            Some(user) => {
                let user = percent_encoding::percent_decode_str(user).collect::<Vec<_>>();
                Some(basic(&user).ok_or_else(bad)?)
            }
            None => None,
        };
        Ok(Self {
            authority,
            authorization,
            bypass: Bypass::default(),
        })
    }
}

impl fmt::Debug for HttpProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpProxy({})", self.authority)
    }
}

fn basic(credentials: &[u8]) -> Option<HeaderValue> {
    let value = format!("Basic {}", BASE64.encode(credentials));
    let mut value = HeaderValue::try_from(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Hosts that are reached without the proxy, written as programs write them in `NO_PROXY`.
///
/// ```
/// # use cordon_policy::Host;
/// # use cordon_proxy::Bypass;
/// let bypass: Bypass = "corp.example, .lab.example, 10.0.0.0/8, 192.0.2.7:8080".parse()?;
/// assert!(bypass.covers(&Host::parse("git.corp.example")?, 443));
/// assert!(!bypass.covers(&Host::parse("lab.example")?, 443));
/// assert!(bypass.covers(&Host::parse("10.1.2.3")?, 443));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Bypass {
    entries: Vec<Entry>,
}

impl Bypass {
    /// Whether the host is reached without the proxy. Networks cover hosts that are written as addresses.
    pub fn covers(&self, host: &Host, port: u16) -> bool {
        self.entries.iter().any(|entry| entry.covers(host, port))
    }
}

impl FromStr for Bypass {
    type Err = Error;

    /// Reads entries with commas or spaces between them: `*` for every host, a name for itself and all below it, a
    /// name behind a dot for what is below it alone, an address, a network; a port may follow.
    fn from_str(list: &str) -> Result<Self, Error> {
        let words = list.split([',', ' ', '\t']).filter(|word| !word.is_empty());
        let entries = words.map(|word| {
            Entry::parse(word).ok_or_else(|| Error::ProxyBypass {
                entry: word.to_owned(),
            })
        });
        let entries = entries.collect::<Result<_, _>>()?;
        Ok(Self { entries })
    }
}

impl fmt::Display for Bypass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.entries.iter().map(Entry::to_string);
        f.write_str(&entries.collect::<Vec<_>>().join(","))
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct Entry {
    hosts: Hosts,
    port: Option<u16>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Hosts {
    All,
    /// This one, and everything below it.
    From(Host),
    /// Everything below this one.
    Below(Host),
    /// Addresses that agree in so many bits.
    Network(IpAddr, u8),
}

impl Entry {
    fn parse(word: &str) -> Option<Self> {
        if let Some((address, bits)) = word.split_once('/') {
            let address: IpAddr = address.parse().ok()?;
            let bits = bits.parse().ok()?;
            let hosts = (bits <= width(address)).then_some(Hosts::Network(address, bits))?;
            return Some(Self { hosts, port: None });
        }
        // An IPv6 address may stand without its brackets.
        if let Ok(host) = Host::parse(word) {
            let hosts = Hosts::From(host);
            return Some(Self { hosts, port: None });
        }
        if let Some(rest) = word.strip_prefix('*')
            && (rest.is_empty() || rest.starts_with(':'))
        {
            let port = rest.strip_prefix(':').map(str::parse).transpose().ok()?;
            let hosts = Hosts::All;
            return Some(Self { hosts, port });
        }
        let below = word.strip_prefix("*.").or_else(|| word.strip_prefix('.'));
        let Authority { host, port } = Authority::parse(below.unwrap_or(word).as_bytes()).ok()?;
        let hosts = match below {
            Some(_) => Hosts::Below(host),
            None => Hosts::From(host),
        };
        Some(Self { hosts, port })
    }

    fn covers(&self, host: &Host, port: u16) -> bool {
        self.port.is_none_or(|listed| listed == port) && self.hosts.cover(host)
    }
}

impl Hosts {
    fn cover(&self, host: &Host) -> bool {
        match self {
            Self::All => true,
            Self::From(name) => host == name || is_below(host, name),
            Self::Below(name) => is_below(host, name),
            Self::Network(network, bits) => host
                .ip()
                .is_some_and(|address| in_network(address, *network, *bits)),
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = |host: &Host| Authority {
            host: host.clone(),
            port: self.port,
        };
        match &self.hosts {
            Hosts::All => match self.port {
                Some(port) => write!(f, "*:{port}"),
                None => f.write_str("*"),
            },
            Hosts::From(host) => place(host).fmt(f),
            Hosts::Below(host) => write!(f, ".{}", place(host)),
            Hosts::Network(address, bits) => write!(f, "{address}/{bits}"),
        }
    }
}

fn is_below(host: &Host, name: &Host) -> bool {
    // Addresses have nothing below them.
    let parent = host.as_str().strip_suffix(name.as_str());
    name.ip().is_none() && parent.is_some_and(|rest| rest.ends_with('.'))
}

fn in_network(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let (a, b) = match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(a.to_bits()), u128::from(b.to_bits())),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits()),
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return false,
    };
    let shift = u32::from(width(address) - bits);
    // A network of no bits holds every address.
    a.checked_shr(shift) == b.checked_shr(shift)
}

fn width(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(list: &str, host: &str, port: u16) -> bool {
        let bypass: Bypass = list.parse().unwrap();
        let again: Bypass = bypass.to_string().parse().unwrap();
        assert_eq!(again, bypass);
        bypass.covers(&Host::parse(host).unwrap(), port)
    }

    #[test]
    fn hosts_are_bypassed_as_other_programs_do_it() {
        for (list, host, expected) in [
            ("", "a.example", false),
            ("*", "a.example", true),
            ("corp.example", "corp.example", true),
            ("corp.example", "git.corp.example", true),
            ("corp.example", "evilcorp.example", false),
            ("CORP.example.", "Git.Corp.Example", true),
            (".corp.example", "corp.example", false),
            ("*.corp.example", "git.corp.example", true),
            ("a.example b.example", "b.example", true),
            ("a.example,,b.example", "b.example", true),
            ("corp.example:8443", "corp.example", false),
            ("corp.example:443", "git.corp.example", true),
            ("*:443", "a.example", true),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "9.192.0.2.7.example", false),
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("10.0.0.0/8", "10.example", false),
            ("fd00::/8", "[fd12::1]", true),
            ("::/0", "10.0.0.1", false),
            ("::1", "[::1]", true),
            ("[::1]:443", "[::1]", true),
        ] {
            assert_eq!(covers(list, host, 443), expected, "{list} {host}");
        }
    }

    #[test]
    fn what_is_no_host_is_named() {
        for bad in [
            "http://corp.example",
            "10.0.0.0/33",
            "a b/c",
            "corp*.example",
            "x:y",
        ] {
            assert!(bad.parse::<Bypass>().is_err(), "{bad}");
        }
    }
}
