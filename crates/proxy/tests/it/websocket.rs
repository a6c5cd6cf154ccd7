//! WebSockets over both protocols.

use bytes::Bytes;
use cordon_proxy::{Broken, Verdict};
use http::{Method, Request, Version};
use http_body_util::Empty;
use hyper::ext::Protocol;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{Bench, Origin, read_all};

fn upgrade(path: &str, host: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
}

async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_pass_after_an_upgrade() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    let mut stream = TcpStream::connect(bench.http).await.unwrap();
    stream
        .write_all(upgrade("/socket", &origin.http_host()).as_bytes())
        .await
        .unwrap();
    let head = read_head(&mut stream).await.to_lowercase();
    assert!(head.starts_with("http/1.1 101 "), "{head}");
    assert!(
        head.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="),
        "{head}"
    );
    // Bytes that would be a bad request head, were they taken for one.
    for message in [
        &b"\x81\x05hello"[..],
        b"\r\n\r\n\0\0",
        b"GET / HTTP/1.1\n\n",
    ] {
        stream.write_all(message).await.unwrap();
        let mut echoed = vec![0; message.len()];
        stream.read_exact(&mut echoed).await.unwrap();
        assert_eq!(echoed, message);
    }
    drop(stream);
    let request = &bench.requests(1).await[0];
    assert_eq!(
        (request.status, request.bytes_up, request.bytes_down),
        (Some(101), 29, 29)
    );
    assert_eq!(
        bench.lines()[1],
        format!("ALLOWED GET {} -> 101", origin.http_url("/socket"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_that_the_origin_declines_is_an_ordinary_response() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    let mut stream = TcpStream::connect(bench.http).await.unwrap();
    stream
        .write_all(upgrade("/teapot", &origin.http_host()).as_bytes())
        .await
        .unwrap();
    let answer = read_all(&mut stream).await;
    assert!(
        answer.starts_with("HTTP/1.1 418 ") && answer.ends_with("short and stout"),
        "{answer}"
    );
    // The connection goes on as HTTP.
    let request = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", origin.http_host());
    stream.write_all(request.as_bytes()).await.unwrap();
    assert!(read_all(&mut stream).await.ends_with("hello from /"));
    bench.requests(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_to_an_unlisted_host_is_refused() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    let answer = bench.raw(upgrade("/socket", "evil.test").as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert!(matches!(
        bench.requests(1).await[0].verdict,
        Verdict::Blocked { .. }
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_pass_on_an_http2_stream() {
    let origin = Origin::with_protocols(&["http/1.1"]).await;
    let bench = Bench::start(&origin).await;
    let stream = TcpStream::connect(bench.http).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .handshake(TokioIo::new(stream))
        .await
        .unwrap();
    // The client may ask for it only once the server has said so.
    while !connection.is_extended_connect_protocol_enabled() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    tokio::spawn(connection);
    let connect = |protocol: &'static str| {
        Request::builder()
            .method(Method::CONNECT)
            .version(Version::HTTP_2)
            .uri(origin.http_url("/socket"))
            .extension(Protocol::from_static(protocol))
            .header("sec-websocket-version", "13")
            .body(Empty::<Bytes>::new())
            .unwrap()
    };
    let response = sender.send_request(connect("websocket")).await.unwrap();
    assert_eq!(response.status(), 200);
    let mut tunnel = TokioIo::new(hyper::upgrade::on(response).await.unwrap());
    tunnel.write_all(b"\x81\x05hello").await.unwrap();
    let mut echoed = [0; 7];
    tunnel.read_exact(&mut echoed).await.unwrap();
    assert_eq!(&echoed, b"\x81\x05hello");
    tunnel.shutdown().await.unwrap();
    drop(tunnel);
    let request = &bench.requests(1).await[0];
    assert_eq!((request.bytes_up, request.bytes_down), (7, 7));
    assert_ne!(request.broken, Some(Broken::ClientGone));
    assert_eq!(origin.seen()[0].method, Method::GET);

    let refused = sender.send_request(connect("connect-udp")).await.unwrap();
    assert_eq!(refused.status(), 403);
    bench.requests(2).await;
}
