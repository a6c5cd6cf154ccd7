//! The one place that starts processes.
//!
//! Every call has a time limit, a clean environment and its standard error kept. Nothing here knows
//! what the programs are for.

use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    io,
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
    time::timeout,
};

use crate::Error;

/// A program with its arguments, ready to be started.
#[derive(Clone, Debug)]
pub struct Call {
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: BTreeMap<OsString, OsString>,
    verb: String,
    limit: Duration,
    directory: Option<Arc<OwnedFd>>,
}

/// What a call came to.
#[derive(Debug)]
pub struct Output {
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to standard output.
    pub stdout: Vec<u8>,
    /// The end of what it wrote to standard error.
    pub stderr: String,
}

/// A started process that leads a group of its own: signals of the caller's terminal pass it by, and what
/// it starts ends with it. Dropped, the whole group is killed.
#[derive(Debug)]
pub struct Group {
    child: Child,
    leader: Option<Pid>,
}

/// How the three streams of a started process are connected.
#[derive(Debug)]
pub struct Streams {
    /// Standard input.
    pub stdin: Stdio,
    /// Standard output.
    pub stdout: Stdio,
    /// Standard error.
    pub stderr: Stdio,
}

impl Call {
    /// A call of `program` that says of itself `verb` in errors, for example `podman run`.
    #[must_use]
    pub fn new(program: &Path, verb: &str) -> Self {
        Self {
            program: program.to_owned(),
            arguments: Vec::new(),
            environment: inherited(),
            verb: verb.to_owned(),
            limit: DEFAULT_LIMIT,
            directory: None,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.arguments.extend(
            arguments
                .into_iter()
                .map(|argument| argument.as_ref().to_owned()),
        );
        self
    }

    /// Sets a variable of the process itself.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment
            .insert(name.as_ref().to_owned(), value.as_ref().to_owned());
        self
    }

    /// Drops every variable that was inherited or set before.
    #[must_use]
    pub fn without_environment(mut self) -> Self {
        self.environment.clear();
        self
    }

    /// Starts the process in the directory that a handle refers to, whatever its name is by then.
    #[must_use]
    pub fn directory(mut self, handle: Arc<OwnedFd>) -> Self {
        self.directory = Some(handle);
        self
    }

    /// Replaces the time limit, which is a minute.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// What the call says of itself in errors.
    #[must_use]
    pub fn verb(&self) -> &str {
        &self.verb
    }

    /// Runs to the end and returns what came out, whatever the exit status.
    ///
    /// # Errors
    ///
    /// When the program cannot be started, or takes longer than its limit; it is killed then.
    pub async fn output(self, input: &[u8]) -> Result<Output, Error> {
        let Self { verb, limit, .. } = self.clone();
        let stdin = if input.is_empty() {
            Stdio::null()
        } else {
            Stdio::piped()
        };
        let streams = Streams {
            stdin,
            stdout: Stdio::piped(),
            stderr: Stdio::piped(),
        };
        let mut child = self.start(streams, KillOnDrop::Yes)?;
        let run = async {
            let (fed, stdout, stderr) = tokio::join!(
                feed(child.stdin.take(), input),
                collect(child.stdout.take(), STDOUT_MAX),
                tail(child.stderr.take(), STDERR_TAIL),
            );
            fed?;
            let status = child.wait().await?;
            Ok(Output {
                status,
                stdout: stdout?,
                stderr: stderr?,
            })
        };
        match timeout(limit, run).await {
            Ok(Ok(output)) => Ok(output),
            Ok(Err(source)) => Err(Error::Lost { verb, source }),
            Err(_) => Err(Error::TimedOut { verb, limit }),
        }
    }

    /// Runs to the end and returns what came out; a status that is not success is an error.
    ///
    /// # Errors
    ///
    /// As [`Call::output`], and [`Error::Rejected`].
    pub async fn success(self, input: &[u8]) -> Result<Output, Error> {
        let verb = self.verb.clone();
        let output = self.output(input).await?;
        if output.status.success() {
            return Ok(output);
        }
        Err(Error::Rejected {
            verb,
            status: output.status,
            stderr: output.stderr.trim().to_owned(),
        })
    }

    /// Starts without waiting. The process outlives the returned handle.
    ///
    /// # Errors
    ///
    /// When the program cannot be started.
    pub fn spawn(self, streams: Streams) -> Result<Child, Error> {
        self.start(streams, KillOnDrop::No)
    }

    /// Starts without waiting, as the leader of a new process group.
    ///
    /// # Errors
    ///
    /// When the program cannot be started.
    pub fn spawn_group(self, streams: Streams) -> Result<Group, Error> {
        let child = self.launch(streams, KillOnDrop::Yes, Some(NEW_GROUP))?;
        let leader = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        Ok(Group { child, leader })
    }

    fn start(self, streams: Streams, kill: KillOnDrop) -> Result<Child, Error> {
        self.launch(streams, kill, None)
    }

    fn launch(
        self,
        streams: Streams,
        kill: KillOnDrop,
        group: Option<i32>,
    ) -> Result<Child, Error> {
        tracing::debug!(program = %self.program.display(), arguments = ?self.arguments, "start");
        #[expect(clippy::disallowed_methods, reason = "this is the one place")]
        let mut command = Command::new(&self.program);
        if let Some(group) = group {
            command.process_group(group);
        }
        if let Some(handle) = &self.directory {
            // The child has the same descriptors until it becomes the program.
            command.current_dir(format!("/proc/self/fd/{}", handle.as_raw_fd()));
        }
        let spawned = command
            .args(&self.arguments)
            .env_clear()
            .envs(&self.environment)
            .stdin(streams.stdin)
            .stdout(streams.stdout)
            .stderr(streams.stderr)
            .kill_on_drop(matches!(kill, KillOnDrop::Yes))
            .spawn();
        spawned.map_err(|source| Error::Spawn {
            program: self.program,
            source,
        })
    }
}

impl Group {
    /// The process itself.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Kills every process of the group.
    pub fn kill(&mut self) {
        if let Some(leader) = self.leader
            && let Err(error) = kill_process_group(leader, Signal::KILL)
        {
            tracing::trace!(%error, "nobody is left in the group");
        }
    }

    /// Waits until the process itself has ended, and kills what it left in its group.
    ///
    /// # Errors
    ///
    /// When the operating system does not say how it ended.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        self.kill();
        // Its number may be somebody else's from now on.
        self.leader = None;
        Ok(status)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Once reaped, its number may be somebody else's.
        if let Ok(None) = self.child.try_wait() {
            self.kill();
        }
    }
}

enum KillOnDrop {
    Yes,
    No,
}

/// The last `limit` bytes of a stream as text, read to its end.
///
/// # Errors
///
/// When reading fails.
pub async fn tail(stream: Option<impl AsyncRead + Unpin>, limit: usize) -> io::Result<String> {
    let Some(mut stream) = stream else {
        return Ok(String::new());
    };
    let mut kept = Vec::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        let size = stream.read(&mut chunk).await?;
        if size == 0 {
            return Ok(String::from_utf8_lossy(&kept).into_owned());
        }
        kept.extend_from_slice(&chunk[..size]);
        if kept.len() > 2 * limit {
            kept.drain(..kept.len() - limit);
        }
    }
}

/// The first program of that name on the search path.
#[must_use]
pub fn which(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|candidate| {
            rustix::fs::access(candidate, rustix::fs::Access::EXEC_OK).is_ok()
                && candidate.is_file()
        })
}

/// The program at a path, or the first of that name on the search path.
#[must_use]
pub fn find(program: &Path) -> Option<PathBuf> {
    match program.to_str() {
        Some(name) if !name.contains('/') => which(name),
        Some(_) | None => program.exists().then(|| program.to_owned()),
    }
}

async fn feed(stdin: Option<tokio::process::ChildStdin>, input: &[u8]) -> io::Result<()> {
    let Some(mut stdin) = stdin else {
        return Ok(());
    };
    match stdin.write_all(input).await {
        // A program that does not read all of its input says why by its status.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

async fn collect(stream: Option<impl AsyncRead + Unpin>, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        stream.take(limit).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

/// What engines need of the caller's environment to find their configuration, and no more: proxies
/// and tokens of the caller's shell stay out of it.
fn inherited() -> BTreeMap<OsString, OsString> {
    env::vars_os()
        .filter(|(name, _)| {
            let name = name.to_string_lossy();
            NAMES.contains(&name.as_ref()) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        })
        .collect()
}

/// Whether a variable of that name changes what an engine's client does.
pub(crate) fn is_of_the_client(name: &str) -> bool {
    const DANGEROUS: &[&str] = &[
        "LD_",
        "GO",
        "SSL_CERT_",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "ALL_PROXY",
    ];
    NAMES.contains(&name)
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || DANGEROUS
            .iter()
            .any(|prefix| name.to_ascii_uppercase().starts_with(prefix))
}

const NAMES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "TERM",
    "TMPDIR",
    "SSH_AUTH_SOCK",
];

const PREFIXES: &[&str] = &[
    "XDG_",
    "DOCKER_",
    "CONTAINER_",
    "CONTAINERS_",
    "BUILDAH_",
    "STORAGE_",
    "PODMAN_",
    "DBUS_",
    "LC_",
];

/// What the operating system takes for "a group with the process's own number".
const NEW_GROUP: i32 = 0;

const DEFAULT_LIMIT: Duration = Duration::from_secs(60);

/// Listings of thousands of containers fit; a program gone mad does not fill our memory.
const STDOUT_MAX: u64 = 64 << 20;

/// Engines say why they failed in their last lines.
const STDERR_TAIL: usize = 8 << 10;

const CHUNK: usize = 8 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell that has started a child, which writes its number and waits.
    async fn family() -> (Group, u32) {
        let streams = Streams {
            stdout: Stdio::piped(),
            ..Streams::default()
        };
        let mut group = Call::new(Path::new("/bin/sh"), "sh")
            .args(["-c", "sleep 600 & echo $!; wait"])
            .spawn_group(streams)
            .unwrap();
        let mut line = [0; 32];
        let mut stdout = group.child().stdout.take().unwrap();
        let size = stdout.read(&mut line).await.unwrap();
        let child = str::from_utf8(&line[..size]).unwrap().trim();
        (group, child.parse().unwrap())
    }

    async fn until_gone(pid: u32) {
        let alive = |pid| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
            stat.is_ok_and(|stat| !stat.contains(") Z "))
        };
        while alive(pid) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn what_a_process_started_is_killed_with_its_group() {
        let (mut group, child) = family().await;
        group.kill();
        assert!(!group.wait().await.unwrap().success());
        until_gone(child).await;
    }

    #[tokio::test]
    async fn a_group_that_is_dropped_is_killed() {
        let (group, child) = family().await;
        drop(group);
        until_gone(child).await;
    }
}
