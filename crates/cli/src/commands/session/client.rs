//! `cordon session exec`: asks a supervisor for a command, and moves its streams itself.

use std::{os::fd::OwnedFd, time::Duration};

use cordon::modes::{ExecRequest, Pipes};
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{UnixStream, unix::pipe},
    sync::watch,
};

use super::{
    desk::Desk,
    wire::{Answer, Request},
};
use crate::{
    args::SessionExec,
    commands::interrupts::Interrupts,
    exit::Exit,
    printer::{Hinted, Printer},
};

pub(super) async fn exec(args: SessionExec, printer: &Printer) -> anyhow::Result<Exit> {
    let mut interrupts = Interrupts::new()?;
    let desk = Desk::of(&args.name)?;
    let env = args.env.into_iter();
    let request = ExecRequest {
        env: env
            .map(|variable| (variable.name, variable.value))
            .collect(),
        cwd: args.workdir,
        timeout: args.timeout.map(Duration::from_secs),
        ..ExecRequest::argv(args.command)
    };
    let mut stream = desk.connect().await?;
    Request::Exec(request).send(&mut stream).await?;
    match Answer::receive(&mut stream).await? {
        Answer::Said(refusal) => end(&refusal, printer),
        Answer::Runs(pipes) => attend(stream, pipes, &mut interrupts, printer).await,
    }
}

/// Moves what the command reads and writes until it has ended, and hands our signals to it.
async fn attend(
    mut stream: UnixStream,
    pipes: Pipes,
    interrupts: &mut Interrupts,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let stdin = pipe::Sender::from_owned_fd(pipes.stdin)?;
    // Its thread may wait for ever for a terminal; it must not be waited for.
    tokio::spawn(feed(tokio::io::stdin(), stdin));
    let (over, ends) = watch::channel(false);
    let stdout = tokio::spawn(pass(pipes.stdout, tokio::io::stdout(), ends.clone()));
    let stderr = tokio::spawn(pass(pipes.stderr, tokio::io::stderr(), ends));
    let (mut from, mut to) = stream.split();
    let said = async {
        let size = from.read_u32_le().await?;
        let mut bytes = Vec::new();
        from.take(size.into()).read_to_end(&mut bytes).await?;
        anyhow::Ok(serde_json::from_slice::<Value>(&bytes)?)
    };
    let mut said = std::pin::pin!(said);
    let said = loop {
        tokio::select! {
            said = &mut said => break said,
            number = interrupts.next() => {
                // A supervisor that is gone shows in what it says.
                let number = u8::try_from(number).unwrap_or_default();
                drop(to.write_all(&[number]).await);
            }
        }
    };
    over.send_replace(true);
    stdout.await??;
    stderr.await??;
    match said {
        Ok(said) => end(&said, printer),
        Err(_) => {
            let hint = "see `cordon session list`";
            Err(Hinted::new("the session ended before the command did", hint).into())
        }
    }
}

async fn feed(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
    // A command that ends without reading all of its input is no trouble of ours.
    drop(tokio::io::copy(&mut from, &mut to).await);
}

/// Passes a stream on until it ends; or, once the command is over, until nothing is left in the pipe,
/// because what the command left running may hold the other end open.
async fn pass(
    from: OwnedFd,
    mut to: impl AsyncWrite + Unpin,
    mut over: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let mut pipe = pipe::Receiver::from_owned_fd(from)?;
    let mut buffer = vec![0; BUFFER];
    loop {
        let count = tokio::select! {
            biased;
            read = pipe.read(&mut buffer) => read?,
            _ = over.wait_for(|over| *over) => break,
        };
        if count == 0 {
            return to.flush().await;
        }
        if put(&mut to, &buffer[..count]).await.is_err() {
            // Whoever reads us has gone; the command learns of it when it writes on.
            return Ok(());
        }
    }
    let mut rest = PIPE_MOST;
    while let Ok(count @ 1..) = rustix::io::read(&pipe, &mut buffer) {
        rest = rest.saturating_sub(count);
        if put(&mut to, &buffer[..count]).await.is_err() || rest == 0 {
            break;
        }
    }
    Ok(())
}

async fn put(to: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> std::io::Result<()> {
    to.write_all(bytes).await?;
    to.flush().await
}

/// How it ended, as the supervisor says.
fn end(said: &Value, printer: &Printer) -> anyhow::Result<Exit> {
    let code = said["exit_code"]
        .as_i64()
        .and_then(|code| i32::try_from(code).ok());
    if let Some(error) = said["error"].as_str() {
        let error = match said["cause"].as_str() {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_owned(),
        };
        return match (code, said["hint"].as_str()) {
            (Some(code @ (126 | 127)), _) => {
                printer.warning(error);
                Ok(Exit::Command(code))
            }
            (_, Some(hint)) => Err(Hinted::new(error, hint).into()),
            (_, None) => Err(anyhow::anyhow!(error)),
        };
    }
    if said["out_of_memory"] == true {
        printer.warning("the kernel ended something in the container for want of memory");
        printer.hint("start the session with more --memory");
    }
    if said["timed_out"] == true {
        printer.warning("the command was ended because its time was up");
        return Ok(Exit::TimedOut);
    }
    Ok(code.map_or(Exit::Setup, Exit::Command))
}

const BUFFER: usize = 64 << 10;

/// More than a pipe of an ordinary user holds, so that whoever still writes cannot keep us reading.
const PIPE_MOST: usize = 1 << 20;
