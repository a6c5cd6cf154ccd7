use serde_json::json;

use super::*;

fn claude(value: Value) -> StreamEvent {
    parse_event(&value.to_string()).unwrap()
}

#[test]
fn a_tool_call_and_its_result() {
    let call = claude(json!({
        "type": "assistant",
        "session_id": "s",
        "message": {"id": "m1", "model": "sonnet", "usage": {"input_tokens": 3}, "content": [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
        ]},
        "uuid": "u"
    }));
    assert_eq!(
        call.blocks(),
        [
            ContentBlock::Text("Let me look.".to_owned()),
            ContentBlock::ToolUse {
                id: "t1".to_owned(),
                name: "Bash".to_owned(),
                input: Map::from_iter([("command".to_owned(), json!("ls"))])
            }
        ]
    );
    assert_eq!(
        call.extra,
        Map::from_iter([("uuid".to_owned(), json!("u"))])
    );
    assert_eq!(call.spoken().as_deref(), Some("Let me look."));

    let result = claude(json!({
        "type": "user",
        "message": {"content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text"}], "is_error": 1},
            {"type": "tool_result", "tool_use_id": "t2", "content": {"odd": true}}
        ]}
    }));
    assert_eq!(
        result.blocks(),
        [
            ContentBlock::ToolResult {
                tool_use_id: "t1".to_owned(),
                content: json!([{"type": "text"}]),
                is_error: true
            },
            ContentBlock::ToolResult {
                tool_use_id: "t2".to_owned(),
                content: json!(""),
                is_error: false
            }
        ]
    );
}

#[test]
fn an_unknown_kind_keeps_all_its_fields_and_its_line() {
    let line = r#"{"type":"heartbeat","seq":42,"message":"m","session_id":7}"#;
    let event = parse_event(&format!("  {line}\r\n")).unwrap();
    assert_eq!(event.kind, EventKind::Unknown("heartbeat".to_owned()));
    assert_eq!(event.type_name(), "_unknown");
    assert_eq!(event.raw(), line);
    assert_eq!(event.session_id, None);
    assert_eq!(event.extra["message"], "m");
}

#[test]
fn lines_that_are_no_events() {
    for line in [
        "",
        "  ",
        "hello",
        "null",
        "[]",
        "{}",
        r#"{"type":5}"#,
        r#"{"data":1}"#,
        "\u{feff}{\"type\":\"result\"}",
        r#"{"type":"result""#,
    ] {
        assert_eq!(parse_event(line), None, "{line:?}");
    }
}

#[test]
fn a_result_says_what_the_run_did() {
    let event = claude(json!({
        "type": "result", "subtype": "error_during_execution", "is_error": true, "api_error_status": 429,
        "duration_ms": 12.7, "num_turns": 2, "total_cost_usd": 0.5, "errors": ["no such session", 3],
        "result": {"content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]}
    }));
    assert_eq!(
        event.kind,
        EventKind::Result(Box::new(RunResult {
            is_error: Some(true),
            text: Some("a\n\nb".to_owned()),
            errors: vec!["no such session".to_owned()],
            api_status: Some(429),
            duration_ms: 12,
            num_turns: 2,
            total_cost_usd: Some(0.5),
            usage: Usage::default(),
        }))
    );
}

#[test]
fn half_an_emoji_does_not_lose_the_event() {
    let line = r#"{"type":"result","result":"cut \ud83d","ok":"\ud83d\ude00 \\ud83d \u00e9 \n"}"#;
    let event = parse_event(line).unwrap();
    assert_eq!(event.extra["result"], "cut \u{fffd}");
    assert_eq!(event.extra["ok"], "😀 \\ud83d é \n");
    assert!(serde_json::from_str::<Value>(event.raw()).is_ok());
    assert_eq!(parse_event(r#"{"type":"result","result":"\ud83"#), None);
}

#[test]
fn a_retry_is_announced_with_its_delay() {
    let event = claude(json!({
        "type": "system", "subtype": "api_retry", "attempt": 1, "retry_delay_ms": 7000, "error_status": 429
    }));
    assert_eq!(
        event.api_retry(),
        Some(ApiRetry {
            attempt: 1,
            delay: Some(Duration::from_secs(7)),
            status: Some(429)
        })
    );
    assert_eq!(claude(json!({"type": "system"})).api_retry(), None);
}

#[test]
fn an_overlong_line_survives_the_journal_as_a_note() {
    let event = StreamEvent::oversized(&[b'a'; 5000], 4096);
    let read = StreamEvent::parse_any(event.raw()).unwrap();
    assert_eq!(read, event);
    assert!(read.raw().len() < 1200);
}

#[test]
fn codex_items_become_messages() {
    let codex = |value: Value| StreamEvent::parse(Agent::Codex, &value.to_string()).unwrap();
    let started = codex(json!({"type": "thread.started", "thread_id": "t-1"}));
    assert!(started.is_init());
    assert_eq!(started.session_id.as_deref(), Some("t-1"));

    let item = json!({"id": "item_0", "type": "command_execution", "command": "ls", "aggregated_output": "a\n", "exit_code": 2, "status": "failed"});
    let call = codex(json!({"type": "item.started", "item": item}));
    assert_eq!(
        call.blocks(),
        [ContentBlock::ToolUse {
            id: "item_0".to_owned(),
            name: "command_execution".to_owned(),
            input: Map::from_iter([("command".to_owned(), json!("ls"))])
        }]
    );
    let done = codex(json!({"type": "item.completed", "item": item}));
    assert_eq!(
        done.blocks(),
        [ContentBlock::ToolResult {
            tool_use_id: "item_0".to_owned(),
            content: json!("a\n"),
            is_error: true
        }]
    );
    let said = codex(
        json!({"type": "item.completed", "item": {"id": "item_1", "type": "agent_message", "text": "Done."}}),
    );
    assert_eq!(said.spoken().as_deref(), Some("Done."));
    let thought = codex(
        json!({"type": "item.completed", "item": {"id": "item_2", "type": "reasoning", "text": "hm"}}),
    );
    assert_eq!(thought.type_name(), "_unknown");
    assert_eq!(thought.extra["item"]["text"], "hm");
}

#[test]
fn the_shape_of_a_line_tells_the_dialect() {
    for (line, name) in [
        (
            json!({"type": "thread.started", "thread_id": "a"}),
            "system",
        ),
        (json!({"type": "turn.completed", "usage": {}}), "result"),
        (json!({"type": "init", "session_id": "a"}), "system"),
        (
            json!({"type": "message", "role": "assistant", "content": "x", "delta": true}),
            "assistant",
        ),
        (
            json!({"type": "result", "status": "success", "stats": {}}),
            "result",
        ),
        (json!({"type": "result", "is_error": false}), "result"),
        (
            json!({"type": "assistant", "message": {"content": []}}),
            "assistant",
        ),
        (json!({"type": "bogus"}), "_unknown"),
    ] {
        let event = StreamEvent::parse_any(&line.to_string()).unwrap();
        assert_eq!(event.type_name(), name, "{line}");
    }
    assert_eq!(StreamEvent::parse_any(r#"{"type":1}"#), None);
}
