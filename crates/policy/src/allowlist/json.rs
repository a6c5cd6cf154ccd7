//! The allowlist as JSON: the form in which it travels to a proxy in a container.
//!
//! JSON is YAML, so reading it needs no second schema: only the check that it is nothing more than JSON.

use cordon_yaml::Position;
use serde_json::{Map, Value, json};

use super::{
    Allowlist, AllowlistDomain, AllowlistUrlPattern, Reach,
    error::{AllowlistError, AllowlistErrorKind},
};
use crate::{Glob, GraphqlRules, Scheme, Schemes};

pub(super) fn check(text: &str) -> Result<(), AllowlistError> {
    match serde_json::from_str::<Value>(text) {
        Ok(_) => Ok(()),
        Err(error) => {
            let message = error.to_string();
            let at = Position {
                line: error.line().max(1),
                column: error.column().max(1),
            };
            Err(AllowlistErrorKind::Json { message }.at(at))
        }
    }
}

pub(super) fn write(allowlist: &Allowlist) -> Value {
    json!({
        "domains": Vec::from_iter(allowlist.domains.iter().map(domain)),
        "url_prefixes": Vec::from_iter(allowlist.url_prefixes.iter().map(url_prefix)),
    })
}

fn domain(entry: &AllowlistDomain) -> Value {
    let host = Value::from(entry.host.as_str());
    let mut map = Map::new();
    write_reach(&mut map, &entry.reach, Schemes::BOTH);
    if map.is_empty() {
        return host;
    }
    map.insert("host".to_owned(), host);
    Value::Object(map)
}

fn url_prefix(entry: &AllowlistUrlPattern) -> Value {
    let mut map = Map::new();
    map.insert("host".to_owned(), entry.host.as_str().into());
    map.insert("path".to_owned(), entry.path.as_str().into());
    map.insert("methods".to_owned(), entry.methods.as_slice().into());
    if let Some(rules) = &entry.graphql {
        map.insert("graphql".to_owned(), graphql(rules));
    }
    write_reach(&mut map, &entry.reach, Schemes::HTTPS);
    Value::Object(map)
}

fn graphql(rules: &GraphqlRules) -> Value {
    let patterns =
        |globs: &[Glob]| Vec::from_iter(globs.iter().map(|glob| glob.as_str().to_owned()));
    json!({
        "queries": patterns(&rules.queries),
        "mutations": patterns(&rules.mutations),
        "subscriptions": patterns(&rules.subscriptions),
    })
}

/// Writes only what differs from the default, so that a file without the extra keys comes out as it went in.
fn write_reach(map: &mut Map<String, Value>, reach: &Reach, usual: Schemes) {
    if !reach.ports.is_empty() {
        map.insert("ports".to_owned(), reach.ports.as_slice().into());
    }
    if reach.schemes != usual {
        let names = reach.schemes.iter().map(Scheme::as_str);
        map.insert("schemes".to_owned(), names.collect());
    }
    if reach.private_addresses {
        map.insert("private_addresses".to_owned(), true.into());
    }
}
