//! The verbs of a container's life beyond its first run.

use std::{ffi::OsString, process::ExitStatus, process::Stdio, time::Duration};

use serde::Deserialize;
use tokio::process::Child;

use crate::{
    ContainerSpec, Engine, Error, Kind, Terminal,
    process::{Output, Streams},
};

/// A container that exists, by its id or name.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Container(pub String);

/// What a container is doing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ContainerState {
    /// It runs.
    pub running: bool,
    /// Its first process, as the engine's machine counts them.
    pub pid: Option<u32>,
    /// Its exit status once it ran.
    pub exit_code: i32,
    /// The kernel killed it for want of memory.
    pub oom_killed: bool,
}

/// A container in a listing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Listed {
    /// Its id.
    pub container: Container,
    /// The value of the label that was asked for.
    pub label: String,
}

/// A command to be run in a container that runs already.
#[derive(Clone, Debug, Default)]
pub struct ExecSpec {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Variables; their values never stand in an argument list.
    pub environment: Vec<(String, String)>,
    /// The working directory.
    pub workdir: Option<String>,
    /// `UID[:GID]` or a name of the image.
    pub user: Option<String>,
    /// Whether standard input and a terminal are attached.
    pub terminal: Terminal,
}

impl Engine {
    /// Creates a container without starting it.
    ///
    /// # Errors
    ///
    /// When the engine refuses.
    pub async fn create(&self, spec: &ContainerSpec) -> Result<Container, Error> {
        let output = self.container_call("create", spec)?.output(b"").await?;
        if !output.status.success() {
            return Err(self.refusal(&spec.image, output.status, &output.stderr));
        }
        Ok(Container(text(&output).trim().to_owned()))
    }

    /// Starts a container that was created.
    ///
    /// # Errors
    ///
    /// When the engine refuses.
    pub async fn start(&self, container: &Container) -> Result<(), Error> {
        self.call(&["start"])
            .args([&container.0])
            .success(b"")
            .await?;
        Ok(())
    }

    /// Starts a container that was created, with its streams attached to the returned client.
    ///
    /// # Errors
    ///
    /// When the client cannot be started.
    pub fn attach(&self, container: &Container, streams: Streams) -> Result<Child, Error> {
        self.call(&["start"])
            .args(["--attach", "--interactive", &container.0])
            .spawn(streams)
    }

    /// Runs a command in a container that runs, and returns the client at once.
    ///
    /// # Errors
    ///
    /// When the client cannot be started, or a variable cannot be handed over.
    pub fn exec(
        &self,
        container: &Container,
        spec: &ExecSpec,
        streams: Streams,
    ) -> Result<Child, Error> {
        let mut call = self.call(&["exec"]);
        match spec.terminal {
            Terminal::None => {}
            Terminal::Input => call = call.args(["--interactive"]),
            Terminal::Full => call = call.args(["--interactive", "--tty"]),
        }
        if let Some(directory) = &spec.workdir {
            call = call.args(["--workdir", directory]);
        }
        if let Some(user) = &spec.user {
            call = call.args(["--user", user]);
        }
        for (name, value) in &spec.environment {
            if crate::process::is_of_the_client(name) {
                return Err(Error::Variable { name: name.clone() });
            }
            call = call.args(["--env", name]).env(name, value);
        }
        call.args([&container.0]).args(&spec.command).spawn(streams)
    }

    /// Waits until a container has ended, and returns its exit code.
    ///
    /// # Errors
    ///
    /// When there is no such container, or it does not end within `limit`.
    pub async fn wait(&self, container: &Container, limit: Duration) -> Result<i32, Error> {
        let output = self
            .call(&["wait"])
            .args([&container.0])
            .limit(limit)
            .success(b"")
            .await?;
        Ok(text(&output).trim().parse().unwrap_or_default())
    }

    /// Sends a signal to a container's first process.
    ///
    /// # Errors
    ///
    /// When the engine refuses, for one because the container does not run.
    pub async fn kill(&self, container: &Container, signal: &str) -> Result<(), Error> {
        self.call(&["kill"])
            .args(["--signal", signal, &container.0])
            .success(b"")
            .await?;
        Ok(())
    }

    /// Removes a container, whatever it is doing. One that is gone already is no error.
    ///
    /// # Errors
    ///
    /// When the engine refuses.
    pub async fn remove(&self, container: &Container) -> Result<(), Error> {
        let mut call = self.call(&["rm"]).args(["--force", "--volumes"]);
        if self.kind() == Kind::Podman {
            call = call.args(["--ignore", "--time", "0"]);
        }
        match call.args([&container.0]).success(b"").await {
            Err(Error::Rejected { stderr, .. }) if is_gone(&stderr) => Ok(()),
            other => other.map(drop),
        }
    }

    /// What a container is doing; `None` when there is no such container.
    ///
    /// # Errors
    ///
    /// When the engine refuses, or answers something that cannot be read.
    pub async fn inspect(&self, container: &Container) -> Result<Option<ContainerState>, Error> {
        let call = self.call(&["container", "inspect"]).args([
            "--format",
            "{{json .State}}",
            &container.0,
        ]);
        let verb = call.verb().to_owned();
        let output = match call.success(b"").await {
            Ok(output) => output,
            Err(Error::Rejected { stderr, .. }) if is_gone(&stderr) => return Ok(None),
            Err(error) => return Err(error),
        };
        let state: State = serde_json::from_slice(&output.stdout)
            .map_err(|source| Error::Unreadable { verb, source })?;
        Ok(Some(ContainerState {
            running: state.running,
            pid: (state.pid > 0).then_some(state.pid),
            exit_code: state.exit_code,
            oom_killed: state.oom_killed,
        }))
    }

    /// Every container, running or not, that has the label.
    ///
    /// # Errors
    ///
    /// When the engine refuses.
    pub async fn list(&self, label: &str) -> Result<Vec<Listed>, Error> {
        let format = match self.kind() {
            Kind::Podman => format!("{{{{.ID}}}}\t{{{{index .Labels \"{label}\"}}}}"),
            Kind::Docker => format!("{{{{.ID}}}}\t{{{{.Label \"{label}\"}}}}"),
        };
        let filter = format!("label={label}");
        let options = [
            "--all",
            "--no-trunc",
            "--filter",
            &filter,
            "--format",
            &format,
        ];
        let lines = self.listing(&["ps"], &options).await?;
        let listed = lines.iter().filter_map(|line| {
            let (id, label) = line.split_once('\t')?;
            Some(Listed {
                container: Container(id.to_owned()),
                label: label.to_owned(),
            })
        });
        Ok(listed.collect())
    }

    /// The end of what a container wrote, where the engine kept it.
    ///
    /// # Errors
    ///
    /// When the engine refuses.
    pub async fn logs(&self, container: &Container, lines: u32) -> Result<String, Error> {
        let output = self
            .call(&["logs"])
            .args(["--tail", &lines.to_string(), &container.0])
            .success(b"")
            .await?;
        Ok(text(&output) + &output.stderr)
    }
}

impl Streams {
    /// All three streams are the caller's own.
    #[must_use]
    pub fn inherited() -> Self {
        Self {
            stdin: Stdio::inherit(),
            stdout: Stdio::inherit(),
            stderr: Stdio::inherit(),
        }
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn is_gone(stderr: &str) -> bool {
    let lower = stderr.to_lowercase();
    lower.contains("no such container")
        || lower.contains("no container with")
        || lower.contains("does not exist in database")
        || lower.contains("removal of container") && lower.contains("already in progress")
}

/// The exit code that a shell would give this status.
#[must_use]
pub fn shell_code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(SETUP_FAILED)
}

/// What engines themselves exit with when a container could not be started.
const SETUP_FAILED: i32 = 125;

#[derive(Deserialize)]
struct State {
    #[serde(rename = "Running", default)]
    running: bool,
    #[serde(rename = "Pid", default)]
    pid: u32,
    #[serde(rename = "ExitCode", default)]
    exit_code: i32,
    #[serde(rename = "OOMKilled", default)]
    oom_killed: bool,
}
