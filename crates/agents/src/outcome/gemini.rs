//! How Gemini CLI reports a refused request: the API's answer in brackets, or only its message,
//! and an exit status that is the HTTP status without its upper bits.

use std::time::Duration;

use serde_json::Value;

use super::{Ending, Outcome, TOO_LONG, delay_after, from_status};
use crate::Transcript;

pub(super) fn refusal(ending: &Ending<'_>, transcript: &Transcript) -> Option<Outcome> {
    if ending.exit_code == Some(EXIT_AUTHENTICATION) {
        return Some(Outcome::AuthFailed);
    }
    if ending.exit_code == Some(EXIT_TURN_LIMIT) {
        return Some(Outcome::BudgetExceeded);
    }
    let (result, _) = transcript.last_result()?;
    let text = result.text.as_deref()?;
    if result.is_error != Some(true) {
        return None;
    }
    if TOO_LONG.iter().any(|phrase| text.contains(phrase)) {
        return Some(Outcome::PromptTooLong);
    }
    if BROKEN.iter().any(|phrase| text.contains(phrase)) {
        return Some(Outcome::Overloaded);
    }
    let body = body(text);
    let error = body.as_ref().and_then(|body| body.get("error"));
    if error.is_some_and(|error| error.to_string().contains("API_KEY_INVALID")) {
        return Some(Outcome::AuthFailed);
    }
    let code = error.and_then(|error| error.get("code")?.as_u64());
    let status = code
        .and_then(|code| u16::try_from(code).ok())
        .or_else(|| from_exit(ending.exit_code?))?;
    from_status(status, retry_after(text))
}

/// The JSON within `[API Error: …]`.
fn body(text: &str) -> Option<Value> {
    let inner = text.strip_prefix("[API Error: ")?;
    let inner = &inner[..=inner.rfind('}')?];
    serde_json::from_str(inner).ok()
}

/// The system keeps eight bits of an exit status, and HTTP errors have nine.
fn from_exit(code: i32) -> Option<u16> {
    let status = u16::try_from(code).ok()? + 256;
    (400..=511).contains(&status).then_some(status)
}

fn retry_after(text: &str) -> Option<Duration> {
    delay_after(text, "retry after").or_else(|| delay_after(text, r#""retryDelay":""#))
}

/// How it says that the connection to the API broke, or that there was none.
const BROKEN: [&str; 2] = ["[API Error: terminated]", "fetch failed"];

/// Its own statuses for a missing key, and for a limit of turns in its settings.
const EXIT_AUTHENTICATION: i32 = 41;
const EXIT_TURN_LIMIT: i32 = 53;
