//! What a container in another machine needs beside its proxy: its files, which no path of this machine
//! leads to, and the connection that keeps it, which no socket of this machine is.
//!
//! The files go into a volume of the engine's. The connection is passed on by the proxy, over the streams
//! that the proxy itself is kept by: when this process dies they close, and so does the connection.

use std::{fs, sync::Arc};

use cordon_door::Far;
use cordon_engine::{Container, ContainerSpec, Engine, Network, Volume};
use cordon_proxy::{CertificateAuthority, Order, Token};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::unix::{OwnedReadHalf, OwnedWriteHalf},
    process::ChildStdin,
    sync::{Mutex, mpsc},
    task::JoinHandle,
};

use super::tar::{Mode, Tar};
use crate::{SandboxError, place, sandbox::Shared, trust};

/// What the proxy is told after its start, by whoever has to tell it something.
pub(super) type Orders = Arc<Mutex<ChildStdin>>;

/// `cordon-init`, among the files of a volume.
pub(crate) const INIT: &str = "init";

/// What PID 1 brings to whoever passes its connection on, among the files of a volume.
pub(crate) const TOKEN: &str = "token";

/// Removes what a run has of volumes; with an engine on this machine it has none.
pub(crate) async fn remove(engine: &Engine, place: &str) -> Result<(), cordon_engine::Error> {
    if engine.facts().local {
        return Ok(());
    }
    engine.remove(&carrier_of(place)).await?;
    engine.remove_volume(place).await
}

/// The container through which files get into a run's volume. It is never started.
fn carrier_of(place: &str) -> Container {
    Container(format!("{place}-files"))
}

/// Where PID 1 finds its token.
pub(super) fn token_path() -> String {
    format!("{}/{TOKEN}", trust::BOX)
}

/// A token that nobody has had before.
pub(super) fn token() -> Result<Token, SandboxError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| SandboxError::Randomness)?;
    Ok(Token::new(bytes))
}

/// The files of one run, and where they go.
pub(super) struct Files<'a> {
    /// The run's, which is the name of the volume.
    pub(super) place: &'a str,
    /// Any image that the engine has: nothing of it is run.
    pub(super) image: &'a str,
    pub(super) labels: Vec<(String, String)>,
    pub(super) proxy: std::net::Ipv4Addr,
    pub(super) token: &'a Token,
}

impl Files<'_> {
    /// Puts them into a volume.
    pub(super) async fn put(
        self,
        shared: &Shared,
        engine: &Engine,
    ) -> Result<Volume, SandboxError> {
        let init = shared.init()?;
        let program = fs::read(init).map_err(|source| SandboxError::Directory {
            path: init.clone(),
            source,
        })?;
        let archive = self.archive(&program, &*shared.authority()?);
        let volume = engine.create_volume(self.place, &self.labels).await?;
        let carrier = carrier_of(self.place);
        engine
            .create(&ContainerSpec {
                name: Some(carrier.0.clone()),
                labels: self.labels,
                entrypoint: Some("/none".to_owned()),
                mounts: vec![volume.whole(FILES)],
                network: Network::None,
                no_log: true,
                ..ContainerSpec::new(self.image)
            })
            .await?;
        engine.copy_into(&carrier, FILES, &archive).await?;
        engine.remove(&carrier).await?;
        Ok(volume)
    }

    fn archive(&self, program: &[u8], authority: &CertificateAuthority) -> Vec<u8> {
        let mut tar = Tar::default().file(INIT, Mode::Execute, program).file(
            TOKEN,
            Mode::Read,
            self.token.bytes(),
        );
        for (name, content) in place::files(authority, Some(self.proxy)) {
            tar = tar.file(name, Mode::Read, &content);
        }
        tar.finish()
    }
}

/// The connection to PID 1, over the streams of the proxy.
#[derive(Debug)]
pub(super) struct Relay {
    end: Option<Far>,
    up: JoinHandle<()>,
    down: JoinHandle<()>,
}

impl Relay {
    pub(super) fn start(
        orders: &Orders,
        said: mpsc::Receiver<Vec<u8>>,
    ) -> Result<Self, SandboxError> {
        let (end, other) = Far::pair().map_err(|source| SandboxError::Door {
            source,
            engine: String::new(),
        })?;
        let (read, write) = other.into_split();
        Ok(Self {
            end: Some(end),
            up: tokio::spawn(up(read, Arc::clone(orders))),
            down: tokio::spawn(down(said, write)),
        })
    }

    /// The end at which PID 1 will be heard. There is one.
    pub(super) fn end(&mut self) -> Option<Far> {
        self.end.take()
    }

    /// Closes it: the proxy is gone, and will pass nothing on.
    pub(super) fn cut(&self) {
        self.down.abort();
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.up.abort();
        self.down.abort();
    }
}

/// From this process to PID 1; the end of it too.
async fn up(mut from: OwnedReadHalf, orders: Orders) {
    let mut chunk = vec![0; CHUNK];
    while let Ok(size) = from.read(&mut chunk).await {
        let order = Order::Relay(chunk[..size].to_vec());
        let Ok(line) = order.line() else { return };
        // A proxy that is gone will be noticed as such.
        if orders.lock().await.write_all(&line).await.is_err() || size == 0 {
            return;
        }
    }
}

/// From PID 1 to this process. When it is the proxy that ends, whoever waits for PID 1 goes on waiting:
/// that the proxy is lost is told by another way, and must not look like the end of the container.
async fn down(mut said: mpsc::Receiver<Vec<u8>>, mut to: OwnedWriteHalf) {
    while let Some(bytes) = said.recv().await {
        if bytes.is_empty() || to.write_all(&bytes).await.is_err() {
            return;
        }
    }
    std::future::pending().await
}

/// How a volume is seen in the container that is only there to fill it.
const FILES: &str = "/files";

const CHUNK: usize = 16 << 10;

/// Words that PID 1 has said and nobody has read: it says three in its life.
pub(super) const SAID: usize = 16;
