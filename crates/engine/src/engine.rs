//! Finding an engine, and calling it.

use std::{
    fmt,
    path::{Path, PathBuf},
    process::Stdio,
    str::FromStr,
};

use tokio::process::Child;

use crate::{
    ContainerSpec, Error, Facts,
    process::{self, Call, Output, Streams},
};

/// A container engine on this machine, with what is known about it.
#[derive(Clone, Debug)]
pub struct Engine {
    kind: Kind,
    program: PathBuf,
    facts: Facts,
    cache: PathBuf,
    /// The OCI runtime that the caller wants, by name or path.
    wanted: Option<PathBuf>,
}

/// Which engine it is.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Podman, rootful or rootless.
    Podman,
    /// Docker, with a daemon.
    Docker,
}

/// Which engine is wanted.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Choice {
    /// Podman if it works, else Docker.
    #[default]
    Auto,
    /// This one, or none.
    Kind(Kind),
    /// The program at this path, which is an engine of that kind.
    Program(Kind, PathBuf),
}

impl Engine {
    /// Finds the engine that was chosen. What is remembered of it below `cache` is believed; the
    /// engine itself is asked only when nothing is.
    ///
    /// # Errors
    ///
    /// When it is not installed or does not answer; for [`Choice::Auto`], when none does.
    pub async fn find(choice: Choice, cache: &Path) -> Result<Self, Error> {
        match choice {
            Choice::Program(kind, program) => Self::at(kind, program, cache).await,
            Choice::Kind(kind) => {
                let program = process::which(kind.program()).ok_or(Error::Missing { kind })?;
                Self::at(kind, program, cache).await
            }
            Choice::Auto => Self::first(cache).await,
        }
    }

    async fn first(cache: &Path) -> Result<Self, Error> {
        let mut refusal = Error::NoEngine;
        for kind in [Kind::Podman, Kind::Docker] {
            let Some(program) = process::which(kind.program()) else {
                continue;
            };
            match Self::at(kind, program, cache).await {
                Ok(engine) => return Ok(engine),
                Err(error) if matches!(refusal, Error::NoEngine) => refusal = error,
                Err(_) => {}
            }
        }
        Err(refusal)
    }

    async fn at(kind: Kind, program: PathBuf, cache: &Path) -> Result<Self, Error> {
        let facts = match Facts::recall(kind, &program, cache) {
            Some(facts) => facts,
            None => Facts::learn(kind, &program, cache).await?,
        };
        Ok(Self {
            kind,
            program,
            facts,
            cache: cache.to_owned(),
            wanted: None,
        })
    }

    #[cfg(test)]
    pub(crate) fn assumed(kind: Kind, facts: Facts) -> Self {
        Self {
            kind,
            program: kind.program().into(),
            facts,
            cache: PathBuf::new(),
            wanted: None,
        }
    }

    /// Asks the engine again and replaces what was remembered.
    ///
    /// # Errors
    ///
    /// When it no longer answers.
    pub async fn refresh(&mut self) -> Result<(), Error> {
        self.facts = Facts::learn(self.kind, &self.program, &self.cache).await?;
        Ok(())
    }

    /// Which engine it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The program that is called.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// What is known about it.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Starts containers with that OCI runtime, by name or path, and no other.
    #[must_use]
    pub fn with_runtime(self, runtime: impl Into<PathBuf>) -> Self {
        Self {
            wanted: Some(runtime.into()),
            ..self
        }
    }

    /// Whether containers get a kernel of gVisor's instead of the host's.
    #[must_use]
    pub fn is_gvisor(&self) -> bool {
        let name = match &self.wanted {
            Some(wanted) => wanted.file_name(),
            None => Some(self.facts.default_runtime.as_ref()),
        };
        name.is_some_and(|name| name.to_string_lossy().starts_with("runsc"))
    }

    /// The OCI runtime that the caller wants.
    pub(crate) fn wanted_runtime(&self) -> Option<&Path> {
        self.wanted.as_deref()
    }

    /// Where it keeps images and containers, on the machine that it runs on.
    ///
    /// # Errors
    ///
    /// When it does not answer.
    pub async fn store(&self) -> Result<PathBuf, Error> {
        let format = match self.kind {
            Kind::Podman => "{{.Store.GraphRoot}}",
            Kind::Docker => "{{.DockerRootDir}}",
        };
        let call = self.call(&["info"]).args(["--format", format]);
        let output = call.success(b"").await?;
        let path = String::from_utf8_lossy(&output.stdout);
        Ok(PathBuf::from(path.trim()))
    }

    /// Uses another OCI runtime from now on, and remembers it. For podman only: docker's runtimes are
    /// its daemon's business.
    pub fn use_runtime(&mut self, runtime: PathBuf) {
        self.facts.runtime = Some(runtime);
        self.facts.remember(self.kind, &self.program, &self.cache);
    }

    /// An OCI runtime on the search path to try when the default one cannot start containers.
    #[must_use]
    pub fn other_runtime(&self) -> Option<PathBuf> {
        let settled = self.wanted.is_some() || self.facts.runtime.is_some();
        // The client of a podman in another machine takes no runtime, and those on this one are not there.
        if self.kind != Kind::Podman || settled || !self.facts.local {
            return None;
        }
        ["runc", "crun"]
            .iter()
            .filter(|name| self.facts.default_runtime != **name)
            .find_map(|name| process::which(name))
    }

    /// Starts a container in the foreground and returns the engine's client at once.
    ///
    /// # Errors
    ///
    /// When the client cannot be started, or the spec cannot be written as arguments.
    pub fn spawn(&self, spec: &ContainerSpec, streams: Streams) -> Result<Child, Error> {
        self.container_call("run", spec)?.spawn(streams)
    }

    /// Runs a container in the foreground to its end.
    ///
    /// # Errors
    ///
    /// When the client cannot be started. A container that fails is an [`Output`].
    pub async fn run(&self, spec: &ContainerSpec) -> Result<Output, Error> {
        self.container_call("run", spec)?.output(b"").await
    }

    pub(crate) fn container_call(&self, verb: &str, spec: &ContainerSpec) -> Result<Call, Error> {
        let arguments = spec.arguments(self)?;
        let call = self.call(&[verb]).args(arguments);
        Ok(spec
            .environment
            .iter()
            .fold(call, |call, (name, value)| call.env(name, value)))
    }

    /// Where what is kept between runs lies.
    pub(crate) fn cache(&self) -> &Path {
        &self.cache
    }

    /// A call of this engine, with the options that come before every verb.
    pub(crate) fn call(&self, verb: &[&str]) -> Call {
        let said = format!("{} {}", self.kind, verb.join(" "));
        let call = Call::new(&self.program, &said);
        let runtime = match self.kind {
            Kind::Podman => self.wanted.as_ref().or(self.facts.runtime.as_ref()),
            // Docker takes it with each container.
            Kind::Docker => None,
        };
        match runtime {
            Some(runtime) => call
                .args(["--runtime".as_ref(), runtime.as_os_str()])
                .args(self.gvisor_flags())
                .args(verb),
            None => call.args(verb),
        }
    }

    /// PID 1 must reach the socket that it is kept by. Networks are none of gVisor's business here: a
    /// container under it has none.
    fn gvisor_flags(&self) -> &'static [&'static str] {
        if self.is_gvisor() {
            &[
                "--runtime-flag=host-uds=open",
                "--runtime-flag=network=none",
            ]
        } else {
            &[]
        }
    }

    /// What an unsuccessful run of the client means.
    #[must_use]
    pub fn refusal(&self, image: &str, status: std::process::ExitStatus, stderr: &str) -> Error {
        let stderr = stderr.trim();
        let absent = [
            "image not known",
            "No such image",
            "no such image",
            "Unable to find image",
        ];
        if absent.iter().any(|sign| stderr.contains(sign)) {
            return Error::NoSuchImage {
                kind: self.kind,
                image: image.to_owned(),
            };
        }
        if stderr.contains("Cannot connect to the Docker daemon")
            || stderr.contains("permission denied while trying to connect")
        {
            return Error::NotAnswering {
                kind: self.kind,
                stderr: stderr.to_owned(),
            };
        }
        Error::Rejected {
            verb: format!("{} run", self.kind),
            status,
            stderr: stderr.to_owned(),
        }
    }
}

impl Kind {
    /// The name of its program.
    #[must_use]
    pub fn program(self) -> &'static str {
        match self {
            Self::Podman => "podman",
            Self::Docker => "docker",
        }
    }

    pub(crate) fn package(self) -> &'static str {
        match self {
            Self::Podman => "podman runc uidmap",
            Self::Docker => "docker.io",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.program())
    }
}

/// A name that is no engine's.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not an engine; say podman, docker or auto")]
pub struct UnknownEngine(String);

impl FromStr for Choice {
    type Err = UnknownEngine;

    fn from_str(name: &str) -> Result<Self, UnknownEngine> {
        match name {
            "auto" => Ok(Self::Auto),
            "podman" => Ok(Self::Kind(Kind::Podman)),
            "docker" => Ok(Self::Kind(Kind::Docker)),
            other => Err(UnknownEngine(other.to_owned())),
        }
    }
}

/// Streams that lead nowhere.
impl Default for Streams {
    fn default() -> Self {
        Self {
            stdin: Stdio::null(),
            stdout: Stdio::null(),
            stderr: Stdio::null(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn podman_in_another_machine_keeps_its_own_runtime() {
        let mut facts = Facts::assumed();
        facts.default_runtime = "none of these".into();
        facts.local = false;
        let machine = Engine::assumed(Kind::Podman, facts);
        assert_eq!(machine.other_runtime(), None);
    }
}
