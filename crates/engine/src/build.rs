//! Builds, and how all of one is put into somebody's network namespace.
//!
//! An engine's own options connect the commands of a build and nothing else: what it fetches itself, base images and
//! `ADD` of a URL, goes past them. So a build that is to be confined runs with its engine inside the namespace. Docker
//! fetches and builds in its daemon, where nobody can put it.

use std::{
    ffi::OsString,
    fs::{self, Permissions},
    io::Write,
    net::Ipv4Addr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use tempfile::NamedTempFile;

use crate::{Engine, Error, Kind, Mount, Network, image::Input, process};

/// A build.
#[derive(Clone, Debug)]
pub struct BuildSpec {
    /// The directory that is sent to the engine.
    pub context: PathBuf,
    /// The file in it that says what to do.
    pub dockerfile: PathBuf,
    /// The name of the result.
    pub tag: String,
    /// Labels of the result.
    pub labels: Vec<(String, String)>,
    /// Layers of earlier builds may be used.
    pub cached: bool,
    /// What it is connected to.
    pub network: BuildNetwork,
    /// How long it may take.
    pub limit: Duration,
}

/// What a build is connected to.
#[derive(Clone, Debug)]
pub enum BuildNetwork {
    /// Its commands to that network; what the engine fetches itself comes over the host's.
    Commands(Network),
    /// All of it, what the engine fetches itself included, to a network namespace.
    Inside(Namespace),
}

/// A network namespace with nothing but a loopback interface, and what a build in it is shown.
#[derive(Clone, Debug)]
pub struct Namespace {
    /// A process in it.
    pub pid: u32,
    /// The name server that answers there.
    pub name_server: Ipv4Addr,
    /// A `resolv.conf` that names it, for the engine.
    pub resolver: PathBuf,
    /// The `hosts` of the build.
    pub hosts: PathBuf,
    /// A directory for the commands of the build, read-only, and where they see it. Below `/dev`, which is theirs
    /// alone, nothing of it stays in the image.
    pub mount: Mount,
    /// The certificates that the engine itself trusts.
    pub certificates: PathBuf,
    /// Variables of the commands; the image has none of them.
    pub environment: Vec<(String, String)>,
}

impl Engine {
    /// Whether all of a build can be put into a network namespace.
    ///
    /// # Errors
    ///
    /// [`Error::BuildOutside`] where it cannot.
    pub fn builds_inside(&self) -> Result<(), Error> {
        if self.kind() == Kind::Podman && self.facts().local {
            return Ok(());
        }
        Err(Error::BuildOutside { kind: self.kind() })
    }

    /// Builds an image; every line of the output is given to `on_line` as it comes.
    ///
    /// # Errors
    ///
    /// [`Error::Rejected`] with the end of the output when the build fails.
    pub async fn build(&self, spec: &BuildSpec, on_line: impl FnMut(&str)) -> Result<(), Error> {
        match &spec.network {
            BuildNetwork::Commands(network) => self.build_outside(spec, network, on_line).await,
            BuildNetwork::Inside(namespace) => self.build_inside(spec, namespace, on_line).await,
        }
    }

    async fn build_outside(
        &self,
        spec: &BuildSpec,
        network: &Network,
        on_line: impl FnMut(&str),
    ) -> Result<(), Error> {
        let mut arguments: Vec<OsString> = vec!["--tag".into(), (&spec.tag).into()];
        match network {
            Network::Default => {}
            Network::None => arguments.extend(["--network".into(), "none".into()]),
            Network::Named { name, .. } => arguments.extend(["--network".into(), name.into()]),
        }
        arguments.extend(self.build_arguments(spec));
        // BuildKit draws a terminal's picture and wants a plug-in; the plain builder prints lines.
        let call = self
            .call(&["build"])
            .args(arguments)
            .env("DOCKER_BUILDKIT", "0")
            .limit(spec.limit);
        self.streamed(call, Input::None, spec.limit, on_line).await
    }

    /// The image gets its name afterwards, from us: where we are gone before the end, so is the network, and what a
    /// build made of that is not the image.
    async fn build_inside(
        &self,
        spec: &BuildSpec,
        namespace: &Namespace,
        on_line: impl FnMut(&str),
    ) -> Result<(), Error> {
        self.builds_inside()?;
        let id = NamedTempFile::new().map_err(|source| self.lost(source))?;
        let runtime = self.step_runtime()?;
        let mut build: Vec<OsString> = vec![
            self.program().into(),
            "--runtime".into(),
            self.install_runtime()?.into(),
            "build".into(),
            "--isolation=oci".into(),
            "--http-proxy=false".into(),
            "--network=host".into(),
            format!("--dns={}", namespace.name_server).into(),
            "--iidfile".into(),
            id.path().into(),
        ];
        if self.facts().selinux {
            build.push("--security-opt=label=disable".into());
        }
        let Mount { source, target, .. } = &namespace.mount;
        let mut volume = source.clone().into_os_string();
        volume.push(format!(":{target}:ro"));
        build.extend(["--volume".into(), volume]);
        build.extend(self.build_arguments(spec));

        let variables = namespace.environment.iter();
        let variables: Vec<_> = variables
            .map(|(name, value)| serde_json::json!(format!("{name}={value}")).to_string())
            .collect();
        let call = self
            .namespace_call(namespace)
            .args([ENTER, "enter.sh"])
            .args([&namespace.resolver, &namespace.hosts, &runtime])
            .args(build)
            .env("CORDON_BUILD_ENV", variables.join(","))
            .env("SSL_CERT_FILE", &namespace.certificates)
            .limit(spec.limit);
        self.streamed(call, Input::Open, spec.limit, on_line)
            .await?;
        let id = fs::read_to_string(id.path()).map_err(|source| self.lost(source))?;
        let tag = self.call(&["tag"]).args([id.trim(), &spec.tag]);
        tag.success(b"").await.map(drop)
    }

    /// What every build is told.
    fn build_arguments(&self, spec: &BuildSpec) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["--file".into(), spec.dockerfile.clone().into()];
        for (name, value) in &spec.labels {
            arguments.extend(["--label".into(), format!("{name}={value}").into()]);
        }
        if !spec.cached {
            arguments.push("--no-cache".into());
        }
        // Docker keeps the container of a step that failed unless it is told otherwise.
        arguments.push("--force-rm".into());
        for limit in self.facts().rlimits() {
            arguments.extend([
                "--ulimit".into(),
                format!("{}={}:{}", limit.name, limit.soft, limit.hard).into(),
            ]);
        }
        arguments.push(spec.context.clone().into());
        arguments
    }

    /// A shell in the namespace, with mounts of its own. Without root only the engine's own user namespace may enter.
    fn namespace_call(&self, namespace: &Namespace) -> process::Call {
        let verb = format!("{} build", self.kind());
        let enter = format!("--net=/proc/{}/ns/net", namespace.pid);
        let inside = [
            "nsenter",
            &enter,
            "unshare",
            "--mount",
            "--propagation",
            "slave",
            "sh",
            "-c",
        ];
        if self.facts().rootless {
            let call = process::Call::new(self.program(), &verb);
            return call.args(["unshare"]).args(inside);
        }
        let [program, rest @ ..] = inside;
        process::Call::new(Path::new(program), &verb).args(rest)
    }

    /// The runtime that the engine uses, by its path.
    fn step_runtime(&self) -> Result<PathBuf, Error> {
        let facts = self.facts();
        let named = || process::which(&facts.default_runtime);
        let found = facts.runtime.clone().or_else(named);
        found.ok_or_else(|| Error::NoRuntime {
            name: facts.default_runtime.clone(),
        })
    }

    /// Puts the script that stands before the runtime where it can be run, and returns its path.
    fn install_runtime(&self) -> Result<PathBuf, Error> {
        let path = self.cache().join("build-runtime-1");
        if fs::read_to_string(&path).is_ok_and(|text| text == RUNTIME) {
            return Ok(path);
        }
        let write = || {
            let mut file = NamedTempFile::new_in(self.cache())?;
            file.write_all(RUNTIME.as_bytes())?;
            fs::set_permissions(file.path(), Permissions::from_mode(0o755))?;
            // A rename, so that a build that starts at the same moment sees all of it or none.
            file.persist(&path).map_err(|error| error.error)
        };
        match write() {
            Ok(_) => Ok(path),
            Err(source) => Err(self.lost(source)),
        }
    }

    fn lost(&self, source: std::io::Error) -> Error {
        Error::Lost {
            verb: format!("{} build", self.kind()),
            source,
        }
    }
}

const ENTER: &str = include_str!("build/enter.sh");

const RUNTIME: &str = include_str!("build/runtime.sh");
