//! Every way in which `vibebox` can answer, and not answer.

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use cordon::{
    Allowlist, Notice, Profile, Sandbox, SandboxError,
    doctor::Fix,
    modes::{
        AgentSandbox, BridgeError, BridgeErrorKind, ExecOutput, ExecRequest, HostUse, Init, Mode,
        ModeNotice, Provider, SessionKey, Stage, VibeboxExecutor, WorkspaceAccess,
    },
};

use super::stand_in::{Notices, StandIn, is_alive, until};

/// A stand-in, a workspace, and an executor over both.
struct World {
    program: StandIn,
    workspace: tempfile::TempDir,
    notices: Notices,
    agent: AgentSandbox,
    host: HostUse,
}

impl World {
    /// A program that answers `exec` in that way, as a piece of shell.
    fn answering(body: &str) -> Self {
        let program = StandIn::shell("vibebox", body);
        let workspace = tempfile::tempdir().unwrap();
        let path = workspace.path().canonicalize().unwrap();
        let mut agent = AgentSandbox::new("coder", path);
        agent.vibebox.program.clone_from(&program.program);
        agent.vibebox.provider = Provider::Docker;
        agent.profile = Profile::Standard;
        Self {
            program,
            workspace,
            notices: Notices::default(),
            agent,
            host: HostUse::Refused,
        }
    }

    /// A program that prints those bytes.
    fn saying(json: &str) -> Self {
        let world = Self::answering("cat @HOME@/answer");
        fs::write(world.program.path().join("answer"), json).unwrap();
        world
    }

    fn executor(&self) -> VibeboxExecutor {
        let config = self.notices.config(self.program.path());
        VibeboxExecutor::new(self.agent.clone(), &config, self.host)
    }

    fn root(&self) -> String {
        let path = self.workspace.path().canonicalize().unwrap();
        path.to_str().unwrap().to_owned()
    }

    async fn exec(&self, request: &ExecRequest) -> Result<ExecOutput, SandboxError> {
        self.executor().exec(&key(), request).await
    }

    /// The error of a plain command.
    async fn failure(&self) -> BridgeError {
        let error = self.exec(&ExecRequest::shell("true")).await.unwrap_err();
        bridge(error)
    }
}

fn key() -> SessionKey {
    SessionKey {
        agent: "coder".into(),
        session: "one".into(),
    }
}

fn bridge(error: SandboxError) -> BridgeError {
    match error {
        SandboxError::Bridge(error) => *error,
        other => panic!("{other:?}"),
    }
}

const FINE: &str = r#"{"ok":true,"selected":"docker","stdout":"out","stderr":"err","exitCode":3}"#;

#[tokio::test]
async fn a_command_is_asked_for_by_the_contract() {
    let mut world = World::saying(FINE);
    fs::create_dir(world.workspace.path().join("sub dir")).unwrap();
    world.agent.env = vec![("A".into(), "agent".into()), ("B".into(), "kept".into())];
    let request = ExecRequest {
        env: vec![("A".into(), "request".into())],
        cwd: Some("sub dir".into()),
        timeout: Some(Duration::from_millis(1500)),
        ..ExecRequest::argv(["make", "a b"])
    };
    let output = world.exec(&request).await.unwrap();
    assert_eq!(output.exit_code, 3);
    assert_eq!(
        (&*output.stdout, &*output.stderr),
        (&b"out"[..], &b"err"[..])
    );
    assert!(!output.timed_out && !output.truncated);
    let root = world.root();
    assert_eq!(
        world.program.calls(),
        [[
            "exec",
            "--json",
            "--provider",
            "docker",
            "--project-root",
            &root,
            "--command",
            "make 'a b'",
            "--cwd",
            &format!("{root}/sub dir"),
            "--timeout-seconds",
            "2",
            "--env",
            "A=request",
            "--env",
            "B=kept",
        ]]
    );
}

#[tokio::test]
async fn the_program_inherits_no_variable_that_it_does_not_need() {
    let world = World::saying(FINE);
    world.exec(&ExecRequest::shell("true")).await.unwrap();
    let seen = fs::read_to_string(world.program.path().join("environment")).unwrap();
    // The test's own process has many of these.
    assert!(!seen.contains("CARGO_"), "{seen}");
}

#[tokio::test]
async fn fields_that_are_not_known_are_no_trouble() {
    let world = World::saying(
        r#"  {"ok":true,"error":null,"selected":"docker","version":9,"diagnostics":{"docker":{"available":true,"x":[]}},"stdout":"","exitCode":0,"timing":{"ms":1}}
        "#,
    );
    let output = world.exec(&ExecRequest::shell("true")).await.unwrap();
    assert_eq!(output, ExecOutput::default());
}

#[tokio::test]
async fn a_program_that_is_missing_is_named() {
    let mut world = World::saying(FINE);
    for program in ["/nowhere/vibebox", "no-program-of-this-name"] {
        world.agent.vibebox.program = program.into();
        let error = world.failure().await;
        assert!(matches!(error.kind, BridgeErrorKind::Missing { .. }));
        assert!(
            error
                .to_string()
                .contains(&format!("{program} is not installed"))
        );
        assert!(error.hint().unwrap().contains("install vibebox"));
    }
}

#[tokio::test]
async fn a_program_that_cannot_be_executed_is_named() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::saying(FINE);
    fs::set_permissions(&world.program.program, fs::Permissions::from_mode(0o644)).unwrap();
    let error = world.failure().await;
    assert!(matches!(error.kind, BridgeErrorKind::NotExecutable { .. }));
    assert!(
        error
            .hint()
            .unwrap()
            .starts_with("make it a program with `chmod +x ")
    );
}

#[tokio::test]
async fn a_program_that_does_not_start_is_said_to() {
    let mut world = World::saying(FINE);
    let program = world.program.path().join("no-interpreter");
    fs::write(&program, "#!/nowhere/sh\n").unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    world.agent.vibebox.program = program;
    let error = world.failure().await;
    assert!(
        matches!(error.kind, BridgeErrorKind::Start { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn a_program_that_does_not_answer_in_time_is_killed_with_all_it_started() {
    let world = World::answering("echo half; echo why >&2; sleep 600 & echo $! > @HOME@/pid; wait");
    let request = ExecRequest {
        timeout: Some(Duration::from_secs(1)),
        ..ExecRequest::shell("true")
    };
    let error = bridge(world.exec(&request).await.unwrap_err());
    assert!(
        matches!(error.kind, BridgeErrorKind::TimedOut { .. }),
        "{error}"
    );
    assert_eq!((&*error.stdout, &*error.stderr), ("half", "why"));
    let pid = fs::read_to_string(world.program.path().join("pid")).unwrap();
    until(|| !is_alive(&pid)).await;
}

#[tokio::test]
async fn a_command_whose_time_was_up_by_the_programs_own_clock_is_a_result() {
    let world = World::answering(r#"sleep 1; echo '{"ok":true,"exitCode":124,"stdout":"half"}'"#);
    let request = ExecRequest {
        timeout: Some(Duration::from_secs(1)),
        ..ExecRequest::shell("sleep 600")
    };
    let output = world.exec(&request).await.unwrap();
    assert!(output.timed_out);
    assert_eq!((output.exit_code, &*output.stdout), (124, &b"half"[..]));
}

#[tokio::test]
async fn an_answer_that_is_no_json_is_shown() {
    for text in [
        "panic: oh no",
        "{\"ok\":true",
        "log line\n{\"ok\":true}",
        "{\"ok\":true} x",
    ] {
        let error = World::saying(text).failure().await;
        assert!(
            matches!(error.kind, BridgeErrorKind::NotJson { .. }),
            "{text}"
        );
        assert_eq!(error.stdout, text);
        assert!(std::error::Error::source(&error).is_some());
    }
}

#[tokio::test]
async fn an_answer_of_nothing_is_an_error() {
    for text in ["", " \n\t"] {
        let error = World::saying(text).failure().await;
        assert!(matches!(error.kind, BridgeErrorKind::Empty));
    }
}

#[tokio::test]
async fn json_of_another_form_is_an_error() {
    for text in [
        "[]",
        "null",
        "{}",
        r#"{"ok":1}"#,
        r#"{"ok":true,"exitCode":"0"}"#,
        r#"{"ok":true,"exitCode":0,"stdout":7}"#,
    ] {
        let error = World::saying(text).failure().await;
        assert!(
            matches!(error.kind, BridgeErrorKind::Shape { .. }),
            "{text}"
        );
    }
    // Without an exit code nobody knows how a command ended.
    let error = World::saying(r#"{"ok":true,"stdout":""}"#).failure().await;
    assert!(matches!(
        error.kind,
        BridgeErrorKind::Incomplete { field: "exitCode" }
    ));
}

#[tokio::test]
async fn a_refusal_is_shown_with_its_reason_and_hints() {
    let world = World::answering(
        r#"echo '{"ok":false,"error":"no image","selected":"docker","diagnostics":{"docker":{"available":false,"fixHints":["pull it","or build it"]}}}'
        echo 'from stderr' >&2; exit 2"#,
    );
    let error = world.failure().await;
    assert!(
        matches!(&error.kind, BridgeErrorKind::Refused { said: Some(said) } if said == "no image")
    );
    assert_eq!(error.hints, ["pull it", "or build it"]);
    assert_eq!(error.hint().as_deref(), Some("pull it; or build it"));
    assert_eq!(error.status.and_then(|status| status.code()), Some(2));
    assert_eq!(error.stage, Stage::Exec);
    let shown = error.to_string();
    for part in [
        "vibebox exec: it refused: no image",
        "exec --json --provider docker",
        "exit status: 2",
        "stderr: from stderr",
        "stdout: {\"ok\":false",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
}

#[tokio::test]
async fn a_refusal_without_a_reason_says_so() {
    let error = World::saying(r#"{"ok":false}"#).failure().await;
    assert!(matches!(
        error.kind,
        BridgeErrorKind::Refused { said: None }
    ));
    assert!(error.to_string().contains("does not say why"));
}

#[tokio::test]
async fn a_program_that_fails_with_a_good_answer_is_not_believed() {
    let error = World::answering(&format!("echo '{FINE}'; exit 4"))
        .failure()
        .await;
    assert!(matches!(
        error.kind,
        BridgeErrorKind::Contradiction { exit_code: 3 }
    ));
    // It may end as its command did.
    let world = World::answering(&format!("echo '{FINE}'; exit 3"));
    let output = world.exec(&ExecRequest::shell("true")).await.unwrap();
    assert_eq!(output.exit_code, 3);
}

#[tokio::test]
async fn a_program_that_a_signal_ended_is_not_believed() {
    let error = World::answering(&format!("echo '{FINE}'; kill -9 $$"))
        .failure()
        .await;
    assert!(matches!(error.kind, BridgeErrorKind::Killed { signal: 9 }));
}

#[tokio::test]
async fn an_answer_beyond_the_limit_ends_the_program() {
    let world = World::answering("echo $$ > @HOME@/pid; exec cat /dev/zero");
    let error = world.failure().await;
    assert!(
        matches!(error.kind, BridgeErrorKind::TooMuch { .. }),
        "{error}"
    );
    let pid = fs::read_to_string(world.program.path().join("pid")).unwrap();
    until(|| !is_alive(&pid)).await;
}

#[tokio::test]
async fn output_is_cut_at_the_limit_of_the_request() {
    let world = World::saying(FINE);
    let request = ExecRequest {
        output_limit: 2,
        ..ExecRequest::shell("true")
    };
    let output = world.exec(&request).await.unwrap();
    assert!(output.truncated);
    assert!(output.stdout.starts_with(b"ou\n[output cut after 2 bytes]"));
}

#[tokio::test]
async fn what_the_program_leaves_running_does_not_hold_the_answer() {
    let world = World::answering(&format!("sleep 600 & echo $! > @HOME@/pid; echo '{FINE}'"));
    let output = world.exec(&ExecRequest::shell("true")).await.unwrap();
    assert_eq!(output.exit_code, 3);
    let pid = fs::read_to_string(world.program.path().join("pid")).unwrap();
    until(|| !is_alive(&pid)).await;
}

#[tokio::test]
async fn an_error_shows_no_value_of_a_variable() {
    let mut world = World::saying("nonsense");
    world.agent.env = vec![("NAME".into(), "a-value-of-mine".into())];
    let request = ExecRequest::shell("x".repeat(10_000));
    let error = bridge(world.exec(&request).await.unwrap_err());
    assert!(error.command.contains("NAME=…") && error.command.len() < 1000);
    assert!(!format!("{error} {error:?}").contains("a-value-of-mine"));
}

#[tokio::test]
async fn variables_in_an_argument_list_are_said_to_be_once() {
    let mut world = World::saying(FINE);
    let executor = world.executor();
    executor
        .exec(&key(), &ExecRequest::shell("true"))
        .await
        .unwrap();
    assert!(world.notices.all().is_empty());
    world.agent.env = vec![("NAME".into(), "value".into())];
    let executor = world.executor();
    for _ in 0..3 {
        executor
            .exec(&key(), &ExecRequest::shell("true"))
            .await
            .unwrap();
    }
    let shown = Notice::Mode(ModeNotice::VariablesShown {
        names: vec!["NAME".into()],
    });
    assert_eq!(world.notices.all(), [shown]);
}

#[tokio::test]
async fn a_variable_that_no_process_can_have_is_refused() {
    let world = World::saying(FINE);
    for (name, value) in [
        ("", "x"),
        ("A=B", "x"),
        ("A", "x\0y"),
        ("--provider", "off"),
    ] {
        let request = ExecRequest {
            env: vec![(name.into(), value.into())],
            ..ExecRequest::shell("true")
        };
        let error = world.exec(&request).await.unwrap_err();
        assert!(matches!(error, SandboxError::Variable { .. }));
    }
    assert!(world.program.calls().is_empty());
}

#[tokio::test]
async fn a_command_that_was_to_read_something_is_refused() {
    let world = World::saying(FINE);
    let request = ExecRequest {
        stdin: b"text".to_vec(),
        ..ExecRequest::shell("cat")
    };
    let error = bridge(world.exec(&request).await.unwrap_err());
    assert!(matches!(error.kind, BridgeErrorKind::Input));
    assert!(world.program.calls().is_empty());
}

#[tokio::test]
async fn a_directory_outside_the_workspace_is_refused() {
    let world = World::saying(FINE);
    std::os::unix::fs::symlink("/etc", world.workspace.path().join("out")).unwrap();
    for cwd in ["..", "/etc", "out", "not-there"] {
        let request = ExecRequest {
            cwd: Some(PathBuf::from(cwd)),
            ..ExecRequest::shell("true")
        };
        let error = world.exec(&request).await.unwrap_err();
        assert!(matches!(error, SandboxError::Cwd { .. }), "{cwd}");
    }
    assert!(world.program.calls().is_empty());
}

#[tokio::test]
async fn what_the_program_cannot_be_held_to_is_refused() {
    let fresh = || World::saying(FINE);
    let mut worlds = [fresh(), fresh(), fresh(), fresh()];
    worlds[0].agent.allowlist = Some(Allowlist::from_yaml("domains: [a.example]").unwrap());
    worlds[1].agent.workspace_access = WorkspaceAccess::ReadOnly;
    worlds[2].agent.workspace_access = WorkspaceAccess::None;
    worlds[3].agent.runtime = Some("runsc".into());
    for world in worlds {
        let error = world.failure().await;
        assert!(
            matches!(error.kind, BridgeErrorKind::Unheld { .. }),
            "{error}"
        );
        assert!(!world.executor().probe().await.ok);
        assert!(world.program.calls().is_empty());
    }
}

#[tokio::test]
async fn limits_that_the_program_does_not_hold_are_said_once() {
    let mut world = World::saying(FINE);
    world.agent.limits.memory = Some("1g".parse().unwrap());
    world.agent.profile = Profile::Strict;
    let executor = world.executor();
    for _ in 0..2 {
        let request = ExecRequest::shell("true");
        executor.exec(&key(), &request).await.unwrap();
    }
    let unheld = Notice::Mode(ModeNotice::LimitsUnheld {
        mode: Mode::Vibebox,
        limits: vec!["the profile strict", "memory"],
    });
    assert_eq!(world.notices.all(), [unheld]);
}

/// A program whose probe and whose commands say that they use that backend.
fn choosing(probe: &str, exec: &str) -> World {
    let mut world = World::answering(&format!(
        r#"case "$1" in
        probe) echo '{{"ok":true,"selected":"{probe}","diagnostics":{{"{probe}":{{"available":true}}}}}}';;
        exec) echo '{{"ok":true,"selected":"{exec}","exitCode":0}}';;
        esac"#
    ));
    world.agent.vibebox.provider = Provider::Auto;
    world
}

#[tokio::test]
async fn what_auto_comes_to_is_asked_once_and_named_from_then_on() {
    let world = choosing("apple-vm", "apple-vm");
    let executor = world.executor();
    for _ in 0..2 {
        executor
            .exec(&key(), &ExecRequest::shell("true"))
            .await
            .unwrap();
    }
    let calls = world.program.calls();
    assert_eq!(calls.len(), 3);
    assert_eq!(calls[0][..4], ["probe", "--json", "--provider", "auto"]);
    for call in &calls[1..] {
        assert_eq!(call[..4], ["exec", "--json", "--provider", "apple-vm"]);
    }
    let taken = Notice::Mode(ModeNotice::BackendTaken {
        backend: Provider::AppleVm,
    });
    assert_eq!(world.notices.all(), [taken]);
}

#[tokio::test]
async fn auto_never_ends_on_the_host() {
    let world = choosing("off", "off");
    let error = world.failure().await;
    assert!(
        matches!(error.kind, BridgeErrorKind::Unusable { .. }),
        "{error}"
    );
    assert_eq!(world.program.calls_of("exec").len(), 0);
    assert!(!world.executor().probe().await.ok);
}

#[tokio::test]
async fn a_backend_other_than_the_one_that_was_named_is_an_error() {
    let error = choosing("docker", "off").failure().await;
    assert!(matches!(
        &error.kind,
        BridgeErrorKind::OtherBackend { asked: Provider::Docker, selected } if selected == "off"
    ));
}

#[tokio::test]
async fn the_host_is_used_only_where_it_is_allowed_and_that_is_said_every_time() {
    let mut world = choosing("off", "off");
    world.agent.vibebox.provider = Provider::Off;
    let error = world.failure().await;
    assert!(matches!(error.kind, BridgeErrorKind::HostRefused { .. }));
    assert!(error.hint().unwrap().contains("CORDON_ALLOW_HOST_EXEC=1"));
    assert!(!world.executor().probe().await.ok);
    assert_eq!(world.program.calls_of("exec").len(), 0);

    world.host = HostUse::Allowed;
    let executor = world.executor();
    for _ in 0..2 {
        executor
            .exec(&key(), &ExecRequest::shell("true"))
            .await
            .unwrap();
    }
    let said = |notice: &Notice| {
        *notice
            == Notice::Mode(ModeNotice::NothingIsolated {
                mode: Mode::Vibebox,
            })
    };
    assert_eq!(world.notices.count(said), 2);
    assert!(executor.probe().await.ok);

    // A list of commands would not be held to.
    world.agent.commands = vec!["make".into()];
    let error = world.failure().await;
    assert!(matches!(error.kind, BridgeErrorKind::HostRefused { .. }));
}

#[tokio::test]
async fn a_probe_asks_by_the_contract_and_says_what_it_found() {
    let world = choosing("docker", "docker");
    let probe = world.executor().probe().await;
    assert!(probe.ok && probe.mode == Mode::Vibebox && probe.hints.is_empty());
    assert_eq!(probe.message, "vibebox uses docker");
    let root = world.root();
    assert_eq!(
        world.program.calls(),
        [[
            "probe",
            "--json",
            "--provider",
            "auto",
            "--project-root",
            &root
        ]]
    );
}

#[tokio::test]
async fn a_probe_without_diagnostics_of_the_selected_backend_is_not_ok() {
    let world = World::saying(r#"{"ok":true,"selected":"docker","diagnostics":{}}"#);
    let probe = world.executor().probe().await;
    assert!(!probe.ok);
    assert!(probe.message.contains("says nothing about docker"));
}

#[tokio::test]
async fn a_probe_that_fails_shows_the_call_and_what_was_said() {
    let world = World::answering("echo 'segmentation fault' >&2; exit 139");
    let probe = world.executor().probe().await;
    assert!(!probe.ok);
    for part in [
        "it answered nothing",
        "probe --json",
        "segmentation fault",
        "exit status: 139",
    ] {
        assert!(probe.message.contains(part), "{}", probe.message);
    }
    assert!(!probe.hints.is_empty());
}

#[tokio::test]
async fn a_project_is_set_up_where_it_is_not() {
    let world = World::answering("exit 0");
    assert_eq!(world.executor().init().await.unwrap(), Init::Made);
    let root = world.root();
    assert_eq!(
        world.program.calls(),
        [[
            "init",
            "--non-interactive",
            "--provider",
            "docker",
            "--project-root",
            &root
        ]]
    );
    fs::create_dir(world.workspace.path().join(".vibebox")).unwrap();
    fs::write(world.workspace.path().join(".vibebox/config.yaml"), "").unwrap();
    assert_eq!(world.executor().init().await.unwrap(), Init::Present);
    assert_eq!(world.program.calls().len(), 1);
}

#[tokio::test]
async fn a_bootstrap_that_may_mend_has_a_project_set_up() {
    let mut world = World::answering(
        r#"[ "$1" = init ] && mkdir -p "$6/.vibebox" && : > "$6/.vibebox/config.yaml"; echo '{"ok":true,"selected":"docker","diagnostics":{"docker":{"available":true}}}'"#,
    );
    world.agent.mode = Mode::Vibebox;
    let sandbox = Sandbox::new(world.notices.config(world.program.path()));
    let agents = [world.agent.clone()];
    let report = sandbox.bootstrap(&agents, Fix::No).await;
    assert!(report.actions.is_empty() && world.program.calls_of("init").is_empty());
    let report = sandbox.bootstrap(&agents, Fix::Yes).await;
    assert_eq!(report.actions.len(), 1, "{report:?}");
    let report = sandbox.bootstrap(&agents, Fix::Yes).await;
    assert!(report.actions.is_empty(), "{report:?}");
    assert_eq!(world.program.calls_of("init").len(), 1);
}

#[tokio::test]
async fn a_project_that_cannot_be_set_up_is_said_with_the_programs_words() {
    let world = World::answering("echo 'disk full' >&2; exit 1");
    let error = bridge(world.executor().init().await.unwrap_err());
    assert_eq!((error.stage, &*error.stderr), (Stage::Init, "disk full"));
}

#[tokio::test]
async fn stopping_a_session_ends_its_commands_and_no_others() {
    let world = World::answering("echo $$ > @HOME@/pid-$8; exec sleep 600");
    let executor = Arc::new(world.executor());
    let start = |session: &str| {
        let executor = Arc::clone(&executor);
        let key = SessionKey {
            agent: "coder".into(),
            session: session.into(),
        };
        let request = ExecRequest::shell(session);
        tokio::spawn(async move { executor.exec(&key, &request).await })
    };
    let (one, two) = (start("one"), start("two"));
    let pid = |session: &str| world.program.path().join(format!("pid-{session}"));
    let read = |session: &str| fs::read_to_string(pid(session)).unwrap_or_default();
    until(|| read("one").ends_with('\n') && read("two").ends_with('\n')).await;
    assert!(executor.stop(&key()).await);
    assert_eq!(one.await.unwrap().unwrap().exit_code, 137);
    until(|| !is_alive(&read("one"))).await;
    assert!(is_alive(&read("two")));
    assert!(!executor.stop(&key()).await);
    // A command that nobody waits for any more is killed too.
    two.abort();
    until(|| !is_alive(&read("two"))).await;
}
