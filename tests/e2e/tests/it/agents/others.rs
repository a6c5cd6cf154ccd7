//! Codex and Gemini CLI, run by `cordon agent`.

use std::{fs, thread};

use super::bench::{Bench, key_of};
use crate::setup::{Setup, on_every_engine, read_all};

on_every_engine! {
    fn codex_works_goes_on_and_never_holds_its_key(setup) {
        works_and_goes_on(setup, "codex");
    }

    fn gemini_works_goes_on_and_never_holds_its_key(setup) {
        works_and_goes_on(setup, "gemini");
    }
}

#[test]
fn what_codexs_api_answers_decides_the_outcome() {
    outcomes(
        "codex",
        &[
            ("too-long", "prompt_too_long"),
            ("400", "session_corrupted"),
            ("bad-key", "auth_failed"),
            ("429", "rate_limited"),
            ("529", "overloaded"),
            ("cut", "overloaded"),
        ],
    );
}

#[test]
fn what_geminis_api_answers_decides_the_outcome() {
    outcomes(
        "gemini",
        &[
            ("too-long", "prompt_too_long"),
            ("400", "session_corrupted"),
            ("bad-key", "auth_failed"),
            ("429", "rate_limited"),
            ("529", "overloaded"),
            ("cut", "overloaded"),
        ],
    );
}

#[test]
fn when_codexs_time_is_up_events_and_session_are_kept() {
    time_is_up("codex");
}

#[test]
fn when_geminis_time_is_up_events_and_session_are_kept() {
    time_is_up("gemini");
}

#[test]
fn an_answer_in_pieces_is_one_line() {
    let bench = Bench::new(Setup::Podman, "gemini");
    let prompt = "scenario: say\nsay: from the first word to the last";
    let ended = bench.run().input(prompt).succeed();
    assert_eq!(ended.stdout, "from the first word to the last\n");
}

fn works_and_goes_on(setup: Setup, agent: &str) {
    let bench = Bench::new(setup, agent);
    let (variable, key) = key_of(agent);
    let prompt = format!(
        "remember: walrus\nscenario: tool\nrun: echo \"${variable}\" > note.txt; cat /proc/[0-9]*/environ > seen 2>/dev/null"
    );
    let first = bench.ask(&prompt);
    assert!(first.text().starts_with("The tool said: "), "{first:?}");
    let second = bench.resume("scenario: recall");
    assert_eq!(second.text(), "I recall: walrus");
    assert_eq!(second.session(), first.session());

    let note = fs::read_to_string(bench.run().path("note.txt")).unwrap();
    assert_eq!(note.trim().len(), key.len(), "{note}");
    let credentials = bench.api.credentials();
    assert!(
        credentials.len() >= 3 && credentials.iter().all(|found| found.ends_with(key)),
        "{credentials:?}"
    );
    let context = read_all(&bench.context_dir());
    assert!(context.contains("[masked: 1]"), "{context}");
    assert!(!context.contains("ALARM"), "{context}");
    for text in [context, read_all(&bench.run().path(""))] {
        assert!(!text.contains(key));
    }
}

/// Every scenario in a context of its own, all at once: these programs try again for seconds.
fn outcomes(agent: &str, expected: &[(&str, &str)]) {
    thread::scope(|scope| {
        for (scenario, outcome) in expected {
            scope.spawn(move || {
                let bench = Bench::new(Setup::Podman, agent);
                hurry(&bench, agent);
                let answer = bench.ask(&format!("scenario: {scenario}"));
                assert_eq!(answer.outcome(), *outcome, "{scenario}: {answer:?}");
                assert!(
                    answer.result["error_summary"].is_string(),
                    "{scenario}: {answer:?}"
                );
                assert!(!answer.session().is_empty());
            });
        }
    });
}

/// Gemini CLI would try ten times, for minutes.
fn hurry(bench: &Bench, agent: &str) {
    if agent == "gemini" {
        let state = bench.context_dir().join("gemini");
        fs::create_dir_all(&state).unwrap();
        let settings = r#"{ "general": { "maxAttempts": 2 }, "security": { "auth": { "selectedType": "gemini-api-key" } } }"#;
        fs::write(state.join("settings.json"), settings).unwrap();
    }
}

fn time_is_up(agent: &str) {
    let bench = Bench::new(Setup::Podman, agent);
    let prompt = "remember: walrus\nscenario: tool+hang\nrun: echo half way";
    let answer = bench.ask_with(&["--timeout", "20"], prompt);
    assert_eq!(
        (answer.outcome(), answer.ended.code),
        ("timeout", 124),
        "{answer:?}"
    );
    assert!(answer.has_event("half way"), "{answer:?}");
    let second = bench.resume("scenario: recall");
    assert_eq!(second.text(), "I recall: walrus");
    assert_eq!(second.session(), answer.session());
}
