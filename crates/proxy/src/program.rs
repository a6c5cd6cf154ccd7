//! The proxy as a program of its own, in a container beside the workload.
//!
//! Everything it is told comes over standard input: one line that says how to serve, then orders, one
//! line each. Its standard output is one line `ready`, then a line for each record. It has no file and
//! no argument, and it ends when its input does: it cannot outlive its keeper. [`serve`] is the
//! program's side, [`Document`], [`Order`] and [`Answers`] the keeper's.

mod document;
mod keeper;

use std::{
    io::{self, BufRead, Read, Write},
    net::{Ipv4Addr, TcpListener, UdpSocket},
    sync::Arc,
};

use tokio::runtime::Runtime;
use zeroize::Zeroizing;

pub use document::{Document, Order};
pub use keeper::Answers;

use crate::{Error, Proxy, Settings, Sockets};

/// Serves what `input` says until it ends, or orders the end. Needs ports 53, 80 and 443 of the address
/// it is told.
pub fn serve(mut input: impl BufRead, mut output: impl Write) -> Result<(), Error> {
    let Some(line) = line(&mut input)? else {
        return Err(Error::NoDocument);
    };
    let Document { mut settings, authority } = Document::from_line(&line)?;
    drop(line);
    settings.on_record = Some(Arc::new(|record| {
        // Whoever reads this is gone, and the end of our input is on its way.
        if let Ok(line) = record.to_line() {
            drop(io::stdout().lock().write_all(&line));
        }
    }));
    let runtime = Runtime::new().map_err(Error::Stream)?;
    let sockets = bind(&settings)?;
    // Nothing may overtake the word that all four sockets are served.
    output.write_all(READY).and_then(|()| output.flush()).map_err(Error::Stream)?;
    let proxy = runtime.block_on(Proxy::start(sockets, settings, Arc::new(authority)))?;
    loop {
        match line_order(&mut input)? {
            Some(Order::Allowlist(allowlist)) => proxy.replace_allowlist(*allowlist),
            Some(Order::Secrets(replacements)) => proxy.replace_secrets(*replacements),
            Some(Order::Stop) => {
                runtime.block_on(proxy.stop());
                return Ok(());
            }
            None => {
                runtime.shutdown_background();
                return Ok(());
            }
        }
    }
}
