use std::{fs, os::unix::fs::MetadataExt, path::PathBuf};

use super::*;

const EVENTS: u64 = 100_000;

/// Writes and write calls of this process so far.
fn written() -> (u64, u64) {
    let text = fs::read_to_string("/proc/self/io").unwrap();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim().parse::<u64>().unwrap()
    };
    (field("wchar:"), field("syscw:"))
}

#[test]
#[ignore = "the test below starts it, alone in its process"]
fn a_hundred_thousand_events() {
    let store = SessionStore::new(PathBuf::from(std::env::var("SESSION_DIR").unwrap()));
    let mut recording = store
        .write("c")
        .unwrap()
        .begin_reply(Agent::Claude, Some("Hi"))
        .unwrap();
    let inode = || {
        fs::metadata(store.dir().join("context.json"))
            .unwrap()
            .ino()
    };
    let context = inode();
    let event = says("A line of some length, like those that agents write.");
    let before = written();
    for _ in 0..EVENTS {
        recording.append(&event).unwrap();
    }
    let after = written();
    let journal = fs::metadata(store.journal().path()).unwrap().len();
    assert_eq!(journal, EVENTS * (event.raw().len() as u64 + 1));
    assert_eq!(after.0 - before.0, journal, "every byte is written once");
    assert_eq!(after.1 - before.1, EVENTS, "every event is one write");
    assert_eq!(
        inode(),
        context,
        "the context file is not touched meanwhile"
    );
}

#[test]
#[expect(clippy::disallowed_methods, reason = "tests drive real programs")]
fn the_cost_of_an_event_does_not_depend_on_how_many_came_before() {
    let scratch = tempfile::tempdir().unwrap();
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "cost::a_hundred_thousand_events"])
        .env("SESSION_DIR", scratch.path().join("ctx"))
        .status()
        .unwrap();
    assert!(status.success());
}
