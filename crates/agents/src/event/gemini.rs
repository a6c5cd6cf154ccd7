//! Gemini CLI's `--output-format stream-json`; the model's text comes in pieces.

use serde_json::{Map, Value};

use super::{
    ContentBlock, EventKind, INIT, Message, RunResult, StreamEvent, string, take_string, truthy,
};
use crate::{
    Usage,
    usage::{self, whole},
};

pub(super) fn event(mut fields: Map<String, Value>) -> Option<StreamEvent> {
    let Value::String(name) = fields.remove("type")? else {
        return None;
    };
    let session_id = take_string(&mut fields, "session_id");
    let (kind, subtype) = match name.as_str() {
        INIT | "error" => (EventKind::System, Some(name)),
        "message" => (message(&fields).unwrap_or(EventKind::Unknown(name)), None),
        "tool_use" => (EventKind::Assistant(Message::of(tool_use(&fields))), None),
        "tool_result" => (EventKind::User(Message::of(tool_result(&fields))), None),
        "result" => (EventKind::Result(Box::new(result(&fields))), None),
        _ => (EventKind::Unknown(name), None),
    };
    Some(StreamEvent {
        subtype,
        session_id,
        ..StreamEvent::new(kind, fields)
    })
}

fn message(fields: &Map<String, Value>) -> Option<EventKind> {
    let message = Message {
        partial: fields.get("delta").is_some_and(truthy),
        ..Message::of(ContentBlock::Text(string(fields.get("content"))))
    };
    match fields.get("role")?.as_str()? {
        "assistant" => Some(EventKind::Assistant(message)),
        "user" => Some(EventKind::User(message)),
        _ => None,
    }
}

fn tool_use(fields: &Map<String, Value>) -> ContentBlock {
    let parameters = fields.get("parameters").and_then(Value::as_object);
    ContentBlock::ToolUse {
        id: string(fields.get("tool_id")),
        name: string(fields.get("tool_name")),
        input: parameters.cloned().unwrap_or_default(),
    }
}

fn tool_result(fields: &Map<String, Value>) -> ContentBlock {
    let error = fields.get("error").and_then(|error| error.get("message"));
    ContentBlock::ToolResult {
        tool_use_id: string(fields.get("tool_id")),
        content: Value::from(string(fields.get("output").or(error))),
        is_error: fields.get("status").and_then(Value::as_str) == Some("error"),
    }
}

fn result(fields: &Map<String, Value>) -> RunResult {
    let status = fields.get("status").and_then(Value::as_str);
    let message = fields.get("error").and_then(|error| error.get("message"));
    let stats = fields.get("stats").cloned().unwrap_or_default();
    RunResult {
        is_error: status.map(|status| status != "success"),
        text: message.and_then(Value::as_str).map(str::to_owned),
        duration_ms: stats.get("duration_ms").map_or(0, whole),
        usage: Usage::read(&stats, &usage::GEMINI),
        ..RunResult::default()
    }
}
