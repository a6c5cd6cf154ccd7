//! What a container is to be like: a spec, and what the sandbox adds to it.

use std::path::Path;

use cordon_engine::{ContainerSpec, Engine, Limits, Mount, Volume};

use crate::{
    CommandSpec, Network, Notice, ResourceLimits, SandboxError,
    leftovers::OWNER,
    mount::Handles,
    place::{HOSTS, Place, RESOLVER},
    profile::in_memory,
    sandbox::Shared,
    shield::Shield,
    streams::Io,
    topology::{self, Connection},
    trust,
    user::User,
};

/// A command's spec together with what the sandbox adds to it.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub(super) spec: &'a CommandSpec,
    pub(super) limits: ResourceLimits,
    pub(super) env: Vec<(String, String)>,
    shield: Shield,
    pub(super) handles: Handles,
    labels: Vec<(String, String)>,
}

impl<'a> Plan<'a> {
    pub(crate) fn new(shared: &Shared, spec: &'a CommandSpec) -> Result<Self, SandboxError> {
        let mut env = vec![("IS_SANDBOX".to_owned(), "1".to_owned())];
        env.extend(
            spec.profile
                .home()
                .map(|home| ("HOME".to_owned(), home.to_owned())),
        );
        env.extend(spec.env.iter().cloned());
        if let Network::Sandboxed(_) = spec.network {
            let java = spec
                .env
                .iter()
                .find(|(name, _)| name == "JAVA_TOOL_OPTIONS");
            env.extend(trust::variables(java.map(|(_, value)| value.as_str())));
        }
        let shield = Shield::over(&spec.mounts, &spec.workdir)?;
        let limits = spec.profile.limits(&spec.limits);
        let engine = shared.engine()?;
        // Another kernel gives files numbers of its own.
        let handles = if engine.facts().local && !engine.is_gvisor() {
            Handles::open(spec.mounts.iter().chain(shield.mounts()))?
        } else {
            shared.notice(&Notice::MountsUnverified);
            Handles::default()
        };
        let plan = Self {
            spec,
            limits,
            env,
            shield,
            handles,
            labels: vec![(OWNER.to_owned(), shared.owner.to_string())],
        };
        plan.warn(shared, &engine);
        Ok(plan)
    }

    /// The same with further labels on its container.
    pub(crate) fn labelled(mut self, labels: Vec<(String, String)>) -> Self {
        self.labels.extend(labels);
        self
    }

    /// Lets it run as long as it likes where only the profile limits its time.
    pub(crate) fn untimed(mut self) -> Self {
        self.limits.timeout = self.spec.limits.timeout;
        self
    }

    /// Says what of the spec will not hold on this host.
    fn warn(&self, shared: &Shared, engine: &Engine) {
        let asked = [
            ("memory", self.limits.memory.is_some()),
            ("cpus", self.limits.cpus.is_some()),
            ("pids", self.limits.pids.is_some()),
        ];
        let limits: Vec<_> = asked
            .iter()
            .filter(|(_, asked)| *asked)
            .map(|(name, _)| *name)
            .collect();
        if !engine.facts().limits && !limits.is_empty() {
            shared.notice(&Notice::LimitsIgnored {
                engine: engine.kind(),
                limits,
            });
        }
        for limit in engine.facts().rlimits() {
            if limit.name == "nofile" && limit.hard < ENGINES_OPEN_FILES {
                shared.notice(&Notice::OpenFilesLowered { to: limit.hard });
            }
        }
        if engine.facts().selinux {
            shared.notice(&Notice::SelinuxOff);
        }
        if let Network::Unrestricted = self.spec.network {
            shared.notice(&Notice::NetworkUnrestricted);
        }
    }

    /// The container, as the engine is told.
    pub(super) fn container(
        &self,
        shared: &Shared,
        engine: &Engine,
        connection: &Connection,
        place: &Place,
        io: &Io,
    ) -> Result<ContainerSpec, SandboxError> {
        let spec = self.spec;
        let mut mounts = match connection.volume() {
            Some(volume) => mounts_of_volume(volume, connection),
            None => mounts_of_place(place.path(), shared.init()?, connection),
        };
        let theirs = spec.mounts.iter().chain(self.shield.mounts());
        mounts.extend(theirs.map(|mount| Mount {
            read_only: mount.read_only,
            ..Mount::read_write(&mount.host_path, &mount.container_path)
        }));
        let mut security = vec!["no-new-privileges".to_owned()];
        if engine.facts().selinux {
            security.push("label=disable".to_owned());
        }
        let limits = &self.limits;
        let profile = spec.profile;
        let enforced = engine.facts().limits;
        let user = spec.user.clone().or_else(|| profile.user(engine));
        let userns = user.as_deref().and_then(User::parse);
        let userns = userns.and_then(|user| user.namespace(engine));
        let scratch = spec.scratch.iter().map(|target| in_memory(target, "1g"));
        let scratch = scratch.collect();
        Ok(ContainerSpec {
            name: Some(place.name().to_owned()),
            labels: self.labels.clone(),
            entrypoint: Some(INIT.to_owned()),
            command: connection.arguments(),
            mounts,
            workdir: Some(spec.workdir.clone()),
            user,
            userns,
            tmpfs: [profile.tmpfs(), scratch].concat(),
            read_only: profile.read_only(),
            hostname: Some("cordon".to_owned()),
            network: connection.network(),
            resolver: connection.resolver(),
            sysctls: connection.sysctls(engine),
            capabilities: Some(profile.capabilities()),
            security,
            limits: Limits {
                memory: limits
                    .memory
                    .filter(|_| enforced)
                    .map(|memory| memory.bytes()),
                cpus: limits.cpus.filter(|_| enforced).map(|cpus| cpus.cores()),
                pids: limits.pids.filter(|_| enforced).map(|pids| pids.count()),
                rlimits: engine.facts().rlimits(),
            },
            terminal: io.terminal,
            remove: true,
            no_log: true,
            ..ContainerSpec::new(&spec.image)
        })
    }
}

/// What the sandbox itself puts into a container.
fn mounts_of_place(place: &Path, init: &Path, connection: &Connection) -> Vec<Mount> {
    let mut mounts = vec![
        Mount::read_only(init, INIT),
        Mount::read_only(place.join("door"), trust::BOX),
    ];
    if connection.address().is_some() {
        mounts.extend(found_and_trusted(|name, target| {
            let file = match name {
                RESOLVER | HOSTS => place.join(name),
                _ => place.join("door").join(name),
            };
            Mount::read_only(file, target)
        }));
    }
    mounts
}

/// The same where the engine sees no file of this machine.
fn mounts_of_volume(volume: &Volume, connection: &Connection) -> Vec<Mount> {
    let mut mounts = vec![volume.file(topology::INIT, INIT)];
    for name in [topology::TOKEN, trust::CERTIFICATE, trust::KEY_STORE] {
        mounts.push(volume.file(name, format!("{}/{name}", trust::BOX)));
    }
    if connection.address().is_some() {
        mounts.extend(found_and_trusted(|name, target| volume.file(name, target)));
    }
    mounts
}

/// The files by which a container finds its proxy and trusts it, where its programs look for them.
fn found_and_trusted(mount: impl Fn(&str, &str) -> Mount) -> Vec<Mount> {
    let found = [(RESOLVER, "/etc/resolv.conf"), (HOSTS, "/etc/hosts")];
    let bundles = trust::BUNDLES.iter().map(|at| (trust::CERTIFICATE, *at));
    let stores = trust::KEY_STORES.iter().map(|at| (trust::KEY_STORE, *at));
    let all = found.into_iter().chain(bundles).chain(stores);
    all.map(|(name, target)| mount(name, target)).collect()
}

/// Where `cordon-init` is in a container.
pub(crate) const INIT: &str = "/.cordon/init";

/// What engines give where the host lets them.
const ENGINES_OPEN_FILES: u64 = 1_048_576;
