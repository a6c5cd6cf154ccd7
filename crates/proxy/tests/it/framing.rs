//! Request heads that two programs could read in two ways, as raw bytes.

use cordon_proxy::{Limits, Verdict};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use crate::support::{Bench, Origin, Plan, read_all};

/// Sends one request and expects one refusal, one record, and nothing upstream.
async fn refused(head: &str, status: u16, reason: &str) {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    let head = head.replace("$HOST", &origin.http_host());
    let answer = bench.raw(head.as_bytes()).await;
    assert!(
        answer.starts_with(&format!("HTTP/1.1 {status} ")),
        "{head:?}: {answer}"
    );
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{head:?}: {answer}");
    let (fields, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(
        fields.contains("content-type: application/json"),
        "{answer}"
    );
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    let message = body["message"].as_str().unwrap();
    assert!(message.contains(reason), "{head:?}: {message}");
    let request = &bench.requests(1).await[0];
    assert!(
        matches!(request.verdict, Verdict::Blocked { .. }),
        "{head:?}: {request:?}"
    );
    assert_eq!(request.status, Some(status));
    assert!(origin.seen().is_empty(), "{head:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_two_lengths_is_refused_and_recorded() {
    for (fields, reason) in [
        (
            "Content-Length: 4\r\nTransfer-Encoding: chunked",
            "both Content-Length and",
        ),
        (
            "Transfer-Encoding: chunked\r\nContent-Length: 4",
            "both Content-Length and",
        ),
        (
            "Content-Length: 4\r\nContent-Length: 5",
            "two Content-Length",
        ),
        (
            "Content-Length: 4\r\nContent-Length: 4",
            "two Content-Length",
        ),
        ("Content-Length: 4, 4", "not a number"),
        ("Content-Length: +4", "not a number"),
        ("Content-Length: -4", "not a number"),
        ("Content-Length: 0x4", "not a number"),
        ("Content-Length: ", "not a number"),
        ("Content-Length: 99999999999999999999", "not a number"),
        ("Transfer-Encoding: gzip, chunked", "Transfer-Encoding"),
        ("Transfer-Encoding: chunked, identity", "Transfer-Encoding"),
        ("Transfer-Encoding: xchunked", "Transfer-Encoding"),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding",
        ),
        ("Transfer-Encoding: \x0bchunked", "control character"),
    ] {
        let head = format!("POST /s HTTP/1.1\r\nHost: $HOST\r\n{fields}\r\n\r\n0\r\n\r\n");
        refused(&head, 400, reason).await;
    }
    refused(
        "POST / HTTP/1.0\r\nHost: $HOST\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
        "Transfer-Encoding",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_is_not_plain_http_is_refused_and_recorded() {
    for (head, reason) in [
        (
            "GET / HTTP/1.1\r\nHost: $HOST\r\nHost: evil.test\r\n\r\n",
            "two Host",
        ),
        (
            "GET / HTTP/1.1\r\nHost: $HOST\r\nhost: $HOST\r\n\r\n",
            "two Host",
        ),
        ("GET / HTTP/1.1\r\nAccept: */*\r\n\r\n", "no host"),
        (
            "GET / HTTP/1.1\r\nHost: $HOST\r\nX: a\r\n b\r\n\r\n",
            "folded",
        ),
        (
            "GET / HTTP/1.1\r\nHost: $HOST\r\nX : a\r\n\r\n",
            "begins with no header name",
        ),
        (
            "GET / HTTP/1.1\r\nHost: $HOST\r\nX(): a\r\n\r\n",
            "begins with no header name",
        ),
        (
            "GET / HTTP/1.1\r\nHost: $HOST\r\nno colon\r\n\r\n",
            "begins with no header name",
        ),
        (
            "GET / HTTP/1.1\r\nHost: $HOST\r\nX: a\rb\r\n\r\n",
            "control character",
        ),
        (
            "GET / HTTP/1.1\r\nHost: $HOST\r\nX: a\0b\r\n\r\n",
            "control character",
        ),
        ("GET / HTTP/1.1\nHost: $HOST\n\n", "a line ends"),
        ("GET / HTTP/1.1\r\nHost: $HOST\n\r\n", "a line ends"),
        ("GET / HTTP/2.0\r\nHost: $HOST\r\n\r\n", "version"),
        ("GET /\r\nHost: $HOST\r\n\r\n", "request line"),
        ("GE(T / HTTP/1.1\r\nHost: $HOST\r\n\r\n", "request line"),
        ("SSH-2.0-OpenSSH_9.0\r\n", "request line"),
        ("\0\0\0\0\r\n\r\n", "request line"),
        (
            "GET / HTTP/1.1\r\nHost: $HOST\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Content-Length: 5\r\n\r\nhello",
            "announces a body",
        ),
        (
            "GET http:///x HTTP/1.1\r\nHost: $HOST\r\n\r\n",
            "begin with a slash",
        ),
    ] {
        let status = if reason.contains("slash") { 403 } else { 400 };
        refused(head, status, reason).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_servers_resolve_differently_is_refused_and_recorded() {
    for (target, reason) in [
        ("/a#b", "fragment"),
        ("/a\\b", "backslash"),
        ("/a/../b", "dot segment"),
        ("/a/%2e%2e/b", "dot segment"),
        ("/a/..?x=1", "dot segment"),
        ("/a%00b", "NUL"),
        ("*", "OPTIONS"),
        ("evil", "slash"),
    ] {
        refused(
            &format!("GET {target} HTTP/1.1\r\nHost: $HOST\r\n\r\n"),
            403,
            reason,
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tunnels_and_foreign_upgrades_are_refused() {
    refused(
        "CONNECT $HOST HTTP/1.1\r\nHost: $HOST\r\n\r\n",
        403,
        "no tunnels",
    )
    .await;
    for protocol in ["h2c", "TLS/1.0", "foo", "websocket, h2c"] {
        let head = format!(
            "GET / HTTP/1.1\r\nHost: $HOST\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n\r\n"
        );
        refused(&head, 403, "only WebSocket").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_that_disagree_are_refused() {
    for head in [
        "GET http://evil.test/x HTTP/1.1\r\nHost: $HOST\r\n\r\n",
        "GET http://api.test/x HTTP/1.1\r\nHost: $HOST\r\n\r\n",
    ] {
        refused(head, 403, "names two hosts").await;
    }
    refused(
        "GET https://$HOST/x HTTP/1.1\r\nHost: $HOST\r\n\r\n",
        400,
        "scheme",
    )
    .await;
    refused(
        "GET http://user@$HOST/x HTTP/1.1\r\nHost: $HOST\r\n\r\n",
        403,
        "user information",
    )
    .await;
    refused("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 403, "host").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_absolute_target_of_the_same_host_is_served() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    let host = origin.http_host();
    let request =
        format!("GET http://{host}/x?y HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let answer = bench.raw(request.as_bytes()).await;
    assert!(answer.ends_with("hello from /x"), "{answer}");
    assert_eq!(origin.seen()[0].target, "/x?y");
    bench.requests(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_head_behind_a_good_one_is_refused_in_its_turn() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    let host = origin.http_host();
    let requests = format!(
        "POST /echo HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n\
         POST /echo HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\n\r\nworld\
         GET /smuggled HTTP/1.1\r\nHost: {host}\r\nHost: {host}\r\n\r\n\
         GET /after HTTP/1.1\r\nHost: {host}\r\n\r\n"
    );
    // However the bytes are cut, the answers are the same.
    for cut in [requests.len(), 80, 120, 131, 140, 220, 226, 260] {
        let mut stream = TcpStream::connect(bench.http).await.unwrap();
        stream.write_all(&requests.as_bytes()[..cut]).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        stream.write_all(&requests.as_bytes()[cut..]).await.unwrap();
        let answer = read_all(&mut stream).await;
        let statuses: Vec<_> = answer
            .split("HTTP/1.1 ")
            .skip(1)
            .map(|part| &part[..3])
            .collect();
        assert_eq!(statuses, ["200", "200", "400"], "cut at {cut}: {answer}");
        assert!(
            answer.contains("\r\n\r\nhello") && answer.contains("\r\n\r\nworld"),
            "{answer}"
        );
    }
    bench.requests(24).await;
    assert!(origin.seen().iter().all(|seen| seen.target == "/echo"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_beyond_the_limits_is_refused_and_recorded() {
    let origin = Origin::start().await;
    let limits = Limits {
        header_bytes: 4096,
        header_count: 20,
        ..Limits::default()
    };
    let bench = Plan {
        limits,
        ..Plan::new(&origin)
    }
    .start()
    .await;
    let host = origin.http_host();

    let long = format!(
        "GET / HTTP/1.1\r\nHost: {host}\r\nX: {}\r\n\r\n",
        "x".repeat(5000)
    );
    assert!(
        bench
            .raw(long.as_bytes())
            .await
            .starts_with("HTTP/1.1 431 ")
    );
    let endless = format!(
        "GET / HTTP/1.1\r\nHost: {host}\r\n{}",
        "X: y\r\n".repeat(2000)
    );
    assert!(
        bench
            .raw(endless.as_bytes())
            .await
            .starts_with("HTTP/1.1 431 ")
    );
    let many = format!(
        "GET / HTTP/1.1\r\nHost: {host}\r\n{}\r\n",
        "X: y\r\n".repeat(20)
    );
    assert!(
        bench
            .raw(many.as_bytes())
            .await
            .starts_with("HTTP/1.1 431 ")
    );
    let enough = format!(
        "GET / HTTP/1.1\r\nHost: {host}\r\n{}\r\n",
        "X: y\r\n".repeat(19)
    );
    assert!(
        bench
            .raw(enough.as_bytes())
            .await
            .starts_with("HTTP/1.1 200 ")
    );

    let fields: Vec<_> = (0..20).map(|number| format!("-Hx{number}: y")).collect();
    let mut arguments = vec!["--http2".to_owned(), origin.https_url("/")];
    arguments.extend(fields);
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    assert!(bench.curl(&arguments).await.ends_with("\n431 2"));
    bench.requests(5).await;
    assert_eq!(origin.seen().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_ends_early_or_takes_too_long_is_refused_and_recorded() {
    let origin = Origin::start().await;
    let limits = Limits {
        header_time: std::time::Duration::from_millis(300),
        ..Limits::default()
    };
    let bench = Plan {
        limits,
        ..Plan::new(&origin)
    }
    .start()
    .await;

    let mut stream = TcpStream::connect(bench.http).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHos").await.unwrap();
    stream.shutdown().await.unwrap();
    let answer = read_all(&mut stream).await;
    assert!(
        answer.starts_with("HTTP/1.1 400 ") && answer.contains("ended within"),
        "{answer}"
    );

    let mut stream = TcpStream::connect(bench.http).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHos").await.unwrap();
    let answer = read_all(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");

    // A client that sends a byte now and then is no faster.
    let mut stream = TcpStream::connect(bench.http).await.unwrap();
    for byte in b"GET / HTTP/1.1\r\n" {
        stream.write_all(&[*byte]).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    let answer = read_all(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    bench.requests(3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_without_a_request_leaves_no_record() {
    let origin = Origin::start().await;
    let limits = Limits {
        idle_time: std::time::Duration::from_millis(200),
        ..Limits::default()
    };
    let bench = Plan {
        limits,
        ..Plan::new(&origin)
    }
    .start()
    .await;
    drop(TcpStream::connect(bench.http).await.unwrap());
    let mut silent = TcpStream::connect(bench.https).await.unwrap();
    assert_eq!(read_all(&mut silent).await, "");

    // A connection that rests between requests is closed without a word.
    let mut resting = TcpStream::connect(bench.http).await.unwrap();
    let request = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", origin.http_host());
    resting.write_all(request.as_bytes()).await.unwrap();
    let answer = read_all(&mut resting).await;
    assert!(answer.ends_with("hello from /"), "{answer}");
    bench.requests(1).await;
}
