//! What a result and the context say of an execution.

use std::{fs, time::Duration};

use cordon::{
    Budget, ContentBlock, EventKind, MountError, Outcome, Prompt, ResourceLimits, SandboxError,
    StreamEvent, TaskSpec,
};

use super::{World, ask, resume};
use crate::setup::{DEBIAN, Setup, claude_program, in_process};

in_process! {
    async fn a_result_and_the_context_hold_the_whole_run(world) {
        let task = world.task();
        let mut seen = Vec::new();
        let prompt = Prompt::new("scenario: tool\nrun: echo from the tool").model("sonnet");
        let result = task.execute(prompt, |event| seen.push(event.raw().to_owned())).await.unwrap();

        assert_eq!(result.outcome, Outcome::Success, "{result:?}");
        assert_eq!(result.response_text, "The tool said: from the tool");
        assert_eq!((result.exit_code, result.num_turns, &result.error_summary), (0, 2, &None));
        assert!(result.total_cost_usd > 0.0 && result.usage.output_tokens > 0, "{result:?}");
        assert_eq!(result.network.as_ref().map(|network| network.blocked), Some(0));
        let events: Vec<_> = result.events.iter().map(|event| event.raw().to_owned()).collect();
        assert_eq!(events, seen);
        assert!(result.events.first().is_some_and(StreamEvent::is_init));
        assert!(matches!(result.events.last().map(|event| &event.kind), Some(EventKind::Result(_))));
        let blocks = || result.events.iter().flat_map(StreamEvent::blocks);
        assert!(blocks().any(|block| matches!(block, ContentBlock::ToolUse { .. })));
        assert!(blocks().any(|block| matches!(block, ContentBlock::ToolResult { is_error: false, .. })));

        let store = task.session_store();
        assert_eq!(store.session_id_for_resume().unwrap(), result.session_id);
        assert_eq!(store.last_successful_response().unwrap().as_deref(), Some("The tool said: from the tool"));
        let metadata = store.load().unwrap().metadata.unwrap();
        assert_eq!(metadata.execution_context_id, task.execution_context_id().as_str());
        assert_eq!(metadata.replies.len(), 1, "{metadata:?}");
        let reply = &metadata.replies[0];
        assert_eq!((reply.num_turns, reply.is_error), (2, false));
        assert_eq!(reply.request_text.as_deref(), Some("scenario: tool\nrun: echo from the tool"));
        let journal: Vec<_> = store.reply_events(0).unwrap().iter().map(|event| event.raw().to_owned()).collect();
        assert_eq!(journal, seen);
        let log = task.network_log().unwrap().read_raw().unwrap();
        assert!(log.contains("ALLOWED POST https://api.anthropic.com/v1/messages"), "{log}");
    }

    async fn a_rate_limit_says_how_long_to_wait_and_costs_no_session(world) {
        let task = world.task();
        ask(&task, "remember: walrus").await;
        let limited = resume(&task, "scenario: 429\nretry-after: 2").await;
        let wait = Some(Duration::from_secs(2));
        assert_eq!(limited.outcome, Outcome::RateLimited { retry_after: wait }, "{limited:?}");
        assert!(!limited.outcome.needs_fresh_session());
        let result = resume(&task, "scenario: recall").await;
        assert_eq!(result.response_text, "I recall: walrus", "{result:?}");
        assert_eq!(result.session_id, limited.session_id);
    }
}

#[test]
fn a_session_that_is_gone_is_told_from_other_failures() {
    World::of(Setup::Podman).show(async |world| {
        let lost = "11111111-2222-4333-8444-555555555555".to_owned();
        let prompt = Prompt::new("scenario: say").resume(Some(lost));
        let result = world.task().execute(prompt, |_| {}).await.unwrap();
        assert_eq!(result.outcome, Outcome::SessionCorrupted, "{result:?}");
        assert!(result.outcome.needs_fresh_session());
    });
}

#[test]
fn more_turns_than_allowed_end_the_agent() {
    World::of(Setup::Podman).show(async |world| {
        let task = world.task_of(TaskSpec {
            budget: Budget {
                max_cost_usd: None,
                max_turns: Some(2),
            },
            ..world.spec("turns")
        });
        let result = ask(&task, "scenario: tool+tool+tool+say\nrun: echo again").await;
        assert_eq!(result.outcome, Outcome::BudgetExceeded, "{result:?}");
        assert!(result.session_id.is_some());
    });
}

#[test]
fn an_agent_without_memory_is_told_from_other_failures() {
    World::of(Setup::Podman).show(async |world| {
        let task = world.task_of(TaskSpec {
            limits: ResourceLimits {
                memory: Some("64m".parse().unwrap()),
                ..world.spec("memory").limits
            },
            ..world.spec("memory")
        });
        let result = ask(&task, "scenario: say").await;
        assert_eq!(result.outcome, Outcome::OutOfMemory, "{result:?}");
    });
}

#[test]
fn the_agent_may_come_from_the_host() {
    World::of(Setup::Podman).show(async |world| {
        let task = world.task_of(TaskSpec {
            image: DEBIAN.to_owned(),
            agent_binary: Some(claude_program()),
            ..world.spec("binary")
        });
        let result = ask(&task, "scenario: say\nsay: from the host").await;
        assert_eq!(result.response_text, "from the host", "{result:?}");
    });
}

#[test]
fn the_agents_state_cannot_be_mounted() {
    World::of(Setup::Podman).show(async |world| {
        let mut spec = world.spec("state");
        fs::create_dir_all(spec.session_dir.join("claude/projects")).unwrap();
        for path in ["", "claude", "claude/projects"] {
            let mount = cordon::Mount::read_write(spec.session_dir.join(path), "/inside");
            spec.mounts.push(mount);
            let refused = world.sandbox.create_task(spec.clone()).unwrap_err();
            assert!(
                matches!(refused, SandboxError::Mount(MountError::State { .. })),
                "{path}: {refused}"
            );
            spec.mounts.pop();
        }
    });
}
