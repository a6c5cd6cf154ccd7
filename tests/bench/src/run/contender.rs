//! The processes of a run: each pinned to a core, each ended with its owner.

use std::{
    env,
    io::{BufRead, BufReader},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{self, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

use super::proc_file;
use crate::load::Report;

/// The proxy under test has one core, the client and the upstream share the other.
const PROXY_CORE: &str = "0";
const OTHER_CORE: &str = "1";

/// The upstream.
pub(super) struct Origin {
    _child: Child,
    port: u16,
    names: u16,
}

impl Origin {
    pub(super) fn start(directory: &Path) -> Result<Self> {
        let mut command = own(OTHER_CORE)?;
        command.arg("origin").arg(directory);
        let mut child = Child::start(command)?;
        let line = child.line()?;
        let (port, names) = line.split_once(' ').context("the origin tells two ports")?;
        Ok(Self {
            port: port.parse()?,
            names: names.parse()?,
            _child: child,
        })
    }
}

/// A way to the upstream.
pub(super) struct Contender {
    pub(super) name: &'static str,
    child: Option<Child>,
    port: u16,
    root: PathBuf,
}

impl Contender {
    /// No proxy at all.
    pub(super) fn direct(origin: &Origin, directory: &Path) -> Self {
        Self {
            name: "direct",
            child: None,
            port: origin.port,
            root: directory.join("origin.pem"),
        }
    }

    /// Cordon's proxy.
    pub(super) fn cordon(origin: &Origin, directory: &Path) -> Result<Self> {
        Self::own_proxy(origin, directory, "cordon")
    }

    /// Cordon's proxy with a secret in scope, so that it scrubs what comes back.
    pub(super) fn with_secrets(origin: &Origin, directory: &Path) -> Result<Self> {
        Self::own_proxy(origin, directory, "secrets")
    }

    fn own_proxy(origin: &Origin, directory: &Path, name: &'static str) -> Result<Self> {
        let mut command = own(PROXY_CORE)?;
        command.arg("proxy").arg(directory);
        command.args([
            origin.port.to_string(),
            origin.names.to_string(),
            name.to_owned(),
        ]);
        let mut child = Child::start(command)?;
        let port = child.line()?.parse()?;
        Ok(Self {
            name,
            child: Some(child),
            port,
            root: directory.join(format!("{name}.pem")),
        })
    }

    /// mitmproxy with an add-on that checks the host and writes a line for each request, as Cordon
    /// does. It verifies the upstream too.
    pub(super) fn mitmproxy(
        origin: &Origin,
        directory: &Path,
        mitmdump: &Path,
        addon: &Path,
    ) -> Result<Self> {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?
            .local_addr()?
            .port();
        let state = directory.join("mitmproxy");
        let mut command = pinned(PROXY_CORE, mitmdump);
        command.args(["--quiet", "--listen-host", "127.0.0.1"]);
        command.args(["--listen-port", &port.to_string()]);
        command.args([
            "--mode",
            &format!("reverse:https://127.0.0.1:{}", origin.port),
        ]);
        command.arg("--scripts").arg(addon);
        for setting in [
            format!("confdir={}", state.display()),
            format!(
                "ssl_verify_upstream_trusted_ca={}",
                directory.join("origin.pem").display()
            ),
            "keep_host_header=true".to_owned(),
            "connection_strategy=lazy".to_owned(),
            "upstream_cert=false".to_owned(),
        ] {
            command.args(["--set", &setting]);
        }
        command.env("BENCH_LOG", directory.join("mitmproxy-requests"));
        let child = Child::start(command)?;
        let root = state.join("mitmproxy-ca-cert.pem");
        wait_for(port, &root)?;
        Ok(Self {
            name: "mitmproxy",
            child: Some(child),
            port,
            root,
        })
    }

    /// Runs one load to its end.
    pub(super) fn load(&self, origin: &Origin, kind: &str, amount: u64) -> Result<Report> {
        let mut child = self.spawn_load(origin, kind, amount)?;
        let line = child
            .line()
            .with_context(|| format!("load {kind} on {}", self.name))?;
        Ok(serde_json::from_str(&line)?)
    }

    pub(super) fn spawn_load(&self, origin: &Origin, kind: &str, amount: u64) -> Result<Child> {
        let mut command = own(OTHER_CORE)?;
        command.args([
            "load",
            kind,
            &self.port.to_string(),
            &origin.port.to_string(),
        ]);
        command.arg(&self.root).arg(amount.to_string());
        Child::start(command)
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(|child| child.process.id())
    }

    /// Resident memory in MiB.
    pub(super) fn memory(&self) -> Result<Option<f64>> {
        let Some(pid) = self.pid() else {
            return Ok(None);
        };
        let status = proc_file(&format!("{pid}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let size = line
            .and_then(|line| line.trim().strip_suffix(" kB"))
            .context("VmRSS")?;
        Ok(Some(size.parse::<f64>()? / 1024.0))
    }
}

/// Waits until the port is served and the certificate is there.
fn wait_for(port: u16, root: &Path) -> Result<()> {
    let start = Instant::now();
    while !root.exists() || TcpStream::connect(("127.0.0.1", port)).is_err() {
        ensure!(start.elapsed() < PATIENCE, "mitmproxy does not serve");
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// A process that ends with this value.
pub(super) struct Child {
    process: process::Child,
    lines: BufReader<process::ChildStdout>,
}

impl Child {
    fn start(mut command: Command) -> Result<Self> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{command:?}"))?;
        let stdout = process.stdout.take().context("stdout is a pipe")?;
        Ok(Self {
            process,
            lines: BufReader::new(stdout),
        })
    }

    /// The next line that it prints.
    pub(super) fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        ensure!(line.ends_with('\n'), "a process ended without its line");
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn own(core: &str) -> Result<Command> {
    Ok(pinned(core, &env::current_exe()?))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a benchmark drives real programs"
)]
fn pinned(core: &str, program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", core]).arg(program);
    command
}

/// Time used on the proxy's core, in microseconds, by the proxy and by everybody.
pub(super) struct Cpu {
    own: f64,
    all: f64,
}

/// The time between two moments, in microseconds, and the share of others in microseconds.
pub(super) struct Used {
    pub(super) own: f64,
    pub(super) others: f64,
}

impl Cpu {
    pub(super) fn now(pid: Option<u32>) -> Result<Self> {
        let own = match pid {
            None => 0.0,
            Some(pid) => {
                let stat = proc_file(&format!("{pid}/stat"))?;
                let (_, fields) = stat.rsplit_once(") ").context("stat")?;
                // utime and stime; the first field after the name is the third of all.
                sum(fields.split(' ').skip(11).take(2))?
            }
        };
        let stat = proc_file("stat")?;
        let core = stat
            .lines()
            .find_map(|line| line.strip_prefix("cpu0 "))
            .context("cpu0")?;
        let fields: Vec<&str> = core.split(' ').collect();
        // user, nice, system; interrupts are charged to whoever was running.
        Ok(Self {
            own,
            all: sum(fields.into_iter().take(3))?,
        })
    }

    pub(super) fn since(&self, before: &Self) -> Used {
        let own = self.own - before.own;
        let others = (self.all - before.all - own).max(0.0);
        Used { own, others }
    }
}

fn sum<'a>(ticks: impl Iterator<Item = &'a str>) -> Result<f64> {
    let mut sum = 0.0;
    for tick in ticks {
        sum += tick.parse::<f64>()? * MICROSECONDS_PER_TICK;
    }
    Ok(sum)
}

/// Linux counts in hundredths of a second, whatever the kernel's own clock.
const MICROSECONDS_PER_TICK: f64 = 10_000.0;

/// Python takes a while to load.
const PATIENCE: Duration = Duration::from_secs(60);
