//! Request headers before and after surrogates are replaced and foreign credentials stripped.

use cordon_policy::Host;
use cordon_secrets::Channel;
use http::{HeaderMap, HeaderName, HeaderValue, uri::PathAndQuery};
use serde_json::{Value, json};

use super::replacements::{Given, given};
use crate::{Case, Check, Unreadable};

pub(crate) fn check(case: &mut Case) -> Result<Check, Unreadable> {
    let entries = case.value("replacements")?;
    let replacements = given(&entries)?;
    let host = Host::parse(&case.text("host")?)?;
    let mut headers = header_map(&case.value("headers")?)?;
    let mut expected = case.expected()?;
    expected["headers"] = sorted(&header_map(&expected["headers"])?);
    let replacements = match replacements {
        Given::Replacements(replacements) => replacements,
        Given::Unsupported(kind) => return Ok(Check::new(expected, "unsupported").because(kind)),
    };
    let mut target = PathAndQuery::from_static("/");
    Ok(
        match replacements.apply(&host, Channel::VerifiedTls, &mut headers, &mut target) {
            Err(alarm) => {
                Check::new(expected, json!({ "refused": alarm.code() })).because(alarm.code())
            }
            Ok(applied) => {
                let (replaced, dropped) = (applied.masked, applied.dropped);
                let got = json!({ "headers": sorted(&headers), "replaced": replaced, "dropped": dropped });
                let check = Check::new(expected, got);
                match chained(&entries) {
                    true => check.because("a real value that holds another surrogate"),
                    false => check,
                }
            }
        },
    )
}

/// Whether a real value holds a surrogate, which a second pass would replace in turn.
fn chained(entries: &Value) -> bool {
    let entries = || entries.as_object().into_iter().flatten();
    let mut values = entries().filter_map(|(_, entry)| entry["value"].as_str());
    values.any(|value| entries().any(|(surrogate, _)| value.contains(surrogate)))
}

fn header_map(pairs: &Value) -> Result<HeaderMap, Unreadable> {
    let mut headers = HeaderMap::new();
    for pair in pairs.as_array().ok_or(SHAPE)? {
        let [Value::String(name), Value::String(value)] = pair.as_array().ok_or(SHAPE)?.as_slice()
        else {
            return Err(SHAPE);
        };
        let name: HeaderName = name.parse().map_err(|_| SHAPE)?;
        headers.append(
            name,
            HeaderValue::from_bytes(value.as_bytes()).map_err(|_| SHAPE)?,
        );
    }
    Ok(headers)
}

/// The headers by name, those of one name in their order: neither case nor order across names means anything.
fn sorted(headers: &HeaderMap) -> Value {
    let pairs = headers
        .iter()
        .map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes())));
    let mut pairs = Vec::from_iter(pairs);
    pairs.sort_by_key(|(name, _)| *name);
    json!(pairs)
}

const SHAPE: Unreadable = Unreadable::Shape("headers");
