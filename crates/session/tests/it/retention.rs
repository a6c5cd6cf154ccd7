use std::{
    fs,
    time::{Duration, SystemTime},
};

use cordon_session::{Retention, contexts, prune};

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

/// Contexts `c-0`, `c-1`, …, each an hour older than the one before.
fn root(count: u32) -> (tempfile::TempDir, SystemTime) {
    let scratch = tempfile::tempdir().unwrap();
    let now = SystemTime::now();
    for number in 0..count {
        let store = SessionStore::new(scratch.path().join(format!("c-{number}")));
        record(
            store.write(&format!("c-{number}")).unwrap(),
            "Hi",
            &[result("s")],
        );
        fs::create_dir_all(store.dir().join("claude/projects")).unwrap();
        for name in ["context.json", "events.jsonl"] {
            let file = fs::File::options()
                .append(true)
                .open(store.dir().join(name))
                .unwrap();
            file.set_modified(now - HOUR * number).unwrap();
        }
    }
    (scratch, now)
}

fn names(root: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn contexts_are_listed_with_the_most_recent_first() {
    let (root, now) = root(3);
    fs::create_dir(root.path().join("not-a-context")).unwrap();
    let entries = contexts(root.path()).unwrap();
    let ids: Vec<_> = entries
        .iter()
        .map(|entry| entry.execution_context_id.as_deref().unwrap())
        .collect();
    assert_eq!(ids, ["c-0", "c-1", "c-2"]);
    assert_eq!(entries[1].last_activity, now - HOUR);
    assert_eq!(contexts(&root.path().join("nowhere")).unwrap(), []);
}

#[test]
fn contexts_beyond_the_limits_go() {
    let (root, now) = root(6);
    fs::create_dir(root.path().join("not-a-context")).unwrap();
    let by_number = Retention {
        keep: Some(4),
        max_idle: None,
    };
    assert_eq!(
        prune(root.path(), &by_number, now).unwrap().removed.len(),
        2
    );
    let by_time = Retention {
        keep: None,
        max_idle: Some(HOUR + HOUR / 2),
    };
    prune(root.path(), &by_time, now).unwrap();
    assert_eq!(names(root.path()), ["c-0", "c-1", "not-a-context"]);
    assert!(
        prune(root.path(), &Retention::default(), now)
            .unwrap()
            .removed
            .is_empty()
    );
}

#[test]
fn what_goes_is_known_before_it_goes() {
    let (root, now) = root(3);
    let limits = Retention {
        keep: Some(1),
        max_idle: None,
    };
    let beyond: Vec<_> = limits
        .beyond(contexts(root.path()).unwrap(), now)
        .map(|entry| entry.dir)
        .collect();
    assert_eq!(names(root.path()).len(), 3);
    assert_eq!(prune(root.path(), &limits, now).unwrap().removed, beyond);
    let week = Duration::from_secs(7 * 24 * 3600);
    let old = |now| {
        Retention::STANDARD
            .beyond(contexts(root.path()).unwrap(), now)
            .count()
    };
    assert_eq!((old(now + week), old(now + week + HOUR)), (0, 1));
}

#[test]
fn a_context_in_use_is_never_removed() {
    let (root, now) = root(2);
    let store = SessionStore::new(root.path().join("c-1"));
    let writer = store.write("c-1").unwrap();
    let all = Retention {
        keep: Some(0),
        max_idle: None,
    };
    let pruned = prune(root.path(), &all, now).unwrap();
    assert_eq!(pruned.in_use, [root.path().join("c-1")]);
    assert_eq!(names(root.path()), ["c-1"]);
    assert!(contexts(root.path()).unwrap()[0].in_use);
    record(writer, "two", &[result("s-2")]);
    assert_eq!(store.load().unwrap().metadata.unwrap().replies.len(), 2);
    prune(root.path(), &all, now).unwrap();
    assert!(names(root.path()).is_empty());
}

#[test]
fn a_removal_that_was_cut_short_is_finished_and_symlinks_are_not_followed() {
    let (root, now) = root(1);
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("context.json"), "{}").unwrap();
    std::os::unix::fs::symlink(outside.path(), root.path().join("link")).unwrap();
    std::os::unix::fs::symlink(outside.path(), root.path().join("c-0/claude/out")).unwrap();
    fs::create_dir_all(root.path().join(".cordon-removed.c-9/claude")).unwrap();
    let all = Retention {
        keep: Some(0),
        max_idle: None,
    };
    let pruned = prune(root.path(), &all, now).unwrap();
    assert!(pruned.errors.is_empty(), "{:?}", pruned.errors);
    assert_eq!(names(root.path()), ["link"]);
    assert!(outside.path().join("context.json").exists());
}
