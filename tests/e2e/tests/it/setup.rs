//! The three set-ups, and how the program is run on them.

use std::{
    env,
    ffi::{OsStr, OsString},
    fmt::Debug,
    fs,
    io::Write,
    net::Ipv4Addr,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, OnceLock},
    thread,
    time::{Duration, Instant},
};

use origin::Origin;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const DEBIAN: &str = "localhost/cordon-test-debian:1";
pub(crate) const BUSYBOX: &str = "localhost/cordon-test-busybox:1";
pub(crate) const SCRATCH: &str = "localhost/cordon-test-scratch:1";
pub(crate) const AGENTS: &str = "localhost/cordon-test-agents:1";
pub(crate) const CLIENTS: &str = "localhost/cordon-test-clients:1";

/// Makes three tests of one function: `name::podman`, `name::rootless` and `name::docker`.
macro_rules! on_every_engine {
    ($($(#[$meta:meta])* fn $name:ident($setup:ident) $body:block)*) => {
        $(mod $name {
            use super::*;

            $(#[$meta])*
            fn claim($setup: $crate::setup::Setup) $body

            #[test]
            fn podman() { claim($crate::setup::Setup::Podman); }

            #[test]
            fn rootless() { claim($crate::setup::Setup::Rootless); }

            #[test]
            fn docker() { claim($crate::setup::Setup::Docker); }
        })*
    };
}
pub(crate) use on_every_engine;

/// Makes two tests of one asynchronous function over the module's own `World`: `name::podman` and
/// `name::docker`. (Rootless podman would need this whole process to be the other user's; the command
/// line is tested with it.)
macro_rules! in_process {
    ($(async fn $name:ident($world:ident) $body:block)*) => {
        $(mod $name {
            use super::*;

            async fn claim($world: &World) $body

            #[test]
            fn podman() { World::of($crate::setup::Setup::Podman).show(claim); }

            #[test]
            fn docker() { World::of($crate::setup::Setup::Docker).show(claim); }
        })*
    };
}
pub(crate) use in_process;

/// An engine as somebody uses it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Setup {
    /// Podman as root.
    Podman,
    /// Podman as an ordinary user.
    Rootless,
    /// Docker with its daemon.
    Docker,
}

impl Setup {
    pub(crate) fn engine(self) -> &'static str {
        match self {
            Self::Podman | Self::Rootless => "podman",
            Self::Docker => "docker",
        }
    }

    /// A program as this set-up's user runs it.
    pub(crate) fn command(self, program: impl AsRef<OsStr>) -> Command {
        match self {
            Self::Podman | Self::Docker => Command::new(program),
            Self::Rootless => {
                let mut command = Command::new(root().join("scripts/as-rootless"));
                command.arg(program);
                command
            }
        }
    }

    /// What the engine itself answers.
    pub(crate) fn ask(self, arguments: &[&str]) -> String {
        let ask = || {
            let mut command = self.command(self.engine());
            command.args(arguments).output().unwrap()
        };
        let mut output = ask();
        // A listing may fail because of what another test removes meanwhile.
        for _ in 0..5 {
            if output.status.success() || !matches!(arguments[0], "ps" | "images" | "network") {
                break;
            }
            output = ask();
        }
        assert!(
            output.status.success(),
            "{self:?} {arguments:?}: {output:?}"
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// Every container, running or not, that the process with this id started.
    pub(crate) fn containers_of(self, pid: u32) -> Vec<String> {
        let listed = self.ask(&[
            "ps",
            "--all",
            "--filter",
            "label=cordon.owner",
            "--format",
            "{{.Names}}",
        ]);
        let mark = format!("-{pid}-");
        listed
            .lines()
            .filter(|name| name.contains(&mark))
            .map(str::to_owned)
            .collect()
    }

    /// Where this set-up's user keeps what lives as long as a run.
    pub(crate) fn runtime(self) -> PathBuf {
        let id = |user: &[&str]| {
            let output = Command::new("id").arg("-u").args(user).output().unwrap();
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        match self {
            Self::Rootless => format!("/run/user/{}/cordon", id(&["cordon-test"])).into(),
            Self::Podman | Self::Docker => match env::var_os("XDG_RUNTIME_DIR") {
                Some(directory) => PathBuf::from(directory).join("cordon"),
                None => "/run/cordon".into(),
            },
        }
    }

    /// Everything that the process with this id left: containers and directories.
    pub(crate) fn left_by(self, pid: u32) -> Vec<String> {
        self.left_in(&self.runtime(), pid)
    }

    /// The same, where its directories are elsewhere.
    pub(crate) fn left_in(self, runtime: &Path, pid: u32) -> Vec<String> {
        let mark = format!("-{pid}-");
        let directories = fs::read_dir(runtime).into_iter().flatten().flatten();
        let names = directories.filter_map(|entry| entry.file_name().into_string().ok());
        self.containers_of(pid)
            .into_iter()
            .chain(names.filter(|name| name.contains(&mark)))
            .collect()
    }
}

/// A run of `cordon run` or `cordon agent`, put together step by step.
#[derive(Clone)]
pub(crate) struct Run {
    setup: Setup,
    verb: Vec<OsString>,
    flags: Vec<OsString>,
    command: Vec<OsString>,
    input: Vec<u8>,
    environment: Vec<(String, String)>,
    directory: Arc<TempDir>,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) pid: u32,
}

impl Run {
    /// A run in the busybox image, in an empty directory of its own.
    pub(crate) fn new(setup: Setup) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("cordon-e2e-")
            .tempdir_in("/tmp")
            .unwrap();
        if setup == Setup::Rootless {
            let path = directory.path().to_str().unwrap();
            let done = Command::new("chown")
                .args(["cordon-test:", path])
                .status()
                .unwrap();
            assert!(done.success());
        }
        Self {
            setup,
            verb: vec!["run".into()],
            flags: vec!["--engine".into(), setup.engine().into(), "--no-pull".into()],
            command: Vec::new(),
            input: Vec::new(),
            environment: vec![("CORDON_IMAGE".into(), BUSYBOX.into())],
            directory: Arc::new(directory),
        }
    }

    /// A subcommand that runs nothing, in an empty directory.
    pub(crate) fn plain(setup: Setup, verb: &[&str]) -> Self {
        Self {
            verb: verb.iter().map(OsString::from).collect(),
            flags: Vec::new(),
            ..Self::new(setup)
        }
    }

    /// The same in the same directory, with nothing of its command and flags.
    pub(crate) fn then(&self, verb: &[&str]) -> Self {
        Self {
            verb: verb.iter().map(OsString::from).collect(),
            flags: Vec::new(),
            ..self.clone()
        }
    }

    /// The start of a session in the busybox image, in an empty directory of its own.
    pub(crate) fn session(setup: Setup) -> Self {
        Self {
            verb: vec!["session".into(), "start".into()],
            ..Self::new(setup)
        }
    }

    /// A run of an agent in the image that has all of them, in an empty directory of its own.
    pub(crate) fn agent(setup: Setup, agent: &str) -> Self {
        let run = Self {
            verb: vec!["agent".into(), agent.into()],
            ..Self::new(setup)
        };
        run.image(AGENTS)
    }

    pub(crate) fn image(self, image: &str) -> Self {
        self.flags(["--image", image])
    }

    pub(crate) fn flags<A: AsRef<OsStr>>(mut self, flags: impl IntoIterator<Item = A>) -> Self {
        self.flags
            .extend(flags.into_iter().map(|flag| flag.as_ref().to_owned()));
        self
    }

    /// Sends all traffic to the stand-in for the world, of which `hosts` are allowed.
    pub(crate) fn origin(self, origin: &Origin, hosts: &[&str]) -> Self {
        let mut allowlist = String::from("domains:\n");
        for host in hosts {
            allowlist += &format!("  - {{ host: \"{host}\", private_addresses: true }}\n");
        }
        self.origin_with(origin, if hosts.is_empty() { "" } else { &allowlist })
    }

    /// The same with an allowlist as it stands.
    pub(crate) fn origin_with(self, origin: &Origin, allowlist: &str) -> Self {
        let file = self.path("allowlist.yaml");
        fs::write(&file, allowlist).unwrap();
        let log = self.path("network.log");
        self.flags(["--allowlist".as_ref(), file.as_os_str()])
            .upstream(origin.address(), &origin.authority())
            .flags(["--network-log".as_ref(), log.as_os_str()])
    }

    /// Finds the world outside at that address, and trusts that authority there.
    pub(crate) fn upstream(self, address: Ipv4Addr, authority: &Path) -> Self {
        self.flags(["--upstream-dns", &address.to_string()])
            .flags(["--upstream-ca".as_ref(), authority.as_os_str()])
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    pub(crate) fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    pub(crate) fn sh(self, script: &str) -> Self {
        self.command(["sh", "-c", script])
    }

    pub(crate) fn command<A: AsRef<OsStr>>(mut self, command: impl IntoIterator<Item = A>) -> Self {
        self.command = command
            .into_iter()
            .map(|word| word.as_ref().to_owned())
            .collect();
        self
    }

    /// Adds arguments to the command.
    pub(crate) fn command_with(mut self, arguments: &[&str]) -> Self {
        self.command.extend(arguments.iter().map(OsString::from));
        self
    }

    /// A path in the run's directory, which is its workspace.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn network_log(&self) -> String {
        fs::read_to_string(self.path("network.log")).unwrap_or_default()
    }

    /// The requests in the network log, as it has them for programs.
    pub(crate) fn requests(&self) -> Vec<Value> {
        let log = fs::read_to_string(self.path("network.jsonl")).unwrap_or_default();
        let records = log
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        records
            .filter(|record| record["kind"] == "request")
            .collect()
    }

    /// Starts it, with its output kept for [`Running::end`].
    pub(crate) fn start(&self) -> Running {
        let mut command = self.setup.command(cordon());
        command.args(&self.verb).args(&self.flags);
        if self.verb == ["run"] {
            command.arg("--").args(&self.command);
        }
        command.current_dir(self.directory.path());
        command
            .env_remove("XDG_CACHE_HOME")
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = self.input.clone();
        thread::spawn(move || drop(stdin.write_all(&input)));
        Running {
            child,
            _directory: Arc::clone(&self.directory),
        }
    }

    /// Starts it with a script, and returns once the script runs.
    pub(crate) fn start_script(self, script: &str) -> Running {
        let run = self.sh(&format!("touch ready; {script}"));
        let mut running = run.start();
        let mut ended = false;
        eventually(
            "its command runs or it ends",
            Duration::from_secs(120),
            || {
                ended = running.child.try_wait().unwrap().is_some();
                ended || run.path("ready").exists()
            },
        );
        assert!(!ended || run.path("ready").exists(), "{:?}", running.end());
        running
    }

    /// Runs it to its end.
    pub(crate) fn end(&self) -> Ended {
        self.start().end()
    }

    /// Runs it to its end, which must be a success that leaves nothing.
    pub(crate) fn succeed(&self) -> Ended {
        let ended = self.end();
        assert_eq!(ended.code, 0, "{ended:?}");
        assert_eq!(self.setup.left_by(ended.pid), Vec::<String>::new());
        ended
    }
}

/// A run that is under way.
pub(crate) struct Running {
    pub(crate) child: Child,
    _directory: Arc<TempDir>,
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn end(self) -> Ended {
        let pid = self.pid();
        let output = self.child.wait_with_output().unwrap();
        Ended {
            code: output
                .status
                .code()
                .unwrap_or_else(|| -output.status.signal().unwrap()),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            bytes: output.stdout,
            pid,
        }
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

/// Waits until something holds; it must within the limit.
pub(crate) fn eventually(what: impl Debug, limit: Duration, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < limit, "not within {limit:?}: {what:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Every file below a directory, as one text.
pub(crate) fn read_all(directory: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => text += &read_all(&path),
            Ok(kind) if kind.is_file() => {
                text += &String::from_utf8_lossy(&fs::read(&path).unwrap_or_default())
            }
            _ => {}
        }
    }
    text
}

/// The program under test.
pub(crate) fn cordon() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| match env::var_os("CORDON_BIN") {
        Some(program) => program.into(),
        None => env::current_exe()
            .unwrap()
            .ancestors()
            .nth(2)
            .unwrap()
            .join("cordon"),
    });
    assert!(
        program.exists(),
        "{} is not built; run `make release`",
        program.display()
    );
    program.clone()
}

/// Claude Code on this machine, as `scripts/setup test` installs it.
pub(crate) fn claude_program() -> PathBuf {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.unwrap_or_else(|| env::home_dir().unwrap().join(".cache"));
    let packages = cache.join("cordon-test/agents/node_modules/@anthropic-ai");
    let native = if cfg!(target_arch = "aarch64") {
        "claude-code-linux-arm64/claude"
    } else {
        "claude-code-linux-x64/claude"
    };
    packages.join(native)
}

/// Where the project is.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
}
