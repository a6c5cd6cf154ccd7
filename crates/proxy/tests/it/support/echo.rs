//! An origin over TLS that sends back what it was sent, cut into pieces as the request says.
//!
//! | path | where the request comes back |
//! | --- | --- |
//! | `/header` | in response headers |
//! | `/trailers` | in trailers |
//! | `/gzip` | in a gzip body |
//! | `/events` | in three events, a fifth of a second apart |
//! | `/socket` | in a WebSocket message, which is followed by an echo of what the client sends |
//! | `/extension` | in a WebSocket with an extension that nobody asked for |
//! | `/coded` | in a body that claims an unknown coding |
//! | `/bomb` | nowhere: a gzip body of 256 MiB of zeros |
//! | anything else | in the body |
//!
//! `?cut=N` cuts bodies and messages after N bytes, `?cut=all` after every byte.

use std::{
    convert::Infallible,
    io::Write as _,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use cordon_secrets::SecretReplacements;
use data_encoding::BASE64;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, StreamBody, combinators::BoxBody};
use hyper::{
    body::{Frame, Incoming},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use rustls::pki_types::CertificateDer;
use sha1::{Digest, Sha1};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

use super::{Plan, origin};

type Body = BoxBody<Bytes, Infallible>;

pub(crate) struct Echo {
    pub(crate) address: SocketAddr,
    pub(crate) root: CertificateDer<'static>,
    seen: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
}

impl Echo {
    pub(crate) async fn start() -> Self {
        Self::with_protocols(&["h2", "http/1.1"]).await
    }

    pub(crate) async fn with_protocols(protocols: &[&str]) -> Self {
        let (root, config) = origin::credentials(protocols);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let echo = Self {
            address: listener.local_addr().unwrap(),
            root,
            seen: Arc::default(),
            connections: Arc::default(),
        };
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let (seen, connections) = (Arc::clone(&echo.seen), Arc::clone(&echo.connections));
        tokio::spawn(accept(listener, acceptor, seen, connections));
        echo
    }

    /// A proxy that may reach it as `api.test`, or as anything below that.
    pub(crate) fn plan(&self, replacements: &SecretReplacements) -> Plan {
        Plan::reaching(self.address.port(), &self.root, replacements)
    }

    pub(crate) fn url(&self, host: &str, target: &str) -> String {
        format!("https://{host}:{}{target}", self.address.port())
    }

    /// Every request so far, as it was sent back.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// How often somebody connected.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    seen: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        connections.fetch_add(1, Ordering::SeqCst);
        stream.set_nodelay(true).unwrap();
        tokio::spawn(serve(stream, acceptor.clone(), Arc::clone(&seen)));
    }
}

async fn serve(stream: TcpStream, acceptor: TlsAcceptor, seen: Arc<Mutex<Vec<String>>>) {
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    let service = service_fn(move |request| answer(request, Arc::clone(&seen)));
    // Tests break connections on purpose.
    let _ = auto::Builder::new(TokioExecutor::new())
        .serve_connection_with_upgrades(TokioIo::new(stream), service)
        .await;
}

async fn answer(
    mut request: Request<Incoming>,
    seen: Arc<Mutex<Vec<String>>>,
) -> Result<Response<Body>, Infallible> {
    let upgrade = request
        .headers()
        .contains_key(header::UPGRADE)
        .then(|| hyper::upgrade::on(&mut request));
    let (head, mut incoming) = request.into_parts();
    let target = head.uri.path_and_query().unwrap().to_string();
    let mut text = format!("{} {target}\n", head.method);
    for (name, value) in &head.headers {
        text += &format!("{name}: {}\n", String::from_utf8_lossy(value.as_bytes()));
    }
    let mut body = Vec::new();
    while let Some(frame) = incoming.frame().await {
        match frame {
            Ok(frame) => body.extend_from_slice(&frame.into_data().unwrap_or_default()),
            Err(_) => {
                text += BROKEN;
                break;
            }
        }
    }
    text += &format!("\n{}", String::from_utf8_lossy(&body));
    seen.lock().unwrap().push(text.clone());

    let query = head.uri.query().unwrap_or_default();
    let cut = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("cut="))
        .unwrap_or_default();
    let credentials = head.headers.get(header::AUTHORIZATION).cloned();
    let credentials = credentials.unwrap_or(HeaderValue::from_static("none"));
    Ok(match head.uri.path() {
        "/header" => {
            let mut response = pieces(b"see above", cut, Duration::ZERO);
            let headers = response.headers_mut();
            headers.insert("x-echo", credentials.clone());
            headers.append(header::SET_COOKIE, HeaderValue::from_static("a=b"));
            headers.append(header::SET_COOKIE, prefixed("c=", &credentials));
            headers.insert(header::LOCATION, HeaderValue::try_from(target).unwrap());
            response
        }
        "/trailers" => trailers(&credentials),
        "/gzip" => coded("gzip", &gzip(text.as_bytes()), cut),
        "/coded" => coded("pack200", text.as_bytes(), cut),
        "/bomb" => coded("gzip", &bomb(), cut),
        "/events" => {
            let event = prefixed("data: ", &credentials);
            let event = [event.as_bytes(), b"\n\n"].concat();
            events(&event)
        }
        "/socket" | "/extension" => {
            let key = head.headers[header::SEC_WEBSOCKET_KEY].as_bytes().to_vec();
            tokio::spawn(socket(upgrade.unwrap(), text, cut.to_owned()));
            switch(&key, head.uri.path() == "/extension")
        }
        _ => {
            let mut response = pieces(text.as_bytes(), cut, Duration::ZERO);
            response
                .headers_mut()
                .insert(header::CONTENT_LENGTH, text.len().into());
            response
        }
    })
}

fn prefixed(prefix: &str, value: &HeaderValue) -> HeaderValue {
    HeaderValue::from_bytes(&[prefix.as_bytes(), value.as_bytes()].concat()).unwrap()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// Written in pieces, so that it fills nobody's memory here.
fn bomb() -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..256 {
        encoder.write_all(&[0; 1 << 20]).unwrap();
    }
    encoder.finish().unwrap()
}

fn coded(coding: &'static str, body: &[u8], cut: &str) -> Response<Body> {
    let mut response = pieces(body, cut, Duration::ZERO);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
    headers.insert(header::CONTENT_LENGTH, body.len().into());
    headers.insert(header::ETAG, HeaderValue::from_static("\"strong\""));
    response
}

/// Stands behind the headers of a request that was not sent to its end.
pub(crate) const BROKEN: &str = "[broken off]\n";

/// The pieces that a text is cut into.
fn cut_into(text: &[u8], cut: &str) -> Vec<Bytes> {
    let pieces = match cut {
        "all" => text.chunks(1).collect(),
        "" => vec![text],
        number => {
            let (head, tail) = text.split_at(number.parse::<usize>().unwrap().min(text.len()));
            vec![head, tail]
        }
    };
    pieces
        .into_iter()
        .filter(|piece| !piece.is_empty())
        .map(Bytes::copy_from_slice)
        .collect()
}

fn pieces(text: &[u8], cut: &str, pause: Duration) -> Response<Body> {
    frames(
        cut_into(text, cut).into_iter().map(Frame::data).collect(),
        pause,
    )
}

fn events(event: &[u8]) -> Response<Body> {
    let events = vec![Bytes::copy_from_slice(event); 3];
    let mut response = frames(
        events.into_iter().map(Frame::data).collect(),
        Duration::from_millis(200),
    );
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    response
}

fn trailers(credentials: &HeaderValue) -> Response<Body> {
    let mut trailers = HeaderMap::new();
    trailers.insert("x-echo", credentials.clone());
    let all = vec![
        Frame::data(Bytes::from_static(b"see below")),
        Frame::trailers(trailers),
    ];
    let mut response = frames(all, Duration::ZERO);
    response
        .headers_mut()
        .insert(header::TRAILER, HeaderValue::from_static("x-echo"));
    response
}

fn frames(frames: Vec<Frame<Bytes>>, pause: Duration) -> Response<Body> {
    let frames = futures_util::stream::unfold(
        (frames.into_iter(), false),
        move |(mut left, begun)| async move {
            let frame = left.next()?;
            if begun {
                // Without a pause, the library would write several at once.
                tokio::task::yield_now().await;
                tokio::time::sleep(pause).await;
            }
            Some((Ok::<_, Infallible>(frame), (left, true)))
        },
    );
    Response::new(BodyExt::boxed(StreamBody::new(Box::pin(frames))))
}

fn switch(key: &[u8], with_extension: bool) -> Response<Body> {
    let digest = Sha1::new()
        .chain_update(key)
        .chain_update(b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11")
        .finalize();
    let mut response = pieces(b"", "", Duration::ZERO);
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(
        header::SEC_WEBSOCKET_ACCEPT,
        HeaderValue::try_from(BASE64.encode(&digest)).unwrap(),
    );
    if with_extension {
        headers.insert(
            header::SEC_WEBSOCKET_EXTENSIONS,
            HeaderValue::from_static("permessage-deflate"),
        );
    }
    response
}

async fn socket(upgrade: hyper::upgrade::OnUpgrade, text: String, cut: String) {
    let Ok(upgraded) = upgrade.await else { return };
    let mut stream = TokioIo::new(upgraded);
    for piece in cut_into(&message(text.as_bytes()), &cut) {
        stream.write_all(&piece).await.unwrap();
        stream.flush().await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // Clients' messages are short and masked.
    let mut frame = [0; 6];
    while stream.read_exact(&mut frame).await.is_ok() {
        let [_, length, mask @ ..] = frame;
        let mut payload = vec![0; usize::from(length & 0x7f)];
        stream.read_exact(&mut payload).await.unwrap();
        payload
            .iter_mut()
            .zip(mask.iter().cycle())
            .for_each(|(byte, key)| *byte ^= key);
        stream.write_all(&message(&payload)).await.unwrap();
    }
}

/// A text message of two fragments, with a ping between them.
fn message(text: &[u8]) -> Vec<u8> {
    let (head, tail) = text.split_at(text.len() / 2);
    let fragment = |first: u8, payload: &[u8]| {
        let length = u16::try_from(payload.len()).unwrap().to_be_bytes();
        [&[first, 126], &length[..], payload].concat()
    };
    [
        fragment(0x01, head),
        b"\x89\x04ping".to_vec(),
        fragment(0x80, tail),
    ]
    .concat()
}

/// The whole messages among bytes from a WebSocket.
pub(crate) fn messages(mut bytes: &[u8]) -> Vec<String> {
    let (mut messages, mut text) = (Vec::new(), Vec::new());
    while let [first, length, rest @ ..] = bytes {
        let (length, rest) = match (length, rest) {
            (126, [high, low, rest @ ..]) => (usize::from(u16::from_be_bytes([*high, *low])), rest),
            (126, _) => break,
            (length, rest) => (usize::from(*length), rest),
        };
        let Some((payload, rest)) = rest.split_at_checked(length) else {
            break;
        };
        if first & 0x08 == 0 {
            text.extend_from_slice(payload);
            if first & 0x80 != 0 {
                messages.push(String::from_utf8(std::mem::take(&mut text)).unwrap());
            }
        }
        bytes = rest;
    }
    messages
}
