//! Basic credentials: read, written, and with a surrogate in them replaced.

use cordon_policy::Host;
use cordon_secrets::{Channel, basic};
use http::{HeaderMap, HeaderName, HeaderValue, uri::PathAndQuery};
use serde_json::{Value, json};

use super::replacements::single;
use crate::{Case, Check, Unreadable};

pub(crate) fn check(case: &mut Case) -> Result<Check, Unreadable> {
    let operation = case.text("op")?;
    let input = case.value("input")?;
    let expected = case.expected()?;
    let got = match operation.as_str() {
        "decode" => decode(&input),
        "encode" => encode(&input),
        "replace" => return replace(&input, expected),
        _ => None,
    };
    Ok(Check::new(expected, got.ok_or(SHAPE)?))
}

fn decode(input: &Value) -> Option<Value> {
    let credentials = basic::decode(input.as_str()?.as_bytes());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some(json!(
        credentials.map(|known| [text(known.user()), text(known.password())])
    ))
}

fn encode(input: &Value) -> Option<Value> {
    let [user, password] = input.as_array()?.as_slice() else {
        return None;
    };
    let value = basic::encode(user.as_str()?.as_bytes(), password.as_str()?.as_bytes());
    Some(value.as_str().into())
}

fn replace(input: &Value, expected: Value) -> Result<Check, Unreadable> {
    let field = |name: &str| input[name].as_str().ok_or(SHAPE);
    let (name, before) = (field("header_name")?, field("header_value")?);
    let replacements = single(field("surrogate")?, field("real_value")?, name)?;
    let name: HeaderName = name.parse().map_err(|_| SHAPE)?;
    let value = HeaderValue::from_bytes(before.as_bytes()).map_err(|_| SHAPE)?;
    let mut headers = HeaderMap::from_iter([(name.clone(), value)]);
    let host = Host::parse("api.example.com")?;
    let mut target = PathAndQuery::from_static("/");
    let applied = match replacements.apply(&host, Channel::VerifiedTls, &mut headers, &mut target) {
        Ok(applied) => applied,
        Err(alarm) => return Ok(Check::new(expected, "refused").because(alarm.code())),
    };
    let after = headers
        .get(&name)
        .map(|value| String::from_utf8_lossy(value.as_bytes()));
    let replaced = applied.masked > 0;
    let got = json!({ "value": after, "replaced": replaced });
    let check = Check::new(expected, got);
    Ok(match basic::decode(before.as_bytes()) {
        Some(_) if replaced => check.because("Basic credentials in a spelling that servers accept"),
        _ => check,
    })
}

const SHAPE: Unreadable = Unreadable::Shape("input");
