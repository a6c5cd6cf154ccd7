//! Lines of Claude Code's stream, and the events that they are.

use cordon_agents::{Agent, ContentBlock, EventStream, Output, StreamEvent, parse_event};
use serde_json::{Value, json};

use crate::{Case, Check, Unreadable};

pub(crate) fn check(case: &mut Case) -> Result<Check, Unreadable> {
    let expected = case.value("expect")?;
    Ok(match case.optional("stdout") {
        Some(Value::String(stdout)) => {
            let events = outputs(&stdout).filter_map(event).map(|event| dump(&event));
            Check::new(expected, Vec::from_iter(events))
        }
        Some(_) => return Err(Unreadable::Shape("stdout")),
        None => {
            let line = case.text("line")?;
            let check = Check::new(expected, parse_event(&line).as_ref().map(dump));
            match serde_json::from_str::<Value>(&line) {
                Ok(_) => check,
                Err(_) => check.because("a line that is not JSON"),
            }
        }
    })
}

/// What a whole stdout holds.
pub(crate) fn outputs(stdout: &str) -> impl Iterator<Item = Output> {
    let mut stream = EventStream::new(Agent::Claude);
    let outputs = stream.push(stdout.as_bytes());
    outputs.into_iter().chain(stream.finish())
}

fn event(output: Output) -> Option<StreamEvent> {
    match output {
        Output::Event(event) => Some(*event),
        Output::Plain(_) => None,
    }
}

/// An event in the words of the cases, which keep the fields of a result among the others.
fn dump(event: &StreamEvent) -> Value {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    json!({
        "type": event.type_name(),
        "subtype": text(&event.subtype),
        "session_id": text(&event.session_id),
        "parent_tool_use_id": text(&event.parent_tool_use_id),
        "blocks": Vec::from_iter(event.blocks().iter().map(dump_block)),
        "extra": event.extra,
    })
}

fn dump_block(block: &ContentBlock) -> Value {
    match block {
        ContentBlock::Text(text) => json!({ "kind": "text", "text": text }),
        ContentBlock::ToolUse { id, name, input } => {
            json!({ "kind": "tool_use", "id": id, "name": name, "input": input })
        }
        ContentBlock::ToolResult {
            tool_use_id,
            content,
            is_error,
        } => {
            json!({ "kind": "tool_result", "tool_use_id": tool_use_id, "content": content, "is_error": is_error })
        }
    }
}
