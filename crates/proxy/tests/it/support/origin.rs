//! An HTTP server, in the clear and over TLS, with its own certificate authority.

use std::{
    convert::Infallible,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Version, header};
use http_body_util::{BodyExt, StreamBody, combinators::BoxBody};
use hyper::{
    body::{Frame, Incoming},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    sync::mpsc,
};
use tokio_rustls::TlsAcceptor;

type Body = BoxBody<Bytes, Infallible>;

/// A server that tests send requests to.
pub(crate) struct Origin {
    pub(crate) http: SocketAddr,
    pub(crate) https: SocketAddr,
    pub(crate) root: CertificateDer<'static>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

/// The head of a request as the origin got it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) target: String,
    pub(crate) version: Version,
    pub(crate) headers: HeaderMap,
    /// Which connection it came over.
    pub(crate) peer: SocketAddr,
}

impl Origin {
    pub(crate) async fn start() -> Self {
        Self::with_protocols(&["h2", "http/1.1"]).await
    }

    /// An origin that offers these protocols over TLS.
    pub(crate) async fn with_protocols(protocols: &[&str]) -> Self {
        let (root, config) = credentials(protocols);
        let http = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let https = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let origin = Self {
            http: http.local_addr().unwrap(),
            https: https.local_addr().unwrap(),
            root,
            seen: Arc::default(),
        };
        tokio::spawn(accept(http, None, Arc::clone(&origin.seen)));
        let acceptor = TlsAcceptor::from(Arc::new(config));
        tokio::spawn(accept(https, Some(acceptor), Arc::clone(&origin.seen)));
        origin
    }

    /// Every request so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn http_url(&self, path: &str) -> String {
        format!("http://api.test:{}{path}", self.http.port())
    }

    pub(crate) fn https_url(&self, path: &str) -> String {
        format!("https://api.test:{}{path}", self.https.port())
    }

    /// What a request in the clear puts into its Host header.
    pub(crate) fn http_host(&self) -> String {
        format!("api.test:{}", self.http.port())
    }
}

/// A root, and a server configuration with a certificate of it for `*.test`.
pub(crate) fn credentials(protocols: &[&str]) -> (CertificateDer<'static>, ServerConfig) {
    let root_key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = params.self_signed(&root_key).unwrap().der().clone();
    let names = ["api.test", "*.api.test", "*.test", "127.0.0.1"].map(str::to_owned);
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(names)
        .unwrap()
        .signed_by(&key, &Issuer::new(params, root_key))
        .unwrap();
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)
        .unwrap();
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    (root, config)
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, seen: Arc<Mutex<Vec<Seen>>>) {
    loop {
        let (stream, peer) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (tls, seen) = (tls.clone(), Arc::clone(&seen));
        tokio::spawn(async move {
            match tls {
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        serve(stream, peer, seen).await;
                    }
                }
                None => serve(stream, peer, seen).await,
            }
        });
    }
}

async fn serve<S>(stream: S, peer: SocketAddr, seen: Arc<Mutex<Vec<Seen>>>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        seen.lock().unwrap().push(Seen {
            method: request.method().clone(),
            target: request.uri().path_and_query().unwrap().to_string(),
            version: request.version(),
            headers: request.headers().clone(),
            peer,
        });
        answer(request)
    });
    let builder = auto::Builder::new(TokioExecutor::new());
    // Tests break connections on purpose.
    let _ = builder
        .serve_connection_with_upgrades(TokioIo::new(stream), service)
        .await;
}

async fn answer(mut request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let path = request.uri().path().to_owned();
    let number = || {
        request
            .uri()
            .query()
            .and_then(|query| query.parse::<usize>().ok())
            .unwrap_or(0)
    };
    Ok(match path.as_str() {
        "/echo" => {
            let body = request
                .body_mut()
                .collect()
                .await
                .map(|body| body.to_bytes());
            full(body.unwrap_or_default())
        }
        "/events" => events(),
        "/sink" => {
            let mut length = 0;
            while let Some(Ok(frame)) = request.body_mut().frame().await {
                length += frame.data_ref().map_or(0, Bytes::len);
            }
            full(length.to_string())
        }
        // Over HTTP/2 the library would send a body to HEAD as well.
        "/bytes" if request.method() == Method::HEAD => {
            let mut response = full("");
            response
                .headers_mut()
                .insert(header::CONTENT_LENGTH, number().into());
            response
        }
        "/bytes" => bytes(number()),
        "/silent" => {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            full("")
        }
        "/stall" => stall(),
        "/trailers" => trailers(),
        "/teapot" => {
            let mut response = full("short and stout");
            *response.status_mut() = StatusCode::IM_A_TEAPOT;
            response
        }
        "/headers" => {
            let mut response = full("with headers");
            let headers = response.headers_mut();
            headers.insert(header::ALT_SVC, "h3=\":443\"".parse().unwrap());
            headers.append(header::SET_COOKIE, "a=1".parse().unwrap());
            headers.append(header::SET_COOKIE, "b=2".parse().unwrap());
            headers.insert(
                "x-odd",
                http::HeaderValue::from_bytes(b"\xe9t\xe9").unwrap(),
            );
            response
        }
        "/socket" => socket(request),
        _ => full(format!("hello from {path}")),
    })
}

fn full(text: impl Into<Bytes>) -> Response<Body> {
    Response::new(http_body_util::Full::new(text.into()).boxed())
}

fn streamed(
    fill: impl Future<Output = ()> + Send + 'static,
    frames: mpsc::Receiver<Frame<Bytes>>,
) -> Response<Body> {
    tokio::spawn(fill);
    let frames = futures_util::stream::unfold(frames, |mut frames| async move {
        frames.recv().await.map(|frame| (Ok(frame), frames))
    });
    Response::new(BodyExt::boxed(StreamBody::new(frames)))
}

/// Three events, a third of a second apart.
fn events() -> Response<Body> {
    let (sender, receiver) = mpsc::channel(1);
    let fill = async move {
        for number in 1..=3 {
            let event = Bytes::from(format!("data: {number}\n\n"));
            if sender.send(Frame::data(event)).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(333)).await;
        }
    };
    let mut response = streamed(fill, receiver);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, "text/event-stream".parse().unwrap());
    response
}

fn bytes(length: usize) -> Response<Body> {
    let (sender, receiver) = mpsc::channel(1);
    let fill = async move {
        let block = Bytes::from(vec![b'x'; 64 * 1024]);
        let mut left = length;
        while left > 0 {
            let now = left.min(block.len());
            if sender.send(Frame::data(block.slice(..now))).await.is_err() {
                return;
            }
            left -= now;
        }
    };
    let mut response = streamed(fill, receiver);
    response
        .headers_mut()
        .insert(header::CONTENT_LENGTH, length.into());
    response
}

/// The beginning of a body, and then nothing.
fn stall() -> Response<Body> {
    let (sender, receiver) = mpsc::channel(1);
    let fill = async move {
        let _ = sender.send(Frame::data(Bytes::from_static(b"begun"))).await;
        tokio::time::sleep(Duration::from_secs(3600)).await;
    };
    streamed(fill, receiver)
}

/// What a gRPC server sends.
fn trailers() -> Response<Body> {
    let (sender, receiver) = mpsc::channel(2);
    let fill = async move {
        let _ = sender
            .send(Frame::data(Bytes::from_static(b"message")))
            .await;
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", "0".parse().unwrap());
        let _ = sender.send(Frame::trailers(trailers)).await;
    };
    let mut response = streamed(fill, receiver);
    response
        .headers_mut()
        .insert(header::TRAILER, "grpc-status".parse().unwrap());
    response
}

/// Agrees to a WebSocket and sends back every byte it gets.
fn socket(mut request: Request<Incoming>) -> Response<Body> {
    use sha1::{Digest, Sha1};

    let key = request.headers()[header::SEC_WEBSOCKET_KEY].clone();
    let salt = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    let digest = Sha1::new()
        .chain_update(key.as_bytes())
        .chain_update(salt)
        .finalize();
    let accept = data_encoding::BASE64.encode(&digest);
    tokio::spawn(async move {
        let upgraded = hyper::upgrade::on(&mut request).await.unwrap();
        let (mut read, mut write) = tokio::io::split(TokioIo::new(upgraded));
        let _ = tokio::io::copy(&mut read, &mut write).await;
    });
    let mut response = full("");
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, "upgrade".parse().unwrap());
    headers.insert(header::UPGRADE, "websocket".parse().unwrap());
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept.parse().unwrap());
    response
}
