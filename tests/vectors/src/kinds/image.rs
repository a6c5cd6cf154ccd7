//! Hashes of recipes, times as engines write them, and ages.

use std::time::Duration;

use cordon_image::{Age, ContextPath, Created, Entry, Recipe};
use serde_json::{Value, json};

use crate::{Case, Check, Unreadable, case::bytes};

pub(crate) fn check(case: &mut Case) -> Result<Check, Unreadable> {
    let operation = case.text("op")?;
    let expected = case.expected()?;
    match operation.as_str() {
        "content_hash" => content_hash(case, &expected),
        "parse_timestamp" => parse_timestamp(case, expected),
        "format_age" => {
            let seconds = case
                .value("seconds")?
                .as_f64()
                .ok_or(Unreadable::Shape("seconds"))?;
            let age =
                Duration::try_from_secs_f64(seconds).map_err(|_| Unreadable::Shape("seconds"))?;
            Ok(Check::new(expected, Age(age).to_string()))
        }
        _ => Err(Unreadable::Shape("op")),
    }
}

/// Names and contents run into each other in the hashes of the cases, so two recipes can share one: ours must differ.
fn content_hash(case: &mut Case, concatenated: &Value) -> Result<Check, Unreadable> {
    // Recipes are hashed alike, whatever they are for.
    case.text("kind")?;
    let dockerfile = case.bytes("dockerfile")?;
    let Value::Object(files) = case.value("context_files")? else {
        return Err(SHAPE);
    };
    let digest = recipe(&dockerfile, files.iter())?.digest().to_string();
    let reversed = recipe(&dockerfile, files.iter().rev())?
        .digest()
        .to_string();
    let got = json!({
        "sha256": digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "depends_on_the_order": digest != reversed,
        "is_the_concatenation": concatenated == digest.as_str(),
    });
    let expected =
        json!({ "sha256": true, "depends_on_the_order": false, "is_the_concatenation": false });
    Ok(Check::new(expected, got))
}

fn recipe<'a>(
    dockerfile: &[u8],
    files: impl Iterator<Item = (&'a String, &'a Value)>,
) -> Result<Recipe, Unreadable> {
    let mut recipe = Recipe::new(dockerfile.to_vec());
    for (name, content) in files {
        let path: ContextPath = name.parse().map_err(|_| SHAPE)?;
        let content = bytes(content).ok_or(SHAPE)?;
        recipe
            .insert(path, Entry::file(content))
            .map_err(|_| SHAPE)?;
    }
    Ok(recipe)
}

/// Cases know microseconds, and offsets that mean the same moment.
fn parse_timestamp(case: &mut Case, expected: Value) -> Result<Check, Unreadable> {
    let micros = |text: &str| {
        text.parse()
            .ok()
            .map(|created: Created| created.timestamp().as_microsecond())
    };
    let input = case.text("input")?;
    let expected = match expected {
        Value::String(text) => json!(micros(&text).ok_or(Unreadable::Shape("expect"))?),
        Value::Object(_) | Value::Null => Value::Null,
        _ => return Err(Unreadable::Shape("expect")),
    };
    Ok(Check::new(expected, micros(&input)))
}

const SHAPE: Unreadable = Unreadable::Shape("context_files");
