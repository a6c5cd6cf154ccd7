//! A stand-in for the world outside: a web server with its own certificate authority, and a name
//! server that sends every name to it. In place of the web server there may be any [`Program`].
//!
//! Each one has a loopback address of its own, so that it can use the real ports 80, 443 and 53 and
//! many can run side by side. Binding those ports takes root.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a stand-in that cannot start must stop the test that wants it"
)]

mod certificate;
mod git;
mod grpc;
mod names;
mod place;
mod program;
mod serve;
mod websocket;

use std::{
    net::Ipv4Addr,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::net::TcpListener;

use certificate::Issued;
use place::Place;
pub use program::{Post, Program};

/// A running stand-in; it ends when this is dropped.
#[derive(Debug)]
pub struct Origin {
    place: Place,
    seen: Arc<Seen>,
}

/// What reached the stand-in.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) connections: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) authorizations: Mutex<Vec<String>>,
    pub(crate) git: Mutex<Option<(PathBuf, String)>>,
}

impl Origin {
    /// Starts one that has certificates for the given names, which may begin with `*.`.
    #[must_use]
    pub fn start(names: &[&str]) -> Self {
        Self::serve(Place::new(names))
    }

    /// The same at an address of the machine that is not loopback, for those who come from a network.
    #[must_use]
    pub fn start_at(address: Ipv4Addr, names: &[&str]) -> Self {
        Self::serve(Place::at(address, names))
    }

    fn serve((place, issued): (Place, Issued)) -> Self {
        let seen = Arc::new(Seen::default());
        place.runtime.block_on(async {
            let bind = |port| TcpListener::bind((place.address, port));
            let (http, https) = (bind(80).await, bind(443).await);
            tokio::spawn(serve::plain(
                http.expect("port 80 takes root"),
                Arc::clone(&seen),
            ));
            tokio::spawn(serve::tls(
                https.expect("port 443 takes root"),
                issued.server_config(),
                Arc::clone(&seen),
            ));
        });
        Self { place, seen }
    }

    /// Its address; its name server is at port 53 of it.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        self.place.address
    }

    /// The certificate authority that its certificates come from, as a file that anybody may read.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.place.authority()
    }

    /// How many connections came.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// What stood in the Authorization headers of all requests, in order.
    #[must_use]
    pub fn authorizations(&self) -> Vec<String> {
        self.seen.authorizations.lock().unwrap().clone()
    }

    /// Where the repositories lie that it serves below `/git/`: pushes take the password `password`.
    #[must_use]
    pub fn serve_git(&self, password: &str) -> PathBuf {
        let root = self.place.path("git");
        std::fs::create_dir_all(&root).unwrap();
        *self.seen.git.lock().unwrap() = Some((root.clone(), password.to_owned()));
        root
    }

    /// How many requests came.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.seen.requests.load(Ordering::SeqCst)
    }
}
