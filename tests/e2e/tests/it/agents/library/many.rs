//! Tasks side by side.

use cordon::{Outcome, Prompt, SandboxError, SessionError};

use super::{World, ask, resume};
use crate::setup::in_process;

in_process! {
    async fn eight_tasks_side_by_side_keep_apart(world) {
        let tasks: Vec<_> = WORDS.iter().map(|_| world.task()).collect();
        let first = tasks.iter().zip(WORDS).map(async |(task, word)| {
            let result = ask(task, &format!("remember: {word}\nscenario: tool\nrun: echo {word} > word; cat word")).await;
            assert_eq!(result.response_text, format!("The tool said: {word}"), "{result:?}");
        });
        all(first).await;
        let second = tasks.iter().zip(WORDS).map(async |(task, word)| {
            let result = resume(task, "scenario: recall").await;
            assert_eq!(result.response_text, format!("I recall: {word}"), "{result:?}");
        });
        all(second).await;
    }

    async fn a_context_has_one_task_at_a_time(world) {
        let (first, second) = (world.task_of(world.spec("shared")), world.task_of(world.spec("shared")));
        let hang = Prompt::new("scenario: hang");
        let (stopped, refused) = tokio::join!(first.execute(hang, |_| {}), async {
            world.hanging().await;
            let refused = second.execute(Prompt::new("scenario: say"), |_| {}).await.unwrap_err();
            first.stop().await;
            refused
        });
        assert_eq!(stopped.unwrap().outcome, Outcome::Stopped);
        assert!(matches!(refused, SandboxError::Session(SessionError::InUse { .. })), "{refused:?}");
        assert!(refused.to_string().contains("in use"), "{refused}");
        assert!(refused.hint().is_some_and(|hint| hint.contains("another context")));

        let result = resume(&second, "scenario: say\nsay: my turn").await;
        assert_eq!(result.response_text, "my turn", "{result:?}");
    }
}

/// Polls all futures to their ends, together.
async fn all<F: Future<Output = ()>>(futures: impl Iterator<Item = F>) {
    let mut futures: Vec<_> = futures.map(Box::pin).collect();
    std::future::poll_fn(|context| {
        futures.retain_mut(|future| future.as_mut().poll(context).is_pending());
        if futures.is_empty() {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
}

const WORDS: [&str; 8] = [
    "walrus", "otter", "heron", "badger", "lynx", "marten", "plover", "vole",
];
