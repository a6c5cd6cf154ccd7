//! A real proxy between a real client and an upstream that answers for every host.
//!
//! The proxy reaches its upstream through an HTTP proxy, so that any host and port of a case leads to the same place
//! and nothing leaves the machine.

mod client;
mod upstream;

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket},
    sync::Arc,
    time::Duration,
};

use cordon_policy::Allowlist;
use cordon_proxy::{CertificateAuthority, LogTarget, NetworkLog, Proxy, Settings, Sockets};
use cordon_secrets::SecretReplacements;
use tempfile::TempDir;
use tokio::time::timeout;

use crate::Unreadable;
use client::{Answer, Client};
use upstream::Upstream;

pub(crate) use client::Response;
pub(crate) use upstream::Received;

/// What the client sends, and how.
#[derive(Debug)]
pub(crate) struct Request {
    /// The bytes, all at once.
    pub(crate) bytes: Vec<u8>,
    /// What it speaks.
    pub(crate) transport: Transport,
}

/// What the client speaks.
#[derive(Clone, Debug)]
pub(crate) enum Transport {
    /// HTTP in the clear, to the socket for it.
    Plain,
    /// TLS with this server name, if any, to the socket for it.
    Tls(Option<String>),
    /// The same to the socket for HTTP.
    TlsOnPlain(Option<String>),
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Observed {
    /// What the client got, where it got anything.
    pub(crate) response: Option<Response>,
    /// What reached the upstream.
    pub(crate) received: Option<Received>,
    /// The lines of the network log, without their detail.
    pub(crate) log: Vec<String>,
    /// The protocol that a client without a request was offered.
    pub(crate) alpn: Option<String>,
    /// Whether the client had the first of several events before the upstream sent the others.
    pub(crate) streamed: bool,
}

/// Sends one request through a proxy of its own.
pub(crate) fn exchange(
    allowlist: Allowlist,
    replacements: SecretReplacements,
    request: &Request,
) -> Result<Observed, Unreadable> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let world = World::start(allowlist, replacements).await?;
        let response = timeout(PATIENCE, world.send(request))
            .await
            .map_err(|_| Unreadable::Silence)??;
        world.stop(response).await
    })
}

struct World {
    proxy: Proxy,
    upstream: Upstream,
    http: SocketAddr,
    https: SocketAddr,
    authority: Arc<CertificateAuthority>,
    directory: TempDir,
}

impl World {
    async fn start(
        allowlist: Allowlist,
        replacements: SecretReplacements,
    ) -> Result<Self, Unreadable> {
        let upstream = Upstream::start().await?;
        let directory = tempfile::tempdir()?;
        let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let sockets = Sockets {
            http: listen()?,
            https: listen()?,
            dns_tcp: listen()?,
            dns_udp: UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?,
        };
        let (http, https) = (sockets.http.local_addr()?, sockets.https.local_addr()?);
        let authority = Arc::new(CertificateAuthority::generate()?);
        let mut settings = Settings::new(Ipv4Addr::LOCALHOST, allowlist);
        settings.replacements = replacements;
        settings.upstream.http_proxy = Some(upstream.url().parse()?);
        settings.upstream.extra_roots = vec![upstream.root()];
        settings.log = LogTarget::in_directory(directory.path());
        let proxy = Proxy::start(sockets, settings, Arc::clone(&authority)).await?;
        Ok(Self {
            proxy,
            upstream,
            http,
            https,
            authority,
            directory,
        })
    }

    async fn send(&self, request: &Request) -> Result<Answer, Unreadable> {
        let client = Client {
            bytes: &request.bytes,
            root: self.authority.certificate_der(),
            events: self.upstream.events(),
        };
        match &request.transport {
            Transport::Plain => client.plain(self.http).await,
            Transport::Tls(name) => client.tls(self.https, name.as_deref()).await,
            Transport::TlsOnPlain(name) => client.tls(self.http, name.as_deref()).await,
        }
    }

    async fn stop(self, answer: Answer) -> Result<Observed, Unreadable> {
        self.proxy.stop().await;
        let log = NetworkLog::new(self.directory.path().join("network-sandbox.log")).read_raw()?;
        let lines = log
            .lines()
            .filter(|line| !line.starts_with("=== TASK START"));
        let lines = lines.map(|line| line.rsplit_once(" {id=").map_or(line, |(line, _)| line));
        Ok(Observed {
            response: answer.response,
            received: self.upstream.received(),
            log: lines.map(without_skew).collect(),
            alpn: answer.alpn,
            streamed: self.upstream.streamed(),
        })
    }
}

/// A line without the remark that the request was signed long ago, as those of all cases were.
fn without_skew(line: &str) -> String {
    match line.split_once(" [clock skew: ") {
        Some((start, rest)) => start.to_owned() + rest.split_once(']').map_or("", |(_, end)| end),
        None => line.to_owned(),
    }
}

/// Far longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(20);
