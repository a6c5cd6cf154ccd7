//! Session containers run by the library, in this process.

use std::{
    fs,
    sync::{Arc, Mutex},
    time::Duration,
};

use cordon::{
    CommandSpec, EngineChoice, EngineKind, Notice, Pull, Sandbox, SandboxConfig, SandboxError,
    modes::{
        AgentSandbox, ExecOutput, ExecRequest, SessionContainers, SessionKey, WorkspaceAccess,
    },
};
use tempfile::TempDir;
use tokio::{runtime::Runtime, time::sleep};

use crate::setup::{BUSYBOX, Setup, in_process};

/// A sandbox with directories of its own, so that what other tests leave is not seen as its own.
struct World {
    setup: Setup,
    sandbox: Sandbox,
    workspace: TempDir,
    directories: TempDir,
    notices: Arc<Mutex<Vec<Notice>>>,
    runtime: Runtime,
}

impl World {
    fn of(setup: Setup) -> Self {
        let directories = tempfile::tempdir().unwrap();
        let notices: Arc<Mutex<Vec<Notice>>> = Arc::default();
        let heard = Arc::clone(&notices);
        let mut config = SandboxConfig {
            engine: EngineChoice::Kind(match setup {
                Setup::Podman | Setup::Rootless => EngineKind::Podman,
                Setup::Docker => EngineKind::Docker,
            }),
            pull: Pull::Never,
            on_notice: Some(Arc::new(move |notice| {
                heard.lock().unwrap().push(notice.clone());
            })),
            ..SandboxConfig::default()
        };
        config.directories.runtime = directories.path().join("run");
        let sandbox = Sandbox::new(config);
        let runtime = Runtime::new().unwrap();
        runtime.block_on(sandbox.startup()).unwrap();
        Self {
            setup,
            sandbox,
            workspace: tempfile::tempdir().unwrap(),
            directories,
            notices,
            runtime,
        }
    }

    /// Shows a claim, and that nothing is left when everything is stopped.
    fn show(&self, claim: impl AsyncFnOnce(&Self)) {
        self.runtime.block_on(async {
            claim(self).await;
            self.sandbox.shutdown().await;
        });
        assert_eq!(self.places(), Vec::<String>::new());
    }

    fn containers(&self) -> SessionContainers {
        self.containers_of(self.spec(), None)
    }

    fn containers_of(&self, spec: CommandSpec, idle: Option<Duration>) -> SessionContainers {
        SessionContainers::new(&self.sandbox, spec, idle).unwrap()
    }

    fn spec(&self) -> CommandSpec {
        self.agent(WorkspaceAccess::ReadWrite).session_spec(BUSYBOX)
    }

    fn agent(&self, workspace_access: WorkspaceAccess) -> AgentSandbox {
        AgentSandbox {
            workspace_access,
            workspace: self.workspace.path().to_owned(),
            env: vec![("SHARED".to_owned(), "by all".to_owned())],
            ..AgentSandbox::new("an agent", "")
        }
    }

    /// The directories of containers that are there; each has its container's name.
    fn places(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directories.path().join("run")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("cordon-")).collect()
    }

    /// What the engine has of this world.
    fn engine_has(&self) -> Vec<String> {
        let listed = self.setup.ask(&["ps", "--all", "--format", "{{.Names}}"]);
        let places = self.places();
        let ours = |name: &&str| places.iter().any(|place| place == name);
        listed.lines().filter(ours).map(str::to_owned).collect()
    }

    fn restarts(&self) -> usize {
        let notices = self.notices.lock().unwrap();
        let restart = |notice: &&Notice| matches!(notice, Notice::SessionRestarted { .. });
        notices.iter().filter(restart).count()
    }
}

fn key(session: &str) -> SessionKey {
    SessionKey {
        agent: "an agent".to_owned(),
        session: session.to_owned(),
    }
}

fn text(output: &ExecOutput) -> (i32, &str, &str) {
    let text = |bytes| std::str::from_utf8(bytes).unwrap();
    (output.exit_code, text(&output.stdout), text(&output.stderr))
}

async fn shell(containers: &SessionContainers, line: &str) -> ExecOutput {
    let request = ExecRequest::shell(line);
    containers.exec(&key("one"), &request).await.unwrap()
}

async fn until(mut holds: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !holds().await {
            sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), wait)
        .await
        .unwrap();
}

in_process! {
    async fn a_hundred_commands_use_one_container(world) {
        let containers = world.containers();
        for number in 0..100 {
            let output = shell(&containers, &format!("echo {number} >> count; wc -l < count")).await;
            assert_eq!(text(&output), (0, format!("{}\n", number + 1).as_str(), ""));
            assert_eq!(world.places().len(), 1);
        }
        assert_eq!(world.engine_has().len(), 1);
        assert!(containers.stop(&key("one")).await);
        assert!(!containers.stop(&key("one")).await);
        assert_eq!(world.places(), Vec::<String>::new());
    }

    async fn each_command_has_its_own_environment_directory_and_input(world) {
        let containers = world.containers();
        fs::create_dir(world.workspace.path().join("below")).unwrap();
        let request = ExecRequest {
            env: vec![("OWN".to_owned(), "once".to_owned())],
            cwd: Some("below".into()),
            stdin: b"given".to_vec(),
            ..ExecRequest::shell("cat; echo \" $SHARED $OWN $PWD\"; echo complaint >&2; exit 3")
        };
        let output = containers.exec(&key("one"), &request).await.unwrap();
        assert_eq!(text(&output), (3, "given by all once /workspace/below\n", "complaint\n"));
        let output = shell(&containers, "echo \"$SHARED $OWN $PWD\"; env; cat").await;
        let (code, said, _) = text(&output);
        assert_eq!(code, 0);
        assert!(said.starts_with("by all  /workspace\n"), "{said}");
        assert!(!said.contains("OWN=") && said.contains("IS_SANDBOX=1"), "{said}");
        for cwd in ["..", "/etc", "missing", "below/../.."] {
            let request = ExecRequest { cwd: Some(cwd.into()), ..ExecRequest::argv(["true"]) };
            let refused = containers.exec(&key("one"), &request).await;
            assert!(matches!(refused, Err(SandboxError::Cwd { .. })), "{cwd}: {refused:?}");
        }
    }

    async fn what_cannot_be_started_is_told_as_a_shell_does(world) {
        let containers = world.containers();
        let run = async |program: &str| containers.exec(&key("one"), &ExecRequest::argv([program])).await.unwrap();
        assert_eq!(run("/no/such").await.exit_code, 127);
        assert_eq!(run("/etc/passwd").await.exit_code, 126);
        assert_eq!(shell(&containers, "kill -9 $$").await.exit_code, 137);
        let nothing = containers.exec(&key("one"), &ExecRequest::argv([""; 0])).await;
        assert!(matches!(nothing, Err(SandboxError::NoCommand)));
    }

    async fn a_command_whose_time_is_up_is_124_and_the_others_go_on(world) {
        let containers = world.containers();
        let (fast, slow) = (key("one"), ExecRequest {
            timeout: Some(Duration::from_secs(1)),
            ..ExecRequest::shell("trap '' TERM; echo early; setsid sleep 300 & while :; do sleep 0.1; done")
        });
        let (stubborn, other) = tokio::join!(
            containers.exec(&fast, &slow),
            shell(&containers, "sleep 4; echo done"),
        );
        let stubborn = stubborn.unwrap();
        assert!(stubborn.timed_out);
        assert_eq!(text(&stubborn), (124, "early\n", ""));
        assert_eq!(text(&other), (0, "done\n", ""));
        let left = shell(&containers, "ps -o args | grep -c '[s]leep 300'").await;
        assert_eq!(text(&left).1, "0\n");
        assert_eq!(world.places().len(), 1);
    }

    async fn output_is_cut_while_it_streams_and_what_stays_behind_holds_nobody_up(world) {
        let containers = world.containers();
        let request = ExecRequest {
            output_limit: 1000,
            ..ExecRequest::shell("yes | head -c 3000000; sleep 300 & exit 5")
        };
        let output = containers.exec(&key("one"), &request).await.unwrap();
        assert_eq!(output.exit_code, 5);
        assert!(output.truncated && output.stdout.len() < 1100);
        let whole = shell(&containers, "yes | head -c 3000000").await;
        assert_eq!((whole.stdout.len(), whole.truncated), (3_000_000, false));
        let left = shell(&containers, "ps -o args | grep -c '[s]leep 300'").await;
        assert_eq!(text(&left).1, "1\n", "a session's servers stay");
    }

    async fn two_commands_on_a_new_session_start_one_container(world) {
        let containers = world.containers();
        let both = tokio::join!(
            shell(&containers, "cat /proc/sys/kernel/random/boot_id >/dev/null; sleep 1; echo a"),
            shell(&containers, "sleep 1; echo b"),
        );
        assert_eq!((text(&both.0).1, text(&both.1).1), ("a\n", "b\n"));
        assert_eq!(world.places().len(), 1);
    }

    async fn sessions_are_apart_whatever_they_are_called(world) {
        let containers = world.containers();
        let long = "x".repeat(300);
        let texts = ["", "../..", "\"'`$(id)", "日本 ü", "a\nb", &long];
        for (number, session) in texts.iter().enumerate() {
            let request = ExecRequest::shell(format!("echo {number} > /tmp/mine"));
            let key = SessionKey { agent: (*session).to_owned(), session: (*session).to_owned() };
            assert_eq!(containers.exec(&key, &request).await.unwrap().exit_code, 0);
        }
        assert_eq!(world.engine_has().len(), texts.len());
        for (number, session) in texts.iter().enumerate() {
            let key = SessionKey { agent: (*session).to_owned(), session: (*session).to_owned() };
            let output = containers.exec(&key, &ExecRequest::shell("cat /tmp/mine")).await.unwrap();
            assert_eq!(text(&output).1, format!("{number}\n"));
        }
        containers.stop_all().await;
        assert_eq!(world.places(), Vec::<String>::new());
    }

    async fn a_container_killed_behind_our_back_is_started_anew_and_that_is_said(world) {
        let containers = world.containers();
        assert_eq!(shell(&containers, "echo here > /tmp/mark; echo kept > mark").await.exit_code, 0);
        let name = world.places().remove(0);
        world.setup.ask(&["rm", "--force", &name]);
        let output = shell(&containers, "cat /tmp/mark mark").await;
        assert_eq!(text(&output).1, "kept\n");
        assert_eq!(world.restarts(), 1);
        until(async || world.places().len() == 1).await;
        assert!(!world.places().contains(&name));
        assert_eq!(shell(&containers, "true").await.exit_code, 0);
        assert_eq!(world.restarts(), 1);
    }

    async fn a_command_whose_container_is_killed_is_an_error_and_is_not_run_again(world) {
        let containers = world.containers();
        let running = shell(&containers, "true").await;
        assert_eq!(running.exit_code, 0);
        let kill = async {
            until(async || world.workspace.path().join("runs").exists()).await;
            world.setup.ask(&["kill", &world.places()[0]]);
        };
        let request = ExecRequest::shell("echo x >> runs; sleep 300");
        let key = key("one");
        let (lost, ()) = tokio::join!(containers.exec(&key, &request), kill);
        assert!(matches!(lost, Err(SandboxError::SessionLost)), "{lost:?}");
        assert_eq!(fs::read_to_string(world.workspace.path().join("runs")).unwrap(), "x\n");
    }

    async fn an_idle_container_ends_and_the_next_command_starts_another(world) {
        let containers = world.containers_of(world.spec(), Some(Duration::from_secs(2)));
        assert_eq!(shell(&containers, "sleep 4; touch /tmp/mark").await.exit_code, 0);
        assert!(containers.state(&key("one")).await.is_some());
        containers.ended(&key("one")).await;
        assert_eq!(world.places(), Vec::<String>::new());
        assert!(containers.state(&key("one")).await.is_none());
        assert_eq!(shell(&containers, "test -e /tmp/mark").await.exit_code, 1);
        assert_eq!(world.restarts(), 0);
    }

    async fn a_session_that_is_stopped_asks_its_commands_first(world) {
        let containers = world.containers();
        let line = "trap 'echo bye; exit 9' TERM; touch up; while :; do sleep 0.1; done";
        let stop = async {
            until(async || world.workspace.path().join("up").exists()).await;
            assert!(containers.stop(&key("one")).await);
            assert_eq!(world.places(), Vec::<String>::new());
        };
        let (output, ()) = tokio::join!(shell(&containers, line), stop);
        let (code, said, _) = text(&output);
        assert_eq!((code, said), (9, "bye\n"));
    }

    async fn a_command_that_nobody_waits_for_is_killed(world) {
        let containers = world.containers();
        tokio::select! {
            output = shell(&containers, "touch up; sleep 300") => assert_eq!(output, ExecOutput::default()),
            () = until(async || world.workspace.path().join("up").exists()) => {}
        }
        until(async || text(&shell(&containers, "ps -o args | grep -c '[s]leep 300'").await).1 == "0\n").await;
    }

    async fn want_of_memory_ends_one_command_and_not_the_session(world) {
        let mut spec = world.spec();
        spec.limits.memory = Some("64m".parse().unwrap());
        let containers = world.containers_of(spec, None);
        let mut greedy = containers.begin(&key("one"), &ExecRequest::argv(["tail", "/dev/zero"])).await.unwrap();
        let end = greedy.ended().await.unwrap();
        assert_eq!((end.exit_code, end.out_of_memory), (137, true));
        let mut modest = containers.begin(&key("one"), &ExecRequest::argv(["true"])).await.unwrap();
        let end = modest.ended().await.unwrap();
        assert_eq!((end.exit_code, end.out_of_memory), (0, false));
        assert_eq!(world.restarts(), 0);
    }

    async fn a_fork_bomb_ends_with_its_command_and_the_session_goes_on(world) {
        let mut spec = world.spec();
        spec.limits.pids = Some("60".parse().unwrap());
        let containers = world.containers_of(spec, None);
        // Soon no shell can start another process; this one starts the first and becomes the sleep.
        let request = ExecRequest {
            timeout: Some(Duration::from_secs(2)),
            ..ExecRequest::shell("bomb() { bomb | bomb & }; (bomb) & exec sleep 300")
        };
        let output = containers.exec(&key("one"), &request).await.unwrap();
        assert_eq!(output.exit_code, 124);
        until(async || text(&shell(&containers, "ps -o args | grep -c '[b]omb'").await).1 == "0\n").await;
        assert_eq!(world.restarts(), 0);
    }

    async fn dropped_containers_end(world) {
        let containers = world.containers();
        assert_eq!(shell(&containers, "true").await.exit_code, 0);
        let name = world.places().remove(0);
        drop(containers);
        until(async || world.places().is_empty()).await;
        until(async || !world.setup.ask(&["ps", "--all", "--format", "{{.Names}}"]).contains(&name)).await;
    }

    async fn the_workspace_is_seen_as_its_access_says(world) {
        fs::write(world.workspace.path().join("file"), "content\n").unwrap();
        let line = "cat file; touch written; touch .cordon/written; test -e written && echo wrote";
        for (access, said) in [
            (WorkspaceAccess::None, ""),
            (WorkspaceAccess::ReadOnly, "content\n"),
            (WorkspaceAccess::ReadWrite, "content\nwrote\n"),
        ] {
            let spec = world.agent(access).session_spec(BUSYBOX);
            let containers = world.containers_of(spec, None);
            assert_eq!(text(&shell(&containers, line).await).1, said, "{access:?}");
            let written = world.workspace.path().join("written").exists();
            assert_eq!(written, access == WorkspaceAccess::ReadWrite);
            containers.stop_all().await;
        }
        assert!(!world.workspace.path().join(".cordon").exists());
    }
}
