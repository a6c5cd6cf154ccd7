//! What is drawn from the events of a run: the reply, the session, the summary, the error.

use cordon_agents::{
    ResultSummary, StreamEvent, Usage, extract_error_summary, extract_response_text,
    extract_result_summary, extract_session_id, parse_event, select_reply,
};
use serde_json::{Value, json};

use crate::{Case, Check, Unreadable};

pub(crate) fn check(case: &mut Case) -> Result<Check, Unreadable> {
    let operation = case.text("op")?;
    let expected = case.value("expect")?;
    let got = match operation.as_str() {
        "select_reply" => {
            let texts = texts(case.value("texts")?).ok_or(Unreadable::Shape("texts"))?;
            json!(select_reply(&Vec::from_iter(
                texts.iter().map(String::as_str)
            )))
        }
        "response_text" => extract_response_text(&events(case)?).into(),
        "session_id" => json!(extract_session_id(&events(case)?)),
        "result_summary" => json!(extract_result_summary(&events(case)?).as_ref().map(summary)),
        "error_summary" => {
            let lines = case
                .value("max_lines")?
                .as_u64()
                .and_then(|lines| usize::try_from(lines).ok());
            let lines = lines.ok_or(Unreadable::Shape("max_lines"))?;
            json!(extract_error_summary(&events(case)?, lines))
        }
        _ => return Err(Unreadable::Shape("op")),
    };
    Ok(Check::new(expected, got))
}

fn events(case: &mut Case) -> Result<Vec<StreamEvent>, Unreadable> {
    let lines = texts(case.value("lines")?).ok_or(Unreadable::Shape("lines"))?;
    Ok(lines.iter().filter_map(|line| parse_event(line)).collect())
}

/// A list of texts.
pub(crate) fn texts(list: Value) -> Option<Vec<String>> {
    serde_json::from_value(list).ok()
}

fn summary(summary: &ResultSummary) -> Value {
    json!({
        "session_id": summary.session_id.clone().unwrap_or_default(),
        "duration_ms": summary.duration_ms,
        "total_cost_usd": summary.total_cost_usd,
        "num_turns": summary.num_turns,
        "is_error": summary.is_error,
        "usage": usage(&summary.usage),
        "result_text": summary.result_text.clone().unwrap_or_default(),
    })
}

/// Usage in the words of the cases, with what else was reported under a key of its own.
pub(crate) fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_creation_input_tokens": usage.cache_creation_input_tokens,
        "cache_read_input_tokens": usage.cache_read_input_tokens,
        "extra": usage.extra,
    })
}
