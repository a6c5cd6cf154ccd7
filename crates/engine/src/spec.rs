//! What a container is to be like, and the arguments that say so.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use crate::{Engine, Error, Kind, process};

/// A container, described. Everything that is left out is the engine's own default, but for pulling:
/// images are never fetched on the way.
#[derive(Clone, Debug, Default)]
pub struct ContainerSpec {
    /// The image's reference.
    pub image: String,
    /// The image is no image but a directory of this machine, with the root file system in it. Podman alone can do that.
    pub rootfs: bool,
    /// The container's name.
    pub name: Option<String>,
    /// Labels, by which it is found again.
    pub labels: Vec<(String, String)>,
    /// The program that is run instead of the image's entrypoint.
    pub entrypoint: Option<String>,
    /// What follows the image.
    pub command: Vec<OsString>,
    /// Variables. Their values reach the engine through its own environment, never as arguments.
    pub environment: Vec<(String, String)>,
    /// What of the engine's machine is seen in it.
    pub mounts: Vec<Mount>,
    /// Empty file systems in memory.
    pub tmpfs: Vec<Tmpfs>,
    /// The working directory.
    pub workdir: Option<String>,
    /// `UID[:GID]` or a name of the image.
    pub user: Option<String>,
    /// A user namespace mode, `keep-id` for one.
    pub userns: Option<String>,
    /// The host's name inside.
    pub hostname: Option<String>,
    /// Its networks.
    pub network: Network,
    /// Whether the engine's own name server asks others on the container's behalf.
    pub resolver: Resolver,
    /// Kernel settings of its namespaces.
    pub sysctls: Vec<(String, String)>,
    /// Capabilities that are left when all others are dropped; `None` keeps the engine's set.
    pub capabilities: Option<Vec<String>>,
    /// `--security-opt` values.
    pub security: Vec<String>,
    /// The root file system cannot be written.
    pub read_only: bool,
    /// Resource limits.
    pub limits: Limits,
    /// Whether standard input and a terminal are attached.
    pub terminal: Terminal,
    /// The engine removes the container when it ends.
    pub remove: bool,
    /// Keep no log of the output on the host.
    pub no_log: bool,
}

/// A host path inside a container.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mount {
    /// The path on the host, or in the volume.
    pub source: PathBuf,
    /// The volume that the path is in.
    pub volume: Option<String>,
    /// The path in the container.
    pub target: String,
    /// It cannot be written through this mount.
    pub read_only: bool,
}

/// An empty file system in memory.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Tmpfs {
    /// The path in the container.
    pub target: String,
    /// Its options, for example `size=1g,mode=1777`.
    pub options: String,
}

/// Where a container is connected.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Network {
    /// A loopback interface and nothing else.
    None,
    /// Whatever the engine does by itself.
    #[default]
    Default,
    /// One network of the engine, with a fixed address on it if given.
    Named {
        /// The network.
        name: String,
        /// The address.
        address: Option<String>,
    },
}

/// Whether the name server that an engine puts into a container asks others.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Resolver {
    /// As the engine does by itself.
    #[default]
    Default,
    /// It asks nobody.
    Mute,
}

/// Resource limits; what is `None` is not limited.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// Bytes of memory; swap is never added to it.
    pub memory: Option<u64>,
    /// Processor cores.
    pub cpus: Option<f64>,
    /// Processes and threads.
    pub pids: Option<u32>,
    /// Limits of every process.
    pub rlimits: Vec<Rlimit>,
}

/// A limit of every process, as `--ulimit` takes it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rlimit {
    /// Its name, `nofile` for one.
    pub name: &'static str,
    /// What a process starts with.
    pub soft: u64,
    /// How far it may raise it.
    pub hard: u64,
}

/// How much of a terminal is attached.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Terminal {
    /// Output only.
    #[default]
    None,
    /// Standard input too.
    Input,
    /// Standard input, and the caller's terminal around all three streams.
    Full,
}

impl ContainerSpec {
    /// A spec of that image and nothing else.
    #[must_use]
    pub fn new(image: impl Into<String>) -> Self {
        Self {
            image: image.into(),
            ..Self::default()
        }
    }

    /// The arguments behind `run` or `create`.
    pub(crate) fn arguments(&self, engine: &Engine) -> Result<Vec<OsString>, Error> {
        let mut arguments = Arguments::default();
        arguments.flag("--pull=never");
        self.identity(&mut arguments);
        self.isolation(engine, &mut arguments);
        self.files(&mut arguments)?;
        self.resources(&mut arguments);
        for (name, _) in &self.environment {
            if process::is_of_the_client(name) {
                return Err(Error::Variable { name: name.clone() });
            }
            arguments.pair("--env", name);
        }
        arguments.flag(&self.image);
        arguments.0.extend(self.command.iter().cloned());
        Ok(arguments.0)
    }

    fn identity(&self, arguments: &mut Arguments) {
        if self.rootfs {
            arguments.flag("--rootfs");
        }
        if self.remove {
            arguments.flag("--rm");
        }
        if self.no_log {
            arguments.flag("--log-driver=none");
        }
        match self.terminal {
            Terminal::None => {}
            Terminal::Input => arguments.flag("--interactive"),
            Terminal::Full => {
                arguments.flag("--interactive");
                arguments.flag("--tty");
            }
        }
        arguments.optional("--name", self.name.as_deref());
        for (name, value) in &self.labels {
            arguments.pair("--label", &format!("{name}={value}"));
        }
        arguments.optional("--entrypoint", self.entrypoint.as_deref());
        arguments.optional("--workdir", self.workdir.as_deref());
        arguments.optional("--hostname", self.hostname.as_deref());
    }

    fn isolation(&self, engine: &Engine, arguments: &mut Arguments) {
        match &self.network {
            Network::Default => {}
            Network::None => arguments.pair("--network", "none"),
            Network::Named { name, address } => {
                arguments.pair("--network", name);
                arguments.optional("--ip", address.as_deref());
            }
        }
        match (engine.kind(), self.resolver) {
            // Docker answers names on every network that was made by hand, and asks the host's server
            // for what it does not know, also where the network has no way out.
            (Kind::Docker, Resolver::Mute) => arguments.pair("--dns", "0.0.0.0"),
            // Podman has a name server only on networks that were made with one.
            (Kind::Podman, Resolver::Mute) | (_, Resolver::Default) => {}
        }
        arguments.optional("--user", self.user.as_deref());
        arguments.optional("--userns", self.userns.as_deref());
        for (name, value) in &self.sysctls {
            arguments.pair("--sysctl", &format!("{name}={value}"));
        }
        if let Some(kept) = &self.capabilities {
            arguments.pair("--cap-drop", "ALL");
            for capability in kept {
                arguments.pair("--cap-add", capability);
            }
        }
        for option in &self.security {
            arguments.pair("--security-opt", option);
        }
        if self.read_only {
            arguments.flag("--read-only");
        }
        match engine.kind() {
            Kind::Podman => {
                // Podman would hand the caller's proxy variables to the container, and mount
                // writable directories into a root that was to be read-only.
                arguments.flag("--http-proxy=false");
                if self.read_only {
                    arguments.flag("--read-only-tmpfs=false");
                }
            }
            Kind::Docker => {
                if let Some(runtime) = engine.wanted_runtime() {
                    arguments.flag("--runtime");
                    arguments.0.push(runtime.into());
                }
            }
        }
    }

    fn files(&self, arguments: &mut Arguments) -> Result<(), Error> {
        for mount in &self.mounts {
            mount.argument(arguments)?;
        }
        for tmpfs in &self.tmpfs {
            arguments.pair("--tmpfs", &format!("{}:{}", tmpfs.target, tmpfs.options));
        }
        Ok(())
    }

    fn resources(&self, arguments: &mut Arguments) {
        if let Some(bytes) = self.limits.memory {
            arguments.pair("--memory", &format!("{bytes}b"));
            arguments.pair("--memory-swap", &format!("{bytes}b"));
        }
        if let Some(cpus) = self.limits.cpus {
            arguments.pair("--cpus", &cpus.to_string());
        }
        if let Some(pids) = self.limits.pids {
            arguments.pair("--pids-limit", &pids.to_string());
        }
        for Rlimit { name, soft, hard } in &self.limits.rlimits {
            arguments.pair("--ulimit", &format!("{name}={soft}:{hard}"));
        }
    }
}

impl Mount {
    /// A mount that can be written.
    #[must_use]
    pub fn read_write(source: impl AsRef<Path>, target: impl Into<String>) -> Self {
        Self {
            source: source.as_ref().to_owned(),
            volume: None,
            target: target.into(),
            read_only: false,
        }
    }

    /// A mount that cannot be written.
    #[must_use]
    pub fn read_only(source: impl AsRef<Path>, target: impl Into<String>) -> Self {
        Self {
            read_only: true,
            ..Self::read_write(source, target)
        }
    }

    /// `--mount` separates by commas and `--volume` by colons; a path is written in the form whose
    /// separator it does not hold.
    fn argument(&self, arguments: &mut Arguments) -> Result<(), Error> {
        if let Some(volume) = &self.volume {
            arguments.pair("--mount", &self.of_volume(volume));
            return Ok(());
        }
        let holds = |separator: u8| {
            self.source
                .as_os_str()
                .as_encoded_bytes()
                .contains(&separator)
                || self.target.as_bytes().contains(&separator)
        };
        let mut value = OsString::new();
        if !holds(b',') {
            value.push("type=bind,source=");
            value.push(&self.source);
            value.push(",target=");
            value.push(&self.target);
            if self.read_only {
                value.push(",readonly");
            }
            arguments.flag("--mount");
        } else if holds(b':') {
            return Err(Error::MountPath {
                path: self.source.clone(),
            });
        } else {
            value.push(&self.source);
            value.push(":");
            value.push(&self.target);
            value.push(if self.read_only { ":ro" } else { ":rw" });
            arguments.flag("--volume");
        }
        arguments.0.push(value);
        Ok(())
    }

    fn of_volume(&self, volume: &str) -> String {
        let mut value = format!("type=volume,source={volume},target={}", self.target);
        if !self.source.as_os_str().is_empty() {
            value += &format!(",volume-subpath={}", self.source.display());
        }
        if self.read_only {
            value += ",readonly";
        }
        value
    }
}

#[derive(Default)]
struct Arguments(Vec<OsString>);

impl Arguments {
    fn flag(&mut self, flag: &str) {
        self.0.push(flag.into());
    }

    fn pair(&mut self, flag: &str, value: &str) {
        self.0.push(flag.into());
        self.0.push(value.into());
    }

    fn optional(&mut self, flag: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.pair(flag, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Facts;

    fn arguments(kind: Kind, spec: &ContainerSpec) -> String {
        let engine = Engine::assumed(kind, Facts::assumed());
        let words = spec.arguments(&engine).unwrap();
        let words: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
        words.join(" ")
    }

    #[test]
    fn a_spec_of_nothing_is_the_image_and_never_pulls() {
        let spec = ContainerSpec::new("image");
        assert_eq!(arguments(Kind::Docker, &spec), "--pull=never image");
        assert_eq!(
            arguments(Kind::Podman, &spec),
            "--pull=never --http-proxy=false image"
        );
    }

    /// What holds a container, and what none may be started without.
    fn held() -> ContainerSpec {
        ContainerSpec {
            network: Network::None,
            capabilities: Some(Vec::new()),
            security: vec!["no-new-privileges".into()],
            read_only: true,
            limits: Limits {
                memory: Some(1 << 30),
                cpus: Some(2.0),
                pids: Some(256),
                rlimits: Vec::new(),
            },
            user: Some("1000:1000".into()),
            no_log: true,
            ..ContainerSpec::new("image")
        }
    }

    #[test]
    fn a_container_is_held_alike_by_every_version_and_in_every_machine() {
        let podman = "--pull=never --log-driver=none --network none --user 1000:1000 --cap-drop ALL \
            --security-opt no-new-privileges --read-only --http-proxy=false --read-only-tmpfs=false \
            --memory 1073741824b --memory-swap 1073741824b --cpus 2 --pids-limit 256 image";
        let docker = "--pull=never --log-driver=none --network none --user 1000:1000 --cap-drop ALL \
            --security-opt no-new-privileges --read-only \
            --memory 1073741824b --memory-swap 1073741824b --cpus 2 --pids-limit 256 image";
        let cases = [
            (Kind::Podman, "4.3.1", true, podman),
            (Kind::Podman, "5.5.2", true, podman),
            // A podman machine.
            (Kind::Podman, "5.5.2", false, podman),
            (Kind::Docker, "20.10.24+dfsg1", true, docker),
            (Kind::Docker, "28.3.2", true, docker),
            // Docker Desktop.
            (Kind::Docker, "28.3.2", false, docker),
        ];
        for (kind, version, local, expected) in cases {
            let mut facts = Facts::assumed();
            facts.version = version.into();
            facts.local = local;
            let words = held().arguments(&Engine::assumed(kind, facts)).unwrap();
            let words: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
            assert_eq!(
                words.join(" "),
                expected,
                "{kind} {version}, local: {local}"
            );
        }
    }

    #[test]
    fn a_read_only_root_gets_no_writable_places_from_podman() {
        let spec = ContainerSpec {
            read_only: true,
            ..ContainerSpec::new("image")
        };
        assert!(arguments(Kind::Podman, &spec).contains("--read-only-tmpfs=false"));
    }

    #[test]
    fn dockers_own_name_server_is_muted_on_request() {
        let spec = ContainerSpec {
            network: Network::Named {
                name: "net".into(),
                address: Some("10.1.2.3".into()),
            },
            resolver: Resolver::Mute,
            ..ContainerSpec::new("image")
        };
        let words = "--network net --ip 10.1.2.3";
        assert!(arguments(Kind::Docker, &spec).contains(&format!("{words} --dns 0.0.0.0")));
        assert!(!arguments(Kind::Podman, &spec).contains("--dns"));
    }

    #[test]
    fn memory_is_never_extended_by_swap() {
        let spec = ContainerSpec {
            limits: Limits {
                memory: Some(64 << 20),
                ..Limits::default()
            },
            ..ContainerSpec::new("image")
        };
        assert!(
            arguments(Kind::Docker, &spec).contains("--memory 67108864b --memory-swap 67108864b")
        );
    }

    #[test]
    fn values_of_variables_are_no_arguments() {
        let spec = ContainerSpec {
            environment: vec![("TOKEN".into(), "value".into())],
            ..ContainerSpec::new("image")
        };
        let words = arguments(Kind::Docker, &spec);
        assert!(words.contains("--env TOKEN image") && !words.contains("value"));
    }

    #[test]
    fn variables_of_the_client_are_refused() {
        let engine = Engine::assumed(Kind::Docker, Facts::assumed());
        for name in [
            "PATH",
            "DOCKER_HOST",
            "LD_PRELOAD",
            "https_proxy",
            "GODEBUG",
            "XDG_RUNTIME_DIR",
        ] {
            let spec = ContainerSpec {
                environment: vec![(name.into(), "value".into())],
                ..ContainerSpec::new("image")
            };
            assert!(
                matches!(spec.arguments(&engine), Err(Error::Variable { .. })),
                "{name}"
            );
        }
    }

    #[test]
    fn a_path_is_written_in_the_form_that_can_hold_it() {
        let mount = |source: &str| ContainerSpec {
            mounts: vec![Mount::read_only(source, "/data")],
            ..ContainerSpec::new("image")
        };
        let words = |source: &str| arguments(Kind::Docker, &mount(source));
        assert!(words("/a:b").contains("--mount type=bind,source=/a:b,target=/data,readonly"));
        assert!(words("/a,b").contains("--volume /a,b:/data:ro"));
        let engine = Engine::assumed(Kind::Docker, Facts::assumed());
        assert!(matches!(
            mount("/a:b,c").arguments(&engine),
            Err(Error::MountPath { .. })
        ));
    }
}
