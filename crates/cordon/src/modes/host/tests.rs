//! Real commands of a real `/bin/sh`.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use cordon_shell::Reason;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::*;
use crate::Level;

const COMMANDS: &[&str] = &[
    "cat",
    "echo",
    "printf",
    "pwd",
    "sleep",
    "ls",
    "true",
    "exit",
    "wait",
    "sh!",
    "head",
    "id",
    "yes",
    "cd",
    "./tool",
    "planted",
    "nowhere-to-be-found",
    "python3",
];

#[tokio::test]
async fn an_allowed_line_runs_in_the_workspace() {
    let host = Host::new();
    let output = host
        .shell("pwd; echo out; echo err >&2; exit 3")
        .await
        .unwrap();
    let workspace = fs::canonicalize(host.workspace()).unwrap();
    assert_eq!(
        text(&output.stdout),
        format!("{}\nout\n", workspace.display())
    );
    assert_eq!(text(&output.stderr), "err\n");
    assert_eq!(output.exit_code, 3);
    assert!(!output.timed_out && !output.truncated);
}

#[tokio::test]
async fn input_reaches_the_command_and_redirections_the_workspace() {
    let host = Host::new();
    let mut request = ExecRequest::shell("cat > copy && cat copy <<'EOF' -\nit's $HOME\nEOF");
    request.stdin = b"from outside\n".to_vec();
    let output = host.exec(&request).await.unwrap();
    assert_eq!(text(&output.stdout), "from outside\nit's $HOME\n");
    // Far more than a pipe holds, to a command that does not read.
    request = ExecRequest::argv(["true"]);
    request.stdin = vec![b'x'; 4 << 20];
    assert_eq!(host.exec(&request).await.unwrap().exit_code, 0);
}

#[tokio::test]
async fn a_refused_line_starts_nothing() {
    let host = Host::new();
    let lines = [
        ("touch made", Reason::NotListed),
        ("echo $(touch made)", Reason::Substitution),
        ("true; touch made", Reason::NotListed),
        ("echo x > ../made", Reason::Redirection),
        ("PATH=. planted", Reason::Variable),
        ("python3 -c 'open(\"made\", \"w\")'", Reason::RunsCode),
    ];
    for (line, reason) in lines {
        match host.shell(line).await {
            Err(SandboxError::Refused(refusal)) => assert_eq!(refusal.reason, reason, "{line}"),
            other => panic!("{line}: {other:?}"),
        }
    }
    assert!(!host.workspace().join("made").exists());
    assert_eq!(host.notices.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_argument_list_runs_without_a_shell() {
    let host = Host::new();
    let output = host
        .exec(&ExecRequest::argv(["echo", "$HOME", "$(id)", ";", "*"]))
        .await
        .unwrap();
    assert_eq!(text(&output.stdout), "$HOME $(id) ; *\n");
    let missing = host
        .exec(&ExecRequest::argv(["nowhere-to-be-found"]))
        .await
        .unwrap();
    assert_eq!(
        (missing.exit_code, text(&missing.stderr)),
        (127, "nowhere-to-be-found: not found\n".into())
    );
    for argv in [&["touch", "x"][..], &["/bin/echo"], &[]] {
        let refused = host.exec(&ExecRequest::argv(argv.iter().copied())).await;
        assert!(matches!(refused, Err(SandboxError::Refused(_))), "{argv:?}");
    }
}

#[tokio::test]
async fn every_run_says_that_nothing_is_isolated() {
    let host = Host::new();
    for count in 1..=3 {
        host.shell("true").await.unwrap();
        assert_eq!(host.notices.load(Ordering::SeqCst), count);
    }
    let probe = host.executor.probe();
    assert!(
        probe.ok && probe.message.contains("nothing is isolated"),
        "{probe:?}"
    );
}

#[tokio::test]
async fn without_the_word_of_the_environment_nothing_runs_on_the_host() {
    let host = Host::with(HostUse::Refused);
    let refused = host.shell("true").await.unwrap_err();
    assert!(matches!(refused, SandboxError::HostNotAllowed));
    assert!(refused.hint().unwrap().contains("CORDON_ALLOW_HOST_EXEC=1"));
    let probe = host.executor.probe();
    assert!(!probe.ok);
    assert_eq!(probe.hints[0], "export CORDON_ALLOW_HOST_EXEC=1");
    // Nor does it in any other mode, or with an access that cannot be kept.
    for (mode, access) in [
        (Mode::Auto, WorkspaceAccess::ReadWrite),
        (Mode::Podman, WorkspaceAccess::ReadWrite),
        (Mode::Off, WorkspaceAccess::ReadOnly),
        (Mode::Off, WorkspaceAccess::None),
    ] {
        let mut sandbox = sandbox(host.workspace());
        sandbox.mode = mode;
        sandbox.workspace_access = access;
        assert!(
            HostExecutor::new(sandbox, HostUse::Allowed, None).is_err(),
            "{mode} {access:?}"
        );
    }
}

#[tokio::test]
async fn a_timeout_ends_everything_that_the_command_started() {
    let host = Host::new();
    let mut request =
        ExecRequest::shell("sh -c 'trap \"\" TERM; sleep 4321 & echo $!; wait; sleep 4321'");
    request.timeout = Some(Duration::from_secs(5));
    let output = host.exec(&request).await.unwrap();
    assert!(output.timed_out);
    assert_eq!(output.exit_code, 124);
    assert_gone(&text(&output.stdout));
}

#[tokio::test]
async fn what_a_command_leaves_running_ends_with_it() {
    let host = Host::new();
    let output = host
        .shell("sh -c 'sleep 4321 & echo $!'; sleep 4321 &")
        .await
        .unwrap();
    assert_eq!(output.exit_code, 0);
    assert_gone(&text(&output.stdout));
}

#[tokio::test]
async fn a_run_that_is_given_up_leaves_nothing() {
    let host = Arc::new(Host::new());
    let file = host.workspace().join("pid");
    let run = {
        let host = Arc::clone(&host);
        tokio::spawn(async move { host.shell("sh -c 'echo $$ > pid; exec sleep 4321'").await })
    };
    until(|| fs::read_to_string(&file).is_ok_and(|id| id.ends_with('\n'))).await;
    run.abort();
    assert!(run.await.is_err());
    let id = fs::read_to_string(file).unwrap();
    until(|| !is_running(id.trim())).await;
}

#[tokio::test]
async fn stop_ends_the_commands_of_its_session_only() {
    let host = Arc::new(Host::new());
    assert!(!host.executor.stop(&session("a")).await);
    let start = |name: &'static str| {
        let host = Arc::clone(&host);
        tokio::spawn(async move {
            let line = format!("sh -c 'echo $$ > {name}; exec sleep 4321'");
            host.executor
                .exec(&session(name), &ExecRequest::shell(line))
                .await
        })
    };
    let (a, b) = (start("a"), start("b"));
    for name in ["a", "b"] {
        let file = host.workspace().join(name);
        until(|| fs::read_to_string(&file).is_ok_and(|id| id.ends_with('\n'))).await;
    }
    let id = |name: &str| {
        fs::read_to_string(host.workspace().join(name))
            .unwrap()
            .trim()
            .to_owned()
    };
    assert!(host.executor.stop(&session("a")).await);
    assert!(!is_running(&id("a")));
    let stopped = a.await.unwrap().unwrap();
    assert_eq!((stopped.exit_code, stopped.timed_out), (143, false));
    assert!(is_running(&id("b")) && !b.is_finished());
    assert!(host.executor.stop(&session("b")).await);
    b.await.unwrap().unwrap();
    assert!(!host.executor.stop(&session("b")).await);
}

#[tokio::test]
async fn output_is_bounded_and_cut_at_a_character() {
    let host = Host::new();
    let mut request = ExecRequest::shell("yes ääää | head -c 9000000; yes x | head -c 9000000 >&2");
    let output = host.exec(&request).await.unwrap();
    assert!(output.truncated);
    for kept in [&output.stdout, &output.stderr] {
        assert!(kept.len() < HOST_OUTPUT_LIMIT + 100, "{}", kept.len());
        assert!(text(kept).contains("[output cut after "));
    }
    request = ExecRequest::shell("printf 'äää'");
    request.output_limit = 3;
    let output = host.exec(&request).await.unwrap();
    assert_eq!(text(&output.stdout), "ä\n[output cut after 2 bytes]\n");
}

#[tokio::test]
async fn a_directory_outside_the_workspace_is_refused() {
    let host = Host::new();
    let workspace = host.workspace();
    fs::create_dir(workspace.join("inner")).unwrap();
    symlink("/etc", workspace.join("etc")).unwrap();
    symlink("..", workspace.join("up")).unwrap();
    symlink("inner", workspace.join("link")).unwrap();
    symlink("/proc/self/cwd", workspace.join("magic")).unwrap();
    let mut request = ExecRequest::shell("pwd");
    for cwd in [
        "/",
        "/etc",
        "..",
        "inner/../..",
        "etc",
        "up",
        "magic",
        "inner/../../x",
        "missing",
    ] {
        request.cwd = Some(cwd.into());
        let refused = host.exec(&request).await;
        assert!(
            matches!(refused, Err(SandboxError::Cwd { .. })),
            "{cwd}: {refused:?}"
        );
    }
    let inner = fs::canonicalize(workspace.join("inner")).unwrap();
    for cwd in [
        "inner".into(),
        "link".into(),
        "./inner/.".into(),
        inner.clone(),
    ] {
        request.cwd = Some(cwd);
        let output = host.exec(&request).await.unwrap();
        assert_eq!(text(&output.stdout).trim_end(), inner.to_str().unwrap());
    }
}

#[tokio::test]
async fn a_directory_that_is_swapped_for_a_link_never_leads_out() {
    let host = Host::new();
    let workspace = host.workspace();
    let outside = host.root.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "secret").unwrap();
    fs::create_dir_all(workspace.join("at/deep")).unwrap();
    fs::write(workspace.join("at/deep/plain"), "plain").unwrap();
    symlink(&outside, workspace.join("evil")).unwrap();
    fs::create_dir(outside.join("deep")).unwrap();
    fs::write(outside.join("deep/secret"), "secret").unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let swapping = {
        let done = Arc::clone(&done);
        let (at, evil) = (workspace.join("at"), workspace.join("evil"));
        thread::spawn(move || {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            while !done.load(Ordering::Relaxed) {
                renameat_with(CWD, &at, CWD, &evil, RenameFlags::EXCHANGE).unwrap();
            }
        })
    };
    let (mut tries, mut inside) = (0, 0);
    while tries < 10_000 || (inside == 0 && tries < 1_000_000) {
        tries += 1;
        // Only the resolution is attacked here; a command for each would attack it less often.
        if let Ok(handle) = host.executor.workspace.directory(Some("at/deep".as_ref())) {
            inside += 1;
            let place = format!(
                "/proc/self/fd/{}",
                std::os::fd::AsRawFd::as_raw_fd(&*handle)
            );
            assert!(
                fs::exists(format!("{place}/plain")).unwrap()
                    && !fs::exists(format!("{place}/secret")).unwrap()
            );
        }
    }
    let mut request = ExecRequest::shell("ls");
    request.cwd = Some("at/deep".into());
    for _ in 0..50 {
        if let Ok(output) = host.exec(&request).await {
            assert_eq!(text(&output.stdout), "plain\n");
        }
    }
    done.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
    assert!(inside > 0, "the directory was never there");
}

#[tokio::test]
async fn the_environment_is_clean_and_cannot_change_which_code_runs() {
    let mut host = Host::new();
    host.executor.sandbox.env = vec![
        ("FROM_AGENT".into(), "1".into()),
        ("LANG".into(), "C".into()),
    ];
    let mut request = ExecRequest::shell("sh -c 'export -p'");
    request.env = vec![
        ("OWN".into(), "two words".into()),
        ("FROM_AGENT".into(), "2".into()),
    ];
    let output = text(&host.exec(&request).await.unwrap().stdout);
    let names: Vec<_> = output
        .lines()
        .map(|line| {
            line.trim_start_matches("export ")
                .split('=')
                .next()
                .unwrap()
                .to_owned()
        })
        .collect();
    for name in &names {
        let known = [
            "FROM_AGENT",
            "HOME",
            "LANG",
            "OLDPWD",
            "OWN",
            "PATH",
            "PWD",
            "TERM",
            "USER",
        ];
        assert!(known.contains(&name.as_str()), "{name} in {output}");
    }
    assert!(
        output.contains("FROM_AGENT='2'")
            && output.contains("TERM='dumb'")
            && output.contains("OWN='two words'")
    );
    for name in [
        "PATH",
        "LD_PRELOAD",
        "NODE_OPTIONS",
        "BUN_OPTIONS",
        "DYLD_LIBRARY_PATH",
        "BASH_ENV",
        "GIT_SSH",
    ] {
        request.env = vec![(name.into(), "x".into())];
        let refused = host.exec(&request).await.unwrap_err();
        assert!(matches!(refused, SandboxError::Refused(_)), "{name}");
    }
    for name in ["BASH_FUNC_ls%%", "A=B", "", "1A", "A\0"] {
        request.env = vec![(name.into(), "() { id; }".into())];
        let refused = host.exec(&request).await.unwrap_err();
        assert!(matches!(refused, SandboxError::Variable { .. }), "{name}");
    }
    host.executor.sandbox.env = vec![("LD_PRELOAD".into(), "x".into())];
    assert!(host.shell("true").await.is_err());
}

#[tokio::test]
async fn a_program_in_the_workspace_runs_by_its_listed_path_only() {
    let host = Host::new();
    for name in ["tool", "planted", "echo"] {
        let path = host.workspace().join(name);
        fs::write(&path, "#!/bin/sh\necho from the workspace\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let output = host.shell("./tool").await.unwrap();
    assert_eq!(text(&output.stdout), "from the workspace\n");
    let output = host.exec(&ExecRequest::argv(["./tool"])).await.unwrap();
    assert_eq!(text(&output.stdout), "from the workspace\n");
    for request in [
        ExecRequest::argv(["planted"]),
        ExecRequest::shell("planted"),
    ] {
        assert_eq!(host.exec(&request).await.unwrap().exit_code, 127);
    }
    let output = host
        .exec(&ExecRequest::argv(["echo", "real"]))
        .await
        .unwrap();
    assert_eq!(text(&output.stdout), "real\n");
}

struct Host {
    root: TempDir,
    executor: HostExecutor,
    notices: Arc<AtomicUsize>,
}

impl Host {
    fn new() -> Self {
        Self::with(HostUse::Allowed)
    }

    fn with(use_of_host: HostUse) -> Self {
        let root = tempfile::tempdir().unwrap();
        let workspace = root.path().join("workspace");
        fs::create_dir(&workspace).unwrap();
        let notices = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&notices);
        let on_notice: OnNotice = Arc::new(move |notice| {
            let mode = Mode::Off;
            assert_eq!(*notice, ModeNotice::NothingIsolated { mode }.into());
            assert_eq!(notice.level(), Level::Warning);
            counted.fetch_add(1, Ordering::SeqCst);
        });
        let executor = HostExecutor::new(sandbox(workspace), use_of_host, Some(on_notice)).unwrap();
        Self {
            root,
            executor,
            notices,
        }
    }

    fn workspace(&self) -> PathBuf {
        self.root.path().join("workspace")
    }

    async fn shell(&self, line: &str) -> Result<ExecOutput, SandboxError> {
        self.exec(&ExecRequest::shell(line)).await
    }

    async fn exec(&self, request: &ExecRequest) -> Result<ExecOutput, SandboxError> {
        self.executor.exec(&session("test"), request).await
    }
}

fn sandbox(workspace: PathBuf) -> AgentSandbox {
    AgentSandbox {
        mode: Mode::Off,
        commands: COMMANDS.iter().map(|name| (*name).to_owned()).collect(),
        ..AgentSandbox::new("agent", workspace)
    }
}

fn session(name: &str) -> SessionKey {
    SessionKey {
        agent: "agent".into(),
        session: name.into(),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Of the processes whose numbers were printed none runs.
fn assert_gone(printed: &str) {
    assert!(!printed.trim().is_empty());
    for id in printed.lines() {
        assert!(!is_running(id), "{id} still runs");
    }
}

fn is_running(id: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| state != 'Z')
}

async fn until(condition: impl Fn() -> bool) {
    let limit = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < limit, "it did not come to that");
        sleep(Duration::from_millis(20)).await;
    }
}
