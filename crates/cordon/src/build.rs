//! What the build of an image may reach: the host's network, nothing, or what a policy allows.
//!
//! For a sandboxed build a container of nothing but `cordon-init` opens a door, and the engine builds inside that
//! container's network namespace, what it fetches itself included. Neither the image nor its history shows it.

use std::{
    fmt,
    fs::DirBuilder,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::Stdio,
    str::FromStr,
    time::Duration,
};

use cordon_door::{Access, Door, Keeper, Sockets};
use cordon_engine::{
    BuildNetwork as EngineBuild, Container, ContainerSpec, Engine, Limits, Mount, Namespace,
    Network as EngineNetwork, process,
};
use cordon_image::{Entrypoint, Images, Progress, Recipe};
use cordon_policy::Allowlist;
use cordon_proxy::{OnRecord, Summary};
use tokio::{process::Child, time::timeout};

use crate::{
    CommandSpec, Network, NetworkSandbox, Notice, SandboxError, leftovers::OWNER, place::Place,
    run::INIT, sandbox::Shared, topology::Connection, trust,
};

/// What the build of an image may reach.
#[derive(Clone, Debug, Default)]
pub enum BuildNetwork {
    /// Whatever the host reaches.
    #[default]
    Host,
    /// Nothing; but what the engine fetches itself, base images and `ADD` of a URL, still comes over the host's network.
    None,
    /// What the policy allows, base images and `ADD` of a URL included. Needs a podman that runs on this machine.
    Sandboxed(BuildSandbox),
}

/// The policy of a build. A build gets no secrets, and no look-alikes of any.
#[derive(Clone, Default)]
pub struct BuildSandbox {
    /// What may be reached; the default allows nothing. It is part of what the image is named by.
    pub allowlist: Allowlist,
    /// Where the network log goes, and beside it the same for programs, with the ending `jsonl`.
    pub network_log: Option<PathBuf>,
    /// Called with every record of the network log as it is written.
    pub on_network: Option<OnRecord>,
}

/// The word for what a build may reach, as people write it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum BuildMode {
    /// [`BuildNetwork::Host`].
    #[default]
    Host,
    /// [`BuildNetwork::None`].
    None,
    /// [`BuildNetwork::Sandboxed`].
    Sandboxed,
}

/// A word that says nothing about a build.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not what a build can reach; say host, none or sandboxed")]
pub struct UnknownBuildMode(String);

impl FromStr for BuildMode {
    type Err = UnknownBuildMode;

    fn from_str(name: &str) -> Result<Self, UnknownBuildMode> {
        match name {
            "host" => Ok(Self::Host),
            "none" => Ok(Self::None),
            "sandboxed" => Ok(Self::Sandboxed),
            other => Err(UnknownBuildMode(other.to_owned())),
        }
    }
}

impl BuildNetwork {
    /// What of it may change the image, and so is part of its name. Images built with the host's network keep the names
    /// that they have without it.
    pub(crate) fn conditions(&self) -> String {
        match self {
            Self::Host => String::new(),
            Self::None => "no network".to_owned(),
            Self::Sandboxed(policy) => format!("sandboxed {}", policy.allowlist.to_json()),
        }
    }
}

impl BuildSandbox {
    /// The build may come before everything else that writes to that directory.
    fn prepare_log(&self) -> Result<(), SandboxError> {
        let Some(directory) = self.network_log.as_deref().and_then(Path::parent) else {
            return Ok(());
        };
        let made = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory);
        made.map_err(|source| SandboxError::Directory {
            path: directory.to_owned(),
            source,
        })
    }
}

impl fmt::Debug for BuildSandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuildSandbox")
            .field("allowlist", &self.allowlist)
            .field("network_log", &self.network_log)
            .finish_non_exhaustive()
    }
}

/// Finds an image or builds it, and returns its reference.
pub(crate) async fn ensure(
    shared: &Shared,
    network: &BuildNetwork,
    recipe: &Recipe,
    entrypoint: &Entrypoint,
    progress: impl FnMut(Progress<'_>),
) -> Result<String, SandboxError> {
    let engine = shared.engine()?;
    let config = &shared.config;
    let mut settings = cordon_image::Config {
        max_age: config.max_image_age.0,
        ..cordon_image::Config::new(&config.directories.cache)
    };
    let recipe = &recipe.clone().under(network.conditions());
    match network {
        BuildNetwork::Host => {}
        BuildNetwork::None => settings.network = EngineBuild::Commands(EngineNetwork::None),
        BuildNetwork::Sandboxed(policy) => {
            engine.builds_inside()?;
            // A door is opened only for a build that will be.
            let images = Images::new(&engine, settings.clone());
            if let Some(ready) = images.ready(recipe, entrypoint).await? {
                return Ok(ready.tags.overlay);
            }
            let behind = Behind::open(shared, &engine, policy).await?;
            settings.network = EngineBuild::Inside(behind.namespace());
            let images = Images::new(&engine, settings);
            let ensured = images.ensure(recipe, entrypoint, progress).await;
            // Whatever came of it, the door is taken down; the first failure is the one to tell.
            let released = behind.release(shared).await;
            let ensured = ensured?;
            released?;
            return Ok(ensured.tags.overlay);
        }
    }
    let images = Images::new(&engine, settings);
    let ensured = images.ensure(recipe, entrypoint, progress).await?;
    Ok(ensured.tags.overlay)
}

/// The reference of an image that is there already and not too old; nothing is built.
pub(crate) async fn ready(
    shared: &Shared,
    network: &BuildNetwork,
    recipe: &Recipe,
    entrypoint: &Entrypoint,
) -> Result<Option<String>, SandboxError> {
    let config = &shared.config;
    let settings = cordon_image::Config {
        max_age: config.max_image_age.0,
        ..cordon_image::Config::new(&config.directories.cache)
    };
    let recipe = recipe.clone().under(network.conditions());
    let engine = shared.engine()?;
    let images = Images::new(&engine, settings);
    let ready = images.ready(&recipe, entrypoint).await?;
    Ok(ready.map(|ready| ready.tags.overlay))
}

/// A door for a build, and the container that opened it. When it is dropped, the container ends by itself.
struct Behind<'a> {
    engine: &'a Engine,
    connection: Connection,
    pid: u32,
    /// The container leaves a while after its hand-over when it is told nothing; by then the build's own processes keep
    /// the namespace.
    keeper: Keeper,
    client: Child,
    container: Container,
    place: Place,
}

impl<'a> Behind<'a> {
    async fn open(
        shared: &Shared,
        engine: &'a Engine,
        policy: &BuildSandbox,
    ) -> Result<Self, SandboxError> {
        let directories = &shared.config.directories;
        let place = Place::create(&directories.runtime, &shared.owner, engine.program())?;
        let door = place.furnish(&*shared.authority()?, Some(cordon_door::ADDRESS))?;
        place.furnish_build()?;
        policy.prepare_log()?;
        let mut connection = Connection::Door(None);
        let spec = container(shared, engine, &connection, &place)?;
        let streams = process::Streams {
            stderr: Stdio::piped(),
            ..process::Streams::default()
        };
        let mut client = engine.spawn(&spec, streams)?;
        let container = Container(place.name().to_owned());
        let (sockets, keeper) = handover(shared, engine, door, &mut client).await?;
        let policy = CommandSpec {
            network: Network::Sandboxed(NetworkSandbox {
                allowlist: policy.allowlist.clone(),
                ..NetworkSandbox::default()
            }),
            network_log: policy.network_log.clone(),
            on_network: policy.on_network.clone(),
            ..CommandSpec::new("", [""])
        };
        connection.serve(shared, &policy, sockets).await?;
        let state = engine.inspect(&container).await?;
        let pid = state.and_then(|state| state.pid);
        let pid = pid.ok_or_else(|| SandboxError::Lost {
            stderr: "the container of a build's door has ended".to_owned(),
        })?;
        Ok(Self {
            engine,
            connection,
            pid,
            keeper,
            client,
            container,
            place,
        })
    }

    fn namespace(&self) -> Namespace {
        let place = self.place.path();
        Namespace {
            pid: self.pid,
            name_server: cordon_door::ADDRESS,
            resolver: place.join("resolv.conf"),
            hosts: place.join("hosts"),
            mount: Mount::read_only(place.join("door"), trust::BUILD_BOX),
            certificates: place.join("door").join(trust::CERTIFICATE),
            environment: trust::build_variables(),
        }
    }

    async fn release(self, shared: &Shared) -> Result<(), SandboxError> {
        let Self {
            engine,
            connection,
            keeper,
            mut client,
            container,
            place,
            ..
        } = self;
        let summary = connection.release().await?;
        if let Some(Summary {
            lost_records: lost @ 1..,
            log_error,
            ..
        }) = summary
        {
            let cause = log_error.map(|error| error.to_string());
            let cause = cause.unwrap_or_default();
            shared.notice(&Notice::LogLost { lost, cause });
        }
        drop(keeper);
        drop(timeout(ENDING, client.wait()).await);
        engine.remove(&container).await?;
        drop(place);
        match engine.inspect(&container).await? {
            None => Ok(()),
            Some(_) => Err(SandboxError::LeftBehind {
                container: container.0,
            }),
        }
    }
}

/// A container of nothing but `cordon-init`, without a network or a capability.
fn container(
    shared: &Shared,
    engine: &Engine,
    connection: &Connection,
    place: &Place,
) -> Result<ContainerSpec, SandboxError> {
    let root = place.path().join("root");
    let made = DirBuilder::new().mode(0o755).create(&root);
    made.map_err(|source| SandboxError::Write {
        path: root.clone(),
        source,
    })?;
    let mut security = vec!["no-new-privileges".to_owned()];
    if engine.facts().selinux {
        security.push("label=disable".to_owned());
    }
    Ok(ContainerSpec {
        rootfs: true,
        name: Some(place.name().to_owned()),
        labels: vec![(OWNER.to_owned(), shared.owner.to_string())],
        entrypoint: Some(INIT.to_owned()),
        command: Door::arguments(trust::BOX, Access::Open)
            .map(Into::into)
            .into(),
        mounts: vec![
            Mount::read_only(shared.init()?, INIT),
            Mount::read_only(place.path().join("door"), trust::BOX),
        ],
        hostname: Some("cordon".to_owned()),
        network: connection.network(),
        sysctls: connection.sysctls(engine),
        capabilities: Some(Vec::new()),
        security,
        limits: Limits {
            rlimits: engine.facts().rlimits(),
            ..Limits::default()
        },
        remove: true,
        no_log: true,
        ..ContainerSpec::new(root.to_string_lossy())
    })
}

async fn handover(
    shared: &Shared,
    engine: &Engine,
    door: Door,
    client: &mut Child,
) -> Result<(Option<Sockets>, Keeper), SandboxError> {
    let words = process::tail(client.stderr.take(), WORDS_MAX);
    tokio::select! {
        handed = door.handover(Access::Open, shared.config.start_limit.0) => {
            handed.map_err(|source| SandboxError::Door { source, engine: String::new() })
        }
        status = client.wait() => {
            let words = words.await.unwrap_or_default();
            let status = status.unwrap_or_default();
            Err(engine.refusal("the door of a build", status, &words).into())
        }
    }
}

/// How long the container may take to end once its keeper is gone.
const ENDING: Duration = Duration::from_secs(10);

/// Engines say why they failed in their last lines.
const WORDS_MAX: usize = 8 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_build_could_reach_is_part_of_what_its_image_is_named_by() {
        let sandboxed = |yaml: &str| {
            BuildNetwork::Sandboxed(BuildSandbox {
                allowlist: Allowlist::from_yaml(yaml).unwrap(),
                ..BuildSandbox::default()
            })
        };
        let networks = [
            BuildNetwork::Host,
            BuildNetwork::None,
            sandboxed(""),
            sandboxed("domains: [a.example]"),
            sandboxed("domains: [a.example, b.example]"),
        ];
        let digests = networks.map(|network| {
            let recipe = Recipe::new("FROM scratch\n").under(network.conditions());
            recipe.digest().to_string()
        });
        let different: std::collections::BTreeSet<_> = digests.iter().collect();
        assert_eq!(different.len(), digests.len());
        assert_eq!(
            digests[0],
            Recipe::new("FROM scratch\n").digest().to_string()
        );
    }

    #[test]
    fn words_are_read() {
        assert_eq!("host".parse::<BuildMode>().unwrap(), BuildMode::Host);
        assert_eq!("none".parse::<BuildMode>().unwrap(), BuildMode::None);
        assert_eq!(
            "sandboxed".parse::<BuildMode>().unwrap(),
            BuildMode::Sandboxed
        );
        assert!("open".parse::<BuildMode>().is_err());
    }
}
