//! How Codex reports a refused request: one sentence in the failed turn, written by itself, or
//! the body of a 400 as it came.

use serde_json::Value;

use super::{Outcome, delay_after, from_status};
use crate::Transcript;

pub(super) fn refusal(transcript: &Transcript) -> Option<Outcome> {
    let (result, _) = transcript.last_result()?;
    let text = result.text.as_deref()?;
    if result.is_error != Some(true) {
        return None;
    }
    if let Ok(body) = serde_json::from_str::<Value>(text) {
        return Some(from_body(&body));
    }
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
    let retry_after = delay_after(text, "try again in");
    if let Some(status) = status(text) {
        from_status(status, retry_after)
    } else if says(&OVERLOADED) {
        Some(Outcome::Overloaded)
    } else if says(&LIMITED) {
        Some(Outcome::RateLimited { retry_after })
    } else if says(&[DISCONNECTED]) {
        Some(Outcome::Overloaded)
    } else {
        None
    }
}

fn from_body(body: &Value) -> Outcome {
    let error = body.get("error");
    let code = error.and_then(|error| error.get("code")?.as_str());
    match code {
        Some("context_length_exceeded") => Outcome::PromptTooLong,
        Some("invalid_api_key" | "account_deactivated") => Outcome::AuthFailed,
        Some("rate_limit_exceeded" | "insufficient_quota") => {
            Outcome::RateLimited { retry_after: None }
        }
        Some(_) | None => Outcome::SessionCorrupted,
    }
}

fn status(text: &str) -> Option<u16> {
    ["unexpected status ", "last status: "]
        .iter()
        .find_map(|phrase| text.split_once(phrase))?
        .1
        .get(..3)?
        .parse()
        .ok()
}

/// A 500 is "high demand", a model without room "at capacity".
const OVERLOADED: [&str; 3] = [
    "currently experiencing high demand",
    "model is at capacity",
    "servers are currently overloaded",
];

const LIMITED: [&str; 3] = ["usage limit", "Quota exceeded", "Rate limit reached"];

/// The connection broke, unless the rest of the sentence says better.
const DISCONNECTED: &str = "stream disconnected before completion";
