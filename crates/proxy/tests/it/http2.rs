//! HTTP/2 as no library would speak it, frame by frame.

use std::time::Duration;

use cordon_proxy::{Limits, Verdict};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{Bench, Origin, Plan};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A field that goes into no table.
fn field(block: &mut Vec<u8>, name: &str, value: &str) {
    block.push(0);
    for text in [name, value] {
        assert!(text.len() < 127);
        block.push(u8::try_from(text.len()).unwrap());
        block.extend(text.as_bytes());
    }
}

fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    fields
        .iter()
        .for_each(|(name, value)| field(&mut block, name, value));
    block
}

/// What the proxy said on a connection.
#[derive(Debug, Default)]
struct Said {
    statuses: Vec<Vec<u8>>,
    resets: usize,
    goaway: bool,
}

/// Sends frames and collects what comes back until nothing more does.
async fn exchange(bench: &Bench, frames: &[u8]) -> Said {
    let mut stream = TcpStream::connect(bench.http).await.unwrap();
    stream.write_all(PREFACE).await.unwrap();
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
    // A proxy that had enough closes the connection while we still send.
    let _ = stream.write_all(frames).await;
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 * 1024];
    while let Ok(Ok(length @ 1..)) =
        tokio::time::timeout(Duration::from_secs(2), stream.read(&mut buffer)).await
    {
        bytes.extend_from_slice(&buffer[..length]);
    }
    let mut said = Said::default();
    while let Some((head, rest)) = bytes.split_first_chunk::<9>() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        match head[3] {
            HEADERS => said.statuses.push(rest[..length].to_vec()),
            RST_STREAM => said.resets += 1,
            GOAWAY => said.goaway = true,
            _ => {}
        }
        bytes = rest[length..].to_vec();
    }
    said
}

fn get<'a>(host: &'a str, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut fields = vec![
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", host),
    ];
    fields.extend(more);
    fields
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_request_leaves_one_record_and_goes_nowhere() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    let host = origin.http_host();
    let cases = [
        get(&host, &[("Upper", "case")]),
        get(&host, &[("connection", "close")]),
        get(&host, &[("transfer-encoding", "chunked")]),
        get(&host, &[("te", "gzip")]),
        get(&host, &[(":authority", "evil.test")]),
        get(&host, &[(":unknown", "x")]),
        get(&host, &[("x", "a\nb")]),
        get(&host, &[("content-length", "5"), ("content-length", "6")]),
        vec![
            (":method", "GET"),
            (":scheme", "http"),
            (":authority", &host),
        ],
        vec![(":scheme", "http"), (":path", "/"), (":authority", &host)],
        vec![(":method", "GET"), (":scheme", "http"), (":path", "/")],
        get(&host, &[("host", "evil.test")]),
        get(&host, &[("host", &host), ("host", &host)]),
        vec![
            (":method", "GET"),
            (":scheme", "https"),
            (":path", "/"),
            (":authority", &host),
        ],
        vec![(":method", "CONNECT"), (":authority", &host)],
        vec![
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "/a/../b"),
            (":authority", &host),
        ],
        vec![
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "/a\\b"),
            (":authority", &host),
        ],
        vec![
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "evil"),
            (":authority", &host),
        ],
    ];
    for (index, fields) in cases.iter().enumerate() {
        let said = exchange(
            &bench,
            &frame(HEADERS, END_HEADERS | END_STREAM, 1, &block(fields)),
        )
        .await;
        assert!(
            said.resets + said.statuses.len() > 0 || said.goaway,
            "{fields:?}: {said:?}"
        );
        let request = &bench.requests(index + 1).await[index];
        assert!(
            matches!(request.verdict, Verdict::Blocked { .. }),
            "{fields:?}: {request:?}"
        );
    }
    assert!(origin.seen().is_empty(), "{:?}", origin.seen());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_request_beside_a_bad_one_is_served() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    let host = origin.http_host();
    let frames = [
        frame(
            HEADERS,
            END_HEADERS | END_STREAM,
            1,
            &block(&get(&host, &[("connection", "close")])),
        ),
        frame(
            HEADERS,
            END_HEADERS | END_STREAM,
            3,
            &block(&get(&host, &[])),
        ),
    ];
    let said = exchange(&bench, &frames.concat()).await;
    assert_eq!((said.statuses.len(), said.resets), (1, 1), "{said:?}");
    // Static table: ":status: 200".
    assert_eq!(said.statuses[0][0], 0x88);
    bench.requests(2).await;
    assert_eq!(origin.seen().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_another_length_than_said_breaks_the_request() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    let host = origin.http_host();
    let mut fields = get(&host, &[("content-length", "3")]);
    fields[0].1 = "POST";
    fields[2].1 = "/echo";
    let frames = [
        frame(HEADERS, END_HEADERS, 1, &block(&fields)),
        frame(DATA, END_STREAM, 1, b"hello, this is more"),
    ];
    let said = exchange(&bench, &frames.concat()).await;
    assert_eq!(said.resets, 1, "{said:?}");
    bench.requests(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rapid_resets_end_the_connection_and_harm_nobody_else() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    let host = origin.http_host();
    let request = block(&get(&host, &[]));
    let mut frames = Vec::new();
    for stream in (1..20_000).step_by(2) {
        frames.extend(frame(HEADERS, END_HEADERS | END_STREAM, stream, &request));
        frames.extend(frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
    }
    let said = exchange(&bench, &frames).await;
    assert!(said.goaway, "{said:?}");
    assert!(origin.seen().len() < 1000);
    assert!(bench.curl(&[&origin.https_url("/")]).await.contains("200"));
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_and_exploding_headers_are_cut_off() {
    let origin = Origin::start().await;
    let limits = Limits {
        header_bytes: 16 * 1024,
        ..Limits::default()
    };
    let bench = Plan {
        limits,
        ..Plan::new(&origin)
    }
    .start()
    .await;
    let host = origin.http_host();

    let mut flood = frame(HEADERS, 0, 1, &block(&get(&host, &[])));
    let many = block(&[("x", "y"); 1000]);
    for _ in 0..2000 {
        flood.extend(frame(CONTINUATION, 0, 1, &many));
    }
    let said = exchange(&bench, &flood).await;
    assert!(said.goaway, "{said:?}");

    // One entry of 4000 bytes in the dynamic table, and then a byte for each use of it.
    let mut bomb = block(&get(&host, &[]));
    bomb.extend([0x40, 1, b'x', 0x7f, 0xa1, 0x1e]);
    bomb.extend([b'y'; 4000]);
    bomb.extend([0xbe; 8000]);
    exchange(&bench, &frame(HEADERS, END_HEADERS | END_STREAM, 1, &bomb)).await;

    assert!(bench.curl(&[&origin.https_url("/")]).await.contains("200"));
    bench.requests(3).await;
    assert_eq!(origin.seen().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn nghttp_is_served() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    // nghttp resolves names by itself, so it is given the address and told the name.
    let url = format!("http://{}/hello", bench.http);
    let authority = format!(":authority: {}", origin.http_host());
    let answer = crate::support::stdout("nghttp", &["-H", &authority, &url]).await;
    assert_eq!(answer, "hello from /hello");
    bench.requests(1).await;
}
