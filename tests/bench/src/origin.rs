//! The upstream: small answers, endless bodies, events, and a name server that knows one address.

use std::{
    convert::Infallible,
    fs,
    net::Ipv4Addr,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use anyhow::Result;
use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::{ServerConfig, pki_types::PrivatePkcs8KeyDer};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio_rustls::TlsAcceptor;

use crate::{HOST, tell};

type Body = BoxBody<Bytes, Infallible>;

/// Writes its root to `origin.pem`, tells its two ports (HTTPS and DNS) and serves for ever.
pub(crate) async fn serve(directory: &Path) -> Result<()> {
    let (root, config) = certificate()?;
    fs::write(directory.join("origin.pem"), root)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let names = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    tell(&format!(
        "{} {}",
        listener.local_addr()?.port(),
        names.local_addr()?.port()
    ));
    tokio::spawn(answer_names(names));
    let tls = TlsAcceptor::from(Arc::new(config));
    loop {
        let (stream, _) = listener.accept().await?;
        let tls = tls.clone();
        // What becomes of a connection shows in what the client measures.
        tokio::spawn(async move { converse(stream, tls).await.ok() });
    }
}

fn certificate() -> Result<(String, ServerConfig)> {
    let root_key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // OpenSSL takes a leaf of its issuer's name for self-signed.
    params
        .distinguished_name
        .push(DnType::CommonName, "the root of the benchmark");
    let root = params.self_signed(&root_key)?.pem();
    let key = KeyPair::generate()?;
    let names = [HOST, "127.0.0.1"].map(str::to_owned);
    let leaf = CertificateParams::new(names)?.signed_by(&key, &Issuer::new(params, root_key))?;
    let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok((root, config))
}

async fn answer_names(socket: UdpSocket) -> Result<()> {
    let mut buffer = [0; 1024];
    loop {
        let (length, peer) = socket.recv_from(&mut buffer).await?;
        if let Some(answer) = cordon_proxy::answer(&buffer[..length], Ipv4Addr::LOCALHOST) {
            socket.send_to(&answer.reply, peer).await?;
        }
    }
}

async fn converse(stream: TcpStream, tls: TlsAcceptor) -> Result<()> {
    stream.set_nodelay(true)?;
    let stream = tls.accept(stream).await?;
    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let (io, service) = (TokioIo::new(stream), service_fn(answer));
    if http2 {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW);
        builder.serve_connection(io, service).await?;
    } else {
        http1::Builder::new().serve_connection(io, service).await?;
    }
    Ok(())
}

async fn answer(mut request: Request<Incoming>) -> Result<Response<Body>> {
    match request.uri().path() {
        "/bytes" => {
            let length = request.uri().query().unwrap_or_default().parse()?;
            Ok(Response::builder()
                .header("content-length", length)
                .body(bytes(length))?)
        }
        "/sink" => {
            let mut length = 0;
            while let Some(frame) = request.body_mut().frame().await {
                length += frame?.data_ref().map_or(0, Bytes::len);
            }
            Ok(Response::new(Full::from(length.to_string()).boxed()))
        }
        "/event" => Ok(Response::builder()
            .header("content-type", "text/event-stream")
            .body(event())?),
        _ => Ok(Response::new(Full::from(&SMALL[..]).boxed())),
    }
}

fn bytes(length: u64) -> Body {
    let block = Bytes::from(vec![b'x'; BLOCK]);
    let frames = stream::unfold(length, move |left| {
        let now = block.slice(..block.len().min(usize::try_from(left).unwrap_or(BLOCK)));
        let left = left - now.len() as u64;
        async move { (!now.is_empty()).then(|| (Ok(Frame::data(now)), left)) }
    });
    BodyExt::boxed(StreamBody::new(frames))
}

/// One event, well after the head of the response, that says when it was sent.
fn event() -> Body {
    let frames = stream::once(async {
        tokio::time::sleep(THOUGHT).await;
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        Ok(Frame::data(Bytes::from(format!(
            "data: {}\n\n",
            now.as_nanos()
        ))))
    });
    BodyExt::boxed(StreamBody::new(frames))
}

/// What most requests get.
const SMALL: [u8; 64] = [b'x'; 64];

/// One piece of an endless body.
const BLOCK: usize = 64 * 1024;

/// Room for uploads, so that it is not the upstream that slows them.
const WINDOW: u32 = 4 * 1024 * 1024;

/// How long a model thinks here: long enough for the head to have arrived.
const THOUGHT: Duration = Duration::from_millis(30);
