//! The facade for callers without an asynchronous runtime; these tests have none.

use std::{
    thread,
    time::{Duration, Instant},
};

use cordon::{CommandSpec, Outcome, Prompt, Streams, blocking::Sandbox};

use super::{Api, config, spec, unique};
use crate::setup::{BUSYBOX, Setup};

#[test]
fn an_agent_answers_and_goes_on() {
    let (api, sandbox) = started();
    let scratch = tempfile::tempdir().unwrap();
    let task = sandbox
        .create_task(spec(scratch.path(), &unique()))
        .unwrap();
    drop(sandbox);
    let mut events = 0;
    let result = task
        .execute(Prompt::new("remember: walrus"), |_| events += 1)
        .unwrap();
    assert_eq!(
        (result.outcome, result.events.len()),
        (Outcome::Success, events)
    );
    let session = task.session_store().session_id_for_resume().unwrap();
    let prompt = Prompt::new("scenario: recall").resume(session);
    let result = task.execute(prompt, |_| {}).unwrap();
    assert_eq!(result.response_text, "I recall: walrus", "{result:?}");
    assert!(task.network_log().unwrap().exists());
    drop(api);
}

#[test]
fn another_thread_stops_an_execution_that_blocks() {
    let (api, sandbox) = started();
    let scratch = tempfile::tempdir().unwrap();
    let task = sandbox
        .create_task(spec(scratch.path(), &unique()))
        .unwrap();
    assert!(!task.stop());
    let result = thread::scope(|scope| {
        scope.spawn(|| {
            api.wait_for("hang");
            assert!(task.stop());
        });
        task.execute(Prompt::new("scenario: hang"), |_| {}).unwrap()
    });
    assert_eq!(result.outcome, Outcome::Stopped, "{result:?}");
    assert!(result.session_id.is_some());
}

#[test]
fn commands_run_and_shutdown_stops_them() {
    let (_api, sandbox) = started();
    let quick = CommandSpec::new(BUSYBOX, ["sh", "-c", "echo out; exit 3"]);
    let quick = sandbox.create_command_task(quick).unwrap();
    let result = quick.execute(Streams::captured()).unwrap();
    assert_eq!(
        (result.exit_code, result.stdout.as_slice()),
        (3, b"out\n".as_slice())
    );

    let endless = sandbox
        .create_command_task(CommandSpec::new(BUSYBOX, ["sleep", "1000"]))
        .unwrap();
    let begun = Instant::now();
    let result = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_secs(2));
            sandbox.shutdown();
        });
        endless.execute(Streams::captured()).unwrap()
    });
    assert!(
        result.stopped && begun.elapsed() < Duration::from_secs(30),
        "{result:?}"
    );
}

fn started() -> (Api, Sandbox) {
    let api = Api::start();
    let sandbox = Sandbox::new(config(Setup::Podman, &api)).unwrap();
    sandbox.startup().unwrap();
    (api, sandbox)
}
