//! The two schemes a request can have.

use std::fmt;

/// How the request travels.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    /// The port that belongs to the scheme when none is written.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    /// `http` or `https`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The schemes that an allowlist entry admits.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Schemes {
    /// Requests in the clear.
    pub http: bool,
    /// Requests over TLS.
    pub https: bool,
}

impl Schemes {
    /// Only over TLS: what a `url_prefixes` entry means unless it says otherwise.
    pub const HTTPS: Self = Self {
        http: false,
        https: true,
    };

    /// Both: what a `domains` entry means unless it says otherwise.
    pub const BOTH: Self = Self {
        http: true,
        https: true,
    };

    /// Whether the scheme is among them.
    pub fn contains(self, scheme: Scheme) -> bool {
        match scheme {
            Scheme::Http => self.http,
            Scheme::Https => self.https,
        }
    }

    /// The schemes in the order in which files list them.
    pub fn iter(self) -> impl Iterator<Item = Scheme> {
        [Scheme::Https, Scheme::Http]
            .into_iter()
            .filter(move |&scheme| self.contains(scheme))
    }
}
