//! Responses before the response, from origins that write them as no library would.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use cordon_proxy::Verdict;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

use crate::support::{Bench, Origin, Plan, secrets};

const HINT: &str = "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n";
const WORKING: &str = "HTTP/1.1 102 Processing\r\n\r\n";
const DONE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ndone";

/// What an origin does with a request once it has read its head.
#[derive(Clone, Debug)]
enum Step {
    Send(String),
    /// Reads this much of a body.
    Read(usize),
    Pause(Duration),
    /// Sends back what comes, to the end.
    Echo,
}

fn send(parts: &[&str]) -> Step {
    Step::Send(parts.concat())
}

/// The steps for a request with this head.
type Script = dyn Fn(&str) -> Vec<Step> + Send + Sync;

/// A proxy, and an origin in the clear that takes these steps for every request.
async fn serve(steps: impl Into<Vec<Step>>) -> (Bench, u16) {
    let steps = steps.into();
    serve_with(move |_| steps.clone(), |_| ()).await
}

/// The same, with steps that depend on the request, and changes to the plan.
async fn serve_with(
    script: impl Fn(&str) -> Vec<Step> + Send + Sync + 'static,
    change: impl FnOnce(&mut Plan),
) -> (Bench, u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let script: Arc<Script> = Arc::new(script);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            tokio::spawn(play(stream, Arc::clone(&script)));
        }
    });
    let mut plan = Plan::new(&Origin::start().await);
    plan.allowlist = plan.allowlist.replace("80, 443]", &format!("{port}]"));
    change(&mut plan);
    (plan.start().await, port)
}

async fn play(stream: TcpStream, script: Arc<Script>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).await.ok()? == 0 {
                return None;
            }
        }
        for step in script(&head) {
            match step {
                Step::Send(text) => stream.write_all(text.as_bytes()).await.ok()?,
                Step::Read(length) => {
                    stream.read_exact(&mut vec![0; length]).await.ok()?;
                }
                Step::Pause(time) => tokio::time::sleep(time).await,
                Step::Echo => {
                    let (mut read, mut write) = tokio::io::split(&mut stream);
                    tokio::io::copy(&mut read, &mut write).await.ok()?;
                }
            }
        }
    }
}

/// A connection to the proxy, and what came of it so far.
struct Wire(BufReader<TcpStream>);

impl Wire {
    async fn open(bench: &Bench) -> Self {
        Self(BufReader::new(
            TcpStream::connect(bench.http).await.unwrap(),
        ))
    }

    async fn write(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// The next head, as it came.
    async fn head(&mut self) -> String {
        let mut head = String::new();
        let reading = async {
            while !head.ends_with("\r\n\r\n") {
                assert_ne!(
                    self.0.read_line(&mut head).await.unwrap(),
                    0,
                    "ended: {head}"
                );
            }
        };
        let read = tokio::time::timeout(Duration::from_secs(30), reading).await;
        assert!(read.is_ok(), "nothing more came");
        head
    }

    async fn body(&mut self, length: usize) -> String {
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).await.unwrap();
        String::from_utf8(body).unwrap()
    }

    /// A response of the usual form, with nothing in front of it.
    async fn done(&mut self) {
        let head = self.head().await;
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert_eq!(self.body(4).await, "done");
    }
}

fn get(port: u16) -> String {
    format!("GET / HTTP/1.1\r\nhost: api.test:{port}\r\n\r\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn interim_responses_cut_anywhere_reach_the_client_whole() {
    let whole = [HINT, WORKING, DONE].concat();
    let cuts = whole.len();
    let script = move |head: &str| {
        let cut = head.split(['/', ' ']).nth(2).unwrap().parse().unwrap();
        let (before, after) = whole.split_at(cut);
        let pause = Step::Pause(Duration::from_millis(2));
        vec![send(&[before]), pause, send(&[after])]
    };
    let (bench, port) = serve_with(script, |_| ()).await;
    let mut wire = Wire::open(&bench).await;
    for cut in 0..=cuts {
        wire.write(&get(port).replace(" / ", &format!(" /{cut} ")))
            .await;
        assert_eq!(wire.head().await, HINT, "cut at {cut}");
        assert_eq!(wire.head().await, WORKING, "cut at {cut}");
        wire.done().await;
    }
    bench.requests(cuts + 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interim_response_does_not_wait_for_the_response() {
    let (bench, port) = serve([send(&[HINT]), Step::Read(1), send(&[DONE])]).await;
    let mut wire = Wire::open(&bench).await;
    let head = format!("POST / HTTP/1.1\r\nhost: api.test:{port}\r\ncontent-length: 1\r\n\r\n");
    for _ in 0..3 {
        wire.write(&head).await;
        assert_eq!(wire.head().await, HINT);
        // The origin answers only now.
        wire.write("x").await;
        wire.done().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_many_requests_sent_at_once_gets_its_own_interim_responses() {
    let (bench, port) = serve([send(&[HINT, WORKING, DONE])]).await;
    let mut wire = Wire::open(&bench).await;
    wire.write(&get(port).repeat(50)).await;
    for _ in 0..50 {
        assert_eq!(wire.head().await, HINT);
        assert_eq!(wire.head().await, WORKING);
        wire.done().await;
    }
    bench.requests(50).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_http_1_0_client_gets_no_interim_response() {
    let (bench, port) = serve([send(&[HINT, DONE])]).await;
    let request = format!("GET / HTTP/1.0\r\nhost: api.test:{port}\r\n\r\n");
    let answer = bench.raw(request.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
    assert_eq!(answer.matches("HTTP/").count(), 1, "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_request_gets_interim_responses_and_no_body() {
    let done = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n";
    let (bench, port) = serve([send(&[HINT, done])]).await;
    let mut wire = Wire::open(&bench).await;
    for _ in 0..2 {
        wire.write(&get(port).replace("GET", "HEAD")).await;
        assert_eq!(wire.head().await, HINT);
        let head = wire.head().await;
        assert!(head.contains("content-length: 4\r\n"), "{head}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_waits_for_continue_hears_of_it_first() {
    let asked = "HTTP/1.1 100 Continue\r\n\r\n";
    let steps = [
        send(&[WORKING, asked, HINT]),
        Step::Read(4),
        send(&[WORKING, DONE]),
    ];
    let (bench, port) = serve(steps).await;
    let mut wire = Wire::open(&bench).await;
    let head = format!(
        "POST / HTTP/1.1\r\nhost: api.test:{port}\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n"
    );
    for _ in 0..50 {
        wire.write(&head).await;
        let heads = [wire.head().await, wire.head().await, wire.head().await];
        // What came before the upstream asked may be told before or after.
        let hint = heads.iter().position(|head| head == HINT);
        let continued = heads.iter().position(|head| head == asked);
        assert!(
            continued < hint && heads.contains(&WORKING.to_owned()),
            "{heads:?}"
        );
        wire.write("body").await;
        assert_eq!(wire.head().await, WORKING);
        wire.done().await;
    }
    bench.requests(50).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unasked_continue_is_not_passed_on() {
    let (bench, port) = serve([send(&["HTTP/1.1 100 Continue\r\n\r\n", HINT, DONE])]).await;
    let mut wire = Wire::open(&bench).await;
    wire.write(&get(port)).await;
    assert_eq!(wire.head().await, HINT);
    wire.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interim_response_that_comes_too_late_is_dropped() {
    // Behind a response, and for a request that was given up.
    let pause = |millis| Step::Pause(Duration::from_millis(millis));
    let (bench, port) = serve([send(&[DONE, HINT]), pause(20), send(&[HINT])]).await;
    let mut wire = Wire::open(&bench).await;
    for _ in 0..10 {
        wire.write(&get(port)).await;
        wire.done().await;
    }
    let (bench, port) = serve_with(
        move |_| vec![send(&[WORKING]), pause(600), send(&[HINT, DONE])],
        |plan| plan.upstream.first_byte_time = Duration::from_millis(300),
    )
    .await;
    let mut wire = Wire::open(&bench).await;
    for _ in 0..3 {
        wire.write(&get(port)).await;
        assert_eq!(wire.head().await, WORKING);
        let head = wire.head().await;
        assert!(head.starts_with("HTTP/1.1 504 "), "{head}");
        let length = head.split("content-length: ").nth(1).unwrap();
        let length = length.lines().next().unwrap().parse().unwrap();
        wire.body(length).await;
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    for request in bench.requests(3).await {
        assert!(
            matches!(request.verdict, Verdict::Failed { .. }),
            "{request:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_breaks_off_after_a_hint_is_one_refusal_and_one_record() {
    let bad = [
        "HTTP/1.1 103 Early Hints\r\na: b\0c\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\na: b\rHTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\na b: c\r\n\r\n",
        "HTTP/1.1 1030 Early Hints\r\n\r\n",
        "nonsense\r\n\r\n",
    ];
    for bad in bad {
        let (bench, port) = serve([send(&[HINT, bad, DONE])]).await;
        let answer = bench.raw(get(port).as_bytes()).await;
        let rest = answer.strip_prefix(HINT);
        let rest = rest.unwrap_or_else(|| panic!("{bad:?}: {answer}"));
        assert!(rest.starts_with("HTTP/1.1 502 "), "{bad:?}: {rest}");
        assert_eq!(rest.matches("HTTP/1.1").count(), 1, "{bad:?}: {rest}");
        bench.requests(1).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn interim_responses_lose_what_belongs_to_the_connection() {
    let hint = "HTTP/1.1 103 Whatever\r\nLink: </a>\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\
                Connection: close, X-Mine\r\nX-Mine: 1\r\nKeep-Alive: 5\r\nUpgrade: h2c\r\nAlt-Svc: h3=\":443\"\r\n\
                Proxy-Authenticate: Basic\r\nX-Kept: a\tb\r\n\r\n";
    let plain = "HTTP/1.1 199 \nx-lines: end so\n\n";
    let (bench, port) = serve([send(&[hint, plain, DONE])]).await;
    let mut wire = Wire::open(&bench).await;
    for _ in 0..2 {
        wire.write(&get(port)).await;
        let head = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\nx-kept: a\tb\r\n\r\n";
        assert_eq!(wire.head().await, head);
        assert_eq!(
            wire.head().await,
            "HTTP/1.1 199 \r\nx-lines: end so\r\n\r\n"
        );
        wire.done().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn interim_responses_show_no_real_value() {
    let prepared = secrets::token();
    let surrogate = &prepared.env["GH_TOKEN"];
    let hint = HINT.replace("a.css", secrets::TOKEN);
    let (bench, port) = serve_with(
        move |_| vec![send(&[&hint, &hint, DONE])],
        |plan| plan.replacements = prepared.replacements.clone(),
    )
    .await;
    let mut wire = Wire::open(&bench).await;
    wire.write(&get(port)).await;
    for _ in 0..2 {
        assert_eq!(wire.head().await, HINT.replace("a.css", surrogate));
    }
    wire.done().await;
    let request = &bench.requests(1).await[0];
    assert_eq!(request.notes.as_ref().map(|notes| notes.scrubbed), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_interim_responses_is_cut_and_the_response_is_whole() {
    let long = format!(
        "HTTP/1.1 103 Early Hints\r\nlink: {}\r\n\r\n",
        "x".repeat(50_000)
    );
    for (flood, passed) in [(HINT.repeat(2000), 32), (long.repeat(40), 1)] {
        let (bench, port) = serve([send(&[&flood, DONE])]).await;
        let mut wire = Wire::open(&bench).await;
        for _ in 0..2 {
            wire.write(&get(port)).await;
            for _ in 0..passed {
                assert!(
                    wire.head()
                        .await
                        .starts_with("HTTP/1.1 103 Early Hints\r\nlink: ")
                );
            }
            wire.done().await;
        }
        bench.requests(2).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_gets_interim_responses_before_it_and_none_within() {
    let switch = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
                  sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    let (bench, port) = serve([send(&[HINT, switch, HINT]), Step::Echo]).await;
    let mut wire = Wire::open(&bench).await;
    wire.write(&format!(
        "GET / HTTP/1.1\r\nhost: api.test:{port}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    ))
    .await;
    assert_eq!(wire.head().await, HINT);
    let head = wire.head().await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    // Behind the switch these are bytes of the tunnel.
    assert_eq!(wire.body(HINT.len()).await, HINT);
    wire.write("\u{1}frames").await;
    assert_eq!(wire.body(7).await, "\u{1}frames");
}
