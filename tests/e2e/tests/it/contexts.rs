//! `cordon context`: what there is, and what goes.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use cordon::SessionStore;
use serde_json::Value;

use crate::setup::{Run, Setup};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Contexts that were last active so many days ago each, and beside them things that are none.
fn contexts(days: &[u32]) -> (Run, PathBuf) {
    let run = Run::plain(Setup::Podman, &["context"]);
    let state = run.path("state");
    let root = state.join("cordon/contexts");
    for (number, days) in days.iter().enumerate() {
        let name = format!("c-{number}");
        let store = SessionStore::new(root.join(&name));
        store.set_model(&name, "sonnet").unwrap();
        fs::create_dir_all(store.dir().join("claude/projects")).unwrap();
        let file = fs::File::options()
            .append(true)
            .open(store.dir().join("context.json"))
            .unwrap();
        file.set_modified(SystemTime::now() - DAY * *days).unwrap();
    }
    fs::create_dir_all(root.join("somebody-elses")).unwrap();
    fs::write(root.join("somebody-elses/file"), "").unwrap();
    fs::create_dir_all(run.path("outside")).unwrap();
    fs::write(run.path("outside/context.json"), "{}").unwrap();
    std::os::unix::fs::symlink(run.path("outside"), root.join("link")).unwrap();
    (run.env("XDG_STATE_HOME", state.to_str().unwrap()), root)
}

fn names(root: &PathBuf) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn json(run: &Run) -> Value {
    let ended = run.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn contexts_are_listed_for_people_and_for_programs() {
    let (run, root) = contexts(&[3, 0]);
    let ended = run.then(&["context", "list"]).end();
    let lines: Vec<Vec<&str>> = ended
        .stdout
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(lines.len(), 2, "{ended:?}");
    assert_eq!(
        (lines[0][0], lines[1].as_slice()),
        ("c-1", ["c-0", "3", "d"].as_slice()),
        "{ended:?}"
    );
    let listed = json(&run.then(&["context", "list", "--json"]));
    assert_eq!(listed[1]["context"], "c-0");
    assert_eq!(listed[1]["directory"], root.join("c-0").to_str().unwrap());
    assert_eq!(listed[1]["in_use"], false);
    let nothing = Run::plain(Setup::Podman, &["context", "list", "--json"]);
    let state = nothing.path("state");
    assert_eq!(
        json(&nothing.env("XDG_STATE_HOME", state.to_str().unwrap())),
        Value::Array(Vec::new())
    );
}

#[test]
fn what_is_beyond_the_limits_goes_and_nothing_else() {
    let (run, root) = contexts(&[0, 1, 2, 8, 30]);
    let dry = json(&run.then(&["context", "prune", "--dry-run", "--json"]));
    assert_eq!(dry["removed"].as_array().unwrap().len(), 2, "{dry}");
    assert_eq!(names(&root).len(), 7);
    let ended = run.then(&["context", "prune"]).end();
    assert_eq!(ended.stdout.lines().count(), 2, "{ended:?}");
    assert_eq!(
        names(&root),
        ["c-0", "c-1", "c-2", "link", "somebody-elses"]
    );
    let pruned = json(&run.then(&["context", "prune", "--keep", "1", "--idle", "365", "--json"]));
    assert_eq!(pruned["removed"].as_array().unwrap().len(), 2, "{pruned}");
    assert_eq!(names(&root), ["c-0", "link", "somebody-elses"]);
    assert!(run.path("outside/context.json").exists());
}

#[test]
fn a_context_that_somebody_writes_to_stays() {
    let (run, root) = contexts(&[0, 0]);
    let store = SessionStore::new(root.join("c-0"));
    let writer = store.write("c-0").unwrap();
    for flags in [
        ["--keep", "0", "--dry-run", "--json"],
        ["--keep", "0", "--json", "--verbose"],
    ] {
        let pruned = json(&run.then(&["context", "prune"]).flags(flags));
        assert_eq!(
            pruned["in_use"][0],
            root.join("c-0").to_str().unwrap(),
            "{pruned}"
        );
        assert_eq!(
            pruned["removed"][0],
            root.join("c-1").to_str().unwrap(),
            "{pruned}"
        );
    }
    assert_eq!(names(&root), ["c-0", "link", "somebody-elses"]);
    drop(writer);
    json(&run.then(&["context", "prune", "--keep", "0", "--json"]));
    assert_eq!(names(&root), ["link", "somebody-elses"]);
}
