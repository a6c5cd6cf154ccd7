//! Claude Code on every set-up, run by `cordon agent`.

use std::{fs, time::Duration};

use rustix::process::Signal;

use super::bench::{Answer, Bench, CLAUDE_KEY};
use crate::{
    rules::{git, own},
    setup::{eventually, on_every_engine, read_all},
};

/// Something to know again later, then a tool call, then half an answer and silence.
const BREAKS_OFF: &str = "remember: walrus\nscenario: tool+hang\nrun: echo half way";

on_every_engine! {
    fn claude_answers_and_never_holds_its_key(setup) {
        let bench = Bench::new(setup, "claude");
        let run = bench.run().input(
            "scenario: tool\nrun: cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline > seen 2>/dev/null; printenv ANTHROPIC_API_KEY",
        );
        let ended = run.succeed();
        assert!(ended.stdout.starts_with("The tool said: sk-ant-api03-"), "{ended:?}");
        assert!(ended.stderr.contains("• Bash: cat /proc"), "{ended:?}");
        assert!(ended.stderr.contains(" · 2 turns · $"), "{ended:?}");

        let credentials = bench.api.credentials();
        assert!(credentials.len() >= 2 && credentials.iter().all(|key| key == CLAUDE_KEY), "{credentials:?}");
        let context = read_all(&bench.context_dir());
        assert!(context.contains("ALLOWED POST https://api.anthropic.com/v1/messages"), "{context}");
        assert!(context.contains("[masked: 1]"), "{context}");
        let seen = fs::read_to_string(run.path("seen")).unwrap();
        assert!(seen.contains("ANTHROPIC_API_KEY=sk-ant-api03-"), "{seen}");
        for text in [context, seen, ended.stdout, ended.stderr, read_all(&run.path(""))] {
            assert!(!text.contains(CLAUDE_KEY));
        }
    }

    fn claude_answers_through_a_proxy_container_and_never_holds_its_key(setup) {
        let bench = Bench::beside_a_proxy_container(setup, "claude");
        let answer = bench.ask("scenario: tool\nrun: printenv ANTHROPIC_API_KEY; cut -f 1 /proc/net/route | sort -u | xargs");
        assert!(answer.text().starts_with("The tool said: sk-ant-api03-"), "{answer:?}");
        assert!(answer.text().ends_with("Iface eth0"), "{answer:?}");
        assert!(!answer.has_event(CLAUDE_KEY), "{answer:?}");

        let credentials = bench.api.credentials();
        assert!(credentials.len() >= 2 && credentials.iter().all(|key| key == CLAUDE_KEY), "{credentials:?}");
        let context = read_all(&bench.context_dir());
        assert!(context.contains("ALLOWED POST https://api.anthropic.com/v1/messages"), "{context}");
        assert!(!context.contains(CLAUDE_KEY));
        assert_eq!(setup.left_by(answer.ended.pid), Vec::<String>::new());
    }

    fn a_tool_call_edits_a_file_of_the_workspace(setup) {
        let bench = Bench::new(setup, "claude");
        let note = bench.run().path("note.txt");
        fs::write(&note, "before\n").unwrap();
        let answer = bench.ask("scenario: tool\nrun: sed -i s/before/after/ note.txt && cat note.txt");
        assert_eq!(answer.text(), "The tool said: after");
        assert_eq!(fs::read_to_string(note).unwrap(), "after\n");
        assert!(answer.has_event("tool_use") && answer.has_event("tool_result"), "{answer:?}");
    }

    fn an_agent_works_on_a_clone_under_the_rules_of_a_commit(setup) {
        let bench = Bench::new(setup, "claude");
        let run = bench.run();
        fs::create_dir(run.path(".cordon")).unwrap();
        fs::write(run.path(".cordon/sandbox.yaml"), "env: { FROM_RULES: committed }\n").unwrap();
        own(setup, &run.path(""));
        git(setup, &run, &["init", "-q", "-b", "main"]);
        git(setup, &run, &["add", "--all"]);
        git(setup, &run, &["commit", "-qm", "rules"]);
        fs::write(run.path(".cordon/sandbox.yaml"), "env: { FROM_RULES: edited }\n").unwrap();
        let place = run.path("clone");
        let flags = ["--clone", ".", "--clone-dir", place.to_str().unwrap(), "--config-ref", "main"];
        let answer = bench.ask_with(&flags, "scenario: tool\nrun: echo $FROM_RULES | tee made");
        assert_eq!(answer.text(), "The tool said: committed");
        assert_eq!(fs::read_to_string(place.join("made")).unwrap(), "committed\n");
        assert!(!run.path("made").exists());
        let said = format!("the clone is in {}", place.display());
        assert!(answer.ended.stderr.contains(&said), "{answer:?}");
    }

    fn a_second_run_knows_the_first(setup) {
        let bench = Bench::new(setup, "claude");
        let first = bench.ask("remember: walrus");
        let second = bench.resume("scenario: recall");
        assert_eq!(second.text(), "I recall: walrus");
        assert_eq!(second.session(), first.session());
        let fresh = bench.ask("scenario: recall");
        assert_eq!(fresh.text(), "I recall: nothing");
        assert_ne!(fresh.session(), first.session());
    }

    fn what_the_api_answers_decides_the_outcome(setup) {
        let bench = Bench::new(setup, "claude");
        for (scenario, outcome, code) in [
            ("too-long", "prompt_too_long", 10),
            ("400", "session_corrupted", 11),
            ("401", "auth_failed", 14),
            ("429", "rate_limited", 12),
            ("500", "overloaded", 13),
            ("529", "overloaded", 13),
            ("cut", "overloaded", 13),
        ] {
            let answer = bench.ask(&format!("scenario: {scenario}\nretry-after: 2"));
            assert_eq!((answer.outcome(), answer.ended.code), (outcome, code), "{scenario}: {answer:?}");
            assert!(answer.result["error_summary"].is_string(), "{scenario}: {answer:?}");
            assert!(!answer.session().is_empty());
            let wait = if scenario == "429" { Some(2000) } else { None };
            assert_eq!(answer.result["retry_after_ms"].as_u64(), wait, "{scenario}: {answer:?}");
            assert_eq!(setup.left_by(answer.ended.pid), Vec::<String>::new());
        }
    }

    fn when_its_time_is_up_events_and_session_are_kept(setup) {
        let bench = Bench::new(setup, "claude");
        let answer = bench.ask_with(&["--timeout", "20"], BREAKS_OFF);
        assert_eq!((answer.outcome(), answer.ended.code), ("timeout", 124), "{answer:?}");
        half_way(&bench, &answer);
    }

    fn when_it_is_stopped_events_and_session_are_kept(setup) {
        let bench = Bench::new(setup, "claude");
        let running = bench.start(&[], BREAKS_OFF);
        bench.api.wait_for("hang");
        running.signal(Signal::TERM);
        let answer = Answer::of(running.end());
        assert_eq!((answer.outcome(), answer.ended.code), ("stopped", 143), "{answer:?}");
        half_way(&bench, &answer);
    }

    fn after_a_kill_in_the_middle_a_second_run_knows_the_first(setup) {
        let bench = Bench::new(setup, "claude");
        let running = bench.start(&[], BREAKS_OFF);
        bench.api.wait_for("hang");
        let pid = running.pid();
        running.signal(Signal::KILL);
        let ended = running.end();
        assert_eq!(ended.code, -9, "{ended:?}");
        eventually("its container is gone", Duration::from_secs(20), || setup.containers_of(pid).is_empty());

        let journal = fs::read_to_string(bench.context_dir().join("events.jsonl")).unwrap();
        assert!(journal.contains("half way"), "{journal}");
        let second = bench.resume("scenario: recall");
        assert_eq!(second.text(), "I recall: walrus");
        assert!(journal.contains(second.session()));
        assert_eq!(setup.left_by(pid), Vec::<String>::new());
    }

    fn a_context_has_one_run_at_a_time(setup) {
        let bench = Bench::new(setup, "claude");
        let first = bench.start(&[], BREAKS_OFF);
        bench.api.wait_for("hang");
        let second = bench.run().input("scenario: say").end();
        assert_eq!(second.code, 125, "{second:?}");
        assert!(second.stderr.starts_with("error: "), "{second:?}");
        assert!(second.stderr.contains("in use"), "{second:?}");
        assert!(second.stderr.contains("hint: wait for the other run to end, or use another context"), "{second:?}");
        first.signal(Signal::INT);
        let first = Answer::of(first.end());
        assert_eq!((first.outcome(), first.ended.code), ("stopped", 130), "{first:?}");
    }
}

/// What is known of a run that broke off after its tool call, and that it can go on.
fn half_way(bench: &Bench, answer: &Answer) {
    assert!(answer.has_event("half way"), "{answer:?}");
    let journal = fs::read_to_string(bench.context_dir().join("events.jsonl")).unwrap();
    assert!(journal.contains("half way"), "{journal}");
    assert_eq!(bench.setup.left_by(answer.ended.pid), Vec::<String>::new());
    let second = bench.resume("scenario: recall");
    assert_eq!(second.text(), "I recall: walrus");
    assert_eq!(second.session(), answer.session());
}

#[test]
fn what_an_agent_says_cannot_steer_the_terminal() {
    let bench = Bench::new(crate::setup::Setup::Podman, "claude");
    let prompt = "scenario: tool+say\nrun: exit 3 # \x1b[2J\nsay: harmless \x1b[2J\u{9b}31m";
    let ended = bench.run().input(prompt).succeed();
    assert!(ended.stdout.starts_with("harmless "), "{ended:?}");
    let steers = |c: char| c.is_control() && c != '\n';
    assert!(!ended.stdout.contains(steers), "{ended:?}");
    assert!(!ended.stderr.contains(steers), "{ended:?}");
}
