use super::*;

fn resumed() -> Invocation {
    Invocation {
        model: Some("sonnet".parse().unwrap()),
        resume: Some("0b7e-11".parse().unwrap()),
        ..Invocation::default()
    }
}

#[test]
fn a_fresh_claude_run_has_the_prompt_on_stdin_and_nowhere_else() {
    let command = Agent::Claude.command(&Invocation::default()).unwrap();
    assert_eq!(
        command.args,
        [
            "-p",
            "--dangerously-skip-permissions",
            "--output-format",
            "stream-json",
            "--verbose"
        ]
    );
    assert!(
        command
            .forced_env
            .contains(&("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1".to_owned()))
    );
}

#[test]
fn a_resumed_claude_run_names_session_model_effort_and_budget() {
    let command = Agent::Claude
        .command(&Invocation {
            effort: Some(Effort::Max),
            budget: Budget {
                max_cost_usd: Some(1.5),
                max_turns: Some(20),
            },
            home: "/home/dev".to_owned(),
            base_url: Some("http://127.0.0.1:1".to_owned()),
            ..resumed()
        })
        .unwrap();
    assert_eq!(
        command.args[..8],
        [
            "--resume",
            "0b7e-11",
            "--model",
            "sonnet",
            "--effort",
            "max",
            "--max-budget-usd",
            "1.5"
        ]
    );
    for expected in [
        ("CLAUDE_CONFIG_DIR", "/home/dev/.claude"),
        ("CLAUDE_CODE_MAX_TURNS", "20"),
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1:1"),
    ] {
        assert!(
            command
                .forced_env
                .contains(&(expected.0, expected.1.to_owned())),
            "{expected:?}"
        );
    }
}

#[test]
fn a_resumed_codex_run_reads_stdin_last() {
    let command = Agent::Codex
        .command(&Invocation {
            effort: Some(Effort::High),
            base_url: Some("http://h/\"v1".to_owned()),
            extra_args: vec!["--ephemeral".to_owned()],
            ..resumed()
        })
        .unwrap();
    assert_eq!(command.args[..3], ["exec", "resume", "0b7e-11"]);
    assert_eq!(command.args[command.args.len() - 2..], ["--ephemeral", "-"]);
    assert!(
        command
            .args
            .contains(&r#"model_reasoning_effort="high""#.to_owned())
    );
    assert!(
        command
            .args
            .iter()
            .any(|arg| arg.ends_with(r#"base_url="http://h/\"v1"}"#))
    );
    assert_eq!(
        command.forced_env,
        [("CODEX_HOME", "/root/.codex".to_owned())]
    );
}

#[test]
fn a_resumed_gemini_run() {
    let command = Agent::Gemini.command(&resumed()).unwrap();
    assert_eq!(
        command.args,
        [
            "--output-format",
            "stream-json",
            "--approval-mode",
            "yolo",
            "--skip-trust",
            "--model",
            "sonnet",
            "--resume",
            "0b7e-11"
        ]
    );
}

#[test]
fn efforts_that_a_program_lacks_are_errors() {
    let effort = |effort| Invocation {
        effort: Some(effort),
        ..Invocation::default()
    };
    assert!(Agent::Codex.command(&effort(Effort::Max)).is_err());
    assert!(Agent::Gemini.command(&effort(Effort::Low)).is_err());
}

#[test]
fn a_cost_limit_needs_an_agent_that_tells_the_cost() {
    let invocation = Invocation {
        budget: Budget {
            max_cost_usd: Some(1.0),
            max_turns: None,
        },
        ..Invocation::default()
    };
    assert!(Agent::Claude.command(&invocation).is_ok());
    for agent in [Agent::Codex, Agent::Gemini] {
        assert!(matches!(
            agent.command(&invocation),
            Err(Error::CostNotReported { .. })
        ));
    }
}

#[test]
fn a_session_id_or_model_cannot_be_a_flag() {
    for value in ["", "-p", "--settings=x", "a b", "a\nb", "a\0", "ü"] {
        assert!(value.parse::<SessionId>().is_err(), "{value:?}");
        assert!(value.parse::<Model>().is_err(), "{value:?}");
    }
    assert!("x".repeat(257).parse::<SessionId>().is_err());
    for model in [
        "sonnet",
        "claude-sonnet-4-5@20250929",
        "us.anthropic.claude-opus-4-8:0",
        "opus[1m]",
        "arn:aws:bedrock/x",
    ] {
        assert_eq!(model.parse::<Model>().unwrap().as_str(), model);
    }
}

#[test]
fn efforts_parse_back() {
    for name in ["low", "medium", "high", "xhigh", "max"] {
        assert_eq!(name.parse::<Effort>().unwrap().to_string(), name);
    }
    assert!("ultra".parse::<Effort>().is_err());
}
