//! The allowlist: what a sandbox may reach, and the one function that decides.
//!
//! The empty list allows nothing. Entries only ever add; an entry with GraphQL rules also guards its path, so that no
//! broader entry beside it opens what it closes.

mod error;
mod json;
mod rule;
mod schema;

use rule::{Miss, Rule};

use crate::{
    Decision, Denial, GraphqlRules, Host, HostPattern, InvalidPattern, MalformedTarget,
    PathPattern, Scheme, Schemes, Target,
};

pub use error::{AllowlistError, AllowlistErrorKind};

/// Everything a sandbox may reach.
///
/// ```
/// # use cordon_policy::{Allowlist, Decision, Host, RequestHead, Scheme, Target};
/// let allowlist = Allowlist::from_yaml("
/// domains:
///   - api.example.com
/// url_prefixes:
///   - host: \"*.example.org\"
///     path: /public/*
///     methods: [GET, HEAD]
/// ")?;
/// let (host, target) = (Host::parse("www.example.org")?, Target::parse(b"/public/index.html")?);
/// let head = RequestHead { scheme: Scheme::Https, host: &host, port: 443, method: "GET", target: &target };
/// let Decision::Allow(grant) = allowlist.decide(&head) else { panic!() };
/// assert_eq!(grant.rule.to_string(), "url_prefixes[0]");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Allowlist {
    /// Hosts of which every path and method is allowed.
    pub domains: Vec<AllowlistDomain>,
    /// Hosts of which some paths and methods are allowed.
    pub url_prefixes: Vec<AllowlistUrlPattern>,
}

impl Allowlist {
    /// Reads an allowlist from YAML. An empty document is the empty list.
    pub fn from_yaml(text: &str) -> Result<Self, AllowlistError> {
        schema::allowlist(text)
    }

    /// Reads what [`Allowlist::to_json`] writes, as strictly as YAML is read.
    pub fn from_json(text: &str) -> Result<Self, AllowlistError> {
        json::check(text)?;
        Self::from_yaml(text)
    }

    /// Writes the list as JSON, with the keys of the YAML file.
    pub fn to_json(&self) -> String {
        json::write(self).to_string()
    }

    /// Adds a host with everything it serves, as an entry of `domains` would.
    pub fn allow_host(&mut self, host: &str) -> Result<(), InvalidPattern> {
        self.domains
            .push(AllowlistDomain::new(HostPattern::parse(host)?));
        Ok(())
    }

    /// Decides about one request head.
    pub fn decide<'a>(&'a self, head: &RequestHead<'_>) -> Decision<'a> {
        if head.target.is_asterisk() && !head.method.eq_ignore_ascii_case("OPTIONS") {
            return Decision::Deny(MalformedTarget::Asterisk.into());
        }
        let guarded = self.guarded(head);
        let mut closest: Option<(Miss, Rule<'_>)> = None;
        for rule in self
            .rules()
            .filter(|rule| !guarded || rule.graphql.is_some())
        {
            let miss = match (rule.check(head), rule.graphql) {
                (Ok(grant), None) => return Decision::Allow(grant),
                (Ok(grant), Some(rules)) => return Decision::Inspect(grant, rules),
                (Err(miss), _) => miss,
            };
            if closest.as_ref().is_none_or(|(other, _)| *other < miss) {
                closest = Some((miss, rule));
            }
        }
        Decision::Deny(match closest {
            Some((miss, rule)) => rule.denial(miss, head),
            None => Denial::HostNotListed {
                host: head.host.to_string(),
            },
        })
    }

    /// Whether GraphQL rules stand before the request, whatever other entry would allow it.
    fn guarded(&self, head: &RequestHead<'_>) -> bool {
        let url_prefixes = self.url_prefixes.iter().enumerate();
        let guards = url_prefixes.filter(|(_, entry)| entry.graphql.is_some());
        guards
            .map(Rule::url_prefix)
            .any(|rule| rule.covers_loosely(head))
    }

    fn rules(&self) -> impl Iterator<Item = Rule<'_>> {
        let domains = self.domains.iter().enumerate().map(Rule::domain);
        let url_prefixes = self.url_prefixes.iter().enumerate().map(Rule::url_prefix);
        domains.chain(url_prefixes)
    }
}

/// A host of which every path and method is allowed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AllowlistDomain {
    /// Which hosts.
    pub host: HostPattern,
    /// How they may be reached.
    pub reach: Reach,
}

impl AllowlistDomain {
    /// An entry that is nothing but its host: http and https, each on its own port.
    pub fn new(host: HostPattern) -> Self {
        Self {
            host,
            reach: Reach::new(Schemes::BOTH),
        }
    }
}

/// A host of which some paths and methods are allowed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AllowlistUrlPattern {
    /// Which hosts.
    pub host: HostPattern,
    /// Which paths.
    pub path: PathPattern,
    /// Which methods, in any case; none listed means every one.
    pub methods: Vec<String>,
    /// Which GraphQL operations; with rules, every body is looked at.
    pub graphql: Option<GraphqlRules>,
    /// How the hosts may be reached.
    pub reach: Reach,
}

impl AllowlistUrlPattern {
    /// An entry that is nothing but its host and path: https alone, every method.
    pub fn new(host: HostPattern, path: PathPattern) -> Self {
        Self {
            host,
            path,
            methods: Vec::new(),
            graphql: None,
            reach: Reach::new(Schemes::HTTPS),
        }
    }
}

/// How the hosts of an entry may be reached.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reach {
    /// Which ports; none listed means the scheme's own.
    pub ports: Vec<u16>,
    /// Which schemes.
    pub schemes: Schemes,
    /// Whether they may have addresses outside the public internet.
    pub private_addresses: bool,
}

impl Reach {
    /// These schemes, on their own ports, on the public internet.
    pub fn new(schemes: Schemes) -> Self {
        Self {
            ports: Vec::new(),
            schemes,
            private_addresses: false,
        }
    }
}

/// What is known of a request before its body: all that a decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// How it travels.
    pub scheme: Scheme,
    /// The host it is for.
    pub host: &'a Host,
    /// The port it is for.
    pub port: u16,
    /// Its method.
    pub method: &'a str,
    /// Its target.
    pub target: &'a Target,
}

/// Reads an allowlist from YAML; the same as [`Allowlist::from_yaml`].
pub fn parse_allowlist_yaml(text: &str) -> Result<Allowlist, AllowlistError> {
    Allowlist::from_yaml(text)
}

/// Writes an allowlist as JSON; the same as [`Allowlist::to_json`].
pub fn serialize_allowlist_json(allowlist: &Allowlist) -> String {
    allowlist.to_json()
}

#[cfg(test)]
mod tests;
