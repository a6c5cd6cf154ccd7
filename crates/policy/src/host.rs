//! The host of a request, in the one spelling that everything else compares.
//!
//! Whatever names a host (Host header, `:authority`, SNI, an allowlist entry) is normalised here and
//! nowhere else. What two programs could read as two different hosts is refused, not guessed at.

use std::{
    borrow::Cow,
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
    sync::Arc,
};

use idna::AsciiDenyList;

/// A host name or address: lower case, ASCII, without trailing dots, brackets or port.
///
/// ```
/// # use cordon_policy::Host;
/// assert_eq!(Host::parse("BÜCHER.example.")?.as_str(), "xn--bcher-kva.example");
/// assert_eq!(Host::parse("[0:0::1]")?.as_str(), "::1");
/// assert!(Host::parse("0x7f.1").is_err());
/// # Ok::<(), cordon_policy::InvalidHost>(())
/// ```
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct Host {
    name: Arc<str>,
    ip: Option<IpAddr>,
}

impl Host {
    /// Normalises a host that stands alone; a port beside it is an error.
    pub fn parse(raw: &str) -> Result<Self, InvalidHost> {
        if let Some(inner) = raw.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or(InvalidHost::Address)?;
            return Self::ipv6(inner);
        }
        if raw.bytes().filter(|&byte| byte == b':').count() > 1 {
            return Self::ipv6(raw);
        }
        if raw.contains(':') {
            return Err(InvalidHost::Port);
        }
        Self::name(raw)
    }

    /// The normalised spelling; an IPv6 address stands without its brackets.
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// The address, where the host is one.
    pub fn ip(&self) -> Option<IpAddr> {
        self.ip
    }

    fn ipv6(text: &str) -> Result<Self, InvalidHost> {
        let address: Ipv6Addr = text.parse().map_err(|_| InvalidHost::Address)?;
        Ok(Self::from(IpAddr::V6(address)))
    }

    fn name(raw: &str) -> Result<Self, InvalidHost> {
        let ascii = to_ascii(raw)?;
        let name = ascii.trim_end_matches('.');
        check_labels(name)?;
        if !ends_in_a_number(name) {
            return Ok(Self {
                name: name.into(),
                ip: None,
            });
        }
        // Resolvers read `127.1`, `0x7f.1` and `0177.0.0.1` as addresses; only one spelling is a host here.
        let address: Ipv4Addr = name.parse().map_err(|_| InvalidHost::Address)?;
        Ok(Self::from(IpAddr::V4(address)))
    }
}

impl From<IpAddr> for Host {
    fn from(ip: IpAddr) -> Self {
        Self {
            name: ip.to_string().into(),
            ip: Some(ip),
        }
    }
}

impl FromStr for Host {
    type Err = InvalidHost;

    fn from_str(raw: &str) -> Result<Self, InvalidHost> {
        Self::parse(raw)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Host({})", self.name)
    }
}

/// A host with an optional port, as a Host header, `:authority` or an absolute-form target spells it.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Authority {
    /// The host, normalised.
    pub host: Host,
    /// The port, where one was written.
    pub port: Option<u16>,
}

impl Authority {
    /// Reads `host`, `host:port`, `[v6]` or `[v6]:port`; user information is refused.
    pub fn parse(raw: &[u8]) -> Result<Self, InvalidHost> {
        let text = std::str::from_utf8(raw).map_err(|_| InvalidHost::Character)?;
        if text.contains('@') {
            return Err(InvalidHost::UserInfo);
        }
        let (host, port) = split_port(text)?;
        // Without brackets nobody can tell where an IPv6 address ends and its port begins.
        if host.contains(':') && !host.starts_with('[') {
            return Err(InvalidHost::Address);
        }
        Ok(Self {
            host: Host::parse(host)?,
            port,
        })
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.ip {
            Some(IpAddr::V6(address)) => write!(f, "[{address}]")?,
            Some(IpAddr::V4(_)) | None => f.write_str(&self.host.name)?,
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

/// Why a text is not a host.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, thiserror::Error)]
pub enum InvalidHost {
    /// Nothing is left to name a host.
    #[error("the host is empty")]
    Empty,
    /// A character that no host name has, or an international name that does not map to ASCII.
    #[error("the host holds a character that host names do not have")]
    Character,
    /// Two dots in a row, or one at the beginning.
    #[error("the host has an empty label")]
    EmptyLabel,
    /// The name or one of its labels is longer than DNS carries.
    #[error("the host is longer than DNS allows")]
    TooLong,
    /// An address that is malformed or not in its canonical spelling.
    #[error("the host looks like an address but is not one in its canonical form")]
    Address,
    /// The port is no number from 1 to 65535, or stands where none belongs.
    #[error("the port after the host is not valid")]
    Port,
    /// `user@host`.
    #[error("user information before the host is not allowed")]
    UserInfo,
}

fn split_port(text: &str) -> Result<(&str, Option<u16>), InvalidHost> {
    let colon = match text.rfind(']') {
        Some(bracket) => text[bracket..].find(':').map(|at| bracket + at),
        None => text.rfind(':'),
    };
    let Some(colon) = colon else {
        return Ok((text, None));
    };
    let digits = &text[colon + 1..];
    let decimal = digits.bytes().all(|byte| byte.is_ascii_digit());
    if !decimal || digits.starts_with('0') {
        return Err(InvalidHost::Port);
    }
    let port = digits.parse().map_err(|_| InvalidHost::Port)?;
    Ok((&text[..colon], Some(port)))
}

/// Maps a name to lower-case ASCII. Most names are that already and skip the Unicode tables.
fn to_ascii(raw: &str) -> Result<Cow<'_, str>, InvalidHost> {
    if raw.is_ascii() && !has_punycode(raw) {
        return Ok(if raw.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(raw.to_ascii_lowercase())
        } else {
            Cow::Borrowed(raw)
        });
    }
    idna::domain_to_ascii_cow(raw.as_bytes(), AsciiDenyList::URL)
        .map_err(|_| InvalidHost::Character)
}

fn has_punycode(raw: &str) -> bool {
    raw.as_bytes()
        .windows(4)
        .any(|window| window.eq_ignore_ascii_case(b"xn--"))
}

fn check_labels(name: &str) -> Result<(), InvalidHost> {
    if name.is_empty() {
        return Err(InvalidHost::Empty);
    }
    if name.len() > MAX_NAME {
        return Err(InvalidHost::TooLong);
    }
    for label in name.split('.') {
        if label.is_empty() {
            return Err(InvalidHost::EmptyLabel);
        }
        if label.len() > MAX_LABEL {
            return Err(InvalidHost::TooLong);
        }
        if !label.bytes().all(is_name_byte) {
            return Err(InvalidHost::Character);
        }
    }
    Ok(())
}

fn is_name_byte(byte: u8) -> bool {
    // The underscore is no letter of host names, but names with it exist and resolve.
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_')
}

/// Whether address parsers would take the name for an IPv4 address: its last label is a number.
fn ends_in_a_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    let hexadecimal = last
        .strip_prefix("0x")
        .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    hexadecimal || last.bytes().all(|byte| byte.is_ascii_digit())
}

/// Longest name that DNS carries, written without its trailing dot.
const MAX_NAME: usize = 253;

/// Longest label that DNS carries.
const MAX_LABEL: usize = 63;

#[cfg(test)]
mod tests;
