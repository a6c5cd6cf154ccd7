//! The proxy as a program of its own, in a container beside the workload.
//!
//! Everything it is told comes over standard input: one line that says how to serve, then orders, one
//! line each. Its standard output is a line for each record, and among them one line `ready`. It has no
//! file and no argument, and it ends when its input does: it cannot outlive its keeper. [`serve`] is the
//! program's side; [`Document`], [`Order`] and [`Answers`] are the keeper's.
//!
//! Where the keeper is in another machine than the workload, the program also passes the bytes of the one
//! connection on by which the keeper holds the workload's container; where the workload is to have no
//! network, it does nothing else.

mod answers;
mod document;
mod relay;

use std::{
    io::{self, BufRead, Read, Write},
    net::{Ipv4Addr, TcpListener, UdpSocket},
    sync::Arc,
};

use tokio::runtime::Runtime;
use zeroize::Zeroizing;

pub use answers::Answers;
pub use document::{Document, Order};
pub use relay::{RELAY_PORT, Token};

use crate::{Error, OnRecord, Proxy, Sockets};
use document::Told;
use relay::Relay;

/// Serves as the first line of `input` says, until the input ends or orders the end. Records go to
/// standard output. Needs ports 53, 80 and 443 of the address that it is told, and [`RELAY_PORT`] until
/// PID 1 has come where it is to be waited for; no other.
pub fn serve(mut input: impl BufRead) -> Result<(), Error> {
    let line = next_line(&mut input)?.ok_or(Error::NoDocument)?;
    let told = Told::from_line(&line)?;
    drop(line);
    match told {
        Told::Serve(document) => serve_all(*document, input),
        Told::Relay(address, token) => pass_on(&Relay::open(address, token)?, input),
    }
}

fn serve_all(document: Document, mut input: impl BufRead) -> Result<(), Error> {
    let Document {
        mut settings,
        authority,
        relay,
    } = document;
    settings.on_record = Some(on_record());
    let runtime = Runtime::new().map_err(Error::Stream)?;
    let sockets = bind(settings.address)?;
    let relay = relay
        .map(|token| Relay::open(settings.address, token))
        .transpose()?;
    let proxy = runtime.block_on(Proxy::start(sockets, settings, Arc::new(authority)))?;
    say_ready()?;
    while let Some(line) = next_line(&mut input)? {
        match Order::from_line(&line)? {
            Order::Allowlist(allowlist) => proxy.replace_allowlist(allowlist),
            Order::Secrets(replacements) => proxy.replace_secrets(replacements),
            Order::Relay(bytes) => {
                if let Some(relay) = &relay {
                    relay.pass(&bytes);
                }
            }
            Order::Stop => {
                runtime.block_on(proxy.stop());
                break;
            }
        }
    }
    // Whatever still goes on goes on for nobody.
    runtime.shutdown_background();
    Ok(())
}

/// Passes a connection on, and serves nothing.
fn pass_on(relay: &Relay, mut input: impl BufRead) -> Result<(), Error> {
    say_ready()?;
    while let Some(line) = next_line(&mut input)? {
        match Order::from_line(&line)? {
            Order::Relay(bytes) => relay.pass(&bytes),
            Order::Stop => break,
            // There is nothing to be judged by them.
            Order::Allowlist(_) | Order::Secrets(_) => {}
        }
    }
    Ok(())
}

fn say_ready() -> Result<(), Error> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(READY).map_err(Error::Stream)
}

/// Writes each record as a line. A reader that is slow holds the proxy back, as a slow disk would; one
/// that is gone will be noticed by the end of our input.
fn on_record() -> OnRecord {
    Arc::new(|record| {
        if let Ok(line) = record.to_line() {
            drop(io::stdout().lock().write_all(&line));
        }
    })
}

/// Only the address on the workload's network: what is connected to the other leg finds no port open.
fn bind(address: Ipv4Addr) -> Result<Sockets, Error> {
    let tcp = |which, port| {
        TcpListener::bind((address, port)).map_err(|source| Error::Socket { which, source })
    };
    Ok(Sockets {
        http: tcp("HTTP", 80)?,
        https: tcp("HTTPS", 443)?,
        dns_tcp: tcp("DNS over TCP", 53)?,
        dns_udp: UdpSocket::bind((address, 53)).map_err(|source| Error::Socket {
            which: "DNS over UDP",
            source,
        })?,
    })
}

/// The next whole line without its line feed; `None` once the input has ended, also in mid-line.
fn next_line(input: &mut impl BufRead) -> Result<Option<Zeroizing<Vec<u8>>>, Error> {
    let mut line = Zeroizing::new(Vec::new());
    input
        .take(LINE_MAX)
        .read_until(b'\n', &mut line)
        .map_err(Error::Stream)?;
    match line.pop() {
        Some(b'\n') => Ok(Some(line)),
        Some(_) if line.len() as u64 + 1 == LINE_MAX => Err(Error::LineTooLong),
        Some(_) | None => Ok(None),
    }
}

/// What is printed once all four sockets are served.
const READY: &[u8] = b"ready\n";

/// What a line begins with that holds bytes of PID 1, in base64; none are the end of them.
const RELAYED: u8 = b'<';

/// The longest line in either direction: an allowlist of a million entries fits.
const LINE_MAX: u64 = 64 << 20;
