use serde_json::{Value, json};

use super::*;
use crate::EventStream;

/// Plays lines of stdout.
fn transcript(agent: Agent, lines: &[String]) -> Transcript {
    let mut stream = EventStream::new(agent);
    let mut transcript = Transcript::new(agent);
    let mut outputs = stream.push(lines.join("\n").as_bytes());
    outputs.extend(stream.finish());
    for output in &outputs {
        transcript.push(output);
    }
    transcript
}

fn claude(code: i32, lines: &[Value]) -> Outcome {
    let lines: Vec<_> = lines.iter().map(Value::to_string).collect();
    classify(&Ending::exited(code), &transcript(Agent::Claude, &lines))
}

fn init() -> Value {
    json!({"type": "system", "subtype": "init", "session_id": "s"})
}

fn says(text: &str) -> Value {
    json!({"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}})
}

fn failed(status: u16, text: &str) -> Value {
    json!({"type": "result", "subtype": "success", "is_error": true, "api_error_status": status, "result": text})
}

#[test]
fn what_the_model_or_a_tool_says_never_decides_the_outcome() {
    let tool = json!({"type": "user", "message": {"content": [
        {"type": "tool_result", "tool_use_id": "t", "content": "API Error: 400 Prompt is too long", "is_error": true}
    ]}});
    let done = json!({"type": "result", "is_error": false, "result": "I saw: Prompt is too long, API Error: 429"});
    let run = [
        init(),
        says("API Error: 404"),
        says("Prompt is too long"),
        tool,
        done,
    ];
    assert_eq!(claude(0, &run), Outcome::Success);
    assert_eq!(claude(1, &run), Outcome::ContainerFailed);
    assert_eq!(claude(1, &run[..4]), Outcome::ContainerFailed);
}

#[test]
fn an_error_with_exit_status_zero_is_not_a_success() {
    let run = [
        init(),
        says("hi"),
        json!({"type": "result", "is_error": true, "result": "no"}),
    ];
    assert_eq!(claude(0, &run), Outcome::ContainerFailed);
    assert_eq!(
        claude(0, &[init(), failed(529, "API Error: 529")]),
        Outcome::Overloaded
    );
}

#[test]
fn a_rate_limit_does_not_throw_the_session_away() {
    let retry = json!({"type": "system", "subtype": "api_retry", "retry_delay_ms": 7000, "error_status": 429});
    let outcome = claude(
        1,
        &[
            init(),
            retry,
            failed(429, "API Error: Request rejected (429)"),
        ],
    );
    assert_eq!(
        outcome,
        Outcome::RateLimited {
            retry_after: Some(Duration::from_secs(7))
        }
    );
    assert!(!outcome.needs_fresh_session());
}

#[test]
fn statuses_of_the_api_have_their_outcomes() {
    for (status, text, expected) in [
        (
            400,
            "Prompt is too long · the request is ~210000 tokens",
            Outcome::PromptTooLong,
        ),
        (
            400,
            "API Error: 400 tool_use without tool_result",
            Outcome::SessionCorrupted,
        ),
        (401, "Invalid API key", Outcome::AuthFailed),
        (402, "API Error: 402", Outcome::AuthFailed),
        (
            403,
            "Failed to authenticate. API Error: 403",
            Outcome::AuthFailed,
        ),
        (
            404,
            "There's an issue with the selected model",
            Outcome::ContainerFailed,
        ),
        (413, "Request too large", Outcome::PromptTooLong),
        (500, "API Error: 500", Outcome::Overloaded),
        (529, "API Error: 529 Overloaded", Outcome::Overloaded),
    ] {
        assert_eq!(
            claude(1, &[init(), failed(status, text)]),
            expected,
            "{status}"
        );
    }
}

#[test]
fn the_kind_of_failure_counts_where_there_is_no_status() {
    for (kind, text, expected) in [
        (
            "invalid_request",
            "Prompt is too long",
            Outcome::PromptTooLong,
        ),
        (
            "authentication_failed",
            "Not logged in",
            Outcome::AuthFailed,
        ),
        (
            "billing_error",
            "Credit balance is too low",
            Outcome::AuthFailed,
        ),
        (
            "rate_limit",
            "limit reached",
            Outcome::RateLimited { retry_after: None },
        ),
        (
            "server_error",
            "API Error: Unable to connect to API (ECONNRESET)",
            Outcome::Overloaded,
        ),
    ] {
        let mut report = says(text);
        report["error"] = json!(kind);
        let result =
            json!({"type": "result", "is_error": true, "api_error_status": null, "result": text});
        assert_eq!(claude(1, &[init(), report, result]), expected, "{kind}");
    }
}

#[test]
fn a_lost_session_needs_a_fresh_one() {
    let gone = json!({"type": "result", "subtype": "error_during_execution", "is_error": true,
                      "errors": ["No conversation found with session ID: 1"]});
    assert_eq!(claude(1, &[gone]), Outcome::SessionCorrupted);
    for (agent, code, stderr) in [
        (
            Agent::Codex,
            1,
            "Error: thread/resume failed: no rollout found for thread id 1",
        ),
        (
            Agent::Gemini,
            42,
            "Error resuming session: Invalid session identifier \"1\".",
        ),
    ] {
        let ending = Ending {
            stderr,
            ..Ending::exited(code)
        };
        let outcome = classify(&ending, &Transcript::new(agent));
        assert_eq!(outcome, Outcome::SessionCorrupted, "{agent}");
    }
}

#[test]
fn the_program_may_fail_before_it_has_events() {
    let plain =
        |agent, line: &str| classify(&Ending::exited(1), &transcript(agent, &[line.to_owned()]));
    assert_eq!(
        plain(Agent::Claude, "Prompt is too long"),
        Outcome::PromptTooLong
    );
    assert_eq!(
        plain(Agent::Claude, "API Error: 400 Bad Request"),
        Outcome::SessionCorrupted
    );
    assert_eq!(
        plain(Agent::Claude, "API Error: 429 slow down"),
        Outcome::RateLimited { retry_after: None }
    );
    assert_eq!(
        plain(Agent::Claude, "API Error: 4"),
        Outcome::SessionCorrupted
    );
    assert_eq!(plain(Agent::Claude, "boom"), Outcome::ContainerFailed);
}

#[test]
fn a_result_that_does_not_say_whether_it_is_an_error_counts_as_one_when_the_program_failed() {
    let run = [json!({"type": "result", "result": "Error: Prompt is too long for context window"})];
    assert_eq!(claude(1, &run), Outcome::PromptTooLong);
    assert_eq!(claude(0, &run), Outcome::Success);
}

#[test]
fn what_ended_it_comes_first() {
    let done = transcript(
        Agent::Claude,
        &[json!({"type": "result", "is_error": false}).to_string()],
    );
    for (by, expected) in [
        (EndedBy::Timeout, Outcome::Timeout),
        (EndedBy::Stop, Outcome::Stopped),
        (EndedBy::Budget, Outcome::BudgetExceeded),
    ] {
        let ending = Ending {
            by,
            ..Ending::exited(0)
        };
        assert_eq!(classify(&ending, &done), expected);
    }
}

#[test]
fn limits_that_the_agent_keeps_itself() {
    for subtype in ["error_max_turns", "error_max_budget_usd"] {
        let result = json!({"type": "result", "subtype": subtype, "is_error": true});
        assert_eq!(claude(1, &[init(), result]), Outcome::BudgetExceeded);
    }
}

#[test]
fn memory_that_a_tool_used_up_does_not_spoil_an_answer() {
    let done = transcript(
        Agent::Claude,
        &[json!({"type": "result", "is_error": false}).to_string()],
    );
    let oom = |code| Ending {
        oom_killed: true,
        ..Ending::exited(code)
    };
    assert_eq!(classify(&oom(0), &done), Outcome::Success);
    assert_eq!(
        classify(&oom(137), &Transcript::new(Agent::Claude)),
        Outcome::OutOfMemory
    );
    let never = Ending {
        exit_code: None,
        ..oom(0)
    };
    assert_eq!(
        classify(&never, &Transcript::new(Agent::Codex)),
        Outcome::OutOfMemory
    );
}

#[test]
fn codex_says_it_in_a_sentence() {
    let codex = |message: &str| {
        let line = json!({"type": "turn.failed", "error": {"message": message}}).to_string();
        classify(&Ending::exited(1), &transcript(Agent::Codex, &[line]))
    };
    let limited = |retry_after| Outcome::RateLimited { retry_after };
    for (message, expected) in [
        (
            "unexpected status 401 Unauthorized: no, url: https://h/v1",
            Outcome::AuthFailed,
        ),
        (
            "exceeded retry limit, last status: 429 Too Many Requests",
            limited(None),
        ),
        (
            "stream disconnected before completion: Rate limit reached. Please try again in 1.5s.",
            limited(Some(Duration::from_millis(1500))),
        ),
        ("You've hit your usage limit.", limited(None)),
        (
            "We’re currently experiencing high demand, which may cause temporary errors.",
            Outcome::Overloaded,
        ),
        (
            "Selected model is at capacity. Please try a different model.",
            Outcome::Overloaded,
        ),
        (
            "Codex ran out of room in the model's context window.",
            Outcome::PromptTooLong,
        ),
        (
            r#"{"error":{"code":"context_length_exceeded"}}"#,
            Outcome::PromptTooLong,
        ),
        (
            r#"{"error":{"code":"invalid_request_error"}}"#,
            Outcome::SessionCorrupted,
        ),
        (
            "stream disconnected before completion: network error",
            Outcome::Overloaded,
        ),
        ("unexpected status 4", Outcome::ContainerFailed),
    ] {
        assert_eq!(codex(message), expected, "{message}");
    }
}

#[test]
fn gemini_says_it_in_the_result_or_only_in_the_exit_status() {
    let gemini = |code: i32, message: &str| {
        let line = json!({"type": "result", "status": "error", "error": {"type": "unknown", "message": message}, "stats": {}});
        classify(
            &Ending::exited(code),
            &transcript(Agent::Gemini, &[line.to_string()]),
        )
    };
    let api = |code: u16, message: &str, reason: &str| {
        format!(
            "[API Error: {}]",
            json!({"error": {"code": code, "message": message, "details": [{"reason": reason}]}})
        )
    };
    for (exit, message, expected) in [
        (144, api(400, "no", ""), Outcome::SessionCorrupted),
        (144, api(400, "no", "API_KEY_INVALID"), Outcome::AuthFailed),
        (
            144,
            api(
                400,
                "The input token count (2) exceeds the maximum number of tokens allowed (1).",
                "",
            ),
            Outcome::PromptTooLong,
        ),
        (147, api(403, "no", ""), Outcome::AuthFailed),
        (
            173,
            "[API Error: slow down\nSuggested retry after 7s.]".to_owned(),
            Outcome::RateLimited {
                retry_after: Some(Duration::from_secs(7)),
            },
        ),
        (
            247,
            "[API Error: The model is overloaded.]".to_owned(),
            Outcome::Overloaded,
        ),
        (1, "[API Error: terminated]".to_owned(), Outcome::Overloaded),
    ] {
        assert_eq!(gemini(exit, &message), expected, "{message}");
    }
    let auth = classify(&Ending::exited(41), &Transcript::new(Agent::Gemini));
    assert_eq!(auth, Outcome::AuthFailed);
}
