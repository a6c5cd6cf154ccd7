//! The listening end: one unix socket, one hand-over, then it is gone.

use std::{
    fs::{self, DirBuilder, Permissions},
    io,
    mem::MaybeUninit,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket},
    os::{
        fd::OwnedFd,
        unix::fs::{DirBuilderExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketType, sockopt};
use tokio::{
    io::Interest,
    net::{UnixListener, UnixStream},
    time::timeout,
};

use crate::{Error, Keeper};

/// Where the container's door listens. 127.0.0.1 stays free for the workload's own servers.
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 77, 0, 1);

/// A door that waits for its container.
#[derive(Debug)]
pub struct Door {
    directory: PathBuf,
    listener: UnixListener,
}

/// Whether a container gets a way out at all.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Access {
    /// The container hands over its four sockets.
    Open,
    /// The container is kept and watched in the same way, but has no sockets to hand over.
    Shut,
}

/// The container's listening sockets, now on the host's side.
#[derive(Debug)]
pub struct Sockets {
    /// TCP 80.
    pub http: TcpListener,
    /// TCP 443.
    pub https: TcpListener,
    /// TCP 53.
    pub dns_tcp: TcpListener,
    /// UDP 53.
    pub dns_udp: UdpSocket,
}

impl Door {
    /// Makes the door in a fresh directory `door` below `parent`.
    ///
    /// The socket may be used by whatever user the container runs as; it is `parent`, which must be
    /// private to the caller, that keeps everybody else away.
    ///
    /// # Errors
    ///
    /// When the directory or the socket cannot be made.
    pub fn open(parent: &Path) -> Result<Self, Error> {
        let directory = parent.join("door");
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::Write { path, source }
        };
        DirBuilder::new()
            .mode(0o755)
            .create(&directory)
            .map_err(at(&directory))?;
        let socket = directory.join(SOCKET);
        if socket.as_os_str().len() > SOCKET_PATH_MAX {
            return Err(Error::PathTooLong { path: socket });
        }
        let listener = UnixListener::bind(&socket).map_err(at(&socket))?;
        fs::set_permissions(&socket, Permissions::from_mode(0o666)).map_err(at(&socket))?;
        // The caller's umask may have taken the search bit that the container's user needs.
        fs::set_permissions(&directory, Permissions::from_mode(0o755)).map_err(at(&directory))?;
        Ok(Self {
            directory,
            listener,
        })
    }

    /// The directory to mount into the container.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What `cordon-init` is called with when the directory is mounted at `mounted_at`.
    #[must_use]
    pub fn arguments(mounted_at: &str, access: Access) -> [String; 2] {
        let mode = match access {
            Access::Open => "open",
            Access::Shut => "shut",
        };
        [format!("{mounted_at}/{SOCKET}"), mode.to_owned()]
    }

    /// Takes exactly one hand-over; the socket is gone afterwards, whatever came of it.
    ///
    /// The second value keeps the container: when it is dropped, the container ends.
    ///
    /// # Errors
    ///
    /// When nothing comes within `limit`, or what comes is not what `cordon-init` sends.
    pub async fn handover(
        self,
        access: Access,
        limit: Duration,
    ) -> Result<(Option<Sockets>, Keeper), Error> {
        let taken = timeout(limit, self.take(access)).await;
        // The container may still hold the directory; without the socket there is nothing to find.
        drop(fs::remove_file(self.directory.join(SOCKET)));
        taken.unwrap_or(Err(Error::NotHandedOver { limit }))
    }

    async fn take(&self, access: Access) -> Result<(Option<Sockets>, Keeper), Error> {
        let (stream, _) = self.listener.accept().await.map_err(Error::Connection)?;
        let descriptors = greeted(&stream).await?;
        let sockets = match access {
            Access::Open => Some(Sockets::check(descriptors)?),
            Access::Shut if descriptors.is_empty() => None,
            Access::Shut => return Err(WRONG_SOCKETS),
        };
        Ok((sockets, Keeper::new(stream)))
    }
}

impl Sockets {
    /// Trusts nothing about what arrived: four sockets, each of the right kind at the right place.
    fn check(descriptors: Vec<OwnedFd>) -> Result<Self, Error> {
        let [http, https, dns_tcp, dns_udp]: [OwnedFd; 4] =
            descriptors.try_into().map_err(|_| WRONG_SOCKETS)?;
        for (socket, kind, port) in [
            (&http, SocketType::STREAM, 80),
            (&https, SocketType::STREAM, 443),
            (&dns_tcp, SocketType::STREAM, 53),
            (&dns_udp, SocketType::DGRAM, 53),
        ] {
            let right_kind = sockopt::socket_type(socket).is_ok_and(|found| found == kind);
            let right_place = rustix::net::getsockname(socket)
                .ok()
                .and_then(|address| SocketAddr::try_from(address).ok())
                .is_some_and(|address| address == SocketAddr::new(IpAddr::V4(ADDRESS), port));
            if !(right_kind && right_place) {
                return Err(WRONG_SOCKETS);
            }
        }
        Ok(Self {
            http: http.into(),
            https: https.into(),
            dns_tcp: dns_tcp.into(),
            dns_udp: dns_udp.into(),
        })
    }
}

/// Waits for the greeting, and takes what comes with it.
pub(crate) async fn greeted(stream: &UnixStream) -> Result<Vec<OwnedFd>, Error> {
    let mut hello = [0];
    let (size, descriptors) = receive(stream, &mut hello)
        .await
        .map_err(Error::Connection)?;
    if size == 0 {
        return Err(Error::Connection(io::ErrorKind::UnexpectedEof.into()));
    }
    if hello != [HELLO] {
        return Err(Error::Foreign {
            what: "another version's greeting",
        });
    }
    Ok(descriptors)
}

/// Some bytes and the descriptors that came with the first of them; no bytes at all is the end.
pub(crate) async fn receive(
    stream: &UnixStream,
    bytes: &mut [u8],
) -> io::Result<(usize, Vec<OwnedFd>)> {
    stream
        .async_io(Interest::READABLE, || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let message = rustix::net::recvmsg(
                stream,
                &mut [io::IoSliceMut::new(bytes)],
                &mut control,
                RecvFlags::CMSG_CLOEXEC,
            )?;
            let descriptors = control
                .drain()
                .filter_map(|part| match part {
                    RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
                    _ => None,
                })
                .flatten()
                .collect();
            Ok((message.bytes, descriptors))
        })
        .await
}

const SOCKET: &str = "s";

/// `sockaddr_un` holds 108 bytes with the closing NUL.
const SOCKET_PATH_MAX: usize = 107;

/// The greeting of the `cordon-init` that belongs to this crate.
const HELLO: u8 = 2;

const WRONG_SOCKETS: Error = Error::Foreign {
    what: "not the four sockets of the door",
};
