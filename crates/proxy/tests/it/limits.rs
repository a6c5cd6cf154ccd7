//! Workloads that want more than their share.

use std::time::{Duration, Instant};

use cordon_proxy::{Limits, Upstream};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use crate::support::{Bench, Origin, Plan, read_all, until};

#[tokio::test(flavor = "multi_thread")]
async fn connections_over_the_limit_wait_for_their_turn() {
    let origin = Origin::start().await;
    let limits = Limits {
        connections: 3,
        idle_time: Duration::from_millis(900),
        ..Limits::default()
    };
    let bench = Plan {
        limits,
        ..Plan::new(&origin)
    }
    .start()
    .await;
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(bench.http).await.unwrap();
        stream.write_all(b"G").await.unwrap();
        held.push(stream);
    }
    let begun = Instant::now();
    let url = origin.https_url("/");
    let arguments = [url.as_str()];
    let waiting = bench.curl(&arguments);
    let release = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        held.pop();
    };
    let (answer, ()) = tokio::join!(waiting, release);
    assert!(answer.contains("200"), "{answer}");
    assert!(
        begun.elapsed() > Duration::from_millis(250),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_idle_connections_do_not_wedge_the_proxy() {
    let origin = Origin::start().await;
    let limits = Limits {
        idle_time: Duration::from_millis(500),
        connections: 100,
        ..Limits::default()
    };
    let bench = Plan {
        limits,
        ..Plan::new(&origin)
    }
    .start()
    .await;
    // As many as this process may hold at one time; each is dropped for the next.
    let mut held = std::collections::VecDeque::new();
    for _ in 0..10_000 {
        if let Ok(Ok(stream)) =
            tokio::time::timeout(Duration::from_millis(1), TcpStream::connect(bench.http)).await
        {
            held.push_back(stream);
        }
        if held.len() > 300 {
            held.pop_front();
        }
    }
    assert!(bench.curl(&[&origin.https_url("/")]).await.contains("200"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_that_does_not_end_is_cut_off_and_recorded() {
    let origin = Origin::start().await;
    let limits = Limits {
        handshake_time: Duration::from_millis(300),
        ..Limits::default()
    };
    let bench = Plan {
        limits,
        ..Plan::new(&origin)
    }
    .start()
    .await;
    let mut stream = TcpStream::connect(bench.https).await.unwrap();
    stream.write_all(&[0x16, 3, 1, 2, 0, 1]).await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut answer);
    tokio::time::timeout(Duration::from_secs(30), read)
        .await
        .unwrap()
        .unwrap();
    until(|| bench.lines().len() > 1).await;
    assert_eq!(bench.lines()[1], "ERROR TLS ? -> the client took too long");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_over_the_limit_wait_and_are_served() {
    let origin = Origin::start().await;
    let limits = Limits {
        requests: 2,
        ..Limits::default()
    };
    let bench = Plan {
        limits,
        ..Plan::new(&origin)
    }
    .start()
    .await;
    let ca = bench.ca().display().to_string();
    let connect = format!("::{}", bench.https);
    let url = origin.https_url("/n/[1-30]");
    let arguments = [
        "-s",
        "-w",
        "%{http_code}",
        "-o",
        "/dev/null",
        "--parallel",
        "--parallel-max",
        "30",
        "--cacert",
        &ca,
        "--connect-to",
        &connect,
        &url,
    ];
    let answer = crate::support::stdout("curl", &arguments).await;
    assert_eq!(answer, "200".repeat(30));
    bench.requests(30).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_upstream_connections_are_bounded_and_expire() {
    let origin = Origin::with_protocols(&["http/1.1"]).await;
    let mut plan = Plan::new(&origin);
    plan.limits = Limits {
        idle_upstreams: 2,
        ..Limits::default()
    };
    plan.upstream = Upstream {
        keep_alive_time: Duration::from_secs(3),
        ..plan.upstream
    };
    let bench = plan.start().await;
    let url = |name: &str| format!("http://{name}.api.test:{}/", origin.http.port());
    for name in ["a", "b", "c"] {
        bench.curl(&[&url(name)]).await;
    }
    // `a` had to go for `c`.
    bench.curl(&[&url("c")]).await;
    bench.curl(&[&url("a")]).await;
    let peers: Vec<_> = origin.seen().iter().map(|seen| seen.peer).collect();
    assert_eq!(peers[2], peers[3]);
    assert_ne!(peers[0], peers[4]);
    tokio::time::sleep(Duration::from_secs(4)).await;
    bench.curl(&[&url("a")]).await;
    assert_ne!(origin.seen()[5].peer, peers[4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_upload_gets_to_read_the_refusal() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    let file = bench.directory.path().join("body");
    std::fs::write(&file, vec![b'x'; 2_000_000]).unwrap();
    let data = format!("@{}", file.display());
    for option in ["--http1.1", "--http2"] {
        let output = bench
            .curl_output(&[
                option,
                "-v",
                "-H",
                "Expect:",
                "--data-binary",
                &data,
                "https://evil.test/",
            ])
            .await;
        let answer = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(answer.contains("host_not_listed"), "{option}: {answer}");
    }
    bench.requests(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_http2_connection_that_rests_is_closed() {
    let origin = Origin::start().await;
    let limits = Limits {
        idle_time: Duration::from_millis(200),
        ..Limits::default()
    };
    let bench = Plan {
        limits,
        ..Plan::new(&origin)
    }
    .start()
    .await;
    for opening in [
        &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"[..],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let mut stream = TcpStream::connect(bench.http).await.unwrap();
        stream.write_all(opening).await.unwrap();
        let begun = Instant::now();
        let mut buffer = Vec::new();
        let read = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut buffer);
        tokio::time::timeout(Duration::from_secs(30), read)
            .await
            .unwrap()
            .unwrap();
        assert!(begun.elapsed() > Duration::from_millis(150));
    }
    bench.requests(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_resolve_while_every_request_waits() {
    let origin = Origin::start().await;
    let limits = Limits {
        requests: 2,
        ..Limits::default()
    };
    let bench = Plan {
        limits,
        ..Plan::new(&origin)
    }
    .start()
    .await;
    let mut waiting = Vec::new();
    for _ in 0..4 {
        let mut stream = TcpStream::connect(bench.http).await.unwrap();
        let request = format!(
            "GET /silent HTTP/1.1\r\nHost: {}\r\n\r\n",
            origin.http_host()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        waiting.push(stream);
    }
    until(|| origin.seen().len() >= 2).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(origin.seen().len(), 2);
    let port = bench.dns.port().to_string();
    let arguments = [
        "@127.0.0.1",
        "-p",
        &port,
        "+tries=1",
        "+time=3",
        "+short",
        "a.test",
    ];
    assert_eq!(
        crate::support::stdout("dig", &arguments).await,
        format!("{}\n", crate::support::DOOR)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_rests_from_the_end_of_its_last_response() {
    let origin = Origin::start().await;
    let limits = Limits {
        idle_time: Duration::from_millis(600),
        ..Limits::default()
    };
    let bench = Plan {
        limits,
        ..Plan::new(&origin)
    }
    .start()
    .await;
    let mut stream = TcpStream::connect(bench.http).await.unwrap();
    let request = |path: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n",
            origin.http_host()
        )
    };
    // A response that takes longer than a connection may rest, and then another request.
    stream
        .write_all(request("/events").as_bytes())
        .await
        .unwrap();
    assert!(read_all(&mut stream).await.contains("data: 3"));
    let mut other = TcpStream::connect(bench.http).await.unwrap();
    other
        .write_all(request("/events").as_bytes())
        .await
        .unwrap();
    let mut events = String::new();
    let mut buffer = [0; 1024];
    while !events.ends_with("0\r\n\r\n") {
        let length = tokio::io::AsyncReadExt::read(&mut other, &mut buffer)
            .await
            .unwrap();
        assert!(length > 0, "{events}");
        events += &String::from_utf8_lossy(&buffer[..length]);
    }
    other.write_all(request("/late").as_bytes()).await.unwrap();
    assert!(read_all(&mut other).await.ends_with("hello from /late"));
}
