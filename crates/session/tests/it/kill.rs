//! A recorder that is killed at every step it takes, and at every byte it writes.

use std::{
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Duration,
};

use rustix::process::{Resource, Rlimit, setrlimit};

use super::*;

/// What a child of the tests does.
#[derive(Clone, Copy)]
pub(crate) enum Child {
    /// Records the story.
    Record,
    /// Records the story in files of at most this many bytes; the kernel kills it at the next.
    RecordUpTo(u64),
    /// Takes the context and holds it.
    Sleep,
}

impl Child {
    #[expect(clippy::disallowed_methods, reason = "tests drive real programs")]
    pub(crate) fn command(self, dir: &Path) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--ignored", "--exact", "kill::a_child_of_the_tests"])
            .env("SESSION_DIR", dir)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        match self {
            Self::Record => command.env("SESSION_CHILD", "record"),
            Self::RecordUpTo(limit) => command
                .env("SESSION_CHILD", "limited")
                .env("SESSION_LIMIT", limit.to_string()),
            Self::Sleep => command.env("SESSION_CHILD", "sleep"),
        };
        command
    }
}

#[test]
#[ignore = "the other tests start it"]
fn a_child_of_the_tests() {
    let variable = |name: &str| std::env::var(name).unwrap();
    let store = SessionStore::new(PathBuf::from(variable("SESSION_DIR")));
    match variable("SESSION_CHILD").as_str() {
        "record" => tell(&store),
        "limited" => {
            let limit = |bytes| Rlimit {
                current: Some(bytes),
                maximum: Some(bytes),
            };
            setrlimit(Resource::Core, limit(0)).unwrap();
            setrlimit(
                Resource::Fsize,
                limit(variable("SESSION_LIMIT").parse().unwrap()),
            )
            .unwrap();
            tell(&store);
        }
        _ => {
            let _writer = store.write("ctx").unwrap();
            thread::sleep(Duration::from_secs(60));
        }
    }
}

/// The story: two replies, then a choice of model.
fn tell(store: &SessionStore) {
    let writer = record(store.write("ctx").unwrap(), "one", &FIRST.map(line));
    let mut writer = record(writer, "two", &SECOND.map(line));
    writer.set_model(Some("opus")).unwrap();
}

fn line(line: &str) -> StreamEvent {
    parse_event(line).unwrap()
}

#[test]
fn the_store_survives_a_kill_at_every_byte() {
    each_byte(|_| {}, look);
}

#[test]
fn a_takeover_survives_a_kill_at_every_byte() {
    for name in ["session.json", "context.json"] {
        let old = legacy::old_file("conversation_id", 3);
        each_byte(
            |store| place(store, name, &old),
            |store| taken_over(store, name, &old),
        );
    }
}

#[test]
fn the_store_survives_a_kill_at_every_step() {
    let steps = each_step(|_| {}, look);
    assert!(steps > 50, "only {steps} steps seen");
}

#[test]
fn a_takeover_survives_a_kill_at_every_step() {
    for name in ["session.json", "context.json"] {
        let old = legacy::old_file("conversation_id", 3);
        let steps = each_step(
            |store| place(store, name, &old),
            |store| taken_over(store, name, &old),
        );
        assert!(steps > 50, "only {steps} steps seen");
    }
}

#[test]
fn no_call_that_changes_a_file_is_left_out() {
    let scratch = tempfile::tempdir().unwrap();
    let store = store(&scratch.path().canonicalize().unwrap());
    place(
        &store,
        "session.json",
        &legacy::old_file("conversation_id", 3),
    );
    let log = scratch.path().join("calls");
    let status = traced(&store, &["-o", log.to_str().unwrap()]);
    assert!(status.success());
    let log = std::fs::read_to_string(log).unwrap();
    let seen: std::collections::BTreeSet<_> = log
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1)?.split_once('('))
        .map(|(call, _)| call)
        .filter(|call| {
            call.chars()
                .all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        })
        .collect();
    assert!(
        seen.contains("write") && seen.contains("rename"),
        "{seen:?}"
    );
    let missed: Vec<_> = seen
        .iter()
        .filter(|call| !CALLS.contains(call) && !HARMLESS.contains(call))
        .collect();
    assert!(missed.is_empty(), "{missed:?}");
}

/// An older file, where the store is to find it.
fn place(store: &SessionStore, name: &str, old: &str) {
    std::fs::create_dir_all(store.dir()).unwrap();
    std::fs::write(store.dir().join(name), old).unwrap();
}

/// Whatever was left, the older file is taken over whole.
fn taken_over(store: &SessionStore, name: &str, old: &str) {
    let writer = store.write("ctx").unwrap();
    legacy::assert_taken_over(store, &writer, name, old);
}

/// Lets the recorder die at each of the first thousand bytes of its files, and looks at what is left each time.
fn each_byte(prepare: impl Fn(&SessionStore) + Sync, check: impl Fn(&SessionStore) + Sync) {
    let next = AtomicU64::new(0);
    let kill_and_look = || {
        loop {
            let limit = next.fetch_add(1, Ordering::Relaxed);
            if limit >= 1000 {
                break;
            }
            let scratch = tempfile::tempdir().unwrap();
            let store = store(scratch.path());
            prepare(&store);
            let mut child = Child::RecordUpTo(limit).command(store.dir());
            let status = child.status().unwrap();
            assert_eq!(status.signal(), Some(SIGXFSZ), "limit {limit}");
            check(&store);
        }
    };
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(kill_and_look);
        }
    });
}

/// Kills the recorder before each system call it makes on the context's files, one after the
/// other, looks at what is left each time, and says how often that was.
fn each_step(prepare: impl Fn(&SessionStore), check: impl Fn(&SessionStore)) -> usize {
    let mut steps = 0;
    for call in CALLS {
        for nth in 1.. {
            let scratch = tempfile::tempdir().unwrap();
            let store = store(&scratch.path().canonicalize().unwrap());
            prepare(&store);
            let status = killed_before(call, nth, &store);
            check(&store);
            if status.success() {
                break;
            }
            assert_eq!(status.signal(), Some(SIGKILL), "{call} number {nth}");
            steps += 1;
        }
    }
    steps
}

fn killed_before(call: &str, nth: usize, store: &SessionStore) -> ExitStatus {
    let kill = format!("-einject={call}:signal=SIGKILL:when={nth}");
    traced(store, &["-o", "/dev/null", &kill])
}

/// Runs the recorder and follows its calls on the context's files.
#[expect(clippy::disallowed_methods, reason = "tests drive real programs")]
fn traced(store: &SessionStore, options: &[&str]) -> ExitStatus {
    let child = Child::Record.command(store.dir());
    let mut command = Command::new("strace");
    command.args(["-f", "-qq"]).args(options);
    for name in FILES {
        command.arg("-P").arg(store.dir().join(name));
    }
    command.arg("-P").arg(store.dir());
    command.arg(child.get_program()).args(child.get_args());
    for (name, value) in child.get_envs() {
        command.env(name, value.unwrap());
    }
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("strace is needed for this test")
}

/// Whatever was left must be the beginning of the story, and must be good to go on with.
fn look(store: &SessionStore) {
    let loaded = store.load().unwrap();
    assert_eq!(loaded.warnings, []);
    let replies = loaded.metadata.unwrap_or_default().replies;
    let finished: Vec<_> = replies
        .iter()
        .map(|reply| reply.outcome.is_some())
        .collect();
    assert!(
        [&[][..], &[false], &[true], &[true, false], &[true, true]].contains(&finished.as_slice()),
        "{finished:?}"
    );

    let journal = store.journal().read_all().unwrap();
    let told: Vec<_> = FIRST.into_iter().chain(SECOND).map(line).collect();
    let kept = journal.concat();
    assert_eq!(
        kept,
        told[..kept.len()],
        "the journal has a beginning of the story"
    );
    let promised = FIRST.len() * usize::from(finished.first() == Some(&true))
        + SECOND.len() * usize::from(finished.get(1) == Some(&true));
    assert!(
        kept.len() >= promised,
        "a finished reply has all its events"
    );
    let known = kept.iter().rev().find_map(|event| event.session_id.clone());
    assert_eq!(store.session_id_for_resume().unwrap(), known);

    let writer = store.write("ctx").unwrap();
    assert_eq!(writer.warnings(), []);
    let more = [init("s-after"), says("Going on.")];
    record(writer, "after", &more);
    let journal = store.journal().read_all().unwrap();
    assert_eq!(
        journal.last().unwrap(),
        &more,
        "a torn line swallows nothing"
    );
    assert_eq!(journal.concat().len(), kept.len() + more.len());
    let after = store.load().unwrap().metadata.unwrap().replies;
    assert_eq!(after[..replies.len()], replies);
    assert_eq!(after.len(), replies.len() + 1);
    assert_eq!(store.reply_events(replies.len()).unwrap(), more);
    assert_eq!(
        store.session_id_for_resume().unwrap().as_deref(),
        Some("s-after")
    );
}

/// Long enough that most of the bytes go to the journal.
const FIRST: [&str; 3] = [
    r#"{"type":"system","subtype":"init","session_id":"s-1","cwd":"/workspace","tools":["Bash","Edit","Read","Write"]}"#,
    r#"{"type":"assistant","message":{"content":[{"type":"text","text":"Here are quite a few words, because each of their bytes is one more place at which the recorder dies. When it does, the line is torn, and a reader must not take it for an event; the next writer must end it, so that its own first line stays whole. Here are quite a few words, because each of their bytes is one more place at which the recorder dies. When it does, the line is torn, and a reader must not take it for an event; the next writer must end it, so that its own first line stays whole."}]}}"#,
    r#"{"type":"result","session_id":"s-1","is_error":false,"duration_ms":1200,"num_turns":1,"total_cost_usd":0.25,"result":"Here are quite a few words.","note":"Some more of them, so that a thousand bytes do not suffice for the first reply of this story, and the limit is always met."}"#,
];
const SECOND: [&str; 2] = [
    r#"{"type":"system","subtype":"init","session_id":"s-2"}"#,
    r#"{"type":"result","session_id":"s-2","is_error":false,"result":"Second."}"#,
];

/// Every file the store touches.
const FILES: [&str; 8] = [
    "context.json",
    "context.json.new",
    "context.json.before-v1",
    "context.lock",
    "events.jsonl",
    "events.jsonl.new",
    "session.json",
    "session.json.before-v1",
];

/// Every call that changes something, and those that open and lock.
const CALLS: [&str; 11] = [
    "openat",
    "write",
    "fsync",
    "fdatasync",
    "rename",
    "linkat",
    "unlink",
    "mkdir",
    "ftruncate",
    "flock",
    "lseek",
];

/// Calls that change nothing.
const HARMLESS: [&str; 12] = [
    "read",
    "pread64",
    "close",
    "stat",
    "lstat",
    "fstat",
    "newfstatat",
    "statx",
    "access",
    "faccessat2",
    "fcntl",
    "getdents64",
];

const SIGKILL: i32 = 9;
const SIGXFSZ: i32 = 25;
