//! Where the input and output of a command go.

use std::{
    fmt,
    io::{self, IsTerminal},
    process::Stdio,
    sync::Arc,
};

use cordon_engine::{Terminal, process};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    process::{Child, ChildStdin},
    sync::{mpsc, watch},
};

/// How a command's three streams are connected.
#[derive(Clone, Debug, Default)]
pub struct Streams {
    /// Standard input.
    pub input: Input,
    /// Standard output and standard error.
    pub output: Output,
}

/// Where a command's standard input comes from.
#[derive(Clone, Default)]
pub enum Input {
    /// There is none.
    #[default]
    Empty,
    /// These bytes, then the end.
    Bytes(Vec<u8>),
    /// The caller's own.
    Inherit,
}

/// Where a command's standard output and standard error go.
#[derive(Clone, Default)]
pub enum Output {
    /// Only the end of each is kept, in the result.
    #[default]
    Kept,
    /// Every piece is given to the function as it comes; the end of each is kept too.
    Callback(OnOutput),
    /// The caller's own.
    Inherit,
}

/// Called with a piece of output, from any thread.
pub type OnOutput = Arc<dyn Fn(Stream, &[u8]) + Send + Sync>;

/// Which of the two output streams.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Streams {
    /// No input; the end of the output is kept in the result.
    #[must_use]
    pub fn captured() -> Self {
        Self::default()
    }

    /// The caller's own streams, byte for byte, with its terminal if it has one.
    #[must_use]
    pub fn inherited() -> Self {
        Self {
            input: Input::Inherit,
            output: Output::Inherit,
        }
    }

    fn terminal(&self) -> Terminal {
        match (&self.input, &self.output) {
            (Input::Empty, _) => Terminal::None,
            (Input::Inherit, Output::Inherit)
                if io::stdin().is_terminal() && io::stdout().is_terminal() =>
            {
                Terminal::Full
            }
            (Input::Inherit | Input::Bytes(_), _) => Terminal::Input,
        }
    }
}

/// The streams of a run, resolved.
#[derive(Debug)]
pub(crate) struct Io {
    pub(crate) input: Input,
    pub(crate) sink: Sink,
    pub(crate) terminal: Terminal,
}

/// Where output goes, piece by piece.
#[derive(Clone)]
pub(crate) enum Sink {
    Kept,
    Callback(OnOutput),
    Inherit,
    /// To whoever reads the channel; a reader that is slow holds the command back.
    Channel(mpsc::Sender<(Stream, Vec<u8>)>),
}

impl Io {
    /// What the engine's client is started with. Its standard error is always ours to read: until the
    /// command starts, what comes there are the engine's own words.
    pub(crate) fn client(&self) -> process::Streams {
        process::Streams {
            stdin: match self.input {
                Input::Empty => Stdio::null(),
                Input::Bytes(_) => Stdio::piped(),
                Input::Inherit => Stdio::inherit(),
            },
            stdout: match self.sink {
                Sink::Kept | Sink::Callback(_) | Sink::Channel(_) => Stdio::piped(),
                Sink::Inherit => Stdio::inherit(),
            },
            stderr: Stdio::piped(),
        }
    }
}

impl From<Streams> for Io {
    fn from(streams: Streams) -> Self {
        Self {
            terminal: streams.terminal(),
            input: streams.input,
            sink: match streams.output {
                Output::Kept => Sink::Kept,
                Output::Callback(callback) => Sink::Callback(callback),
                Output::Inherit => Sink::Inherit,
            },
        }
    }
}

/// Moves a client's streams while its container runs.
#[derive(Debug)]
pub(crate) struct Pumps {
    started: watch::Sender<bool>,
    stdin: Option<ChildStdin>,
    stdout: tokio::task::JoinHandle<Vec<u8>>,
    stderr: tokio::task::JoinHandle<Vec<u8>>,
}

/// The ends of what a command wrote.
#[derive(Debug, Default)]
pub(crate) struct Tails {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl Pumps {
    pub(crate) fn new(client: &mut Child, sink: &Sink) -> Self {
        let (started, starts) = watch::channel(false);
        let pump = Pump {
            stream: Stream::Stdout,
            sink: sink.clone(),
            starts: None,
        };
        let stdout = tokio::spawn(pump.run(client.stdout.take()));
        let pump = Pump {
            stream: Stream::Stderr,
            sink: sink.clone(),
            starts: Some(starts),
        };
        let stderr = tokio::spawn(pump.run(client.stderr.take()));
        Self {
            started,
            stdin: client.stdin.take(),
            stdout,
            stderr,
        }
    }

    /// Pumps with nothing left to move.
    pub(crate) fn finished() -> Self {
        let nothing = || tokio::spawn(async { Vec::new() });
        Self {
            started: watch::Sender::new(true),
            stdin: None,
            stdout: nothing(),
            stderr: nothing(),
        }
    }

    /// The command starts: from here on, standard error is its own, and its input is fed.
    pub(crate) fn command_starts(&mut self, input: Input) {
        self.started.send_replace(true);
        if let (Some(mut stdin), Input::Bytes(bytes)) = (self.stdin.take(), input) {
            tokio::spawn(async move {
                // A command that ends without reading all of its input is no trouble of ours.
                drop(stdin.write_all(&bytes).await);
            });
        }
    }

    /// Waits until both streams have ended.
    pub(crate) async fn ends(self) -> Tails {
        let Self {
            started,
            stdout,
            stderr,
            ..
        } = self;
        let tails = Tails {
            stdout: stdout.await.unwrap_or_default(),
            stderr: stderr.await.unwrap_or_default(),
        };
        drop(started);
        tails
    }
}

struct Pump {
    stream: Stream,
    sink: Sink,
    /// Until this turns true, nothing is passed on.
    starts: Option<watch::Receiver<bool>>,
}

impl Pump {
    async fn run(self, source: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
        let Some(mut source) = source else {
            return Vec::new();
        };
        let mut kept = Vec::new();
        let mut chunk = vec![0; CHUNK];
        while let Ok(size @ 1..) = source.read(&mut chunk).await {
            let bytes = &chunk[..size];
            let of_the_engine = self.starts.as_ref().is_some_and(|starts| !*starts.borrow());
            if !of_the_engine {
                self.pass(bytes).await;
            }
            kept.extend_from_slice(bytes);
            if kept.len() > 2 * KEPT {
                kept.drain(..kept.len() - KEPT);
            }
        }
        kept.drain(..kept.len().saturating_sub(KEPT));
        kept
    }

    async fn pass(&self, bytes: &[u8]) {
        // The caller's stream may be closed; the command learns of it when it writes on.
        match (&self.sink, self.stream) {
            (Sink::Kept, _) => {}
            (Sink::Callback(callback), stream) => callback(stream, bytes),
            (Sink::Channel(sender), stream) => drop(sender.send((stream, bytes.to_vec())).await),
            (Sink::Inherit, Stream::Stdout) => drop(write(tokio::io::stdout(), bytes).await),
            (Sink::Inherit, Stream::Stderr) => drop(write(tokio::io::stderr(), bytes).await),
        }
    }
}

async fn write(mut sink: impl AsyncWrite + Unpin, bytes: &[u8]) -> io::Result<()> {
    sink.write_all(bytes).await?;
    sink.flush().await
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "Empty",
            Self::Bytes(_) => "Bytes(…)",
            Self::Inherit => "Inherit",
        })
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kept => "Kept",
            Self::Callback(_) => "Callback(…)",
            Self::Inherit => "Inherit",
        })
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kept => "Kept",
            Self::Callback(_) => "Callback(…)",
            Self::Inherit => "Inherit",
            Self::Channel(_) => "Channel(…)",
        })
    }
}

const CHUNK: usize = 64 << 10;

/// How much of the end of each stream a result holds.
const KEPT: usize = 64 << 10;
