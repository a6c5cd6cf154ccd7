//! Passes the bytes of one connection on, between whoever keeps the workload's container alive from
//! another machine and PID 1 of that container, which reaches nobody but this program.
//!
//! One connection is taken, from whoever brings the token; the port is closed from then on. The workload
//! starts after that. What the bytes mean is the business of both ends.

use std::{
    fmt, io,
    io::{Read, Write},
    net::{Ipv4Addr, Shutdown, TcpListener, TcpStream},
    sync::{Arc, OnceLock},
    thread,
    time::Duration,
};

use data_encoding::BASE64;

use super::{LINE_MAX, RELAYED};
use crate::Error;

/// Where PID 1 is waited for, on the address of the workload's network.
pub const RELAY_PORT: u16 = 7700;

/// What PID 1 must bring. It is good for one connection.
#[derive(Clone, Eq, PartialEq)]
pub struct Token([u8; SIZE]);

impl Token {
    /// A token of those bytes, which nobody can guess.
    #[must_use]
    pub fn new(bytes: [u8; SIZE]) -> Self {
        Self(bytes)
    }

    /// What is brought.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn decode(text: &str) -> Result<Self, Error> {
        let bytes = BASE64.decode(text.as_bytes()).ok();
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or(Error::BadDocument)
    }

    pub(super) fn encode(&self) -> String {
        BASE64.encode(&self.0)
    }

    /// Whether these are the same, in a time that does not tell how much of them is.
    fn is(&self, brought: &[u8; SIZE]) -> bool {
        let pairs = self.0.iter().zip(brought);
        pairs.fold(0, |differ, (one, other)| differ | (one ^ other)) == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// The program's end of the connection.
#[derive(Debug)]
pub(super) struct Relay(Arc<OnceLock<TcpStream>>);

impl Relay {
    /// Waits for the connection from now on, and prints what comes over it.
    pub(super) fn open(address: Ipv4Addr, token: Token) -> Result<Self, Error> {
        let failed = |source| Error::Socket {
            which: "keeper's",
            source,
        };
        let listener = TcpListener::bind((address, RELAY_PORT)).map_err(failed)?;
        let taken = Arc::new(OnceLock::new());
        let relay = Self(Arc::clone(&taken));
        let pass = move || {
            let stream = take(&listener, &token)?;
            drop(listener);
            if taken.set(stream.try_clone()?).is_ok() {
                print_all(stream)?;
            }
            Ok::<_, io::Error>(())
        };
        let run = move || {
            // However it ended, the other side is told that it has.
            drop(pass());
            drop(print(b""));
        };
        let spawned = thread::Builder::new().name("relay".to_owned()).spawn(run);
        spawned.map_err(failed)?;
        Ok(relay)
    }

    /// Passes bytes on to PID 1; none at all is the end.
    pub(super) fn pass(&self, bytes: &[u8]) {
        let Some(mut stream) = self.0.get() else {
            // Whoever keeps the container speaks second.
            return;
        };
        if bytes.is_empty() || stream.write_all(bytes).is_err() {
            // One that is gone already need not be told.
            drop(stream.shutdown(Shutdown::Both));
        }
    }
}

/// The first connection that brings the token. Others are closed.
fn take(listener: &TcpListener, token: &Token) -> io::Result<TcpStream> {
    loop {
        let (mut stream, _) = listener.accept()?;
        let mut brought = [0; SIZE];
        stream.set_read_timeout(Some(PATIENCE))?;
        if stream.read_exact(&mut brought).is_ok() && token.is(&brought) {
            stream.set_read_timeout(None)?;
            stream.set_nodelay(true)?;
            return Ok(stream);
        }
    }
}

fn print_all(mut stream: TcpStream) -> io::Result<()> {
    let mut chunk = [0; CHUNK];
    loop {
        match stream.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(size) => print(&chunk[..size])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn print(bytes: &[u8]) -> io::Result<()> {
    let mut line = vec![RELAYED];
    line.extend(BASE64.encode(bytes).bytes());
    line.push(b'\n');
    io::stdout().lock().write_all(&line)
}

const SIZE: usize = 32;

/// How long one that has connected may take to bring the token: PID 1 writes it at once.
const PATIENCE: Duration = Duration::from_secs(2);

const CHUNK: usize = 16 << 10;

const _: () = assert!(CHUNK as u64 * 2 < LINE_MAX);
