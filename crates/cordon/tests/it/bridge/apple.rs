//! Sessions in virtual machines of Apple's `container`, from their first command to their verified end.

use std::{fs, path::PathBuf, process::Stdio, sync::Arc, time::Duration};

use cordon::{
    Allowlist, Mount, Notice, Profile, Pull, Sandbox, SandboxConfig, SandboxError,
    doctor::Fix,
    modes::{
        AgentSandbox, AppleError, AppleExecutor, AppleNetwork, ExecOutput, ExecRequest, Mode,
        ModeNotice, SessionKey, WorkspaceAccess,
    },
};

use super::stand_in::{Notices, StandIn, is_alive, until};

/// A stand-in, a workspace, and what an executor over both is made of.
struct World {
    program: StandIn,
    workspace: tempfile::TempDir,
    notices: Notices,
    agent: AgentSandbox,
    config: SandboxConfig,
}

impl World {
    fn new() -> Self {
        let program = StandIn::new("container", include_str!("container.py"));
        let workspace = tempfile::tempdir().unwrap();
        let path = workspace.path().canonicalize().unwrap();
        let mut agent = AgentSandbox::new("coder", path);
        agent.apple.program.clone_from(&program.program);
        agent.image = Some("debian:12".into());
        agent.profile = Profile::Standard;
        let notices = Notices::default();
        let config = notices.config(program.path());
        let world = Self {
            program,
            workspace,
            notices,
            agent,
            config,
        };
        world.knob("images", "debian:12\n");
        world
    }

    fn executor(&self) -> AppleExecutor {
        AppleExecutor::new(self.agent.clone(), &self.config)
    }

    /// Makes the stand-in behave in another way.
    fn knob(&self, name: &str, text: &str) {
        fs::write(self.program.path().join(name), text).unwrap();
    }

    /// The containers that there are.
    fn containers(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.program.path().join("containers")) else {
            return Vec::new();
        };
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// What the stand-in keeps of its only container.
    fn state(&self) -> serde_json::Value {
        let containers = self.containers();
        assert_eq!(containers.len(), 1, "{containers:?}");
        serde_json::from_slice(&fs::read(&containers[0]).unwrap()).unwrap()
    }

    /// A container of that owner, as another process would have left it.
    fn leftover(&self, name: &str, owner: &str) {
        let labels = match owner {
            "" => "{}".to_owned(),
            owner => format!(r#"{{"cordon.owner":"{owner}"}}"#),
        };
        let state = format!(
            r#"{{"id":"{name}","state":"stopped","execs":[],"volumes":[],"networks":[],"labels":{labels}}}"#
        );
        fs::create_dir_all(self.program.path().join("containers")).unwrap();
        self.knob(&format!("containers/{name}.json"), &state);
    }

    fn count(&self, wanted: impl Fn(&Notice) -> bool) -> usize {
        self.notices.count(wanted)
    }
}

fn key(session: &str) -> SessionKey {
    SessionKey {
        agent: "coder".into(),
        session: session.into(),
    }
}

async fn shell(executor: &AppleExecutor, line: &str) -> ExecOutput {
    executor
        .exec(&key("one"), &ExecRequest::shell(line))
        .await
        .unwrap()
}

async fn failure(executor: &AppleExecutor) -> AppleError {
    let request = ExecRequest::shell("true");
    apple(executor.exec(&key("one"), &request).await.unwrap_err())
}

fn apple(error: SandboxError) -> AppleError {
    match error {
        SandboxError::Apple(error) => *error,
        other => panic!("{other:?}"),
    }
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}

fn is_anew(notice: &Notice) -> bool {
    matches!(notice, Notice::SessionRestarted { .. })
}

fn is_ended(notice: &Notice) -> bool {
    matches!(notice, Notice::Mode(ModeNotice::SessionEnded { .. }))
}

#[tokio::test]
async fn commands_of_a_session_share_one_machine_and_nothing_else() {
    let world = World::new();
    fs::create_dir(world.workspace.path().join("sub")).unwrap();
    let executor = world.executor();
    let request = ExecRequest {
        env: vec![("OWN".into(), "two words\nand lines".into())],
        cwd: Some("sub".into()),
        stdin: b"to be read".to_vec(),
        ..ExecRequest::shell("cat; printf '[%s]' \"$OWN\"; pwd >&2; exit 7")
    };
    let output = executor.exec(&key("one"), &request).await.unwrap();
    assert_eq!(text(&output.stdout), "to be read[two words\nand lines]");
    assert!(text(&output.stderr).ends_with("/sub\n"));
    assert_eq!(output.exit_code, 7);
    assert!(!output.timed_out && !output.truncated);

    let output = shell(&executor, "printf '[%s]' \"$OWN\"; cat").await;
    assert_eq!((text(&output.stdout), text(&output.stderr)), ("[]", ""));
    let argv = ExecRequest::argv(["printf", "%s.", "a b", "$(id)", ""]);
    let output = executor.exec(&key("one"), &argv).await.unwrap();
    assert_eq!(text(&output.stdout), "a b.$(id)..");
    assert_eq!(world.program.calls_of("run").len(), 1);

    executor
        .exec(&key("two"), &ExecRequest::shell("true"))
        .await
        .unwrap();
    assert_eq!(world.program.calls_of("run").len(), 2);
    executor.shutdown().await;
    assert!(world.containers().is_empty());
}

#[tokio::test]
async fn a_machine_is_started_without_network_and_that_is_verified() {
    let world = World::new();
    let executor = world.executor();
    shell(&executor, "true").await;
    let run = &world.program.calls_of("run")[0];
    let has = |words: &[&str]| run.windows(words.len()).any(|part| part == words);
    assert!(has(&["--network", "none"]) && has(&["--no-dns"]) && has(&["--cap-drop", "ALL"]));
    assert!(has(&["--interactive", "--rm"]));
    let order: Vec<_> = world
        .program
        .calls()
        .into_iter()
        .map(|call| call[0].clone())
        .collect();
    assert_eq!(order, ["system", "list", "image", "run", "list", "exec"]);
    executor.shutdown().await;
}

#[tokio::test]
async fn a_machine_that_has_a_network_after_all_is_never_used() {
    let world = World::new();
    world.knob("attached", "default");
    let error = failure(&world.executor()).await;
    assert!(
        matches!(&error, AppleError::NetworkNotCut { networks, .. } if networks == &["default"]),
        "{error}"
    );
    assert!(world.program.calls_of("exec").is_empty());
    assert!(world.containers().is_empty());
}

#[tokio::test]
async fn an_allowlist_that_cannot_be_held_is_refused() {
    let mut world = World::new();
    world.agent.allowlist = Some(Allowlist::from_yaml("domains: [api.example.com]").unwrap());
    let error = failure(&world.executor()).await;
    assert!(matches!(error, AppleError::Allowlist { .. }));
    assert!(error.hint().unwrap().contains("unrestricted"));
    assert!(!world.executor().probe().await.ok);
    assert!(world.program.calls_of("run").is_empty());
}

#[tokio::test]
async fn a_network_without_policy_is_had_only_by_saying_so_and_is_said() {
    let mut world = World::new();
    world.agent.apple.network = AppleNetwork::Unrestricted;
    let executor = world.executor();
    shell(&executor, "true").await;
    assert!(!world.program.calls_of("run")[0].contains(&"--network".to_owned()));
    assert_eq!(
        world.notices.all(),
        [Notice::MountsUnverified, Notice::NetworkUnrestricted]
    );
    executor.shutdown().await;
}

#[tokio::test]
async fn values_of_variables_are_in_no_argument_list() {
    let mut world = World::new();
    world.agent.env = vec![("TOKEN".into(), "a-value-of-mine".into())];
    let executor = world.executor();
    let output = shell(&executor, "printf %s \"$TOKEN\"").await;
    assert_eq!(text(&output.stdout), "a-value-of-mine");
    let calls = world.program.calls();
    assert!(
        !calls
            .concat()
            .iter()
            .any(|word| word.contains("a-value-of-mine"))
    );
    executor.shutdown().await;
}

#[tokio::test]
async fn a_variable_of_the_image_gives_way_to_a_commands_own() {
    let world = World::new();
    let executor = world.executor();
    let request = ExecRequest {
        env: vec![("FROM_IMAGE".into(), "mine".into())],
        ..ExecRequest::argv(["env"])
    };
    let output = executor.exec(&key("one"), &request).await.unwrap();
    let lines: Vec<_> = text(&output.stdout).lines().collect();
    assert!(lines.contains(&"FROM_IMAGE=mine"), "{lines:?}");
    assert!(!lines.contains(&"FROM_IMAGE=image") && lines.contains(&"IS_SANDBOX=1"));
    let output = shell(&executor, "printf %s \"$FROM_IMAGE\"").await;
    assert_eq!(text(&output.stdout), "image");
    executor.shutdown().await;
}

#[tokio::test]
async fn a_variable_that_would_turn_the_program_is_refused() {
    let world = World::new();
    let request = ExecRequest {
        env: vec![("DYLD_INSERT_LIBRARIES".into(), "/tmp/x.dylib".into())],
        ..ExecRequest::shell("true")
    };
    let error = world.executor().exec(&key("one"), &request).await;
    assert!(matches!(
        apple(error.unwrap_err()),
        AppleError::Variable { .. }
    ));
    assert!(world.program.calls().is_empty());
}

#[tokio::test]
async fn the_workspace_is_shown_as_far_as_is_allowed() {
    let mut world = World::new();
    let source = world.agent.workspace.to_str().unwrap().to_owned();
    let extra = tempfile::tempdir().unwrap();
    let extra = extra.path().canonicalize().unwrap();
    world.agent.mounts = vec![Mount::read_only(&extra, "/extra")];
    let extra = format!("{}:/extra:ro", extra.to_str().unwrap());
    let cases = [
        (
            WorkspaceAccess::ReadWrite,
            vec![
                format!("{source}:/workspace"),
                extra.clone(),
                format!("{source}/.cordon:/workspace/.cordon:ro"),
            ],
        ),
        (
            WorkspaceAccess::ReadOnly,
            vec![format!("{source}:/workspace:ro"), extra.clone()],
        ),
        (WorkspaceAccess::None, vec![extra.clone()]),
    ];
    for (access, expected) in cases {
        world.agent.workspace_access = access;
        let executor = world.executor();
        shell(&executor, "true").await;
        let run = world.program.calls_of("run").pop().unwrap();
        let volumes = run.windows(2).filter(|pair| pair[0] == "--volume");
        let volumes: Vec<_> = volumes.map(|pair| pair[1].clone()).collect();
        assert_eq!(volumes, expected);
        executor.shutdown().await;
    }
    // Without a workspace there is nothing to start in.
    let request = ExecRequest {
        cwd: Some("sub".into()),
        ..ExecRequest::shell("true")
    };
    let error = world.executor().exec(&key("one"), &request).await;
    assert!(matches!(error, Err(SandboxError::Cwd { .. })));
}

#[tokio::test]
async fn a_workspace_behind_a_symbolic_link_is_refused() {
    let mut world = World::new();
    let link = world.program.path().join("link");
    std::os::unix::fs::symlink(world.workspace.path(), &link).unwrap();
    world.agent.workspace = link;
    let request = ExecRequest::shell("true");
    let error = world
        .executor()
        .exec(&key("one"), &request)
        .await
        .unwrap_err();
    assert!(matches!(error, SandboxError::Mount(_)), "{error:?}");
    assert!(world.program.calls_of("run").is_empty());
}

#[tokio::test]
async fn a_workspace_that_is_swapped_while_its_machine_starts_is_never_used() {
    let mut world = World::new();
    let work = world.agent.workspace.join("work");
    fs::create_dir(&work).unwrap();
    let name = work.to_str().unwrap();
    world.knob(
        "on-run",
        &format!("mv {name} {name}-away; ln -s /etc {name}"),
    );
    world.agent.workspace = work;
    let error = failure(&world.executor()).await;
    assert!(matches!(error, AppleError::Moved { .. }), "{error}");
    assert!(world.program.calls_of("exec").is_empty());
    assert!(world.containers().is_empty());
}

#[tokio::test]
async fn limits_that_cannot_be_held_are_said_once() {
    let mut world = World::new();
    world.agent.limits.pids = Some("256".parse().unwrap());
    world.agent.limits.memory = Some("1g".parse().unwrap());
    let executor = world.executor();
    for session in ["one", "two"] {
        let request = ExecRequest::shell("true");
        executor.exec(&key(session), &request).await.unwrap();
    }
    let unheld = Notice::Mode(ModeNotice::LimitsUnheld {
        mode: Mode::AppleVm,
        limits: vec!["pids"],
    });
    assert_eq!(world.notices.all(), [Notice::MountsUnverified, unheld]);
    let run = &world.program.calls_of("run")[0];
    assert!(run.windows(2).any(|pair| pair == ["--memory", "1024M"]));
    executor.shutdown().await;
}

#[tokio::test]
async fn a_machine_is_strict_unless_another_profile_is_asked_for() {
    let mut world = World::new();
    world.agent.profile = Profile::default();
    let executor = world.executor();
    let output = shell(&executor, "printf %s \"$HOME\"").await;
    assert_eq!(text(&output.stdout), "/home");
    let run = world.program.calls_of("run").remove(0).join(" ");
    assert!(run.contains(" --cap-drop ALL --read-only ") && !run.contains("--cap-add"));
    assert!(run.contains(" --user ") && run.contains(" --memory 4096M "));
    executor.shutdown().await;
}

#[tokio::test]
async fn a_machine_killed_behind_our_back_is_started_anew_and_that_is_said() {
    let world = World::new();
    let executor = world.executor();
    shell(&executor, "true").await;
    let pid = world.state()["pid"].to_string();
    signal(&pid, "KILL");
    until(|| world.containers().is_empty()).await;
    // Whether the program that kept it has ended by now or not.
    let output = shell(&executor, "echo again").await;
    assert_eq!(text(&output.stdout), "again\n");
    assert_eq!(world.count(is_anew), 1);
    assert_eq!(world.program.calls_of("run").len(), 2);
    executor.shutdown().await;
    assert!(world.containers().is_empty());
}

#[tokio::test]
async fn a_machine_that_stopped_without_its_keeper_is_started_anew() {
    let world = World::new();
    let executor = world.executor();
    shell(&executor, "true").await;
    let mut state = world.state();
    state["state"] = "stopped".into();
    fs::write(&world.containers()[0], state.to_string()).unwrap();
    let output = shell(&executor, "echo again").await;
    assert_eq!(text(&output.stdout), "again\n");
    assert_eq!(world.count(is_anew), 1);
    executor.shutdown().await;
    assert!(world.containers().is_empty());
}

#[tokio::test]
async fn a_machine_that_ends_under_a_command_is_an_error_and_no_result() {
    let world = World::new();
    let executor = Arc::new(world.executor());
    let begun = world.workspace.path().join("begun");
    let command = {
        let executor = Arc::clone(&executor);
        tokio::spawn(async move {
            let request = ExecRequest::shell("touch begun; sleep 600");
            executor.exec(&key("one"), &request).await
        })
    };
    until(|| begun.exists()).await;
    signal(&world.state()["pid"].to_string(), "KILL");
    let error = command.await.unwrap().unwrap_err();
    assert!(matches!(error, SandboxError::SessionLost), "{error:?}");
}

#[tokio::test]
async fn a_command_that_could_not_be_started_is_an_error_and_one_that_fails_is_not() {
    let world = World::new();
    let executor = world.executor();
    let output = shell(&executor, "echo 'Error: internalError' >&2; exit 1").await;
    assert_eq!(output.exit_code, 1);
    assert_eq!(text(&output.stderr), "Error: internalError\n");
    let request = ExecRequest {
        cwd: Some("not-there".into()),
        ..ExecRequest::shell("true")
    };
    let error = apple(executor.exec(&key("one"), &request).await.unwrap_err());
    assert!(
        matches!(&error, AppleError::NotBegun { said } if said.contains("chdir")),
        "{error}"
    );
    // That was no reason to end the machine.
    shell(&executor, "true").await;
    assert_eq!(world.program.calls_of("run").len(), 1);
    let missing = ExecRequest::argv(["no-such-program"]);
    let output = executor.exec(&key("one"), &missing).await.unwrap();
    assert_eq!(output.exit_code, 127);
    executor.shutdown().await;
}

#[tokio::test]
async fn when_time_is_up_everything_that_a_command_started_has_ended() {
    let world = World::new();
    let executor = world.executor();
    let request = ExecRequest {
        timeout: Some(Duration::from_secs(5)),
        ..ExecRequest::shell("echo half; setsid sleep 600 & echo $! > pid; wait")
    };
    let output = executor.exec(&key("one"), &request).await.unwrap();
    assert!(output.timed_out);
    assert_eq!(output.exit_code, 124);
    assert_eq!(text(&output.stdout), "half\n");
    assert!(world.containers().is_empty());
    let pid = fs::read_to_string(world.workspace.path().join("pid")).unwrap();
    until(|| !is_alive(&pid)).await;
    assert_eq!(world.count(is_ended), 1);
    shell(&executor, "true").await;
    assert_eq!(world.count(is_anew), 1);
    executor.shutdown().await;
}

#[tokio::test]
async fn a_command_that_nobody_waits_for_takes_its_machine_with_it() {
    let world = World::new();
    let executor = world.executor();
    let begun = world.workspace.path().join("begun");
    {
        let request = ExecRequest::shell("touch begun; sleep 600");
        let session = key("one");
        let command = executor.exec(&session, &request);
        tokio::select! {
            _ = command => panic!("it sleeps"),
            () = until(|| begun.exists()) => {}
        }
    }
    until(|| world.containers().is_empty()).await;
    shell(&executor, "true").await;
    executor.shutdown().await;
}

#[tokio::test]
async fn stopping_removes_the_machine_and_a_second_time_nothing() {
    let world = World::new();
    let executor = world.executor();
    assert!(!executor.stop(&key("one")).await);
    shell(&executor, "true").await;
    let pid = world.state()["pid"].to_string();
    assert!(executor.stop(&key("one")).await);
    assert!(world.containers().is_empty() && !is_alive(&pid));
    assert!(!executor.stop(&key("one")).await);
}

#[tokio::test]
async fn a_machine_that_cannot_be_removed_is_named() {
    let world = World::new();
    world.leftover("left", "00000000-1-2");
    world.knob("no-delete", "internalError: busy");
    // What is left is said, and keeps nobody from working.
    let executor = world.executor();
    assert_eq!(executor.sweep().await.unwrap(), 0);
    let kept = |notice: &Notice| matches!(notice, Notice::LeftoversKept { what } if what.contains("container left could not be removed; it said: Error: internalError: busy"));
    assert_eq!(world.count(kept), 1);
    fs::remove_file(world.program.path().join("no-delete")).unwrap();
    assert_eq!(executor.sweep().await.unwrap(), 1);
}

#[tokio::test]
async fn a_machine_that_is_not_used_is_removed() {
    let mut world = World::new();
    world.agent.idle = Some(Duration::from_millis(300));
    let executor = world.executor();
    // A command that takes longer than that is use.
    shell(&executor, "sleep 1").await;
    assert_eq!(world.program.calls_of("run").len(), 1);
    until(|| world.count(is_ended) == 1).await;
    assert!(world.containers().is_empty());
    let output = shell(&executor, "echo again").await;
    assert_eq!(text(&output.stdout), "again\n");
    // Nothing was lost that had been promised.
    assert_eq!(world.count(is_anew), 0);
    executor.shutdown().await;
}

#[tokio::test]
async fn only_what_dead_owners_left_is_removed() {
    let world = World::new();
    let living = World::new();
    let other = living.executor();
    shell(&other, "true").await;
    let owner = living.state()["labels"]["cordon.owner"].clone();
    world.leftover("living", owner.as_str().unwrap());
    world.leftover("dead", "00000000-1-2");
    world.leftover("strange", "somebody");
    world.leftover("foreign", "");
    // What is not understood is not ours.
    world.knob("containers/odd.json", r#"{"id":"odd","odd":true}"#);
    let executor = world.executor();
    shell(&executor, "true").await;
    executor.shutdown().await;
    let mut left: Vec<_> = world
        .containers()
        .iter()
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    left.sort();
    assert_eq!(left, ["foreign", "living", "odd", "strange"]);
    assert!(
        world
            .notices
            .all()
            .contains(&Notice::LeftoversRemoved { count: 1 })
    );
    other.shutdown().await;
}

#[tokio::test]
async fn a_bootstrap_that_may_mend_fetches_the_image() {
    let mut world = World::new();
    world.knob("images", "");
    world.agent.mode = Mode::AppleVm;
    let sandbox = Sandbox::new(world.config.clone());
    let agents = [world.agent.clone()];
    let refused = sandbox.bootstrap(&agents, Fix::Yes).await;
    assert!(refused.actions.is_empty() && !refused.ok, "{refused:?}");

    world.knob("registry", "debian:12");
    let report = sandbox.bootstrap(&agents, Fix::Yes).await;
    assert_eq!(report.actions.len(), 1, "{report:?}");
    assert_eq!(report.actions[0].message, "fetched debian:12");
    let report = sandbox.bootstrap(&agents, Fix::Yes).await;
    assert!(report.actions.is_empty(), "{report:?}");
}

#[tokio::test]
async fn an_image_is_fetched_where_that_is_allowed_and_said() {
    let mut world = World::new();
    world.knob("images", "");
    world.config.pull = Pull::Never;
    let error = failure(&world.executor()).await;
    assert!(matches!(error, AppleError::NoSuchImage { .. }));

    world.config.pull = Pull::Missing;
    let error = failure(&world.executor()).await;
    assert!(matches!(error, AppleError::PullFailed { .. }));
    assert!(
        error
            .hint()
            .unwrap()
            .contains("container image pull debian:12")
    );

    world.knob("registry", "debian:12");
    let executor = world.executor();
    shell(&executor, "true").await;
    assert!(world.count(|notice| matches!(notice, Notice::Pulling { .. })) >= 1);
    assert!(!executor.pull().await.unwrap());
    executor.shutdown().await;
}

#[tokio::test]
async fn a_machine_that_does_not_start_is_said_with_the_programs_words() {
    let world = World::new();
    world.knob("no-start", "internalError: no kernel");
    let error = failure(&world.executor()).await;
    assert!(
        matches!(&error, AppleError::NotStarted { said } if said.contains("no kernel")),
        "{error}"
    );
    assert!(world.containers().is_empty());
}

#[tokio::test]
async fn a_probe_finds_what_is_missing_and_says_what_to_type() {
    let mut world = World::new();
    let probe = world.executor().probe().await;
    assert!(probe.ok && probe.mode == Mode::AppleVm && probe.hints.is_empty());

    world.knob("images", "");
    let probe = world.executor().probe().await;
    assert!(!probe.ok && probe.hints == ["fetch it with `container image pull debian:12`"]);

    world.knob("version", "container-apiserver version 0.11.0");
    let probe = world.executor().probe().await;
    assert!(!probe.ok && probe.hints == ["install version 0.12 or later"]);

    world.knob("down", "");
    let probe = world.executor().probe().await;
    assert!(!probe.ok && probe.message.contains("unregistered"));
    assert_eq!(probe.hints, ["start it with `container system start`"]);

    world.agent.apple.program = "/nowhere/container".into();
    let probe = world.executor().probe().await;
    assert!(!probe.ok && probe.message == "/nowhere/container is not installed");

    world.agent.image = None;
    let probe = world.executor().probe().await;
    assert!(!probe.ok && probe.message.contains("no image is configured"));
    assert!(probe.hints[0].contains("`coder`"));
}

#[tokio::test]
async fn output_is_cut_at_the_limit() {
    let world = World::new();
    let executor = world.executor();
    let request = ExecRequest {
        output_limit: 3,
        ..ExecRequest::shell("printf abcdef; printf uvwxyz >&2")
    };
    let output = executor.exec(&key("one"), &request).await.unwrap();
    assert!(output.truncated);
    assert!(output.stdout.starts_with(b"abc\n[output cut"));
    assert!(output.stderr.starts_with(b"uvw\n[output cut"));
    executor.shutdown().await;
}

#[tokio::test]
async fn commands_side_by_side_start_one_machine() {
    let world = World::new();
    let executor = Arc::new(world.executor());
    let commands: Vec<_> = (0..8)
        .map(|number| {
            let executor = Arc::clone(&executor);
            let request = ExecRequest::shell(format!("echo {number}"));
            tokio::spawn(async move { executor.exec(&key("one"), &request).await })
        })
        .collect();
    for (number, command) in commands.into_iter().enumerate() {
        let output = command.await.unwrap().unwrap();
        assert_eq!(text(&output.stdout), format!("{number}\n"));
    }
    assert_eq!(world.program.calls_of("run").len(), 1);
    executor.shutdown().await;
}

#[tokio::test]
async fn a_machine_ends_when_the_process_that_started_it_is_killed() {
    const HOME: &str = "CORDON_TEST_MACHINE_OF";
    if let Some(program) = std::env::var_os(HOME) {
        // The process that will be killed.
        let program = PathBuf::from(program);
        let workspace = program.with_file_name("work");
        fs::create_dir(&workspace).unwrap();
        let mut agent = AgentSandbox::new("coder", workspace);
        agent.apple.program = program;
        agent.image = Some("debian:12".into());
        let executor = AppleExecutor::new(agent, &SandboxConfig::default());
        shell(&executor, "sleep 600").await;
        return;
    }
    let world = World::new();
    #[expect(clippy::disallowed_methods, reason = "tests drive real programs")]
    let mut process = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "bridge::apple::a_machine_ends_when_the_process_that_started_it_is_killed",
        ])
        .env(HOME, &world.program.program)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let runs = || {
        let containers = world.containers();
        let state = containers
            .first()
            .map(|path| fs::read(path).unwrap_or_default());
        state.and_then(|state| serde_json::from_slice::<serde_json::Value>(&state).ok())
    };
    until(|| runs().is_some_and(|state| state["execs"][0].is_u64())).await;
    let state = runs().unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
    until(|| world.containers().is_empty()).await;
    for pid in [&state["pid"], &state["execs"][0]] {
        until(|| !is_alive(&pid.to_string())).await;
    }
}

#[expect(clippy::disallowed_methods, reason = "tests drive real programs")]
fn signal(pid: &str, signal: &str) {
    let killed = std::process::Command::new("kill")
        .args([&format!("-{signal}"), pid])
        .status();
    assert!(killed.unwrap().success());
}
