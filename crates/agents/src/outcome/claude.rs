//! How Claude Code reports a refused request: a status in the result, and the kind of failure in
//! the message before it.

use super::{Outcome, TOO_LONG, from_status};
use crate::Transcript;

pub(super) fn refusal(transcript: &Transcript) -> Option<Outcome> {
    let (result, subtype) = transcript.last_result()?;
    if matches!(subtype, Some("error_max_turns" | "error_max_budget_usd")) {
        return Some(Outcome::BudgetExceeded);
    }
    if result.is_error != Some(true) {
        return None;
    }
    let text = result.text.as_deref().unwrap_or_default();
    let too_long = TOO_LONG.iter().any(|phrase| text.contains(phrase));
    let retry_after = transcript
        .last_retry()
        .filter(|retry| retry.status == Some(429))
        .and_then(|retry| retry.delay);
    match (transcript.error_kind(), result.api_status) {
        (_, None | Some(400)) if too_long => Some(Outcome::PromptTooLong),
        (Some("billing_error"), _) => Some(Outcome::AuthFailed),
        (_, Some(status)) => from_status(status, retry_after),
        (Some("authentication_failed"), None) => Some(Outcome::AuthFailed),
        (Some("rate_limit"), None) => Some(Outcome::RateLimited { retry_after }),
        // `server_error`: the exchange broke. Where it broke before the answer began, a proxy on the
        // way says 502; both mean the same.
        (Some("overloaded" | "server_error"), None) => Some(Outcome::Overloaded),
        (Some("invalid_request"), None) => Some(Outcome::SessionCorrupted),
        (_, None) => None,
    }
}
