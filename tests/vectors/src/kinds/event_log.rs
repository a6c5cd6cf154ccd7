//! A journal of events that is read: whole, one reply of it, or from an offset.

use std::fs;

use cordon_agents::StreamEvent;
use cordon_session::Journal;
use serde_json::{Value, json};

use crate::{Case, Check, Unreadable};

pub(crate) fn check(case: &mut Case) -> Result<Check, Unreadable> {
    let operation = case.text("op")?;
    let text = case.value("file_text")?;
    let arguments = case.value("args")?;
    let expected = parsed(case.expected()?);
    let directory = tempfile::tempdir()?;
    let journal = Journal::new(directory.path().join("events.jsonl"));
    match text {
        Value::String(text) => fs::write(journal.path(), text)?,
        Value::Null => {}
        _ => return Err(Unreadable::Shape("file_text")),
    }
    let got = match (operation.as_str(), arguments.as_array().map(Vec::as_slice)) {
        ("read_all", Some([])) => {
            let replies = journal.read_all()?;
            json!(Vec::from_iter(replies.iter().map(|events| dump(events))))
        }
        // Nobody can ask for a reply before the first.
        ("read_reply", Some([index])) => match index.as_u64().map(usize::try_from) {
            Some(Ok(index)) => json!(dump(&journal.read_reply(index)?)),
            Some(Err(_)) | None if index.is_i64() => json!([]),
            Some(Err(_)) | None => return Err(Unreadable::Shape("args")),
        },
        ("tail", Some([offset])) => {
            let tail = journal.tail(offset.as_u64().ok_or(Unreadable::Shape("args"))?)?;
            json!({ "events": dump(&tail.items), "offset": tail.offset })
        }
        _ => return Err(Unreadable::Shape("op")),
    };
    Ok(Check::new(expected, got))
}

/// Events as what they say; cases and journals differ in white space.
fn dump(events: &[StreamEvent]) -> Vec<Value> {
    events
        .iter()
        .map(|event| parsed(event.raw().into()))
        .collect()
}

/// Every text in a value, read as the JSON that it is.
fn parsed(value: Value) -> Value {
    match value {
        Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        Value::Array(items) => items.into_iter().map(parsed).collect(),
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(name, value)| (name, parsed(value)))
                .collect(),
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}
