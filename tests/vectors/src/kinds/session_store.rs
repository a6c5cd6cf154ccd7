//! Replies that are recorded one after the other, and the file that holds them.

use std::fs;

use cordon_agents::{Agent, Transcript, parse_event};
use cordon_session::{ReplyUpdate, SessionStore};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{Case, Check, Unreadable};

pub(crate) fn check(case: &mut Case) -> Result<Check, Unreadable> {
    let file_name = case.text("file_name")?;
    let calls = case.value("calls")?;
    let mut expected = case.expected()?;
    for reply in expected["file"]["replies"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        // Events stand in a journal of their own, beside this file.
        reply
            .as_object_mut()
            .and_then(|reply| reply.remove("events"));
    }
    let directory = tempfile::tempdir()?;
    let store = SessionStore::new(directory.path());
    for call in calls.as_array().ok_or(Unreadable::Shape("calls"))? {
        let request = call["request_text"].as_str();
        store.update_or_add_reply(CONTEXT, request, update(call)?)?;
    }
    let metadata = store.load()?.metadata.unwrap_or_default();
    let file = fs::read_to_string(directory.path().join(file_name))?;
    let got = json!({
        "file": reduced(serde_json::from_str(&file)?, &expected["file"]),
        "resume_session_id": store.session_id_for_resume()?,
        "last_successful_response": store.last_successful_response()?,
        "total_cost_usd": metadata.total_cost_usd(),
        "total_turns": metadata.total_turns(),
    });
    Ok(Check::new(expected, got))
}

fn update(call: &Value) -> Result<ReplyUpdate, Unreadable> {
    let mut transcript = Transcript::new(Agent::Claude);
    for event in call["events"]
        .as_array()
        .ok_or(Unreadable::Shape("calls"))?
    {
        let event = parse_event(&event.to_string()).ok_or(Unreadable::Shape("calls"))?;
        transcript.push_event(&event);
    }
    let update = ReplyUpdate::of(&transcript);
    Ok(ReplyUpdate {
        response_text: call["response_text"].as_str().map(str::to_owned),
        is_error: call["is_error"].as_bool().unwrap_or(update.is_error),
        ..update
    })
}

/// The file without what cases know nothing of, and without the moment at which it was written.
fn reduced(mut file: Value, expected: &Value) -> Value {
    let keep = |value: &mut Value, like: &Value| {
        if let Some(fields) = value.as_object_mut() {
            fields.retain(|name, _| like.get(name).is_some());
        }
    };
    keep(&mut file, expected);
    let wanted = expected["replies"].as_array().cloned().unwrap_or_default();
    for (reply, wanted) in file["replies"]
        .as_array_mut()
        .into_iter()
        .flatten()
        .zip(&wanted)
    {
        keep(reply, wanted);
        if reply["timestamp"]
            .as_str()
            .is_some_and(|text| text.parse::<Timestamp>().is_ok())
        {
            reply["timestamp"] = "<iso8601>".into();
        }
    }
    file
}

/// The execution context that the cases speak of.
const CONTEXT: &str = "ctx1";
