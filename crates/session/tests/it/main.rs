//! The store on a real file system: what it writes, what it survives, who may use it.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test ends where it fails"
)]

mod cost;
mod journal;
mod kill;
mod legacy;
mod lock;
mod redaction;
mod retention;
mod store;

use std::path::Path;

use cordon_agents::{Agent, StreamEvent, Transcript, parse_event};
use cordon_session::{ReplyUpdate, SessionStore, Writer};
use serde_json::{Value, json};

fn event(value: Value) -> StreamEvent {
    parse_event(&value.to_string()).unwrap()
}

fn init(session: &str) -> StreamEvent {
    event(json!({"type": "system", "subtype": "init", "session_id": session}))
}

fn says(text: &str) -> StreamEvent {
    event(json!({"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}}))
}

fn result(session: &str) -> StreamEvent {
    event(json!({
        "type": "result", "session_id": session, "duration_ms": 10, "total_cost_usd": 0.5,
        "num_turns": 2, "is_error": false, "usage": {"input_tokens": 3, "service_tier": "x"}, "result": "Done."
    }))
}

/// Records one whole reply.
fn record(writer: Writer, request: &str, events: &[StreamEvent]) -> Writer {
    let mut recording = writer.begin_reply(Agent::Claude, Some(request)).unwrap();
    let mut transcript = Transcript::new(Agent::Claude);
    for event in events {
        transcript.push_event(event);
        recording.append(event).unwrap();
    }
    recording
        .finish(ReplyUpdate {
            response_text: Some(transcript.response_text()),
            outcome: Some("success".to_owned()),
            ..ReplyUpdate::of(&transcript)
        })
        .unwrap()
}

fn store(dir: &Path) -> SessionStore {
    SessionStore::new(dir.join("ctx"))
}

fn raws(events: &[StreamEvent]) -> Vec<&str> {
    events.iter().map(StreamEvent::raw).collect()
}
