//! What a container is to be like: a spec, and what the sandbox adds to it.

use std::path::Path;

use cordon_door::Door;
use cordon_engine::{ContainerSpec, Engine, Limits};

use crate::{
    CommandSpec, Network, Notice, ResourceLimits, SandboxError, leftovers::OWNER, mount::Handles,
    place::Place, profile::in_memory, sandbox::Shared, shield::Shield, streams::Io,
    topology::Connection, trust, user::User,
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
        let mut mounts = our_mounts(place.path(), shared.init()?, connection);
        let theirs = spec.mounts.iter().chain(self.shield.mounts());
        mounts.extend(theirs.map(|mount| cordon_engine::Mount {
            source: mount.host_path.clone(),
            target: mount.container_path.clone(),
            read_only: mount.read_only,
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
            command: Door::arguments(trust::BOX, connection.access())
                .map(Into::into)
                .into(),
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
fn our_mounts(place: &Path, init: &Path, connection: &Connection) -> Vec<cordon_engine::Mount> {
    use cordon_engine::Mount;
    let mut mounts = vec![
        Mount::read_only(init, INIT),
        Mount::read_only(place.join("door"), trust::BOX),
    ];
    if connection.address().is_some() {
        mounts.push(Mount::read_only(
            place.join("resolv.conf"),
            "/etc/resolv.conf",
        ));
        mounts.push(Mount::read_only(place.join("hosts"), "/etc/hosts"));
        let certificate = place.join("door").join(trust::CERTIFICATE);
        mounts.extend(
            trust::BUNDLES
                .iter()
                .map(|bundle| Mount::read_only(&certificate, *bundle)),
        );
        let store = place.join("door").join(trust::KEY_STORE);
        mounts.extend(
            trust::KEY_STORES
                .iter()
                .map(|at| Mount::read_only(&store, *at)),
        );
    }
    mounts
}

/// Where `cordon-init` is in a container.
pub(crate) const INIT: &str = "/.cordon/init";

/// What engines give where the host lets them.
const ENGINES_OPEN_FILES: u64 = 1_048_576;
