//! Patterns over hosts and request targets, checked when they are read.
//!
//! A pattern that could never match, or not what its author meant, is an error with a hint.

use std::{fmt, net::IpAddr, str::FromStr};

use crate::{
    Host, InvalidHost, Target,
    glob::{Case, Program, is_pattern},
};

/// A pattern over hosts: `api.example.com`, `*.example.com`, `10.0.0.*`.
///
/// ```
/// # use cordon_policy::{Host, HostPattern};
/// let pattern: HostPattern = "*.Example.com".parse()?;
/// assert!(pattern.matches(&Host::parse("API.example.com.")?));
/// assert!(!pattern.matches(&Host::parse("example.com")?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct HostPattern {
    source: Box<str>,
    program: Program,
    address: AddressForm,
}

impl HostPattern {
    /// Compiles a host, or a pattern over hosts, normalised as hosts are.
    pub fn parse(pattern: &str) -> Result<Self, InvalidPattern> {
        if pattern.is_empty() {
            return Err(InvalidPattern::Empty);
        }
        if pattern.contains("://") {
            return Err(InvalidPattern::Url);
        }
        if pattern.contains('/') {
            return Err(InvalidPattern::Path);
        }
        if !is_pattern(pattern) {
            return Self::exact(pattern);
        }
        if pattern.contains(':') {
            return Err(InvalidPattern::Port);
        }
        let normal = normalise(pattern)?;
        let belongs =
            |character: char| character.is_ascii_alphanumeric() || "-_.*?[]!".contains(character);
        if !normal.chars().all(belongs) {
            return Err(InvalidPattern::Host(InvalidHost::Character));
        }
        Ok(Self {
            source: pattern.into(),
            program: Program::new(&normal, Case::Sensitive),
            address: if is_numeric(&normal) {
                AddressForm::Pattern
            } else {
                AddressForm::None
            },
        })
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Whether the host matches.
    pub fn matches(&self, host: &Host) -> bool {
        self.program.matches(host.as_str())
    }

    /// Whether the pattern spells out the address that the host is: `10.0.0.7` and `10.0.0.*` do, `*` does not.
    pub(crate) fn names_address(&self, host: &Host) -> bool {
        match self.address {
            AddressForm::None => false,
            AddressForm::Pattern | AddressForm::Exact(_) => host.ip().is_some(),
        }
    }

    /// Whether the pattern is this very address.
    pub(crate) fn is_address(&self, ip: IpAddr) -> bool {
        self.address == AddressForm::Exact(ip)
    }

    fn exact(pattern: &str) -> Result<Self, InvalidPattern> {
        let host = Host::parse(pattern).map_err(|error| match error {
            InvalidHost::Port => InvalidPattern::Port,
            InvalidHost::Character if pattern.contains('[') => InvalidPattern::Class,
            InvalidHost::Address if pattern.starts_with('[') => InvalidPattern::Class,
            InvalidHost::Empty
            | InvalidHost::Character
            | InvalidHost::EmptyLabel
            | InvalidHost::TooLong
            | InvalidHost::Address
            | InvalidHost::UserInfo => InvalidPattern::Host(error),
        })?;
        Ok(Self {
            source: pattern.into(),
            program: Program::new(host.as_str(), Case::Sensitive),
            address: host.ip().map_or(AddressForm::None, AddressForm::Exact),
        })
    }
}

impl FromStr for HostPattern {
    type Err = InvalidPattern;

    fn from_str(pattern: &str) -> Result<Self, InvalidPattern> {
        Self::parse(pattern)
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl fmt::Debug for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostPattern({})", self.source)
    }
}

/// A pattern over decoded request paths; the empty one matches every target.
///
/// Only a `*` at the very end also covers the query. A `?` or `[?]` may stand for the question mark itself, and what
/// follows it then matches the query. Any other pattern matches targets without a query.
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct PathPattern {
    source: Box<str>,
    program: Program,
}

impl PathPattern {
    /// Compiles a path pattern. It is compared with decoded paths, so percent escapes in it are an error.
    pub fn parse(pattern: &str) -> Result<Self, InvalidPattern> {
        let escape = |window: &[u8]| matches!(window, [b'%', a, b] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit());
        if pattern.as_bytes().windows(3).any(escape) {
            return Err(InvalidPattern::PercentEscape);
        }
        if !pattern.is_empty() && !pattern.starts_with(['/', '*', '?', '[']) {
            return Err(InvalidPattern::NoLeadingSlash);
        }
        Ok(Self {
            source: pattern.into(),
            program: Program::new(pattern, Case::Sensitive),
        })
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Whether the pattern covers the target, its query included.
    pub fn matches(&self, target: &Target) -> bool {
        if self.source.is_empty() {
            return true;
        }
        // Servers may or may not drop `.` segments: what is allowed must be allowed either way.
        self.covers(target.path(), target.query())
            && target
                .resolved_path()
                .is_none_or(|path| self.covers(path, target.query()))
    }

    /// Whether the pattern covers the path, leaving the query aside.
    pub(crate) fn matches_path(&self, path: &str) -> bool {
        self.source.is_empty() || self.covers(path, None)
    }

    fn covers(&self, path: &str, query: Option<&str>) -> bool {
        match query {
            Some(query) => self.program.covers(path, query),
            None => self.program.matches(path),
        }
    }
}

impl Default for PathPattern {
    /// Every path.
    fn default() -> Self {
        Self {
            source: "".into(),
            program: Program::new("", Case::Sensitive),
        }
    }
}

impl fmt::Debug for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PathPattern({})", self.source)
    }
}

/// Why a pattern could never match, or not what its author meant.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, thiserror::Error)]
pub enum InvalidPattern {
    /// No host at all.
    #[error("the host is empty")]
    Empty,
    /// A URL where a host belongs.
    #[error("a host has no scheme")]
    Url,
    /// A path after the host.
    #[error("a host has no path")]
    Path,
    /// A port after the host.
    #[error("a host has no port")]
    Port,
    /// `[…]` in a text without `*` or `?`.
    #[error("a class in brackets needs a `*` or `?` beside it")]
    Class,
    /// A wildcard inside an international label.
    #[error("a label with other letters than ASCII cannot hold a wildcard")]
    InternationalWildcard,
    /// `%2F` and the like in a path.
    #[error("paths are compared decoded, so a percent escape never matches")]
    PercentEscape,
    /// A path that no request can have.
    #[error("a path begins with a slash")]
    NoLeadingSlash,
    /// A text that is neither a pattern nor a host.
    #[error(transparent)]
    Host(InvalidHost),
}

impl InvalidPattern {
    /// What to write instead.
    pub fn hint(self) -> &'static str {
        match self {
            Self::Empty => "name the host, or use \"*\" for every host",
            Self::Url => "write the host alone; `schemes: [http]` allows plain http",
            Self::Path => "list host and path as an entry of `url_prefixes`",
            Self::Port => "write the host alone and add `ports: [...]` to the entry",
            Self::Class => "write the hosts one by one, or use `*`",
            Self::InternationalWildcard => {
                "use the wildcard as a label of its own: `*.bücher.example`"
            }
            Self::PercentEscape => "write the path decoded: `/a b`, not `/a%20b`",
            Self::NoLeadingSlash => "put a `/` before it",
            Self::Host(_) => {
                "write a host name, an address, or a pattern such as \"*.example.com\""
            }
        }
    }
}

/// How far a host pattern is written as an address, and so names what it reaches.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum AddressForm {
    None,
    Pattern,
    Exact(IpAddr),
}

/// Brings the labels of a host pattern into the spelling of hosts; those with wildcards are ASCII already.
fn normalise(pattern: &str) -> Result<String, InvalidPattern> {
    let lower = pattern.to_ascii_lowercase();
    let lower = lower.trim_end_matches('.');
    if lower.is_ascii() {
        return Ok(lower.to_owned());
    }
    let mut labels = Vec::new();
    for label in lower.split('.') {
        labels.push(if label.is_ascii() {
            label.to_owned()
        } else if label.contains(['*', '?', '[', ']']) {
            return Err(InvalidPattern::InternationalWildcard);
        } else {
            let host = Host::parse(label).map_err(InvalidPattern::Host)?;
            host.as_str().to_owned()
        });
    }
    Ok(labels.join("."))
}

/// Whether a pattern over hosts is an address with wildcards in it: `10.0.*`, `192.168.1.?`.
fn is_numeric(pattern: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('.') else {
        return false;
    };
    // `010` is no octet of a canonical address.
    let octet = first
        .parse()
        .is_ok_and(|octet: u8| octet.to_string() == first);
    octet
        && rest
            .chars()
            .all(|character| character.is_ascii_digit() || ".*?[]!-".contains(character))
}

#[cfg(test)]
mod tests;
