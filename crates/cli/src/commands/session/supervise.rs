//! The supervisor: the process that a session's container lives and ends with.

use std::{io, pin::pin, sync::Arc, time::Duration};

use anyhow::Context;
use cordon::{
    CommandSpec, SandboxError,
    modes::{ExecRequest, SessionContainers, SessionKey},
};
use serde_json::{Value, json};
use tokio::{
    io::AsyncReadExt,
    net::{UnixListener, UnixStream},
};

use super::{
    desk::{Desk, OwnDesk},
    wire::{Answer, Request, tell},
};
use crate::{
    args::SessionStart,
    commands::{
        interrupts::Interrupts,
        surroundings::{self, Own, Ready, Settings},
        tend::{Running, Tend},
        workspace::Workspace,
    },
    exit::Exit,
    printer::{Hinted, Printer},
};

pub(super) async fn supervise(args: SessionStart, printer: &Printer) -> anyhow::Result<Exit> {
    // Whatever happens to the terminal and its processes does not happen to the session.
    rustix::process::setsid().context("cannot leave the terminal")?;
    let mut interrupts = Interrupts::new()?;
    let key = key(&args)?;
    let desk = Desk::of(&key.name())?.take()?;
    let container = &args.container;
    if container.network_log_live {
        let hint = "write it to a file with --network-log, and look at that";
        return Err(Hinted::new("a session has nobody to show the network log to", hint).into());
    }
    let mut workspace = match Workspace::prepare(container, &mut interrupts, printer).await? {
        Ok(workspace) => workspace,
        Err(exit) => return Ok(exit),
    };
    let mounts = workspace.mounts(&container.mount)?;
    let Settings {
        env,
        network,
        limits,
        build,
        tend,
    } = surroundings::settings(container, &workspace, &mounts, Own::default(), printer).await?;
    let mut spec = CommandSpec {
        mounts,
        env,
        user: container.user.clone(),
        profile: container.profile.unwrap_or_default(),
        network,
        limits,
        network_log: args.network_log.clone(),
        ..CommandSpec::new("", [""; 0])
    };
    let Ready { sandbox, image } = match surroundings::prepare(
        container,
        workspace.rules(),
        build,
        &mut interrupts,
        printer,
    )
    .await?
    {
        Ok(ready) => ready,
        Err(exit) => return Ok(exit),
    };
    spec.image = image;
    let idle = Duration::from_secs(args.idle);
    let containers = SessionContainers::new(&sandbox, spec, Some(idle))?;
    workspace.keep();
    workspace.name(printer);
    let session = Arc::new(Session { key, containers });
    let ended = session.live(&desk, &tend, &mut interrupts, printer).await;
    session.containers.stop_all().await;
    sandbox.shutdown().await;
    ended
}

/// Says the session's name to whoever started it, and goes on alone.
fn leave(desk: &OwnDesk, printer: &Printer) -> anyhow::Result<()> {
    let log = desk.log()?;
    printer.hand_over(desk.name())?;
    rustix::stdio::dup2_stdout(&log)?;
    rustix::stdio::dup2_stderr(&log)?;
    Ok(())
}

fn key(args: &SessionStart) -> anyhow::Result<SessionKey> {
    let session = match &args.session {
        Some(session) => session.clone(),
        None => std::env::current_dir()
            .context("cannot tell the current directory")?
            .to_string_lossy()
            .into_owned(),
    };
    Ok(SessionKey {
        agent: args.agent.clone(),
        session,
    })
}

/// The session that this process supervises.
struct Session {
    key: SessionKey,
    containers: SessionContainers,
}

/// Answers clients, each in a task of its own.
async fn serve(listener: &UnixListener, session: &Arc<Session>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let session = Arc::clone(session);
                // A client that breaks off has nobody to be told.
                tokio::spawn(async move { drop(session.answer(stream).await) });
            }
            // Out of descriptors, say; whoever waits is served when some are free.
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

impl Session {
    /// From the container's start to whatever ends it; nobody is told of one that cannot be found.
    async fn live(
        self: &Arc<Self>,
        desk: &OwnDesk,
        tend: &Tend,
        interrupts: &mut Interrupts,
        printer: &Printer,
    ) -> anyhow::Result<Exit> {
        tokio::select! {
            started = self.containers.start(&self.key) => started?,
            number = interrupts.next() => return Ok(Exit::Signal(number)),
        }
        let listener = desk.open()?;
        leave(desk, printer)?;
        Ok(tokio::select! {
            () = self.containers.ended(&self.key) => Exit::Command(0),
            () = serve(&listener, self) => Exit::Setup,
            () = tend.run(Running::Session(&self.containers), printer) => Exit::Setup,
            number = interrupts.next() => Exit::Signal(number),
        })
    }

    async fn answer(&self, mut stream: UnixStream) -> anyhow::Result<()> {
        let request = tokio::time::timeout(REQUEST_LIMIT, Request::receive(&mut stream)).await??;
        match request {
            Request::Exec(request) => self.exec(stream, &request).await,
            Request::State => Answer::Said(self.state().await).send(&mut stream).await,
            Request::Stop => {
                Answer::Said(json!({})).send(&mut stream).await?;
                self.containers.stop(&self.key).await;
                Ok(())
            }
        }
    }

    async fn state(&self) -> Value {
        let state = self.containers.state(&self.key).await;
        json!({
            "agent": self.key.agent,
            "session": self.key.session,
            "pid": std::process::id(),
            "engine": state.map(|state| state.engine.to_string()),
            "age_seconds": state.map(|state| state.age.as_secs()),
            "idle_seconds": state.map(|state| state.idle.as_secs()),
            "running": state.map(|state| state.running),
        })
    }

    /// Runs a command for a client, and ends it when the client goes.
    async fn exec(&self, mut stream: UnixStream, request: &ExecRequest) -> anyhow::Result<()> {
        let mut command = match self.begin(request).await {
            Ok(command) => command,
            Err(error) => return Answer::Said(refusal(&error)).send(&mut stream).await,
        };
        let Some(pipes) = command.take_pipes() else {
            return Ok(());
        };
        Answer::Runs(pipes).send(&mut stream).await?;
        let signals = command.signals();
        let mut ended = pin!(command.ended());
        let end = loop {
            let mut signal = [0];
            tokio::select! {
                end = &mut ended => break end,
                said = stream.read(&mut signal) => match said {
                    Ok(1) => drop(signals.send(signal[0]).await),
                    // The client is gone, and its command goes with it.
                    Ok(_) | Err(_) => return Ok(()),
                },
            }
        };
        let said = match end {
            Ok(end) => json!({
                "exit_code": end.exit_code,
                "timed_out": end.timed_out,
                "out_of_memory": end.out_of_memory,
            }),
            Err(error) => refusal(&error),
        };
        tell(&mut stream, &said).await
    }

    async fn begin(
        &self,
        request: &ExecRequest,
    ) -> Result<cordon::modes::SessionCommand, SandboxError> {
        // This process ends with its container: nothing is started anew here.
        if self.containers.state(&self.key).await.is_none() {
            return Err(SandboxError::SessionLost);
        }
        self.containers.begin(&self.key, request).await
    }
}

/// Why there is no command, or no end of it.
fn refusal(error: &SandboxError) -> Value {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    let code = match error {
        SandboxError::CommandNotStarted { source, .. } => match source.kind() {
            io::ErrorKind::NotFound => NOT_FOUND,
            _ => NOT_EXECUTABLE,
        },
        _ => SETUP,
    };
    json!({
        "error": error.to_string(),
        "cause": cause,
        "hint": error.hint(),
        "exit_code": code,
    })
}

const SETUP: i32 = 125;
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;

/// A client that says nothing must not be waited for.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);

const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
