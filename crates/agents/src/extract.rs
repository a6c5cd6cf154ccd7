//! The extraction functions over a list of events, for callers that have kept them.
//!
//! They are all questions to a [`Transcript`], which asks for no list.

use serde::Serialize;

use crate::{Agent, StreamEvent, Transcript, Usage};

/// What the results of a run say together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResultSummary {
    /// The session that a result named.
    pub session_id: Option<String>,
    /// How long the agent says it took, all results together.
    pub duration_ms: u64,
    /// What it cost, by the last result, which counts everything before it.
    pub total_cost_usd: f64,
    /// Answers of the model, all results together.
    pub num_turns: u64,
    /// Whether the last result reports an error.
    pub is_error: bool,
    /// Tokens used, by the last result.
    pub usage: Usage,
    /// The text of the last result.
    pub result_text: Option<String>,
}

/// What the results among the events say together; `None` if there is none.
#[must_use]
pub fn extract_result_summary(events: &[StreamEvent]) -> Option<ResultSummary> {
    transcript(events).summary()
}

/// The answer, or a sentence that says there is none.
#[must_use]
pub fn extract_response_text(events: &[StreamEvent]) -> String {
    transcript(events).response_text()
}

/// The session, from the last result that names one, or else from the start of the session.
#[must_use]
pub fn extract_session_id(events: &[StreamEvent]) -> Option<String> {
    transcript(events).session_id().map(str::to_owned)
}

/// The last lines of the last result with a text, or of all that the model said.
#[must_use]
pub fn extract_error_summary(events: &[StreamEvent], max_lines: usize) -> Option<String> {
    transcript(events).error_lines(max_lines)
}

/// Chooses the reply among the texts of a run, which come in order.
///
/// The last one is the reply, unless it is a short remark after the substance: if one of the
/// few before it is at least four times as long, the reply goes from the latest such text to
/// the end.
#[must_use]
pub fn select_reply(texts: &[&str]) -> Option<String> {
    let (last, _) = texts.split_last()?;
    let window = &texts[texts.len().saturating_sub(REPLY_WINDOW)..];
    let enough = last.chars().count().saturating_mul(SUBSTANCE_FACTOR);
    let substance = window[..window.len() - 1]
        .iter()
        .rposition(|text| text.chars().count() >= enough);
    match substance {
        Some(at) if !last.is_empty() => Some(window[at..].join("\n\n")),
        _ => Some((*last).to_owned()),
    }
}

/// The last lines of a text without the white space after it; `None` if it is blank.
pub(crate) fn last_lines(text: &str, max: usize) -> Option<String> {
    let text = text.trim();
    let text = &text[text.ceil_char_boundary(text.len().saturating_sub(MAX_SUMMARY_BYTES))..];
    let lines: Vec<_> = text.lines().collect();
    let kept = lines[lines.len().saturating_sub(max)..].join("\n");
    (!kept.is_empty()).then_some(kept)
}

fn transcript(events: &[StreamEvent]) -> Transcript {
    let mut transcript = Transcript::new(Agent::Claude);
    for event in events {
        transcript.push_event(event);
    }
    transcript
}

/// How far back the substance of a reply is looked for, the last text included.
pub(crate) const REPLY_WINDOW: usize = 5;

/// A text this many times longer than the last one is what the last one was about.
const SUBSTANCE_FACTOR: usize = 4;

/// A summary is for people; a line of megabytes would not be one.
const MAX_SUMMARY_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests;
