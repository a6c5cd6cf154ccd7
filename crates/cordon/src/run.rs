//! One container from its start to its verified end.
//!
//! The engine's client is started, the container hands over its sockets, the proxy serves them, the
//! command goes, and ends by itself, by its time limit or because somebody stops it. Whatever happens,
//! what the run made is released.

mod finish;
mod plan;
mod remedies;

use std::{
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use cordon_door::{Access, Door, Ended, Far, Go, Keeper, Report, Sockets};
use cordon_engine::{Container, Engine};
use cordon_proxy::Summary;
use tokio::{process::Child, time::timeout};

use crate::{
    CommandResult, Notice, SandboxError,
    error::with_causes,
    live::Changes,
    modes::Hold,
    place::Place,
    sandbox::{Shared, Stop},
    streams::{Io, Pumps},
    topology::Connection,
};
use finish::{Cause, Finish};
pub(crate) use plan::{INIT, Plan};
use remedies::Remedies;

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
    let engine = shared.engine()?;
    if !engine.facts().local {
        return Err(SandboxError::NotHeld {
            engine: engine.kind(),
        });
    }
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
            let cause = log_error
                .as_ref()
                .map(|error| with_causes(error))
                .unwrap_or_default();
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
        connection: &mut Connection,
        io: &Io,
    ) -> Result<Started, SandboxError> {
        let shared = self.shared;
        let entrance = match connection.far() {
            Some(far) => Entrance::Far(far),
            None => Entrance::Door(place.furnish(&*shared.authority()?, connection.address())?),
        };
        let spec = self
            .plan
            .container(shared, self.engine, connection, place, io)?;
        let container = Container(place.name().to_owned());
        let mut client = self.engine.spawn(&spec, io.client())?;
        let pumps = Pumps::new(&mut client, &io.sink);
        Ok(Started {
            entrance: Some(entrance),
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
        let Some(entrance) = run.entrance.take() else {
            return Err(Failure::Running(SandboxError::NotStarted));
        };
        let limit = limit.unwrap_or(FOREVER);
        let patience = self.shared.config.start_limit.0;
        tokio::select! {
            handed = entrance.handover(access, patience) => match handed {
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
        let begun = Instant::now();
        loop {
            self.engine.remove(container).await?;
            if self.engine.inspect(container).await?.is_none() {
                return Ok(());
            }
            if begun.elapsed() > REMOVE_LIMIT {
                return Err(SandboxError::LeftBehind {
                    container: container.0.clone(),
                });
            }
            tokio::time::sleep(REMOVE_PAUSE).await;
        }
    }
}

/// Why a container has no connection, and will not be started.
enum Unconnected {
    Failed(SandboxError),
    Cancelled(Cause),
}

/// A container that has been asked for. When it is dropped on the way, the door closes and the
/// container ends by itself.
struct Started {
    entrance: Option<Entrance>,
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

/// Where a container is waited for.
enum Entrance {
    Door(Door),
    Far(Far),
}

impl Entrance {
    async fn handover(
        self,
        access: Access,
        limit: Duration,
    ) -> Result<(Option<Sockets>, Keeper), cordon_door::Error> {
        match self {
            Self::Door(door) => door.handover(access, limit).await,
            Self::Far(far) => Ok((None, far.greeting(limit).await?)),
        }
    }
}

enum Handover {
    Came(Option<Sockets>, Keeper),
    Cancelled(Cause),
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

fn last_line(text: &str) -> String {
    text.lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// How long a command has between `SIGTERM` and `SIGKILL`.
const GRACE: Duration = Duration::from_secs(5);

/// How long the engine's client may take to pass on the rest of the output.
const DRAIN: Duration = Duration::from_secs(10);

/// How long to wait for the engine's own words after its client was killed.
const WORDS: Duration = Duration::from_secs(2);

/// How long an engine may take to remove a container. Docker, on a busy disk, takes many seconds for one with
/// a large image, and says meanwhile that it is at it.
const REMOVE_LIMIT: Duration = Duration::from_secs(60);

const REMOVE_PAUSE: Duration = Duration::from_millis(200);

/// As far away as timers go.
const FOREVER: Duration = Duration::from_secs(u32::MAX as u64);

const SIGTERM: u8 = 15;
const ENGINE_FAILED: i32 = 125;
