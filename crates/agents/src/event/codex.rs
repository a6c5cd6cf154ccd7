//! Codex's `exec --json`: a thread of turns, and in them items that start and complete.

use serde_json::{Map, Value};

use super::{ContentBlock, EventKind, INIT, Message, RunResult, StreamEvent, string, take_string};
use crate::{Usage, usage};

pub(super) fn event(mut fields: Map<String, Value>) -> Option<StreamEvent> {
    let Value::String(name) = fields.remove("type")? else {
        return None;
    };
    let system = |subtype: &str, fields| StreamEvent {
        subtype: Some(subtype.to_owned()),
        ..StreamEvent::new(EventKind::System, fields)
    };
    Some(match name.as_str() {
        "thread.started" => StreamEvent {
            session_id: take_string(&mut fields, "thread_id"),
            ..system(INIT, fields)
        },
        // A passing trouble, such as a retry; one that ends the run is also a failed turn.
        "error" | "turn.started" => system(&name, fields),
        "turn.completed" | "turn.failed" => {
            let result = result(&fields, name == "turn.failed");
            StreamEvent::new(EventKind::Result(Box::new(result)), fields)
        }
        "item.started" | "item.updated" | "item.completed" => {
            let kind = item(&name, fields.get("item").and_then(Value::as_object));
            StreamEvent {
                subtype: Some(name.clone()),
                ..StreamEvent::new(kind.unwrap_or(EventKind::Unknown(name)), fields)
            }
        }
        _ => StreamEvent::new(EventKind::Unknown(name), fields),
    })
}

fn item(stage: &str, item: Option<&Map<String, Value>>) -> Option<EventKind> {
    let item = item?;
    let kind = item.get("type")?.as_str()?;
    let id = string(item.get("id"));
    match (kind, stage) {
        ("agent_message", "item.completed") => {
            let text = ContentBlock::Text(string(item.get("text")));
            Some(EventKind::Assistant(Message::of(text)))
        }
        ("agent_message" | "reasoning" | "error" | "todo_list", _) => None,
        (_, "item.started") => Some(EventKind::Assistant(Message::of(ContentBlock::ToolUse {
            id,
            name: kind.to_owned(),
            input: item
                .iter()
                .filter(|(name, value)| !BOOKKEEPING.contains(&name.as_str()) && !value.is_null())
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        }))),
        (_, "item.completed") => Some(EventKind::User(Message::of(ContentBlock::ToolResult {
            tool_use_id: id,
            content: Value::from(outcome(item)),
            is_error: item
                .get("status")
                .and_then(Value::as_str)
                .is_some_and(|status| status != "completed"),
        }))),
        _ => None,
    }
}

/// What a tool gave: its output where it has one, or what it was about.
fn outcome(item: &Map<String, Value>) -> String {
    ["aggregated_output", "error", "result", "changes", "query"]
        .iter()
        .filter_map(|name| item.get(*name))
        .find_map(|value| match value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                Some(value.to_string())
            }
        })
        .unwrap_or_default()
}

fn result(fields: &Map<String, Value>, failed: bool) -> RunResult {
    let message = fields.get("error").and_then(|error| error.get("message"));
    RunResult {
        is_error: Some(failed),
        text: message.and_then(Value::as_str).map(str::to_owned),
        usage: fields
            .get("usage")
            .map(|usage| Usage::read(usage, &usage::CODEX))
            .unwrap_or_default(),
        ..RunResult::default()
    }
}

/// Fields of an item that say nothing about what was asked of a tool.
const BOOKKEEPING: [&str; 5] = ["id", "type", "status", "aggregated_output", "exit_code"];
