//! An allowlist read from YAML: its model, its JSON, or an error.

use cordon_policy::{
    Allowlist, AllowlistUrlPattern, Glob, parse_allowlist_yaml, serialize_allowlist_json,
};
use serde_json::{Value, json};

use crate::{Case, Check, Unreadable};

pub(crate) fn check(case: &mut Case) -> Result<Check, Unreadable> {
    let yaml = String::from_utf8(case.bytes("yaml")?).map_err(|_| Unreadable::Shape("yaml"))?;
    let error = case.optional("expect_error");
    let model = case.optional("expect");
    let serialized = case.optional("serialized");
    let parsed = parse_allowlist_yaml(&yaml);
    let expected = match (error, model) {
        (Some(_), None) => Value::from("error"),
        (None, Some(model)) => json!({ "model": model, "serialized": serialized }),
        _ => return Err(Unreadable::Shape("expect")),
    };
    Ok(match parsed {
        Err(error) => Check::new(expected, "error").because(error.kind),
        Ok(allowlist) => {
            let written = serde_json::from_str::<Value>(&serialize_allowlist_json(&allowlist))?;
            let serialized = serialized.map(|_| written);
            Check::new(
                expected,
                json!({ "model": dump(&allowlist), "serialized": serialized }),
            )
        }
    })
}

fn dump(allowlist: &Allowlist) -> Value {
    let domains = allowlist
        .domains
        .iter()
        .map(|entry| json!({ "host": entry.host.as_str() }));
    json!({
        "domains": Vec::from_iter(domains),
        "url_patterns": Vec::from_iter(allowlist.url_prefixes.iter().map(dump_pattern)),
    })
}

fn dump_pattern(entry: &AllowlistUrlPattern) -> Value {
    let sources =
        |globs: &[Glob]| Vec::from_iter(globs.iter().map(|glob| glob.as_str().to_owned()));
    let graphql = entry.graphql.as_ref().map(|rules| {
        json!({
            "queries": sources(&rules.queries),
            "mutations": sources(&rules.mutations),
            "subscriptions": sources(&rules.subscriptions),
        })
    });
    json!({
        "host": entry.host.as_str(),
        "path": entry.path.as_str(),
        "methods": entry.methods,
        "graphql": graphql,
    })
}
