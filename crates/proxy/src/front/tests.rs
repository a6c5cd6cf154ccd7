//! The front below a real HTTP server, above a pipe as narrow as may be.

use std::{
    convert::Infallible,
    future::poll_fn,
    sync::atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;

const HINT: &str = "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n";
const GET: &str = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
const LAST: &str = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
const ASK: &str = "POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\
                   connection: close\r\n\r\nbody";

/// A body in pieces, which the server frames as chunks.
type Body = StreamBody<stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>>>;

fn answer(number: usize) -> Response<Body> {
    let pieces = [format!("answer {number}, "), "in two pieces".to_owned()];
    let frames: Vec<_> = pieces.map(|piece| Ok(Frame::data(piece.into()))).into();
    Response::new(StreamBody::new(stream::iter(frames)))
}

fn answered(number: usize, last: bool) -> String {
    let connection = if last { "connection: close\r\n" } else { "" };
    let first = format!("answer {number}, ");
    format!(
        "HTTP/1.1 200 OK\r\n{connection}transfer-encoding: chunked\r\n\r\n\
         {:X}\r\n{first}\r\nD\r\nin two pieces\r\n0\r\n\r\n",
        first.len()
    )
}

/// Serves a pipe of this width. The function puts heads into the lane, in a task of its own, while the service waits.
fn serve<F, R>(width: usize, hint: F) -> DuplexStream
where
    F: Fn(Arc<Heads>, Turn) -> R + Copy + Send + Sync + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let (client, server) = duplex(width);
    let heads = Arc::<Heads>::default();
    let front = Front::new(
        server,
        BytesMut::new(),
        Arc::clone(&heads),
        &Limits::default(),
    );
    let number = Arc::<AtomicUsize>::default();
    let service = service_fn(move |request: Request<Incoming>| {
        let (heads, number) = (Arc::clone(&heads), Arc::clone(&number));
        async move {
            let number = number.fetch_add(1, Ordering::SeqCst);
            let turn = heads.lane.open();
            let hinting = tokio::spawn(hint(Arc::clone(&heads), turn));
            let _ = hinting.await;
            request.into_body().collect().await.unwrap();
            poll_fn(|_| heads.lane.poll_close()).await;
            // Too late, and for the wrong request.
            heads.lane.put(turn, b"HTTP/1.1 200 FORGED\r\n\r\n");
            Ok::<_, Infallible>(answer(number))
        }
    });
    let mut builder = http1::Builder::new();
    // Both ways in which the library writes.
    builder
        .auto_date_header(false)
        .writev(width.is_multiple_of(2));
    tokio::spawn(builder.serve_connection(TokioIo::new(front), service));
    client
}

async fn converse(mut client: DuplexStream, requests: String) -> String {
    let (mut read, mut write) = tokio::io::split(&mut client);
    let mut answers = String::new();
    let asking = async {
        write.write_all(requests.as_bytes()).await.unwrap();
    };
    let hearing = async {
        read.read_to_string(&mut answers).await.unwrap();
    };
    tokio::join!(asking, hearing);
    answers
}

#[tokio::test]
async fn heads_from_the_lane_come_whole_and_before_their_response_at_every_width() {
    let expected = format!(
        "{HINT}{HINT}{}{HINT}{HINT}{}",
        answered(0, false),
        answered(1, true)
    );
    for width in 1..=expected.len() {
        let client = serve(width, |heads, turn| async move {
            heads.lane.put(turn, HINT.as_bytes());
            tokio::task::yield_now().await;
            heads.lane.put(turn, HINT.as_bytes());
        });
        assert_eq!(
            converse(client, format!("{GET}{LAST}")).await,
            expected,
            "width {width}"
        );
    }
}

/// Puts heads into the lane, also when it is closed and when it is the next request's turn.
async fn go_on(heads: Arc<Heads>, turn: Turn) {
    for _ in 0..500 {
        heads.lane.put(turn, HINT.as_bytes());
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn heads_that_race_with_the_response_are_whole_and_before_it_or_nowhere() {
    const REQUESTS: usize = 200;
    for width in [1, 7, 64, 4096] {
        let client = serve(width, |heads, turn| async move {
            tokio::spawn(go_on(heads, turn));
            tokio::task::yield_now().await;
        });
        let answers = converse(client, GET.repeat(REQUESTS) + LAST).await;
        let mut rest = answers.as_str();
        for number in 0..=REQUESTS {
            let mut hints = 0;
            while let Some(behind) = rest.strip_prefix(HINT) {
                (rest, hints) = (behind, hints + 1);
            }
            assert!(hints <= 32, "{hints}");
            let response = answered(number, number == REQUESTS);
            rest = rest
                .strip_prefix(response.as_str())
                .unwrap_or_else(|| panic!("width {width}, answer {number}: {rest:.300}"));
        }
        assert_eq!(rest, "");
    }
}

#[tokio::test]
async fn what_follows_a_continue_is_written_after_it() {
    for width in 1..=80 {
        let client = serve(width, |heads, turn| async move {
            heads.lane.put_continue(turn);
            heads.lane.put(turn, HINT.as_bytes());
        });
        let expected = format!("HTTP/1.1 100 Continue\r\n\r\n{HINT}{}", answered(0, true));
        assert_eq!(
            converse(client, ASK.to_owned()).await,
            expected,
            "width {width}"
        );
    }
}

#[tokio::test]
async fn a_head_that_was_begun_ends_before_the_library_writes() {
    for width in 1..=80 {
        let client = serve(width, |heads, turn| async move {
            heads.lane.put(turn, HINT.as_bytes());
        });
        let expected = format!("{HINT}HTTP/1.1 100 Continue\r\n\r\n{}", answered(0, true));
        assert_eq!(
            converse(client, ASK.to_owned()).await,
            expected,
            "width {width}"
        );
    }
}

#[tokio::test]
async fn heads_beyond_the_bounds_are_dropped_and_the_response_is_not() {
    let client = serve(1024, |heads, turn| async move {
        let long = format!(
            "HTTP/1.1 103 Early Hints\r\nlink: {}\r\n\r\n",
            "x".repeat(70_000)
        );
        heads.lane.put(turn, long.as_bytes());
        for _ in 0..1000 {
            heads.lane.put(turn, HINT.as_bytes());
            tokio::task::yield_now().await;
        }
    });
    let expected = HINT.repeat(32) + &answered(0, true);
    assert_eq!(converse(client, LAST.to_owned()).await, expected);
}
