//! Ending an execution from elsewhere.

use std::{fs, path::Path, time::Duration};

use cordon::{ContentBlock, ExecutionResult, Outcome, Prompt, SandboxError, StreamEvent};
use tokio::time::{sleep, timeout};

use super::{World, resume};
use crate::setup::in_process;

/// Something to know again later, then a tool call, then half an answer and silence.
const BREAKS_OFF: &str = "remember: walrus\nscenario: tool+hang\nrun: echo half way";

in_process! {
    async fn stop_keeps_events_and_session_and_the_task_goes_on(world) {
        let task = world.task();
        assert!(!task.stop().await);
        let (result, stopped) = tokio::join!(task.execute(Prompt::new(BREAKS_OFF), |_| {}), async {
            world.hanging().await;
            task.stop().await
        });
        assert!(stopped);
        let result = result.unwrap();
        assert_eq!(result.outcome, Outcome::Stopped, "{result:?}");
        half_way(&result);
        assert!(!task.stop().await);

        let second = resume(&task, "scenario: recall").await;
        assert_eq!(second.response_text, "I recall: walrus", "{second:?}");
        assert_eq!(second.session_id, result.session_id);
    }

    async fn shutdown_stops_what_runs(world) {
        let task = world.task();
        let (result, ()) = tokio::join!(task.execute(Prompt::new(BREAKS_OFF), |_| {}), async {
            world.hanging().await;
            world.sandbox.shutdown().await;
        });
        let result = result.unwrap();
        assert_eq!(result.outcome, Outcome::Stopped, "{result:?}");
        half_way(&result);
    }

    async fn a_task_runs_one_thing_at_a_time(world) {
        let task = world.task();
        let (first, second) = tokio::join!(task.execute(Prompt::new(BREAKS_OFF), |_| {}), async {
            world.hanging().await;
            let second = task.execute(Prompt::new("scenario: say"), |_| {}).await;
            task.stop().await;
            second
        });
        assert_eq!(first.unwrap().outcome, Outcome::Stopped);
        assert!(matches!(second, Err(SandboxError::Busy)));
    }

    async fn dropping_an_execution_ends_its_container(world) {
        let spec = world.spec("dropped");
        let beat = spec.session_dir.join("workspace/beat");
        let task = world.task_of(spec);
        let prompt = Prompt::new("scenario: tool\nrun: while date +%N > beat; do sleep 0.1; done");
        let execution = task.execute(prompt, |_| {});
        let ended_by_itself = tokio::select! {
            _ = execution => true,
            () = beating(&beat) => false,
        };
        assert!(!ended_by_itself);
        // The container ends by itself once nobody keeps it.
        let ended = timeout(Duration::from_secs(20), async {
            loop {
                let before = fs::read(&beat).unwrap();
                sleep(Duration::from_secs(1)).await;
                if fs::read(&beat).unwrap() == before {
                    break;
                }
            }
        });
        ended.await.unwrap();
    }
}

async fn beating(beat: &Path) {
    while !beat.exists() {
        sleep(Duration::from_millis(50)).await;
    }
}

fn half_way(result: &ExecutionResult) {
    assert!(result.session_id.is_some(), "{result:?}");
    let mut blocks = result.events.iter().flat_map(StreamEvent::blocks);
    let told = |block: &ContentBlock| match block {
        ContentBlock::ToolResult { content, .. } => content.to_string().contains("half way"),
        ContentBlock::Text(_) | ContentBlock::ToolUse { .. } => false,
    };
    assert!(blocks.any(told), "{result:?}");
}
