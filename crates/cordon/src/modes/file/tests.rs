use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use super::*;
use crate::{
    Profile,
    modes::{Mode, Provider},
};

fn agent(text: &str) -> AgentSandbox {
    let file = AgentsFile::parse(text, "/etc/cordon/agents.yaml").unwrap();
    file.agent("coder").unwrap().clone()
}

/// Errors as a person reads them, with what to write instead.
fn mistake(text: &str) -> (String, String) {
    let error = AgentsFile::parse(text, "agents.yaml").unwrap_err();
    (error.to_string(), error.hint().unwrap_or_default())
}

#[test]
fn every_key_is_read() {
    let coder = agent(
        "
agents:
  coder:
    mode: docker
    workspace: /srv/coder
    workspace_access: ro
    image: localhost/agents:1
    profile: standard
    runtime: runsc
    mounts: [/srv/cache:/cache, /srv/data:/data:ro]
    env: { CI: true, LEVEL: 3 }
    limits: { timeout: 60, memory: 1g, cpus: 0.5, pids: 64 }
    idle: 900
    commands: [ls, git]
    apple: { program: /opt/container }
    vibebox: { enabled: false, program: /opt/vibebox, provider: docker, project_root: sub, timeout: 30 }
    bootstrap_on_start: true
",
    );
    assert_eq!(coder.mode, Mode::Docker);
    assert_eq!(coder.workspace_access, WorkspaceAccess::ReadOnly);
    assert_eq!(coder.image.as_deref(), Some("localhost/agents:1"));
    assert_eq!(coder.profile, Profile::Standard);
    assert_eq!(coder.runtime.as_deref(), Some("runsc"));
    assert_eq!(coder.mounts.len(), 2);
    assert!(coder.mounts[1].read_only && !coder.mounts[0].read_only);
    assert_eq!(
        coder.env,
        [("CI".into(), "true".into()), ("LEVEL".into(), "3".into())]
    );
    assert_eq!(coder.limits.timeout, Some(Duration::from_secs(60)));
    assert_eq!(coder.idle, Some(Duration::from_secs(900)));
    assert_eq!(coder.commands, ["ls", "git"]);
    assert_eq!(coder.apple.program, Path::new("/opt/container"));
    assert_eq!(coder.vibebox.provider, Provider::Docker);
    assert_eq!(
        coder.vibebox.project_root.as_deref(),
        Some(Path::new("/etc/cordon/sub"))
    );
    assert!(coder.bootstrap_on_start);
    assert_eq!(
        agent("agents: { coder: { workspace: w } }").profile,
        Profile::Strict
    );
}

#[test]
fn maps_are_merged_over_the_defaults_and_lists_replace_them() {
    let coder = agent(
        "
agents:
  defaults:
    mode: podman
    image: localhost/base:1
    env: { A: 1, B: 1 }
    limits: { memory: 1g, timeout: 10 }
    commands: [ls]
    vibebox: { program: /opt/vibebox, timeout: 5 }
  coder:
    workspace: work
    dockerfile: coder/Dockerfile
    env: { B: 2 }
    limits: { timeout: 20 }
    commands: [git]
    vibebox: { timeout: 6 }
",
    );
    assert_eq!(coder.mode, Mode::Podman);
    assert_eq!(coder.workspace, Path::new("/etc/cordon/work"));
    // An agent's own Dockerfile stands in the place of the defaults' image.
    assert_eq!(coder.image, None);
    assert_eq!(
        coder.dockerfile.as_deref(),
        Some(Path::new("/etc/cordon/coder/Dockerfile"))
    );
    assert_eq!(
        coder.env,
        [("A".into(), "1".into()), ("B".into(), "2".into())]
    );
    assert_eq!(coder.limits.timeout, Some(Duration::from_secs(20)));
    assert!(coder.limits.memory.is_some());
    assert_eq!(coder.commands, ["git"]);
    assert_eq!(coder.vibebox.program, Path::new("/opt/vibebox"));
    assert_eq!(coder.vibebox.timeout, Duration::from_secs(6));
}

#[test]
fn without_a_mode_an_agent_is_never_on_the_host() {
    assert_eq!(
        agent("agents: { coder: { workspace: w } }").mode,
        Mode::Auto
    );
    assert!(
        AgentsFile::parse("", "agents.yaml")
            .unwrap()
            .agents()
            .is_empty()
    );
}

#[test]
fn mistakes_have_a_place_and_say_what_to_write() {
    for (text, message, hint) in [
        (
            "agent: {}",
            "agents.yaml:1:1: unknown key `agent` in the agents file",
            "did you mean `agents`?",
        ),
        (
            "agents:\n  coder:\n    workspace: w\n    mod: off",
            "agents.yaml:4:5: unknown key `mod` in agents.coder",
            "did you mean `mode`?",
        ),
        (
            "agents:\n  defaults: { vibebox: { enable: true } }",
            "agents.yaml:2:26: unknown key `enable` in agents.defaults.vibebox",
            "did you mean `enabled`?",
        ),
        (
            "agents:\n  coder: { workspace: w, mode: host }",
            "agents.yaml:2:32: agents.coder.mode: `host` is none of auto, podman, docker, apple-vm, vibebox, off",
            "write one of auto, podman, docker, apple-vm, vibebox, off",
        ),
        (
            "agents:\n  coder: { mode: off }",
            "agents.yaml:2:3: agents.coder has no `workspace`",
            "add `workspace:`",
        ),
        (
            "agents:\n  coder: { workspace: w, image: a, dockerfile: b }",
            "agents.yaml:2:48: agents.coder has both `image` and `dockerfile`",
            "remove `image`, or the other",
        ),
        (
            "agents:\n  coder: { workspace: w, mounts: [a] }",
            "agents.yaml:2:35: agents.coder.mounts[0]: `a` is not a mount, which is written HOST-PATH:CONTAINER-PATH, with :ro behind it if it is not to be written",
            "",
        ),
        (
            "agents:\n  coder: { workspace: w, image: --privileged }",
            "agents.yaml:2:33: agents.coder.image cannot be `--privileged`: it must be the reference of an image",
            "write the reference of an image",
        ),
        (
            "agents:\n  coder: { workspace: w, limits: { memory: much } }",
            "agents.yaml:2:44: agents.coder.limits.memory: `much` is not an amount of memory; say for example 512m or 4g",
            "",
        ),
        (
            "agents:\n  coder: { workspace: w, allowlist: /nowhere/list.yaml }",
            "agents.yaml:2:37: agents.coder.allowlist: cannot read the allowlist /nowhere/list.yaml",
            "paths are relative to the file that they stand in",
        ),
    ] {
        assert_eq!(mistake(text), (message.to_owned(), hint.to_owned()));
    }
}

#[test]
fn an_allowlist_is_read_with_its_own_positions() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("agents.yaml");
    let list = directory.path().join("list.yaml");
    fs::write(
        &file,
        "agents: { coder: { workspace: work, allowlist: list.yaml } }",
    )
    .unwrap();
    fs::write(&list, "domains: [api.example.com]").unwrap();
    let read = AgentsFile::read(&file).unwrap();
    assert!(read.agent("coder").unwrap().allowlist.is_some());
    fs::write(&list, "domians: [api.example.com]").unwrap();
    let error = AgentsFile::read(&file).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("list.yaml:1:1: unknown key `domians`"),
        "{error}"
    );
    assert_eq!(error.hint().as_deref(), Some("did you mean `domains`?"));
}

#[test]
fn what_an_agent_is_judged_by_cannot_lie_where_it_writes() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("work/.cordon")).unwrap();
    let refused = |path: &str, text: &str| {
        let file = root.join(path);
        fs::write(&file, text).unwrap();
        match AgentsFile::read(&file) {
            Ok(_) => false,
            Err(error) => {
                assert!(
                    matches!(error.kind(), FileErrorKind::WithinReach { .. }),
                    "{error}"
                );
                true
            }
        }
    };
    fs::write(root.join("work/list.yaml"), "domains: []").unwrap();
    fs::write(root.join("work/.cordon/list.yaml"), "domains: []").unwrap();
    assert!(refused(
        "work/agents.yaml",
        "agents: { coder: { workspace: . } }"
    ));
    assert!(!refused(
        "work/.cordon/agents.yaml",
        "agents: { coder: { workspace: .. } }"
    ));
    assert!(!refused(
        "work/agents.yaml",
        "agents: { coder: { workspace: ., workspace_access: ro } }"
    ));
    assert!(refused(
        "agents.yaml",
        "agents: { coder: { workspace: work, allowlist: work/list.yaml } }"
    ));
    assert!(!refused(
        "agents.yaml",
        "agents: { coder: { workspace: work, allowlist: work/.cordon/list.yaml } }"
    ));
    assert!(refused(
        "agents.yaml",
        "agents: { coder: { workspace: work, dockerfile: work/Dockerfile } }"
    ));
    assert!(refused(
        "work/agents.yaml",
        "agents: { coder: { workspace: ., workspace_access: none, mounts: [.:/data] } }"
    ));
}

#[test]
fn a_file_that_others_can_change_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("agents.yaml");
    fs::write(&file, "agents: {}").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o646)).unwrap();
    let error = AgentsFile::read(&file).unwrap_err();
    assert!(matches!(error.kind(), FileErrorKind::Shared { .. }));
    assert!(error.hint().unwrap().contains("chmod o-w"), "{error}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    AgentsFile::read(&file).unwrap();
}
