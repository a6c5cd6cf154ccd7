//! The way to a host that is another machine's: over TCP, passed on by the proxy beside the container.

use std::{
    ffi::{OsStr, c_int, c_uint},
    fs,
    io::{self, Write},
    mem,
    net::{SocketAddr, TcpStream},
    os::fd::{AsRawFd, OwnedFd},
    time::Duration,
};

use crate::{
    HELLO, Host, explain,
    sys::{
        IPPROTO_TCP, SO_KEEPALIVE, SOL_SOCKET, TCP_KEEPCNT, TCP_KEEPIDLE, TCP_KEEPINTVL, setsockopt,
    },
};

/// Connects, and says who this is. Whoever passes the connection on takes one such greeting and no second.
pub(crate) fn connect(address: &OsStr, token: &OsStr) -> io::Result<Host> {
    let token = fs::read(token).map_err(|e| explain("no token", &e))?;
    let address: SocketAddr = address
        .to_str()
        .and_then(|address| address.parse().ok())
        .ok_or_else(|| io::Error::other("this is no address"))?;
    let mut stream = TcpStream::connect_timeout(&address, CONNECT_LIMIT)
        .map_err(|e| explain("the proxy cannot be reached", &e))?;
    stream.set_nodelay(true)?;
    keep_alive(&stream)?;
    stream.write_all(&token)?;
    stream.write_all(&[HELLO])?;
    Ok(Host::from(OwnedFd::from(stream)))
}

/// A machine that vanishes closes nothing; the container must not outlive it all the same.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    for (level, name, value) in [
        (SOL_SOCKET, SO_KEEPALIVE, 1),
        (IPPROTO_TCP, TCP_KEEPIDLE, 3),
        (IPPROTO_TCP, TCP_KEEPINTVL, 1),
        (IPPROTO_TCP, TCP_KEEPCNT, 4),
    ] {
        // SAFETY: the pointer and the size describe one integer, which outlives the call.
        let set = unsafe {
            setsockopt(
                stream.as_raw_fd(),
                level,
                name,
                (&raw const value).cast(),
                mem::size_of::<c_int>() as c_uint,
            )
        };
        if set != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// The proxy listens before this container is started.
const CONNECT_LIMIT: Duration = Duration::from_secs(15);
