//! An HTTP proxy that leads nowhere: behind its tunnels, every host of the world answers.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivatePkcs8KeyDer},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;

use crate::Unreadable;

/// A request as it reached the upstream.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    /// Request line and headers, in order.
    pub(crate) head: String,
    /// The body, without its framing.
    pub(crate) body: Vec<u8>,
}

impl Received {
    /// The headers, in order.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let lines = self.head.lines().skip(1);
        lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name, value.trim()))
    }

    /// The request target.
    pub(crate) fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }
}

/// The upstream, and what it has got.
pub(super) struct Upstream {
    url: String,
    root: CertificateDer<'static>,
    seen: Arc<Seen>,
}

/// What the upstream has seen.
#[derive(Default)]
struct Seen {
    received: Mutex<Option<Received>>,
    /// Comes when the client has got the first event.
    events: Notify,
    streamed: AtomicBool,
}

impl Upstream {
    pub(super) async fn start() -> Result<Self, Unreadable> {
        let authority = Authority::generate()?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let root = authority.root.clone();
        let seen = Arc::<Seen>::default();
        let sink = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A client that goes away early is none of ours to report.
                let _ = serve(stream, &authority, &sink).await;
            }
        });
        Ok(Self { url, root, seen })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn root(&self) -> CertificateDer<'static> {
        self.root.clone()
    }

    pub(super) fn received(&self) -> Option<Received> {
        self.seen.received.lock().ok()?.clone()
    }

    pub(super) fn events(&self) -> &Notify {
        &self.seen.events
    }

    pub(super) fn streamed(&self) -> bool {
        self.seen.streamed.load(Ordering::SeqCst)
    }
}

async fn serve(
    mut stream: TcpStream,
    authority: &Authority,
    seen: &Seen,
) -> Result<(), Unreadable> {
    let connect = read_head(&mut stream).await?;
    let host = connect
        .split([' ', ':'])
        .nth(1)
        .unwrap_or_default()
        .to_owned();
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    let mut first = [0];
    stream.peek(&mut first).await?;
    if first[0] != TLS_HANDSHAKE {
        return answer(stream, seen).await;
    }
    let acceptor = TlsAcceptor::from(authority.server(&host)?);
    answer(acceptor.accept(stream).await?, seen).await
}

async fn answer(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    seen: &Seen,
) -> Result<(), Unreadable> {
    let head = read_head(&mut stream).await?;
    let body = read_body(&mut stream, &head).await?;
    let received = Received { head, body };
    let events = received.target() == "/sse";
    if let Ok(mut slot) = seen.received.lock() {
        *slot = Some(received);
    }
    if events {
        send_events(&mut stream, seen).await?;
    } else {
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            .await?;
    }
    stream.flush().await?;
    // Until the other side has gone, or its last bytes could be lost.
    stream.read_to_end(&mut Vec::new()).await?;
    Ok(())
}

/// Sends an event, and the rest only when the client says that it has come.
async fn send_events(
    stream: &mut (impl AsyncWrite + Unpin),
    seen: &Seen,
) -> Result<(), Unreadable> {
    stream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        .await?;
    stream
        .write_all(&[b"9\r\n", FIRST_EVENT, b"\r\n"].concat())
        .await?;
    stream.flush().await?;
    let streamed = timeout(EVENT_PATIENCE, seen.events.notified())
        .await
        .is_ok();
    seen.streamed.store(streamed, Ordering::SeqCst);
    stream.write_all(b"9\r\ndata: 2\n\n\r\n0\r\n\r\n").await?;
    Ok(())
}

async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> Result<String, Unreadable> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

async fn read_body(
    stream: &mut (impl AsyncRead + Unpin),
    head: &str,
) -> Result<Vec<u8>, Unreadable> {
    let lower = head.to_ascii_lowercase();
    let field = |name: &str| {
        lower
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .map(str::trim)
    };
    if field("transfer-encoding") == Some("chunked") {
        return read_chunks(stream).await;
    }
    let length = field("content-length")
        .and_then(|length| length.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(body)
}

async fn read_chunks(stream: &mut (impl AsyncRead + Unpin)) -> Result<Vec<u8>, Unreadable> {
    let mut body = Vec::new();
    loop {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            line.push(stream.read_u8().await?);
        }
        let size = String::from_utf8_lossy(&line);
        let size =
            usize::from_str_radix(size.trim(), 16).map_err(|_| Unreadable::Shape("chunk"))?;
        let start = body.len();
        body.resize(start + size, 0);
        stream.read_exact(&mut body[start..]).await?;
        stream.read_exact(&mut [0; 2]).await?;
        if size == 0 {
            return Ok(body);
        }
    }
}

/// Issues a certificate for whatever host is asked for.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    root: CertificateDer<'static>,
}

impl Authority {
    fn generate() -> Result<Self, Unreadable> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = params.self_signed(&key)?.der().clone();
        Ok(Self {
            issuer: Issuer::new(params, key),
            root,
        })
    }

    fn server(&self, host: &str) -> Result<Arc<ServerConfig>, Unreadable> {
        let key = KeyPair::generate()?;
        let leaf = CertificateParams::new(vec![host.to_owned()])?.signed_by(&key, &self.issuer)?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], key.into())?;
        Ok(Arc::new(config))
    }
}

/// What a stream of events begins with.
pub(super) const FIRST_EVENT: &[u8] = b"data: 1\n\n";

/// How long the upstream waits for word that its first event has come.
const EVENT_PATIENCE: Duration = Duration::from_secs(5);

/// The first byte of a TLS handshake.
const TLS_HANDSHAKE: u8 = 0x16;
