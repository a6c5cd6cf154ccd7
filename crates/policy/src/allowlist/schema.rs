//! From a document to an allowlist: every key known, every value of its type.

use super::{
    Allowlist, AllowlistDomain, AllowlistUrlPattern, Reach,
    document::{Key, Node, Value},
    error::{AllowlistError, AllowlistErrorKind},
};
use crate::{Glob, GraphqlRules, HostPattern, InvalidPattern, PathPattern, Schemes};

pub(super) fn allowlist(root: Node) -> Result<Allowlist, AllowlistError> {
    let mut allowlist = Allowlist::default();
    if matches!(root.value, Value::Null) {
        return Ok(allowlist);
    }
    let place = "the allowlist";
    for (key, node) in map(root, place, "a map with `domains` and `url_prefixes`")? {
        match key.name.as_str() {
            "domains" => allowlist.domains = list(node, "domains", domain)?,
            "url_prefixes" => allowlist.url_prefixes = list(node, "url_prefixes", url_prefix)?,
            _ => return Err(unknown(key, place, &["domains", "url_prefixes"])),
        }
    }
    Ok(allowlist)
}

fn domain(node: Node, place: &str) -> Result<AllowlistDomain, AllowlistError> {
    if !matches!(node.value, Value::Map(_)) {
        return Ok(AllowlistDomain::new(host(node, place)?));
    }
    let (line, column) = (node.line, node.column);
    let mut pattern = None;
    let mut reach = Reach::new(Schemes::BOTH);
    for (key, node) in map(node, place, A_MAP)? {
        let inner = format!("{place}.{}", key.name);
        match key.name.as_str() {
            "host" => pattern = Some(host(node, &inner)?),
            "ports" => reach.ports = ports(node, &inner)?,
            "schemes" => reach.schemes = schemes(node, &inner)?,
            "private_addresses" => reach.private_addresses = boolean(node, &inner)?,
            _ => {
                return Err(unknown(
                    key,
                    place,
                    &["host", "ports", "schemes", "private_addresses"],
                ));
            }
        }
    }
    match pattern {
        Some(host) => Ok(AllowlistDomain { host, reach }),
        None => Err(missing(place, "host").at(line, column)),
    }
}

fn url_prefix(node: Node, place: &str) -> Result<AllowlistUrlPattern, AllowlistError> {
    let (line, column) = (node.line, node.column);
    let mut pattern = None;
    let mut path = None;
    let mut methods = Vec::new();
    let mut graphql = None;
    let mut reach = Reach::new(Schemes::HTTPS);
    for (key, node) in map(node, place, A_MAP)? {
        let inner = format!("{place}.{}", key.name);
        match key.name.as_str() {
            "host" => pattern = Some(host(node, &inner)?),
            "path" => path = Some(path_pattern(node, &inner)?),
            "methods" => methods = list(node, &inner, method)?,
            "graphql" => graphql = Some(graphql_rules(node, &inner)?),
            "ports" => reach.ports = ports(node, &inner)?,
            "schemes" => reach.schemes = schemes(node, &inner)?,
            "private_addresses" => reach.private_addresses = boolean(node, &inner)?,
            _ => return Err(unknown(key, place, URL_PREFIX_KEYS)),
        }
    }
    let Some(host) = pattern else {
        return Err(missing(place, "host").at(line, column));
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
    for (key, node) in map(node, place, A_MAP)? {
        let inner = format!("{place}.{}", key.name);
        let fields = match key.name.as_str() {
            "queries" => &mut rules.queries,
            "mutations" => &mut rules.mutations,
            "subscriptions" => &mut rules.subscriptions,
            _ => {
                return Err(unknown(
                    key,
                    place,
                    &["queries", "mutations", "subscriptions"],
                ));
            }
        };
        *fields = list(node, &inner, |node, place| {
            Ok(Glob::new(&string(node, place)?))
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
    let (line, column) = (node.line, node.column);
    let value = string(node, place)?;
    parse(&value).map_err(|source| {
        let place = place.to_owned();
        AllowlistErrorKind::Pattern {
            place,
            value,
            source,
        }
        .at(line, column)
    })
}

fn method(node: Node, place: &str) -> Result<String, AllowlistError> {
    let (line, column) = (node.line, node.column);
    let value = string(node, place)?;
    if value.is_empty()
        || !value
            .bytes()
            .all(|byte| byte.is_ascii_alphabetic() || byte == b'-' || byte == b'_')
    {
        return Err(
            wrong_value(place, value, "the name of a method, such as GET").at(line, column),
        );
    }
    Ok(value)
}

fn ports(node: Node, place: &str) -> Result<Vec<u16>, AllowlistError> {
    let (line, column) = (node.line, node.column);
    let ports = list(node, place, port)?;
    if ports.is_empty() {
        return Err(wrong_value(place, "[]".to_owned(), "at least one port").at(line, column));
    }
    Ok(ports)
}

fn port(node: Node, place: &str) -> Result<u16, AllowlistError> {
    let Value::Integer(number) = node.value else {
        return Err(wrong_type(&node, place, "a number"));
    };
    match u16::try_from(number) {
        Ok(port) if port != 0 => Ok(port),
        _ => Err(
            wrong_value(place, number.to_string(), "a port from 1 to 65535")
                .at(node.line, node.column),
        ),
    }
}

fn schemes(node: Node, place: &str) -> Result<Schemes, AllowlistError> {
    let (line, column) = (node.line, node.column);
    let mut schemes = Schemes {
        http: false,
        https: false,
    };
    let names = list(node, place, |node, place| {
        let (line, column) = (node.line, node.column);
        Ok((string(node, place)?, line, column))
    })?;
    if names.is_empty() {
        return Err(wrong_value(place, "[]".to_owned(), "http, https or both").at(line, column));
    }
    for (name, line, column) in names {
        match name.as_str() {
            "http" => schemes.http = true,
            "https" => schemes.https = true,
            _ => return Err(wrong_value(place, name, "http, https or both").at(line, column)),
        }
    }
    Ok(schemes)
}

fn boolean(node: Node, place: &str) -> Result<bool, AllowlistError> {
    match node.value {
        Value::Bool(value) => Ok(value),
        _ => Err(wrong_type(&node, place, "true or false")),
    }
}

fn string(node: Node, place: &str) -> Result<String, AllowlistError> {
    match node.value {
        Value::String(value) => Ok(value),
        _ => Err(wrong_type(&node, place, "a string")),
    }
}

fn list<T>(
    node: Node,
    place: &str,
    item: impl Fn(Node, &str) -> Result<T, AllowlistError>,
) -> Result<Vec<T>, AllowlistError> {
    let Value::List(nodes) = node.value else {
        return Err(wrong_type(&node, place, "a list"));
    };
    let items = nodes.into_iter().enumerate();
    items
        .map(|(index, node)| item(node, &format!("{place}[{index}]")))
        .collect()
}

fn map(
    node: Node,
    place: &str,
    expected: &'static str,
) -> Result<Vec<(Key, Node)>, AllowlistError> {
    match node.value {
        Value::Map(entries) => Ok(entries),
        _ => Err(wrong_type(&node, place, expected)),
    }
}

fn wrong_type(node: &Node, place: &str, expected: &'static str) -> AllowlistError {
    let found = match node.value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Integer(_) | Value::Float => "a number",
        Value::String(_) => "a string",
        Value::List(_) => "a list",
        Value::Map(_) => "a map",
    };
    let place = place.to_owned();
    AllowlistErrorKind::WrongType {
        place,
        expected,
        found,
    }
    .at(node.line, node.column)
}

fn wrong_value(place: &str, value: String, expected: &'static str) -> AllowlistErrorKind {
    AllowlistErrorKind::WrongValue {
        place: place.to_owned(),
        value,
        expected,
    }
}

fn missing(place: &str, key: &'static str) -> AllowlistErrorKind {
    AllowlistErrorKind::MissingKey {
        place: place.to_owned(),
        key,
    }
}

fn unknown(key: Key, place: &str, known: &'static [&'static str]) -> AllowlistError {
    let kind = AllowlistErrorKind::UnknownKey {
        place: place.to_owned(),
        key: key.name,
        known,
    };
    kind.at(key.line, key.column)
}

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
