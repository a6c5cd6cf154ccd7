//! A stand-in for the world outside: a web server with its own certificate authority, and a name
//! server that sends every name to it.
//!
//! Each one has a loopback address of its own, so that it can use the real ports 80, 443 and 53 and
//! many can run side by side. Binding those ports takes root.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a stand-in that cannot start must stop the test that wants it"
)]

mod certificate;
mod names;
mod serve;
mod websocket;

use std::{
    fs,
    net::Ipv4Addr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
};

use tokio::{
    net::{TcpListener, UdpSocket},
    runtime::Runtime,
};

/// A running stand-in; it ends when this is dropped.
#[derive(Debug)]
pub struct Origin {
    address: Ipv4Addr,
    certificates: tempfile::TempDir,
    seen: Arc<Seen>,
    _runtime: Runtime,
}

/// What reached the stand-in.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) connections: AtomicU64,
    pub(crate) requests: AtomicU64,
}

impl Origin {
    /// Starts one that has certificates for the given names, which may begin with `*.`.
    #[must_use]
    pub fn start(names: &[&str]) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let address = free_address();
        let certificates = tempfile::tempdir().unwrap();
        let (authority, tls) = certificate::issue(names);
        fs::write(certificates.path().join("ca.pem"), authority).unwrap();
        let seen = Arc::new(Seen::default());
        runtime.block_on(async {
            let bind = |port| TcpListener::bind((address, port));
            let (http, https) = (bind(80).await, bind(443).await);
            let names = UdpSocket::bind((address, 53)).await;
            tokio::spawn(serve::plain(
                http.expect("port 80 takes root"),
                Arc::clone(&seen),
            ));
            tokio::spawn(serve::tls(
                https.expect("port 443 takes root"),
                tls,
                Arc::clone(&seen),
            ));
            tokio::spawn(names::answer(names.expect("port 53 takes root"), address));
        });
        Self {
            address,
            certificates,
            seen,
            _runtime: runtime,
        }
    }

    /// Its address; its name server is at port 53 of it.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// The certificate authority that its certificates come from, as a file that anybody may read.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let everybody = fs::Permissions::from_mode(0o755);
        fs::set_permissions(self.certificates.path(), everybody).unwrap();
        self.certificates.path().join("ca.pem")
    }

    /// How many connections came.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// How many requests came.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.seen.requests.load(Ordering::SeqCst)
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
