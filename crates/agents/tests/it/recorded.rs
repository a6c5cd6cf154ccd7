//! Streams that the real programs wrote against the stand-in, shortened. The `live` tests make
//! new ones.

use std::{fs, time::Duration};

use cordon_agents::{
    Agent, ContentBlock, EndedBy, Ending, EventStream, Outcome, Output, Spending, StreamEvent,
    Transcript, classify,
};

/// One recording, replayed in pieces of the given size.
struct Replay {
    events: Vec<StreamEvent>,
    plain: Vec<String>,
    transcript: Transcript,
}

fn replay(agent: Agent, name: &str, piece: usize) -> Replay {
    let path = format!(
        "{}/tests/fixtures/{}-{name}.jsonl",
        env!("CARGO_MANIFEST_DIR"),
        agent.name()
    );
    let bytes = fs::read(&path).unwrap();
    let mut stream = EventStream::new(agent);
    let mut outputs: Vec<_> = bytes
        .chunks(piece)
        .flat_map(|chunk| stream.push(chunk))
        .collect();
    outputs.extend(stream.finish());
    let mut replay = Replay {
        events: Vec::new(),
        plain: Vec::new(),
        transcript: Transcript::new(agent),
    };
    for output in outputs {
        replay.transcript.push(&output);
        match output {
            Output::Event(event) => replay.events.push(*event),
            Output::Plain(line) => replay.plain.push(line),
        }
    }
    replay
}

fn outcome(agent: Agent, name: &str, code: i32) -> Outcome {
    classify(&Ending::exited(code), &replay(agent, name, 4096).transcript)
}

#[test]
fn every_refusal_has_its_outcome() {
    let limited = |seconds: Option<u64>| Outcome::RateLimited {
        retry_after: seconds.map(Duration::from_secs),
    };
    // The exit statuses are those of Claude Code, Codex and Gemini CLI.
    for (name, codes, expected) in [
        ("say", [0, 0, 0], Outcome::Success),
        ("400", [1, 1, 144], Outcome::SessionCorrupted),
        ("too-long", [1, 1, 144], Outcome::PromptTooLong),
        ("bad-key", [1, 1, 144], Outcome::AuthFailed),
        ("403", [1, 1, 147], Outcome::AuthFailed),
        ("500", [1, 1, 244], Outcome::Overloaded),
        ("529", [1, 1, 247], Outcome::Overloaded),
        ("cut", [1, 1, 1], Outcome::Overloaded),
    ] {
        for (agent, code) in Agent::ALL.into_iter().zip(codes) {
            assert_eq!(outcome(agent, name, code), expected, "{agent} {name}");
        }
    }
    assert_eq!(outcome(Agent::Claude, "429", 1), limited(Some(1)));
    assert_eq!(outcome(Agent::Codex, "429", 1), limited(None));
    assert_eq!(outcome(Agent::Gemini, "429", 173), limited(Some(1)));
    assert_eq!(outcome(Agent::Claude, "flaky", 0), Outcome::Success);
    assert_eq!(outcome(Agent::Claude, "lost", 1), Outcome::SessionCorrupted);
    assert_eq!(outcome(Agent::Claude, "turns", 1), Outcome::BudgetExceeded);
    assert_eq!(outcome(Agent::Claude, "cost", 1), Outcome::BudgetExceeded);
}

#[test]
fn an_answer_and_its_session() {
    for agent in Agent::ALL {
        let Replay { transcript, .. } = replay(agent, "say", 64);
        assert_eq!(transcript.response_text(), "All good.", "{agent}");
        assert_eq!(transcript.session_id().unwrap().len(), 36, "{agent}");
        let summary = transcript.summary().unwrap();
        assert_eq!((summary.num_turns, summary.is_error), (1, false), "{agent}");
        assert_eq!(
            (summary.usage.input_tokens, summary.usage.output_tokens),
            (12, 5),
            "{agent}"
        );
        let resumed = replay(agent, "resume", 64).transcript;
        assert_eq!(resumed.session_id(), transcript.session_id(), "{agent}");
        assert_eq!(resumed.response_text(), "I recall: walrus", "{agent}");
    }
}

#[test]
fn a_tool_call_has_its_result() {
    for agent in Agent::ALL {
        let Replay {
            events, transcript, ..
        } = replay(agent, "tool", 100);
        let blocks: Vec<_> = events.iter().flat_map(StreamEvent::blocks).collect();
        let called = blocks.iter().find_map(|block| match block {
            ContentBlock::ToolUse { id, input, .. } => Some((id, input)),
            ContentBlock::Text(_) | ContentBlock::ToolResult { .. } => None,
        });
        let (called, input) = called.unwrap();
        assert!(
            input["command"].as_str().unwrap().contains("tee note.txt"),
            "{agent}"
        );
        assert!(
            blocks.iter().any(|block| matches!(block,
                ContentBlock::ToolResult { tool_use_id, content, is_error: false }
                    if tool_use_id == called && content.as_str().unwrap().trim() == "hello")),
            "{agent}"
        );
        assert_eq!(transcript.summary().unwrap().num_turns, 2, "{agent}");
    }
}

#[test]
fn a_run_that_was_cut_off_keeps_its_events_and_its_session() {
    for agent in Agent::ALL {
        let Replay {
            events, transcript, ..
        } = replay(agent, "hang", 1000);
        assert!(transcript.session_id().is_some(), "{agent}");
        assert!(transcript.summary().is_none(), "{agent}");
        assert!(events.len() > 2, "{agent}");
        let ending = Ending {
            by: EndedBy::Timeout,
            exit_code: None,
            ..Ending::exited(0)
        };
        assert_eq!(classify(&ending, &transcript), Outcome::Timeout);
    }
}

#[test]
fn what_a_sub_agent_is_told_is_kept_apart() {
    let Replay {
        events, transcript, ..
    } = replay(Agent::Claude, "subagent", 4096);
    let below: Vec<_> = events
        .iter()
        .filter(|event| event.parent_tool_use_id.is_some())
        .collect();
    assert!(!below.is_empty());
    assert!(below.iter().all(|event| event.spoken().is_none()));
    assert!(
        transcript
            .response_text()
            .starts_with("The tool said: I am below.")
    );
}

#[test]
fn the_cost_is_known_before_the_result() {
    let Replay {
        events, transcript, ..
    } = replay(Agent::Claude, "tool", 4096);
    let (result, before) = events.split_last().unwrap();
    let mut spending = Spending::default();
    for event in before {
        spending.push(event);
    }
    let told = transcript.summary().unwrap().total_cost_usd;
    assert!(
        spending.cost_usd() >= told * 0.99,
        "{} < {told}",
        spending.cost_usd()
    );
    assert!(
        spending.cost_usd() < told * 3.0,
        "{} > {told}",
        spending.cost_usd()
    );
    spending.push(result);
    assert_eq!(spending.turns(), 2);
}

#[test]
fn a_dialect_is_recognised_by_its_lines_and_pieces_do_not_matter() {
    for agent in Agent::ALL {
        for name in ["say", "tool", "429", "hang"] {
            let whole = replay(agent, name, usize::MAX);
            assert!(whole.plain.is_empty());
            for piece in [1, 7, 333] {
                assert_eq!(replay(agent, name, piece).events, whole.events);
            }
            for event in &whole.events {
                assert_eq!(StreamEvent::parse_any(event.raw()).as_ref(), Some(event));
            }
        }
    }
}
