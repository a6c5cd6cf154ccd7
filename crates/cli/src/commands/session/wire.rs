//! What a client and a supervisor say to each other.
//!
//! A client sends one request, a length and as much JSON; behind the request to run a command, each byte
//! is a signal for it. The supervisor answers with a letter, which brings the command's pipes where it
//! runs, and with JSON: at once, or when the command has ended.

use std::{
    io,
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    time::Duration,
};

use anyhow::{Context, bail};
use cordon::modes::{ExecCommand, ExecRequest, Pipes};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, Interest},
    net::UnixStream,
};

/// What a client wants.
pub(super) enum Request {
    Exec(ExecRequest),
    State,
    Stop,
}

/// What a supervisor answers first.
pub(super) enum Answer {
    /// The command runs; how it ended follows.
    Runs(Pipes),
    /// This is all there is to say.
    Said(Value),
}

impl Request {
    pub(super) async fn send(&self, stream: &mut UnixStream) -> anyhow::Result<()> {
        let value = match self {
            Self::State => json!({"verb": "state"}),
            Self::Stop => json!({"verb": "stop"}),
            Self::Exec(request) => {
                // Arguments need not be text.
                let argv: Vec<_> = match &request.command {
                    ExecCommand::Argv(argv) => argv.iter().map(|word| word.as_bytes()).collect(),
                    ExecCommand::Shell(_) => bail!("a line of shell is no request"),
                };
                json!({
                    "verb": "exec",
                    "argv": argv,
                    "env": request.env,
                    "cwd": request.cwd,
                    "timeout": request.timeout.map(|limit| limit.as_secs()),
                })
            }
        };
        tell(stream, &value).await
    }

    pub(super) async fn receive(stream: &mut UnixStream) -> anyhow::Result<Self> {
        let value = hear(stream).await?;
        let request = match value["verb"].as_str() {
            Some("state") => Some(Self::State),
            Some("stop") => Some(Self::Stop),
            Some("exec") => exec(&value).map(Self::Exec),
            _ => None,
        };
        request.context("not a request")
    }
}

fn exec(value: &Value) -> Option<ExecRequest> {
    let word = |word: &Value| {
        let bytes = word.as_array()?.iter();
        let bytes: Option<Vec<u8>> = bytes
            .map(|byte| u8::try_from(byte.as_u64()?).ok())
            .collect();
        Some(OsStringExt::from_vec(bytes?))
    };
    let argv: Option<Vec<std::ffi::OsString>> =
        value["argv"].as_array()?.iter().map(word).collect();
    let pair = |pair: &Value| Some((pair[0].as_str()?.to_owned(), pair[1].as_str()?.to_owned()));
    let env: Option<Vec<_>> = value["env"].as_array()?.iter().map(pair).collect();
    Some(ExecRequest {
        env: env?,
        cwd: value["cwd"].as_str().map(Into::into),
        timeout: value["timeout"].as_u64().map(Duration::from_secs),
        ..ExecRequest::argv(argv?)
    })
}

impl Answer {
    pub(super) async fn send(self, stream: &mut UnixStream) -> anyhow::Result<()> {
        match self {
            Self::Runs(pipes) => {
                let pipes = [
                    pipes.stdin.as_fd(),
                    pipes.stdout.as_fd(),
                    pipes.stderr.as_fd(),
                ];
                let sending = || {
                    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
                    let mut control = SendAncillaryBuffer::new(&mut space);
                    control.push(SendAncillaryMessage::ScmRights(&pipes));
                    let letter = [io::IoSlice::new(&[RUNS])];
                    rustix::net::sendmsg(&*stream, &letter, &mut control, SendFlags::NOSIGNAL)?;
                    Ok(())
                };
                stream.async_io(Interest::WRITABLE, sending).await?;
                Ok(())
            }
            Self::Said(value) => {
                stream.write_all(&[SAID]).await?;
                tell(stream, &value).await
            }
        }
    }

    pub(super) async fn receive(stream: &mut UnixStream) -> anyhow::Result<Self> {
        let (letter, descriptors) = receive(stream).await?;
        match (letter, <[OwnedFd; 3]>::try_from(descriptors)) {
            (RUNS, Ok([stdin, stdout, stderr])) => Ok(Self::Runs(Pipes {
                stdin,
                stdout,
                stderr,
            })),
            (SAID, _) => Ok(Self::Said(hear(stream).await?)),
            _ => bail!("the supervisor of the session is of another version"),
        }
    }
}

/// A letter, and the descriptors that came with it.
async fn receive(stream: &UnixStream) -> io::Result<(u8, Vec<OwnedFd>)> {
    let receiving = || {
        let mut letter = [0];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [io::IoSliceMut::new(&mut letter)];
        let message =
            rustix::net::recvmsg(stream, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
        if message.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let descriptors = control.drain().filter_map(|part| match part {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        let descriptors = descriptors.flatten().collect();
        Ok((letter[0], descriptors))
    };
    stream.async_io(Interest::READABLE, receiving).await
}

/// Sends a length and as much JSON.
pub(super) async fn tell(stream: &mut UnixStream, value: &Value) -> anyhow::Result<()> {
    let bytes = value.to_string().into_bytes();
    let size = u32::try_from(bytes.len())
        .ok()
        .filter(|size| *size <= MESSAGE_MOST)
        .context("the command and its environment are too large")?;
    stream.write_all(&size.to_le_bytes()).await?;
    Ok(stream.write_all(&bytes).await?)
}

/// Receives a length and as much JSON.
pub(super) async fn hear(stream: &mut UnixStream) -> anyhow::Result<Value> {
    let size = stream.read_u32_le().await?;
    if size > MESSAGE_MOST {
        bail!("a message of {size} bytes");
    }
    let mut bytes = Vec::new();
    stream.take(size.into()).read_to_end(&mut bytes).await?;
    Ok(serde_json::from_slice(&bytes)?)
}

const RUNS: u8 = b'P';
const SAID: u8 = b'A';

/// A command line of the kernel's largest size, each byte written as a number.
const MESSAGE_MOST: u32 = 16 << 20;
