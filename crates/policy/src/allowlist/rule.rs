//! One entry at work: both kinds of entry, seen alike.

use super::{AllowlistDomain, AllowlistUrlPattern, Reach, RequestHead};
use crate::{Denial, Grant, GraphqlRules, HostPattern, NamePattern, PathPattern, RuleRef, Target};

/// An entry of either list, borrowed.
pub(super) struct Rule<'a> {
    at: RuleRef,
    host: &'a HostPattern,
    path: Option<&'a PathPattern>,
    methods: &'a [String],
    reach: &'a Reach,
    pub(super) graphql: Option<&'a GraphqlRules>,
}

impl<'a> Rule<'a> {
    pub(super) fn domain((index, entry): (usize, &'a AllowlistDomain)) -> Self {
        Self {
            at: RuleRef::Domain(index),
            host: &entry.host,
            path: None,
            methods: &[],
            reach: &entry.reach,
            graphql: None,
        }
    }

    pub(super) fn url_prefix((index, entry): (usize, &'a AllowlistUrlPattern)) -> Self {
        Self {
            at: RuleRef::UrlPrefix(index),
            host: &entry.host,
            path: Some(&entry.path),
            methods: &entry.methods,
            reach: &entry.reach,
            graphql: entry.graphql.as_ref(),
        }
    }

    /// Whether the entry allows the request, or how far the request came.
    pub(super) fn check(&self, head: &RequestHead<'_>) -> Result<Grant<'a>, Miss> {
        if !self.host.matches(head.host) {
            return Err(Miss::Host);
        }
        if let Some(path) = self.path
            && !path.matches(head.target)
        {
            let without_query =
                head.target.query().is_some() && path.matches_path(head.target.path());
            return Err(if without_query {
                Miss::Query
            } else {
                Miss::Path
            });
        }
        if !self.allows_method(head.method) {
            return Err(Miss::Method);
        }
        if !self.reach.schemes.contains(head.scheme) {
            return Err(Miss::Scheme);
        }
        if !self.allows_port(head) {
            return Err(Miss::Port);
        }
        let grant = self.grant(head);
        match head.host.ip().map(|ip| grant.check_address(head.host, ip)) {
            None | Some(Ok(())) => Ok(grant),
            Some(Err(_)) => Err(Miss::Address),
        }
    }

    /// Whether host and path are the entry's in the loosest reading of any server, so that `/GraphQL//` is no way
    /// around rules for `/graphql`.
    pub(super) fn covers_loosely(&self, head: &RequestHead<'_>) -> bool {
        if !self.host.matches(head.host) {
            return false;
        }
        let Some(path) = self.path else {
            return true;
        };
        let folded = fold(head.target);
        let pattern = NamePattern::new(path.as_str());
        path.matches_path(head.target.path())
            || pattern.matches(&folded)
            || pattern.matches(&format!("{folded}/"))
    }

    /// Puts a miss of this entry into words.
    pub(super) fn denial(&self, miss: Miss, head: &RequestHead<'_>) -> Denial {
        let rule = self.at;
        let host = head.host.to_string();
        let path = head.target.path().to_owned();
        match miss {
            Miss::Host => Denial::HostNotListed { host },
            Miss::Path => Denial::PathNotListed { host, path },
            Miss::Query => Denial::QueryNotListed { host, path },
            Miss::Method => Denial::MethodNotListed {
                rule,
                host,
                path,
                method: head.method.to_owned(),
                listed: self.methods.to_vec(),
            },
            Miss::Scheme => Denial::SchemeNotListed {
                rule,
                host,
                scheme: head.scheme,
            },
            Miss::Port => Denial::PortNotListed {
                rule,
                host,
                port: head.port,
                listed: match self.reach.ports.as_slice() {
                    [] => Vec::from_iter(
                        self.reach
                            .schemes
                            .iter()
                            .map(|scheme| scheme.default_port()),
                    ),
                    ports => ports.to_vec(),
                },
            },
            Miss::Address => {
                let refused = head
                    .host
                    .ip()
                    .map(|ip| self.grant(head).check_address(head.host, ip));
                match refused {
                    Some(Err(denial)) => denial,
                    Some(Ok(())) | None => Denial::HostNotListed { host },
                }
            }
        }
    }

    fn grant(&self, head: &RequestHead<'_>) -> Grant<'a> {
        Grant {
            rule: self.at,
            private_addresses: self.reach.private_addresses || self.host.names_address(head.host),
            host: self.host,
        }
    }

    fn allows_method(&self, method: &str) -> bool {
        self.methods.is_empty()
            || self
                .methods
                .iter()
                .any(|listed| listed.eq_ignore_ascii_case(method))
    }

    fn allows_port(&self, head: &RequestHead<'_>) -> bool {
        match self.reach.ports.as_slice() {
            [] => head.port == head.scheme.default_port(),
            ports => ports.contains(&head.port),
        }
    }
}

/// Where an entry stopped matching; what comes later came closer.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Miss {
    Host,
    Path,
    Query,
    Method,
    Scheme,
    Port,
    Address,
}

/// The path without parameters, `.` segments, doubled and trailing slashes.
fn fold(target: &Target) -> String {
    let mut folded = String::with_capacity(target.path().len());
    for segment in target.path().split('/') {
        let segment = segment.split(';').next().unwrap_or(segment);
        if !segment.is_empty() && segment != "." {
            folded.push('/');
            folded.push_str(segment);
        }
    }
    folded
}
