//! A whole run of Claude Code: how it ended and what it says of itself.

use cordon_agents::{Agent, EndedBy, Ending, Outcome, Transcript, Usage, classify};
use serde_json::{Value, json};

use super::{
    claude_events::outputs,
    claude_extract::{texts, usage},
};
use crate::{Case, Check, Unreadable};

pub(crate) fn check(case: &mut Case) -> Result<Check, Unreadable> {
    let mut lines = |name| {
        texts(case.value(name)?)
            .ok_or(Unreadable::Shape(name))
            .map(|lines| lines.concat())
    };
    let stdout = lines("stdout_lines")?;
    let stderr = lines("stderr_lines")?;
    let exit_code = case
        .value("exit_code")?
        .as_i64()
        .and_then(|code| i32::try_from(code).ok());
    let timed_out = case
        .value("timed_out")?
        .as_bool()
        .ok_or(Unreadable::Shape("timed_out"))?;
    let wall_ms = case
        .value("wall_duration_ms")?
        .as_u64()
        .ok_or(Unreadable::Shape("wall_duration_ms"))?;
    let expected = case.expected()?;

    let mut transcript = Transcript::new(Agent::Claude);
    for output in outputs(&stdout) {
        transcript.push(&output);
    }
    let ending = Ending {
        by: if timed_out {
            EndedBy::Timeout
        } else {
            EndedBy::Itself
        },
        exit_code: Some(exit_code.ok_or(Unreadable::Shape("exit_code"))?),
        oom_killed: false,
        stderr: &stderr,
    };
    let outcome = classify(&ending, &transcript);
    let got = report(outcome, &transcript, wall_ms);
    let because = because(&got, &expected, &stdout);
    Ok(Check::new(expected, got).because(because))
}

fn report(outcome: Outcome, transcript: &Transcript, wall_ms: u64) -> Value {
    let summary = transcript.summary();
    let (response, error) = match outcome {
        Outcome::Success => (transcript.response_text(), None),
        _ => (String::new(), transcript.error_summary()),
    };
    let duration = summary.as_ref().map_or(0, |summary| summary.duration_ms);
    json!({
        "outcome": outcome.name(),
        "session_id": transcript.session_id().unwrap_or_default(),
        "response_text": response,
        "duration_ms": if duration == 0 { wall_ms } else { duration },
        "total_cost_usd": summary.as_ref().map_or(0.0, |summary| summary.total_cost_usd),
        "num_turns": summary.as_ref().map_or(0, |summary| summary.num_turns),
        "is_error": summary.as_ref().is_some_and(|summary| summary.is_error),
        "usage": summary.as_ref().map_or_else(|| usage(&Usage::default()), |summary| usage(&summary.usage)),
        "web_search_count": transcript.web_searches(),
        "web_fetch_count": transcript.web_fetches(),
        "error_summary": error,
    })
}

fn because(got: &Value, expected: &Value, stdout: &str) -> String {
    let (outcome, other) = (got["outcome"].as_str(), expected["outcome"].as_str());
    match (outcome, other) {
        (Some(outcome), Some("success")) if outcome != "success" && got["is_error"] == true => {
            "the agent itself reports an error".to_owned()
        }
        (Some(outcome), Some(other)) if outcome != other => {
            format!("outcome {outcome} instead of {other}")
        }
        _ if stdout.contains("\"parent_tool_use_id\"") => "a sub-agent speaks".to_owned(),
        _ => String::new(),
    }
}
