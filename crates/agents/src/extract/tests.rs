use serde_json::{Value, json};

use super::*;
use crate::parse_event;

fn events(values: &[Value]) -> Vec<StreamEvent> {
    values
        .iter()
        .map(|value| parse_event(&value.to_string()).unwrap())
        .collect()
}

fn says(text: &str) -> Value {
    json!({"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}})
}

#[test]
fn the_last_text_is_the_reply() {
    let run = events(&[
        says("First."),
        says("Second."),
        json!({"type": "result", "result": "Other."}),
    ]);
    assert_eq!(extract_response_text(&run), "Second.");
    assert_eq!(extract_response_text(&run[2..]), "Other.");
    assert_eq!(
        extract_response_text(&[]),
        "No output received from Claude."
    );
}

#[test]
fn a_short_remark_does_not_hide_the_substance() {
    let long = "x".repeat(40);
    assert_eq!(
        select_reply(&[&long, "0123456789"]),
        Some(format!("{long}\n\n0123456789"))
    );
    assert_eq!(
        select_reply(&[&long[1..], "0123456789"]).as_deref(),
        Some("0123456789")
    );
    let longer = "y".repeat(50);
    assert_eq!(
        select_reply(&[&longer, &long, "ok", "bye"]),
        Some(format!("{long}\n\nok\n\nbye"))
    );
    let far = [longer.as_str(), "a", "a", "a", "a", "b"];
    assert_eq!(select_reply(&far).as_deref(), Some("b"));
    assert_eq!(select_reply(&[&long, ""]).as_deref(), Some(""));
}

#[test]
fn what_a_sub_agent_says_never_becomes_the_reply() {
    let mut below = says("I am the sub-agent, and I talk a lot more than you do.");
    below["parent_tool_use_id"] = json!("toolu_1");
    let run = events(&[below.clone(), json!({"type": "result", "result": "Main."})]);
    assert_eq!(extract_response_text(&run), "Main.");
    let run = events(&[says("Main."), below.clone()]);
    assert_eq!(extract_response_text(&run), "Main.");
    assert_eq!(extract_error_summary(&run, 10).as_deref(), Some("Main."));
    assert_eq!(
        extract_response_text(&events(&[below])),
        "No output received from Claude."
    );
}

#[test]
fn an_error_report_of_the_agent_is_not_a_reply() {
    let mut report = says("API Error: 529 Overloaded");
    report["error"] = json!("server_error");
    let run = events(&[says("Working on it."), report]);
    assert_eq!(extract_response_text(&run), "Working on it.");
    assert_eq!(
        extract_error_summary(&run, 1).as_deref(),
        Some("API Error: 529 Overloaded")
    );
}

#[test]
fn several_results_are_summed_up() {
    let result = |text: &str, cost: f64| {
        json!({"type": "result", "session_id": "s", "duration_ms": 10, "num_turns": 2,
               "total_cost_usd": cost, "is_error": false, "usage": {"input_tokens": 1}, "result": text})
    };
    let run = events(&[result("Main.", 0.1), result("", 0.2), result("Later.", 0.3)]);
    assert_eq!(extract_response_text(&run), "Main.\n\nLater.");
    let summary = extract_result_summary(&run).unwrap();
    assert_eq!((summary.duration_ms, summary.num_turns), (30, 6));
    assert!((summary.total_cost_usd - 0.3).abs() < 1e-9);
    assert_eq!(summary.result_text.as_deref(), Some("Later."));
}

#[test]
fn the_result_names_the_session_and_the_start_is_the_fallback() {
    let init = json!({"type": "system", "subtype": "init", "session_id": "from-init"});
    let named = json!({"type": "result", "session_id": "from-result"});
    let unnamed = json!({"type": "result", "session_id": ""});
    let id = |values: &[Value]| extract_session_id(&events(values));
    assert_eq!(
        id(&[init.clone(), named, unnamed.clone()]).as_deref(),
        Some("from-result")
    );
    assert_eq!(id(&[init, unnamed]).as_deref(), Some("from-init"));
    let other = json!({"type": "system", "subtype": "other", "session_id": "x"});
    assert_eq!(id(&[other]), None);
}

#[test]
fn an_error_summary_has_the_last_lines() {
    let lines: Vec<_> = (0..20).map(|n| format!("line {n}")).collect();
    let run = events(&[says(&lines.join("\n"))]);
    assert_eq!(
        extract_error_summary(&run, 2).as_deref(),
        Some("line 18\nline 19")
    );
    let failed = json!({"type": "result", "is_error": true, "errors": ["no such session"]});
    assert_eq!(
        extract_error_summary(&events(&[says("x"), failed]), 10).as_deref(),
        Some("no such session")
    );
    assert_eq!(extract_error_summary(&[], 10), None);
}
