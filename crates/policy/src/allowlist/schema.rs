//! From a document to an allowlist: every key known, every value of its type.

use cordon_yaml::{Error, ErrorKind, Node, Value};

use super::{
    Allowlist, AllowlistDomain, AllowlistUrlPattern, Reach,
    error::{AllowlistError, AllowlistErrorKind},
};
use crate::{Glob, GraphqlRules, HostPattern, InvalidPattern, PathPattern, Schemes};

pub(super) fn allowlist(text: &str) -> Result<Allowlist, AllowlistError> {
    let mut allowlist = Allowlist::default();
    let root = cordon_yaml::parse(text, WHOLE)?;
    if matches!(root.value, Value::Null) {
        return Ok(allowlist);
    }
    for (key, node) in root.map(WHOLE, "a map with `domains` and `url_prefixes`")? {
        match key.name.as_str() {
            "domains" => allowlist.domains = node.list("domains", domain)?,
            "url_prefixes" => allowlist.url_prefixes = node.list("url_prefixes", url_prefix)?,
            _ => return Err(key.unknown(WHOLE, &["domains", "url_prefixes"]).into()),
        }
    }
    Ok(allowlist)
}

fn domain(node: Node, place: &str) -> Result<AllowlistDomain, AllowlistError> {
    if !matches!(node.value, Value::Map(_)) {
        return Ok(AllowlistDomain::new(host(node, place)?));
    }
    let at = node.at;
    let mut pattern = None;
    let mut reach = Reach::new(Schemes::BOTH);
    for (key, node) in node.map(place, A_MAP)? {
        let inner = format!("{place}.{}", key.name);
        match key.name.as_str() {
            "host" => pattern = Some(host(node, &inner)?),
            "ports" => reach.ports = ports(node, &inner)?,
            "schemes" => reach.schemes = schemes(node, &inner)?,
            "private_addresses" => reach.private_addresses = node.boolean(&inner)?,
            _ => {
                let known = &["host", "ports", "schemes", "private_addresses"];
                return Err(key.unknown(place, known).into());
            }
        }
    }
    match pattern {
        Some(host) => Ok(AllowlistDomain { host, reach }),
        None => Err(ErrorKind::missing(place, "host").at(at).into()),
    }
}

fn url_prefix(node: Node, place: &str) -> Result<AllowlistUrlPattern, AllowlistError> {
    let at = node.at;
    let mut pattern = None;
    let mut path = None;
    let mut methods = Vec::new();
    let mut graphql = None;
    let mut reach = Reach::new(Schemes::HTTPS);
    for (key, node) in node.map(place, A_MAP)? {
        let inner = format!("{place}.{}", key.name);
        match key.name.as_str() {
            "host" => pattern = Some(host(node, &inner)?),
            "path" => path = Some(path_pattern(node, &inner)?),
            "methods" => methods = node.list(&inner, method)?,
            "graphql" => graphql = Some(graphql_rules(node, &inner)?),
            "ports" => reach.ports = ports(node, &inner)?,
            "schemes" => reach.schemes = schemes(node, &inner)?,
            "private_addresses" => reach.private_addresses = node.boolean(&inner)?,
            _ => return Err(key.unknown(place, URL_PREFIX_KEYS).into()),
        }
    }
    let Some(host) = pattern else {
        return Err(ErrorKind::missing(place, "host").at(at).into());
    };
    Ok(AllowlistUrlPattern {
        host,
        path: path.unwrap_or_default(),
        methods,
        graphql,
        reach,
    })
}

fn graphql_rules(node: Node, place: &str) -> Result<GraphqlRules, AllowlistError> {
    let mut rules = GraphqlRules::default();
    for (key, node) in node.map(place, A_MAP)? {
        let inner = format!("{place}.{}", key.name);
        let fields = match key.name.as_str() {
            "queries" => &mut rules.queries,
            "mutations" => &mut rules.mutations,
            "subscriptions" => &mut rules.subscriptions,
            _ => {
                let known = &["queries", "mutations", "subscriptions"];
                return Err(key.unknown(place, known).into());
            }
        };
        *fields = node.list(&inner, |node, place| {
            node.string(place).map(|pattern| Glob::new(&pattern))
        })?;
    }
    Ok(rules)
}

fn host(node: Node, place: &str) -> Result<HostPattern, AllowlistError> {
    pattern(node, place, HostPattern::parse)
}

fn path_pattern(node: Node, place: &str) -> Result<PathPattern, AllowlistError> {
    pattern(node, place, PathPattern::parse)
}

fn pattern<T>(
    node: Node,
    place: &str,
    parse: fn(&str) -> Result<T, InvalidPattern>,
) -> Result<T, AllowlistError> {
    let at = node.at;
    let value = node.string(place)?;
    parse(&value).map_err(|source| {
        let place = place.to_owned();
        AllowlistErrorKind::Pattern {
            place,
            value,
            source,
        }
        .at(at)
    })
}

fn method(node: Node, place: &str) -> Result<String, Error> {
    let at = node.at;
    let value = node.string(place)?;
    if value.is_empty()
        || !value
            .bytes()
            .all(|byte| byte.is_ascii_alphabetic() || byte == b'-' || byte == b'_')
    {
        return Err(
            ErrorKind::wrong_value(place, value, "the name of a method, such as GET").at(at),
        );
    }
    Ok(value)
}

fn ports(node: Node, place: &str) -> Result<Vec<u16>, Error> {
    let at = node.at;
    let ports = node.list(place, port)?;
    if ports.is_empty() {
        return Err(ErrorKind::wrong_value(place, "[]".to_owned(), "at least one port").at(at));
    }
    Ok(ports)
}

fn port(node: Node, place: &str) -> Result<u16, Error> {
    let at = node.at;
    let number = node.integer(place)?;
    match u16::try_from(number) {
        Ok(port) if port != 0 => Ok(port),
        _ => {
            let expected = "a port from 1 to 65535";
            Err(ErrorKind::wrong_value(place, number.to_string(), expected).at(at))
        }
    }
}

fn schemes(node: Node, place: &str) -> Result<Schemes, Error> {
    let at = node.at;
    let mut schemes = Schemes {
        http: false,
        https: false,
    };
    let names = node.list(place, |node, place| {
        let at = node.at;
        node.string(place).map(|name| (name, at))
    })?;
    if names.is_empty() {
        return Err(ErrorKind::wrong_value(place, "[]".to_owned(), "http, https or both").at(at));
    }
    for (name, at) in names {
        match name.as_str() {
            "http" => schemes.http = true,
            "https" => schemes.https = true,
            _ => return Err(ErrorKind::wrong_value(place, name, "http, https or both").at(at)),
        }
    }
    Ok(schemes)
}

const WHOLE: &str = "the allowlist";

const A_MAP: &str = "a map";

const URL_PREFIX_KEYS: &[&str] = &[
    "host",
    "path",
    "methods",
    "graphql",
    "ports",
    "schemes",
    "private_addresses",
];
