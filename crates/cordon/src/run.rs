//! One container from its start to its verified end.
//!
//! The engine's client is started, the container hands over its sockets, the proxy serves them, the
//! command goes, and ends by itself, by its time limit or because somebody stops it. Whatever happens,
//! what the run made is released.

use std::{
    io,
    path::Path,
    pin::pin,
    process::ExitStatus,
    sync::Arc,
    time::{Duration, Instant},
};

use cordon_door::{Access, Door, Ended, Go, Keeper, Report};
use cordon_engine::{Container, ContainerSpec, Engine, Limits, shell_code};
use cordon_proxy::Summary;
use tokio::{process::Child, time::timeout};

use crate::{
    CommandResult, CommandSpec, Network, Notice, Pull, ResourceLimits, SandboxError,
    leftovers::OWNER,
    live::Changes,
    modes::Hold,
    mount::Handles,
    place::Place,
    profile::in_memory,
    sandbox::{Shared, Stop},
    shield::Shield,
    streams::{Io, Pumps, Tails},
    topology::Connection,
    trust,
    user::User,
};

/// A command's spec together with what the sandbox adds to it.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    spec: &'a CommandSpec,
    limits: ResourceLimits,
    env: Vec<(String, String)>,
    shield: Shield,
    handles: Handles,
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

    fn container(
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

/// Runs a plan to its end. What fails because something was remembered wrongly, or because an image
/// has to be fetched first, is tried once more.
pub(crate) async fn run(
    shared: &Shared,
    plan: &Plan<'_>,
    io: Io,
    orders: Orders,
) -> Result<CommandResult, SandboxError> {
    attempt(shared, plan, io, orders, None).await
}

/// Keeps a plan's container for commands that come one by one, until its end.
pub(crate) async fn hold(
    shared: &Shared,
    plan: &Plan<'_>,
    io: Io,
    orders: Orders,
    hold: &Hold,
) -> Result<CommandResult, SandboxError> {
    attempt(shared, plan, io, orders, Some(hold)).await
}

async fn attempt(
    shared: &Shared,
    plan: &Plan<'_>,
    io: Io,
    mut orders: Orders,
    hold: Option<&Hold>,
) -> Result<CommandResult, SandboxError> {
    let mut engine = shared.engine()?;
    let mut remedies = Remedies::default();
    loop {
        let attempt = Attempt {
            shared,
            plan,
            engine: &engine,
            hold,
        };
        match attempt.run(&io, &mut orders).await {
            Ok(result) => return Ok(result),
            Err(Failure::Running(error)) => return Err(error),
            Err(Failure::Starting(error)) => {
                engine = remedies.apply(shared, engine, plan, error).await?;
            }
        }
    }
}

/// Where an attempt failed: only before the command started may it be repeated.
enum Failure {
    Starting(SandboxError),
    Running(SandboxError),
}

/// What has been tried after a container did not start.
#[derive(Default)]
struct Remedies {
    pulled: bool,
    runtime: bool,
    refreshed: bool,
}

impl Remedies {
    /// Does what may help, or gives the error back.
    async fn apply(
        &mut self,
        shared: &Shared,
        mut engine: Engine,
        plan: &Plan<'_>,
        error: SandboxError,
    ) -> Result<Engine, SandboxError> {
        let SandboxError::Engine(refusal) = &error else {
            return Err(error);
        };
        match refusal {
            cordon_engine::Error::NoSuchImage { image, .. } => {
                let fetch = shared.config.pull == Pull::Missing && !image.starts_with("localhost/");
                if !fetch || std::mem::replace(&mut self.pulled, true) {
                    return Err(error);
                }
                shared.notice(&Notice::Pulling {
                    image: plan.spec.image.clone(),
                });
                engine
                    .pull(&plan.spec.image, |line| tracing::info!("{line}"))
                    .await?;
                return Ok(engine);
            }
            cordon_engine::Error::Rejected { stderr, .. } if blames_the_runtime(stderr) => {
                if let (false, Some(runtime)) = (self.runtime, engine.other_runtime()) {
                    self.runtime = true;
                    shared.notice(&Notice::RuntimeReplaced {
                        from: engine.facts().default_runtime.clone(),
                        to: runtime.clone(),
                        reason: last_line(stderr),
                    });
                    engine.use_runtime(runtime);
                    shared.replace_engine(engine.clone());
                    return Ok(engine);
                }
            }
            _ => {}
        }
        if std::mem::replace(&mut self.refreshed, true) {
            return Err(error);
        }
        let believed = engine.facts().clone();
        engine.refresh().await?;
        if *engine.facts() == believed {
            return Err(error);
        }
        shared.replace_engine(engine.clone());
        Ok(engine)
    }
}

/// One try at running a plan.
struct Attempt<'a> {
    shared: &'a Shared,
    plan: &'a Plan<'a>,
    engine: &'a Engine,
    hold: Option<&'a Hold>,
}

impl Attempt<'_> {
    async fn run(&self, io: &Io, orders: &mut Orders) -> Result<CommandResult, Failure> {
        let begun = Instant::now();
        let place = self.place().map_err(Failure::Starting)?;
        let mut connection = match self.connect(&place, &mut orders.stop).await {
            Ok(connection) => connection,
            Err(Unconnected::Failed(error)) => return Err(Failure::Starting(error)),
            Err(Unconnected::Cancelled(cause)) => return Ok(Finish::cancelled(cause).result(begun)),
        };
        let result = self
            .run_connected(begun, &place, &mut connection, io, orders)
            .await;
        // Whatever came of it, the connection is taken down; the first failure is the one to tell.
        let released = connection.release().await;
        let mut result = result?;
        let summary = released.map_err(Failure::Running)?;
        if let Some(Summary {
            lost_records: lost @ 1..,
            log_error,
            ..
        }) = &summary
        {
            let cause = log_error.as_ref().map(chain).unwrap_or_default();
            self.shared.notice(&Notice::LogLost { lost: *lost, cause });
        }
        result.network = summary;
        Ok(result)
    }

    /// Makes the container's connection. One that is half made when the run is cancelled is finished
    /// first, because an engine may go on with what its client no longer waits for.
    async fn connect(&self, place: &Place, stop: &mut Stop) -> Result<Connection, Unconnected> {
        let limit = self.plan.limits.timeout.unwrap_or(FOREVER);
        let preparing = Connection::prepare(self.shared, self.engine, self.plan.spec, place);
        let mut preparing = pin!(preparing);
        let cause = tokio::select! {
            made = &mut preparing => return made.map_err(Unconnected::Failed),
            () = stop.requested() => Cause::Stopped,
            () = tokio::time::sleep(limit) => Cause::TimedOut,
        };
        let released = match timeout(GRACE, preparing).await {
            Ok(Ok(connection)) => connection.release().await.map(drop),
            Ok(Err(_)) => Ok(()),
            Err(_) => Connection::abandon(self.engine, place).await,
        };
        released.map_err(Unconnected::Failed)?;
        Err(Unconnected::Cancelled(cause))
    }

    async fn run_connected(
        &self,
        begun: Instant,
        place: &Place,
        connection: &mut Connection,
        io: &Io,
        orders: &mut Orders,
    ) -> Result<CommandResult, Failure> {
        let limit = self.plan.limits.timeout;
        let mut run = self
            .start(place, connection, io)
            .map_err(Failure::Starting)?;
        let remaining = limit.map(|limit| limit.saturating_sub(begun.elapsed()));
        let access = connection.access();
        let (sockets, keeper) = match self.handover(&mut run, access, orders, remaining).await? {
            Handover::Came(sockets, keeper) => (sockets, keeper),
            Handover::Cancelled(cause) => {
                self.remove(&run.container)
                    .await
                    .map_err(Failure::Running)?;
                return Ok(Finish::cancelled(cause).result(begun));
            }
        };
        connection
            .serve(self.shared, self.plan.spec, sockets)
            .await
            .map_err(Failure::Running)?;
        let go = Go {
            before: &self.plan.spec.before,
            command: &self.plan.spec.command,
            environment: &self.plan.env,
            mounts: self.plan.handles.mounted(),
        };
        if let Some(hold) = self.hold {
            let cause = self.hold(hold, keeper, go, connection, orders).await?;
            return self
                .finish(begun, run, None, None, cause)
                .await
                .map_err(Failure::Running);
        }
        if let Err(source) = keeper.go(go).await {
            let engine = run.engine_words().await;
            return Err(Failure::Running(SandboxError::Door { source, engine }));
        }
        run.pumps.command_starts(io.input.clone());

        let remaining = limit.map(|limit| limit.saturating_sub(begun.elapsed()));
        let mut watched = Watched {
            shared: self.shared,
            connection,
            orders,
        };
        let (report, cause) = watched.end(keeper.ended(), remaining).await;
        self.finish(begun, run, Some(keeper), report, cause)
            .await
            .map_err(Failure::Running)
    }

    /// Holds the container until somebody or something ends it. That it is gone is verified in any case.
    async fn hold(
        &self,
        hold: &Hold,
        keeper: Keeper,
        go: Go<'_>,
        connection: &mut Connection,
        orders: &mut Orders,
    ) -> Result<Cause, Failure> {
        let holder = match keeper.hold(go).await {
            Ok(holder) => Arc::new(holder),
            Err(source) => return Err(Failure::Running(self.not_held(source))),
        };
        if !hold.ready(&holder) {
            return Ok(Cause::Stopped);
        }
        let mut watched = Watched {
            shared: self.shared,
            connection,
            orders,
        };
        let over = async {
            hold.over(&holder).await;
            None
        };
        let (_, cause) = watched.end(over, None).await;
        hold.end(&holder).await;
        Ok(match cause {
            Cause::Ended => Cause::Stopped,
            Cause::Stopped | Cause::TimedOut | Cause::ProxyLost => cause,
        })
    }

    fn not_held(&self, source: cordon_door::Error) -> SandboxError {
        if let cordon_door::Error::NotHeld {
            report: Some(report),
        } = &source
            && let Ended::MountMoved { index } = report.ended
        {
            return self.moved(index);
        }
        SandboxError::Door {
            source,
            engine: String::new(),
        }
    }

    fn moved(&self, index: usize) -> SandboxError {
        let moved = self.plan.handles.mounted().get(index);
        SandboxError::MountMoved {
            path: moved.map(|moved| moved.path.clone()).unwrap_or_default(),
        }
    }

    fn place(&self) -> Result<Place, SandboxError> {
        Place::create(
            &self.shared.config.directories.runtime,
            &self.shared.owner,
            self.engine.program(),
        )
    }

    fn start(
        &self,
        place: &Place,
        connection: &Connection,
        io: &Io,
    ) -> Result<Started, SandboxError> {
        let shared = self.shared;
        let door = place.furnish(&*shared.authority()?, connection.address())?;
        let spec = self
            .plan
            .container(shared, self.engine, connection, place, io)?;
        let container = Container(place.name().to_owned());
        let mut client = self.engine.spawn(&spec, io.client())?;
        let pumps = Pumps::new(&mut client, &io.sink);
        Ok(Started {
            door: Some(door),
            client,
            pumps,
            container,
        })
    }

    /// Waits for the container's sockets, or for whatever makes that pointless.
    async fn handover(
        &self,
        run: &mut Started,
        access: Access,
        orders: &mut Orders,
        limit: Option<Duration>,
    ) -> Result<Handover, Failure> {
        let Some(door) = run.door.take() else {
            return Err(Failure::Running(SandboxError::NotStarted));
        };
        let limit = limit.unwrap_or(FOREVER);
        let patience = self.shared.config.start_limit.0;
        tokio::select! {
            handed = door.handover(access, patience) => match handed {
                Ok((sockets, keeper)) => Ok(Handover::Came(sockets, keeper)),
                Err(source) => {
                    drop(run.client.start_kill());
                    let engine = run.engine_words().await;
                    self.remove(&run.container).await.map_err(Failure::Running)?;
                    Err(Failure::Running(SandboxError::Door { source, engine }))
                }
            },
            status = run.client.wait() => {
                let words = run.engine_words().await;
                let status = status.unwrap_or_default();
                Err(Failure::Starting(self.engine.refusal(&self.plan.spec.image, status, &words).into()))
            }
            () = orders.stop.requested() => Ok(Handover::Cancelled(Cause::Stopped)),
            () = tokio::time::sleep(limit) => Ok(Handover::Cancelled(Cause::TimedOut)),
        }
    }

    /// Brings the run to its end and says how it went.
    async fn finish(
        &self,
        begun: Instant,
        mut run: Started,
        keeper: Option<Keeper>,
        mut report: Option<Report>,
        cause: Cause,
    ) -> Result<CommandResult, SandboxError> {
        if let (Some(keeper), true) = (&keeper, cause != Cause::Ended) {
            report = terminate(keeper, report).await;
        }
        // From here on nothing keeps the container: it has ended, or ends now.
        drop(keeper);
        let status = match timeout(DRAIN, run.client.wait()).await {
            Ok(status) => status.ok(),
            Err(_) => None,
        };
        if cause != Cause::Ended || status.is_none() {
            self.remove(&run.container).await?;
            drop(run.client.start_kill());
        }
        let tails = timeout(DRAIN, run.pumps.ends()).await.unwrap_or_default();
        if cause == Cause::ProxyLost {
            return Err(SandboxError::ProxyLost {
                said: "it ended before the command did".to_owned(),
            });
        }
        if let Some(Ended::MountMoved { index }) = report.map(|report| report.ended) {
            return Err(self.moved(index));
        }
        let lost = report.is_none()
            && cause == Cause::Ended
            && status.and_then(|status| status.code()) == Some(ENGINE_FAILED);
        if lost {
            let stderr = String::from_utf8_lossy(&tails.stderr).into_owned();
            return Err(SandboxError::Lost {
                stderr: last_line(&stderr),
            });
        }
        Ok(Finish {
            cause,
            report,
            status,
            tails,
        }
        .result(begun))
    }

    /// Removes a container and sees that it is gone.
    async fn remove(&self, container: &Container) -> Result<(), SandboxError> {
        for _ in 0..REMOVE_TRIES {
            self.engine.remove(container).await?;
            if self.engine.inspect(container).await?.is_none() {
                return Ok(());
            }
            tokio::time::sleep(REMOVE_PAUSE).await;
        }
        Err(SandboxError::LeftBehind {
            container: container.0.clone(),
        })
    }
}

/// Why a container has no connection, and will not be started.
enum Unconnected {
    Failed(SandboxError),
    Cancelled(Cause),
}

/// How a run came to its end.
struct Finish {
    cause: Cause,
    report: Option<Report>,
    status: Option<ExitStatus>,
    tails: Tails,
}

impl Finish {
    /// The end of a run whose command never started, because somebody or the clock said so.
    fn cancelled(cause: Cause) -> Self {
        Self {
            cause,
            report: None,
            status: None,
            tails: Tails::default(),
        }
    }

    fn result(self, begun: Instant) -> CommandResult {
        let Self {
            cause,
            report,
            status,
            tails,
        } = self;
        let ended = report.map(|report| report.ended);
        let exit_code = match (ended, status) {
            (Some(Ended::Status(status)), _) => shell_code(status),
            (Some(Ended::NotStarted { errno }), _) if errno == NO_SUCH_FILE => NOT_FOUND,
            (Some(Ended::NotStarted { .. } | Ended::MountMoved { .. }), _) => NOT_EXECUTABLE,
            (None, Some(status)) if cause == Cause::Ended => shell_code(status),
            (None, _) => KILLED,
        };
        CommandResult {
            exit_code,
            timed_out: cause == Cause::TimedOut,
            stopped: cause == Cause::Stopped,
            out_of_memory: report.is_some_and(|report| report.out_of_memory_kills > 0),
            not_started: match ended {
                Some(Ended::NotStarted { errno }) => Some(io::Error::from_raw_os_error(errno)),
                Some(Ended::Status(_) | Ended::MountMoved { .. }) | None => None,
            },
            duration: begun.elapsed(),
            stdout: tails.stdout,
            stderr: tails.stderr,
            network: None,
        }
    }
}

/// A container that has been asked for. When it is dropped on the way, the door closes and the
/// container ends by itself.
struct Started {
    door: Option<Door>,
    client: Child,
    pumps: Pumps,
    container: Container,
}

impl Started {
    /// What the engine itself said; the client has ended or is about to.
    async fn engine_words(&mut self) -> String {
        let pumps = std::mem::replace(&mut self.pumps, Pumps::finished());
        let tails = timeout(WORDS, pumps.ends()).await.unwrap_or_default();
        String::from_utf8_lossy(&tails.stderr).trim().to_owned()
    }
}

enum Handover {
    Came(Option<cordon_door::Sockets>, Keeper),
    Cancelled(Cause),
}

/// Why a run came to its end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Cause {
    Ended,
    Stopped,
    TimedOut,
    ProxyLost,
}

/// What reaches a run from outside: the word to stop, and changes of its policy.
#[derive(Debug)]
pub(crate) struct Orders {
    pub(crate) stop: Stop,
    pub(crate) changes: Changes,
}

/// A command that runs.
struct Watched<'a> {
    shared: &'a Shared,
    connection: &'a mut Connection,
    orders: &'a mut Orders,
}

impl Watched<'_> {
    /// Waits for the command's end, or for a reason to end it.
    async fn end(
        &mut self,
        ended: impl Future<Output = Option<Report>>,
        limit: Option<Duration>,
    ) -> (Option<Report>, Cause) {
        let mut time = std::pin::pin!(tokio::time::sleep(limit.unwrap_or(FOREVER)));
        let mut ended = pin!(ended);
        loop {
            tokio::select! {
                report = &mut ended => return (report, Cause::Ended),
                () = self.connection.lost() => return (None, Cause::ProxyLost),
                () = self.orders.stop.requested() => return (None, Cause::Stopped),
                () = &mut time => return (None, Cause::TimedOut),
                network = self.orders.changes.next() => {
                    if let Err(error) = self.connection.replace(&network).await {
                        let what = error.to_string();
                        self.shared.notice(&Notice::PolicyKept { what });
                    }
                }
            }
        }
    }
}

/// `SIGTERM`, a while, then `SIGKILL` for everything in the container.
async fn terminate(keeper: &Keeper, report: Option<Report>) -> Option<Report> {
    if report.is_some() || keeper.signal(SIGTERM).await.is_err() {
        return report;
    }
    if let Ok(report) = timeout(GRACE, keeper.ended()).await {
        return report;
    }
    if keeper.kill().await.is_err() {
        return None;
    }
    timeout(GRACE, keeper.ended()).await.ok().flatten()
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

/// Signs in what engines say that it is the OCI runtime which cannot work here.
fn blames_the_runtime(stderr: &str) -> bool {
    ["OCI runtime", "cgroups in hybrid mode", "crun:", "runc:"]
        .iter()
        .any(|sign| stderr.contains(sign))
}

/// An error with its causes, in one line.
fn chain(error: &cordon_proxy::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

fn last_line(text: &str) -> String {
    text.lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Where `cordon-init` is in a container.
pub(crate) const INIT: &str = "/.cordon/init";

/// What engines give where the host lets them.
const ENGINES_OPEN_FILES: u64 = 1_048_576;

/// How long a command has between `SIGTERM` and `SIGKILL`.
const GRACE: Duration = Duration::from_secs(5);

/// How long the engine's client may take to pass on the rest of the output.
const DRAIN: Duration = Duration::from_secs(10);

/// How long to wait for the engine's own words after its client was killed.
const WORDS: Duration = Duration::from_secs(2);

const REMOVE_TRIES: u32 = 10;

const REMOVE_PAUSE: Duration = Duration::from_millis(200);

/// As far away as timers go.
const FOREVER: Duration = Duration::from_secs(u32::MAX as u64);

const SIGTERM: u8 = 15;
const NO_SUCH_FILE: i32 = 2;
const ENGINE_FAILED: i32 = 125;
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;
const KILLED: i32 = 137;
