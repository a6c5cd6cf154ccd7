//! A place in the world outside: an address, certificates, and a name server that leads there.

use std::{
    fs,
    net::Ipv4Addr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU8, Ordering},
};

use tokio::{net::UdpSocket, runtime::Runtime};

use crate::{
    certificate::{self, Issued},
    names,
};

/// A loopback address with a name server at port 53 that sends every name to it.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) address: Ipv4Addr,
    pub(crate) runtime: Runtime,
    files: tempfile::TempDir,
}

impl Place {
    /// One with certificates for the given names, which may begin with `*.`.
    pub(crate) fn new(names: &[&str]) -> (Self, Issued) {
        Self::at(free_address(), names)
    }

    /// The same at another address of this machine.
    pub(crate) fn at(address: Ipv4Addr, names: &[&str]) -> (Self, Issued) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let files = tempfile::tempdir().unwrap();
        let everybody = fs::Permissions::from_mode(0o755);
        fs::set_permissions(files.path(), everybody).unwrap();
        runtime.block_on(async {
            let socket = UdpSocket::bind((address, 53)).await;
            let socket = socket.expect("port 53 takes root");
            tokio::spawn(names::answer(socket, address));
        });
        let place = Self {
            address,
            runtime,
            files,
        };
        let issued = certificate::issue(names);
        issued.write(&place.authority(), &place.certificate(), &place.key());
        (place, issued)
    }

    /// The certificate authority, as a file that anybody may read.
    pub(crate) fn authority(&self) -> PathBuf {
        self.path("ca.pem")
    }

    pub(crate) fn certificate(&self) -> PathBuf {
        self.path("leaf.pem")
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.path("key.pem")
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.files.path().join(name)
    }
}

/// A loopback address that no other test of this machine uses: from the process id, and a number of
/// its own within the process.
fn free_address() -> Ipv4Addr {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(
        127,
        128 | (high & 0x7f),
        low,
        NEXT.fetch_add(1, Ordering::SeqCst),
    )
}
