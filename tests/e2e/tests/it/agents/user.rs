//! An agent that is not root, and whose its files are.

use std::{fs, os::unix::fs::MetadataExt, path::Path, process::Command};

use super::bench::Bench;
use crate::setup::{Setup, on_every_engine};

/// A user that no image knows.
const USER: &str = "4321:4321";

on_every_engine! {
    fn claudes_home_and_state_follow_its_user(setup) {
        let bench = Bench::new(setup, "claude");
        let workspace = bench.run().path("");
        let owner = owner_of_what_it_writes(setup, &workspace);
        let prompt = "remember: walrus\nscenario: tool\nrun: touch note ~/scratch && echo $(id -u) $HOME";
        let first = bench.ask_with(&["--user", USER], prompt);
        assert_eq!(first.text(), "The tool said: 4321 /home/agent");
        assert_eq!(fs::metadata(workspace.join("note")).unwrap().uid(), owner);
        assert!(!workspace.join("scratch").exists());
        let state = bench.context_dir().join("claude");
        for path in all(&state) {
            assert_eq!(fs::symlink_metadata(&path).unwrap().uid(), owner, "{}", path.display());
        }

        let second = bench.ask_with(&["--user", USER, "--continue"], "scenario: recall");
        assert_eq!(second.text(), "I recall: walrus");
        assert_eq!(second.session(), first.session());
    }

    fn a_session_of_root_goes_on_as_another_user(setup) {
        let bench = Bench::new(setup, "claude");
        bench.ask("remember: walrus");
        owner_of_what_it_writes(setup, &bench.run().path(""));
        let second = bench.ask_with(&["--user", USER, "--continue"], "scenario: recall");
        assert_eq!(second.text(), "I recall: walrus");
    }
}

#[test]
fn a_link_in_the_state_does_not_give_away_what_it_points_to() {
    let bench = Bench::new(Setup::Podman, "claude");
    let outside = tempfile::tempdir().unwrap();
    let victim = outside.path().join("victim");
    fs::write(&victim, "root's").unwrap();
    let prompt = format!(
        "scenario: tool\nrun: ln -s {} ~/.claude/file && ln -s {} ~/.claude/directory && echo planted",
        victim.display(),
        outside.path().display()
    );
    assert_eq!(bench.ask(&prompt).text(), "The tool said: planted");

    owner_of_what_it_writes(Setup::Podman, &bench.run().path(""));
    bench.ask_with(&["--user", USER], "scenario: say").text();
    let link = bench.context_dir().join("claude/file");
    assert_eq!(fs::symlink_metadata(link).unwrap().uid(), 4321);
    for path in [outside.path(), &victim] {
        assert_eq!(fs::metadata(path).unwrap().uid(), 0, "{}", path.display());
    }
}

#[test]
fn an_agents_user_is_a_number() {
    let bench = Bench::new(Setup::Podman, "claude");
    let ended = bench
        .run()
        .flags(["--user", "nobody"])
        .input("scenario: say")
        .end();
    assert_eq!(ended.code, 125, "{ended:?}");
    assert!(ended.stderr.contains("`nobody` is a name"), "{ended:?}");
    assert!(
        ended.stderr.contains("hint: look its number up"),
        "{ended:?}"
    );
}

/// Whose the files are on the host that the user writes in the container: without root, podman makes
/// them the caller's; else the number is the same, and the workspace must be that user's.
fn owner_of_what_it_writes(setup: Setup, workspace: &Path) -> u32 {
    match setup {
        Setup::Rootless => fs::metadata(workspace).unwrap().uid(),
        Setup::Podman | Setup::Docker => {
            let given = Command::new("chown")
                .arg(USER)
                .arg(workspace)
                .status()
                .unwrap();
            assert!(given.success());
            4321
        }
    }
}

fn all(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut found = vec![directory.to_owned()];
    for entry in fs::read_dir(directory).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            found.extend(all(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}
