//! An allowlist, written as JSON.

use cordon_policy::Allowlist;
use serde_json::{Map, Value};

use crate::{Case, Check, Unreadable};

pub(crate) fn check(case: &mut Case) -> Result<Check, Unreadable> {
    let file = file(case.value("allowlist")?).ok_or(Unreadable::Shape("allowlist"))?;
    let expected = case.value("expect_json")?;
    Ok(match Allowlist::from_json(&file.to_string()) {
        Ok(allowlist) => Check::new(
            expected,
            serde_json::from_str::<Value>(&allowlist.to_json())?,
        ),
        Err(error) => Check::new(expected, "error").because(error.kind),
    })
}

/// The file that would be parsed into a model: `url_patterns` is `url_prefixes` there, and nothing is null.
fn file(model: Value) -> Option<Value> {
    let Value::Object(mut model) = model else {
        return None;
    };
    let mut file = Map::new();
    file.insert("domains".to_owned(), model.remove("domains")?);
    let Value::Array(mut patterns) = model.remove("url_patterns")? else {
        return None;
    };
    for pattern in &mut patterns {
        pattern
            .as_object_mut()?
            .retain(|key, value| key != "graphql" || !value.is_null());
    }
    file.insert("url_prefixes".to_owned(), patterns.into());
    model.is_empty().then_some(Value::Object(file))
}
