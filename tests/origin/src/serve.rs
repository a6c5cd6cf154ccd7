//! What the stand-in serves.
//!
//! | path | answer |
//! | --- | --- |
//! | `/echo` | the request as JSON |
//! | `/events?count=N&pause=MS` | so many server-sent events, so far apart |
//! | `/bytes?count=N` | so many zero bytes |
//! | `/upload` | how many bytes came |
//! | `/status/N` | that status |
//! | `/git/…` | repositories, by git's own program |
//! | `/websocket` | a WebSocket that echoes |
//! | whatever asks for gRPC | see `grpc` |
//! | anything else | a greeting |

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::{
    Request, Response,
    body::{Frame, Incoming},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig};

use crate::{Seen, git, grpc, websocket};

type Body = BoxBody<Bytes, Infallible>;

pub(crate) async fn plain(listener: TcpListener, seen: Arc<Seen>) {
    while let Ok((stream, client)) = listener.accept().await {
        seen.connections.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(connection(stream, client, Arc::clone(&seen)));
    }
}

pub(crate) async fn tls(listener: TcpListener, config: Arc<ServerConfig>, seen: Arc<Seen>) {
    let acceptor = TlsAcceptor::from(config);
    while let Ok((stream, client)) = listener.accept().await {
        seen.connections.fetch_add(1, Ordering::SeqCst);
        let (acceptor, seen) = (acceptor.clone(), Arc::clone(&seen));
        tokio::spawn(async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                connection(stream, client, seen).await;
            }
        });
    }
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    client: SocketAddr,
    seen: Arc<Seen>,
) {
    let service = service_fn(move |request| {
        seen.requests.fetch_add(1, Ordering::SeqCst);
        note_authorization(&request, &seen);
        let seen = Arc::clone(&seen);
        async move {
            let response = match git::serves(&request, &seen) {
                Some(repositories) => git::respond(request, repositories).await.map(full_bytes),
                None if grpc::serves(&request) => grpc::respond(request).await,
                None => respond(request, client).await,
            };
            Ok::<_, Infallible>(response)
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http2()
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(4 << 20);
    drop(
        builder
            .serve_connection_with_upgrades(TokioIo::new(stream), service)
            .await,
    );
}

fn note_authorization(request: &Request<Incoming>, seen: &Seen) {
    let values = request.headers().get_all("authorization").iter();
    let texts = values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    seen.authorizations.lock().unwrap().extend(texts);
}

async fn respond(request: Request<Incoming>, client: SocketAddr) -> Response<Body> {
    let path = request.uri().path().to_owned();
    match path.as_str() {
        "/echo" => echo(request, client).await,
        "/events" => events(&request),
        "/bytes" => zeros(&request),
        "/upload" => upload(request).await,
        "/websocket" => websocket::accept(request).map(|()| full(String::new())),
        path => match path
            .strip_prefix("/status/")
            .and_then(|code| code.parse::<u16>().ok())
        {
            Some(code) => Response::builder()
                .status(code)
                .body(full(format!("status {code}\n")))
                .unwrap(),
            None => Response::new(full("hello from outside\n".to_owned())),
        },
    }
}

async fn echo(request: Request<Incoming>, client: SocketAddr) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map(|body| body.to_bytes())
        .unwrap_or_default();
    let headers: Vec<_> = head
        .headers
        .iter()
        .map(|(name, value)| {
            [
                name.to_string(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            ]
        })
        .collect();
    let text = json!({
        "method": head.method.as_str(),
        "target": head.uri.to_string(),
        "version": format!("{:?}", head.version),
        "headers": headers,
        "body": String::from_utf8_lossy(&body),
        "client": client.ip().to_string(),
    });
    let response = Response::builder().header("content-type", "application/json");
    response.body(full(format!("{text}\n"))).unwrap()
}

fn events(request: &Request<Incoming>) -> Response<Body> {
    let (count, pause) = (number(request, "count", 3), number(request, "pause", 100));
    let events = stream::unfold(0, move |sent| async move {
        if sent == count {
            return None;
        }
        if sent > 0 {
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        let event = Frame::data(Bytes::from(format!("data: {sent}\n\n")));
        Some((Ok::<_, Infallible>(event), sent + 1))
    });
    let response = Response::builder().header("content-type", "text/event-stream");
    response
        .body(BodyExt::boxed(StreamBody::new(Box::pin(events))))
        .unwrap()
}

fn zeros(request: &Request<Incoming>) -> Response<Body> {
    static CHUNK: [u8; 64 << 10] = [0; 64 << 10];
    let count = number(request, "count", 1 << 20);
    let chunks = stream::unfold(count, |left| async move {
        let size = left.min(CHUNK.len() as u64);
        let chunk = Bytes::from_static(CHUNK.get(..usize::try_from(size).ok()?)?);
        (size > 0).then(|| (Ok::<_, Infallible>(Frame::data(chunk)), left - size))
    });
    let response = Response::builder().header("content-length", count);
    response
        .body(BodyExt::boxed(StreamBody::new(Box::pin(chunks))))
        .unwrap()
}

async fn upload(request: Request<Incoming>) -> Response<Body> {
    let mut body = request.into_body();
    let mut received = 0;
    while let Some(Ok(frame)) = body.frame().await {
        received += frame.data_ref().map_or(0, Bytes::len);
    }
    Response::new(full(format!("{received}\n")))
}

fn number(request: &Request<Incoming>, name: &str, default: u64) -> u64 {
    let query = request.uri().query().unwrap_or_default();
    let found = query
        .split('&')
        .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    found
        .and_then(|value| value.parse().ok())
        .unwrap_or(default)
}

fn full_bytes(bytes: Vec<u8>) -> Body {
    Full::new(Bytes::from(bytes)).boxed()
}

fn full(text: String) -> Body {
    Full::new(Bytes::from(text)).boxed()
}
