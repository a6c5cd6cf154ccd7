use serde_json::{Value, json};

use super::*;
use crate::parse_event;

fn event(value: Value) -> StreamEvent {
    parse_event(&value.to_string()).unwrap()
}

fn answer(id: &str, output: u64) -> StreamEvent {
    event(json!({"type": "assistant", "message": {
        "id": id, "model": "claude-sonnet-5", "content": [],
        "usage": {"input_tokens": 1000, "output_tokens": output}
    }}))
}

#[test]
fn messages_are_priced_once_until_a_result_tells_the_cost() {
    let mut spending = Spending::default();
    spending.push(&answer("a", 100));
    spending.push(&answer("a", 100));
    spending.push(&answer("b", 100));
    let expected = 2.0 * (1000.0 * 3.0 + 100.0 * 15.0) / 1e6;
    assert!((spending.cost_usd() - expected).abs() < 1e-9);
    assert_eq!(spending.turns(), 2);

    spending.push(&event(json!({"type": "result", "total_cost_usd": 0.5})));
    assert!((spending.cost_usd() - 0.5).abs() < 1e-9);
}

#[test]
fn long_text_counts_even_if_the_usage_does_not_know_it() {
    let mut spending = Spending::default();
    spending.push(&event(json!({"type": "assistant", "message": {
        "id": "a", "model": "haiku", "usage": {"output_tokens": 1},
        "content": [{"type": "text", "text": "x".repeat(4_000_000)}]
    }})));
    assert!((spending.cost_usd() - 5.0).abs() < 1e-6);
}

#[test]
fn a_limit_that_is_passed_in_the_middle_is_noticed() {
    let budget = Budget {
        max_cost_usd: Some(0.01),
        max_turns: Some(3),
    };
    let mut spending = Spending::default();
    spending.push(&answer("a", 100));
    assert_eq!(budget.check(&spending), None);
    spending.push(&answer("b", 1000));
    assert!(matches!(
        budget.check(&spending),
        Some(Exceeded::Cost { .. })
    ));
    for id in ["c", "d"] {
        spending.push(&answer(id, 0));
    }
    let turns = Budget {
        max_cost_usd: None,
        ..budget
    };
    assert_eq!(turns.check(&spending), Some(Exceeded::Turns { limit: 3 }));
}

#[test]
fn an_unknown_model_counts_as_the_dearest() {
    assert_eq!(Rates::of("claude-next-1"), Rates::of("claude-fable-5"));
    assert_eq!(Rates::of("claude-haiku-4-5").input, 1.0);
}

#[test]
fn memory_does_not_grow_with_messages() {
    let mut spending = Spending::default();
    for id in 0..10_000 {
        spending.push(&answer(&id.to_string(), 0));
    }
    assert_eq!(spending.open.len(), OPEN_MESSAGES);
    assert!((spending.cost_usd() - 30.0).abs() < 1e-6);
}

#[test]
fn events_without_ids_are_one_turn_until_a_tool_answers() {
    let codex = |value: Value| StreamEvent::parse(Agent::Codex, &value.to_string()).unwrap();
    let item =
        |stage: &str, kind: &str| codex(json!({"type": stage, "item": {"id": "i", "type": kind}}));
    let mut spending = Spending::default();
    spending.push(&item("item.started", "command_execution"));
    spending.push(&item("item.completed", "command_execution"));
    spending.push(&item("item.completed", "agent_message"));
    spending.push(&item("item.completed", "agent_message"));
    assert_eq!(spending.turns(), 2);
}

#[test]
fn limits_of_nothing_are_refused() {
    for max_cost_usd in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let budget = Budget {
            max_cost_usd: Some(max_cost_usd),
            max_turns: None,
        };
        assert!(matches!(
            budget.validate(Agent::Claude),
            Err(Error::InvalidBudget { .. })
        ));
    }
    let budget = Budget {
        max_cost_usd: None,
        max_turns: Some(0),
    };
    assert!(budget.validate(Agent::Gemini).is_err());
}
