//! Claude Code's `--output-format stream-json`.

use serde_json::{Map, Value};

use super::{
    ContentBlock, EventKind, Message, OVERSIZED, RunResult, StreamEvent, status, string,
    take_string, truthy,
};
use crate::{Usage, usage::whole};

pub(super) fn event(mut fields: Map<String, Value>) -> Option<StreamEvent> {
    let Value::String(name) = fields.remove("type")? else {
        return None;
    };
    let subtype = take_string(&mut fields, "subtype");
    let session_id = take_string(&mut fields, "session_id");
    let parent_tool_use_id = take_string(&mut fields, "parent_tool_use_id");
    let kind = match name.as_str() {
        "system" => EventKind::System,
        "assistant" => EventKind::Assistant(message(&mut fields)),
        "user" => EventKind::User(message(&mut fields)),
        "result" => EventKind::Result(Box::new(result(&fields))),
        OVERSIZED => EventKind::Oversized,
        _ => EventKind::Unknown(name),
    };
    Some(StreamEvent {
        subtype,
        session_id,
        parent_tool_use_id,
        ..StreamEvent::new(kind, fields)
    })
}

fn message(fields: &mut Map<String, Value>) -> Message {
    let error = fields.get("error").and_then(Value::as_str);
    let error = error.map(str::to_owned);
    let Some(Value::Object(mut message)) = fields.remove("message") else {
        return Message {
            error,
            ..Message::default()
        };
    };
    let content = message.remove("content");
    let blocks = content.as_ref().and_then(Value::as_array);
    Message {
        id: take_string(&mut message, "id"),
        model: take_string(&mut message, "model"),
        blocks: blocks.map_or_else(Vec::new, |blocks| blocks.iter().filter_map(block).collect()),
        usage: message.get("usage").map(Usage::read_claude),
        error,
        partial: false,
    }
}

fn block(value: &Value) -> Option<ContentBlock> {
    let fields = value.as_object()?;
    match fields.get("type")?.as_str()? {
        "text" => Some(ContentBlock::Text(string(fields.get("text")))),
        "tool_use" => Some(ContentBlock::ToolUse {
            id: string(fields.get("id")),
            name: string(fields.get("name")),
            input: fields
                .get("input")
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default(),
        }),
        "tool_result" => Some(ContentBlock::ToolResult {
            tool_use_id: string(fields.get("tool_use_id")),
            content: match fields.get("content") {
                Some(content @ (Value::String(_) | Value::Array(_))) => content.clone(),
                _ => Value::from(""),
            },
            is_error: fields.get("is_error").is_some_and(truthy),
        }),
        _ => None,
    }
}

fn result(fields: &Map<String, Value>) -> RunResult {
    let errors = fields.get("errors").and_then(Value::as_array);
    RunResult {
        is_error: fields
            .get("is_error")
            .filter(|value| !value.is_null())
            .map(truthy),
        text: fields.get("result").and_then(result_text),
        errors: errors.map_or_else(Vec::new, |errors| {
            let texts = errors.iter().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        }),
        api_status: fields.get("api_error_status").and_then(status),
        duration_ms: fields.get("duration_ms").map_or(0, whole),
        num_turns: fields.get("num_turns").map_or(0, whole),
        total_cost_usd: fields.get("total_cost_usd").and_then(Value::as_f64),
        usage: fields
            .get("usage")
            .map(Usage::read_claude)
            .unwrap_or_default(),
    }
}

/// A string, or an object whose content has text blocks.
fn result_text(value: &Value) -> Option<String> {
    if let Some(text) = value.as_str() {
        return Some(text.to_owned());
    }
    let texts: Vec<_> = value
        .get("content")?
        .as_array()?
        .iter()
        .filter(|part| part.get("type").and_then(Value::as_str) == Some("text"))
        .filter_map(|part| part.get("text")?.as_str())
        .collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}
