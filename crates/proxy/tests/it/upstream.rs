//! Upstreams that cannot be reached, must not be, or are reached through another proxy.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use cordon_policy::Allowlist;
use cordon_proxy::{HttpProxy, Upstream, Verdict};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, copy_bidirectional},
    net::{TcpListener, TcpStream, UdpSocket},
};

use crate::support::{Bench, Origin, Plan};

/// Asks for a URL and expects a JSON answer of ours.
async fn trouble(bench: &Bench, url: &str, status: u16, code: &str) -> serde_json::Value {
    let answer = bench.curl(&[url]).await;
    let (body, line) = answer.rsplit_once('\n').unwrap();
    assert!(line.starts_with(&status.to_string()), "{url}: {answer}");
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["code"], code, "{body}");
    body
}

fn short_times(plan: &mut Plan) {
    let upstream = std::mem::take(&mut plan.upstream);
    plan.upstream = Upstream {
        resolve_time: Duration::from_millis(1500),
        connect_time: Duration::from_millis(1500),
        tls_time: Duration::from_millis(1500),
        first_byte_time: Duration::from_millis(1500),
        idle_time: Duration::from_millis(1500),
        ..upstream
    };
}

#[tokio::test(flavor = "multi_thread")]
async fn trouble_upstream_is_named() {
    let origin = Origin::start().await;
    let mut plan = Plan::new(&origin);
    short_times(&mut plan);
    // A port where connections are accepted and nothing is said.
    let mute = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let mute = mute.local_addr().unwrap().port();
    // A port that nobody listens on.
    let closed = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    plan.allowlist = plan
        .allowlist
        .replace("80, 443]", &format!("{mute}, {closed}]"));
    let bench = plan.start().await;
    let (http, https) = (origin.http.port(), origin.https.port());

    let missing = format!("http://missing.api.test:{http}/");
    assert!(
        trouble(&bench, &missing, 502, "dns_failure").await["message"]
            .as_str()
            .unwrap()
            .contains("does not exist")
    );
    trouble(
        &bench,
        &format!("http://silent.api.test:{http}/"),
        504,
        "dns_timeout",
    )
    .await;
    trouble(
        &bench,
        &format!("http://api.test:{closed}/"),
        502,
        "connect_failure",
    )
    .await;
    trouble(
        &bench,
        &format!("https://api.test:{mute}/"),
        504,
        "tls_timeout",
    )
    .await;
    trouble(
        &bench,
        &format!("https://api.test:{http}/"),
        502,
        "tls_failure",
    )
    .await;
    trouble(
        &bench,
        &format!("http://api.test:{https}/"),
        502,
        "upstream_broke_off",
    )
    .await;
    trouble(
        &bench,
        &format!("http://api.test:{http}/silent"),
        504,
        "answer_timeout",
    )
    .await;
    for request in bench.requests(7).await {
        assert!(
            matches!(request.verdict, Verdict::Failed { .. }),
            "{request:?}"
        );
    }
    assert_eq!(
        bench.lines()[1],
        format!("ERROR GET {missing} -> the name `missing.api.test` does not exist")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_is_not_trusted_is_not_believed() {
    let origin = Origin::start().await;
    let mut plan = Plan::new(&origin);
    plan.upstream.extra_roots.clear();
    let bench = plan.start().await;
    let body = trouble(
        &bench,
        &origin.https_url("/"),
        502,
        "certificate_not_trusted",
    )
    .await;
    assert!(
        body["message"].as_str().unwrap().contains("UnknownIssuer"),
        "{body}"
    );
    assert!(
        body["hint"].as_str().unwrap().contains("CA bundle"),
        "{body}"
    );

    // Trusted, but for another name.
    let mut plan = Plan::new(&origin);
    plan.allowlist = plan.allowlist.replace("api.test", "deep.other.test");
    let bench = plan.start().await;
    let url = format!("https://deep.other.test:{}/", origin.https.port());
    trouble(&bench, &url, 502, "certificate_not_trusted").await;
    assert!(origin.seen().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn private_and_metadata_addresses_are_refused_unless_the_allowlist_names_them() {
    let origin = Origin::start().await;
    let mut plan = Plan::new(&origin);
    plan.allowlist = plan
        .allowlist
        .replace("private_addresses: true", "private_addresses: false");
    let bench = plan.start().await;
    for host in ["api.test", "private.api.test", "metadata.api.test"] {
        let body = trouble(
            &bench,
            &format!("http://{host}:{}/", origin.http.port()),
            403,
            "address_refused",
        )
        .await;
        assert_eq!(body["error"], "blocked_by_network_allowlist");
    }
    let requests = bench.requests(3).await;
    assert!(
        requests
            .iter()
            .all(|request| matches!(request.verdict, Verdict::Blocked { .. }))
    );
    assert!(origin.seen().is_empty());

    // Even an entry for a private network does not lead to a metadata service.
    let bench = Bench::start(&origin).await;
    trouble(
        &bench,
        &format!("http://metadata.api.test:{}/", origin.http.port()),
        403,
        "address_refused",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_connection_does_not_outlive_its_permission() {
    let origin = Origin::start().await;
    let plan = Plan::new(&origin);
    let allowlist = plan.allowlist.clone();
    let bench = plan.start().await;
    assert!(bench.curl(&[&origin.http_url("/")]).await.contains("200"));
    let public = allowlist.replace("private_addresses: true", "private_addresses: false");
    bench
        .proxy()
        .replace_allowlist(Allowlist::from_yaml(&public).unwrap());
    trouble(&bench, &origin.http_url("/"), 403, "address_refused").await;
    bench
        .proxy()
        .replace_allowlist(Allowlist::from_yaml(&allowlist).unwrap());
    assert!(bench.curl(&[&origin.http_url("/")]).await.contains("200"));
    bench.proxy().replace_allowlist(Allowlist::default());
    trouble(&bench, &origin.http_url("/"), 403, "host_not_listed").await;
}

/// A name server that answers the first question with the one address and all others with the other, at once stale.
async fn moving_name(first: Ipv4Addr, then: Ipv4Addr) -> SocketAddr {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut answers = 0;
        let mut buffer = [0; 1024];
        while let Ok((length, peer)) = socket.recv_from(&mut buffer).await {
            let current = if answers == 0 { first } else { then };
            let Some(mut reply) =
                cordon_proxy::answer(&buffer[..length], current).map(|answer| answer.reply)
            else {
                continue;
            };
            let record = b"\xc0\x0c\x00\x01\x00\x01";
            if let Some(at) = reply
                .windows(record.len())
                .position(|window| window == record)
            {
                reply[at + record.len()..][..4].fill(0);
                answers += 1;
            }
            socket.send_to(&reply, peer).await.unwrap();
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_moves_to_another_address_is_judged_by_the_one_that_is_dialled() {
    let origin = Origin::start().await;
    let mut plan = Plan::new(&origin);
    let metadata = Ipv4Addr::new(169, 254, 169, 254);
    plan.upstream.dns_servers = vec![moving_name(Ipv4Addr::LOCALHOST, metadata).await];
    // No connection is kept, so that the second request has to dial.
    plan.limits.idle_upstreams_per_host = 0;
    let bench = plan.start().await;
    let answer = bench.curl(&[&origin.http_url("/")]).await;
    assert!(answer.contains("200"), "{answer}");
    trouble(&bench, &origin.http_url("/"), 403, "address_refused").await;
    assert_eq!(origin.seen().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_stalls_is_broken_off() {
    let origin = Origin::start().await;
    let mut plan = Plan::new(&origin);
    short_times(&mut plan);
    let bench = plan.start().await;
    let begun = Instant::now();
    let output = bench.curl_output(&[&origin.https_url("/stall")]).await;
    assert!(!output.status.success());
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert!(bench.requests(1).await[0].broken.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_upload_is_not_a_silent_upstream() {
    let origin = Origin::start().await;
    let mut plan = Plan::new(&origin);
    short_times(&mut plan);
    let bench = plan.start().await;
    // Two seconds of upload, with a limit of half a second for the answer.
    let file = bench.directory.path().join("body");
    std::fs::write(&file, vec![b'x'; 200_000]).unwrap();
    let data = format!("@{}", file.display());
    let answer = bench
        .curl(&[
            &origin.https_url("/sink"),
            "--limit-rate",
            "100k",
            "--data-binary",
            &data,
        ])
        .await;
    assert!(answer.starts_with("200000\n200"), "{answer}");
}

/// A proxy that answers CONNECT and keeps the heads it got.
async fn corporate_proxy(target: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let heads = Arc::<Mutex<Vec<String>>>::default();
    let seen = Arc::clone(&heads);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let seen = Arc::clone(&seen);
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    stream.read_line(&mut head).await.unwrap();
                }
                let known = head.contains("Proxy-Authorization: Basic dXNlcjpwQHNz");
                seen.lock().unwrap().push(head);
                if !known {
                    stream
                        .write_all(b"HTTP/1.1 407 Who are you\r\ncontent-length: 0\r\n\r\n")
                        .await
                        .unwrap();
                    return;
                }
                stream
                    .write_all(b"HTTP/1.1 200 Go ahead\r\n\r\n")
                    .await
                    .unwrap();
                let mut upstream = TcpStream::connect(target).await.unwrap();
                let _ = copy_bidirectional(&mut stream, &mut upstream).await;
            });
        }
    });
    (address, heads)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corporate_proxy_is_asked_with_its_credentials() {
    let origin = Origin::start().await;
    let (proxy, heads) = corporate_proxy(origin.https).await;
    let mut plan = Plan::new(&origin);
    plan.upstream.http_proxy = Some(format!("http://user:p%40ss@{proxy}/").parse().unwrap());
    let bench = plan.start().await;
    // The proxy resolves names; ours need not know them.
    let url = format!("https://missing.api.test:{}/x", origin.https.port());
    assert_eq!(bench.curl(&[&url]).await, "hello from /x\n200 2");
    let head = heads.lock().unwrap()[0].clone();
    assert!(
        head.starts_with(&format!(
            "CONNECT missing.api.test:{} HTTP/1.1\r\n",
            origin.https.port()
        )),
        "{head}"
    );

    let mut plan = Plan::new(&origin);
    plan.upstream.http_proxy = Some(format!("http://{proxy}").parse().unwrap());
    let bench = plan.start().await;
    let body = trouble(&bench, &url, 502, "proxy_failure").await;
    assert!(body["message"].as_str().unwrap().contains("407"), "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_bypasses_a_corporate_proxy_is_dialled_and_its_address_checked() {
    let origin = Origin::start().await;
    let (proxy, heads) = corporate_proxy(origin.https).await;
    let mut plan = Plan::new(&origin);
    let proxy: HttpProxy = format!("http://user:p%40ss@{proxy}/").parse().unwrap();
    let bypass = "near.api.test, metadata.api.test";
    plan.upstream.http_proxy = Some(proxy.bypassing(bypass.parse().unwrap()));
    let bench = plan.start().await;
    let url = |name: &str| format!("https://{name}.api.test:{}/x", origin.https.port());
    let passed = "hello from /x\n200 2";
    assert_eq!(bench.curl(&[&url("near")]).await, passed);
    trouble(&bench, &url("metadata"), 403, "address_refused").await;
    assert!(heads.lock().unwrap().is_empty());
    assert_eq!(bench.curl(&[&url("far")]).await, passed);
    assert_eq!(heads.lock().unwrap().len(), 1);
}

/// An origin that answers each head with these bytes, the rest after what it reads next.
async fn scripted(answers: &'static [&'static str]) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let got = Arc::<Mutex<Vec<String>>>::default();
    let seen = Arc::clone(&got);
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 4096];
        for answer in answers {
            let length = tokio::io::AsyncReadExt::read(&mut stream, &mut buffer)
                .await
                .unwrap();
            seen.lock()
                .unwrap()
                .push(String::from_utf8_lossy(&buffer[..length]).into_owned());
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
    });
    (address, got)
}

async fn expecting(answers: &'static [&'static str]) -> (String, Vec<String>) {
    let (address, got) = scripted(answers).await;
    let origin = Origin::start().await;
    let mut plan = Plan::new(&origin);
    plan.allowlist = plan
        .allowlist
        .replace("80, 443]", &format!("{}]", address.port()));
    let bench = plan.start().await;
    let mut stream = TcpStream::connect(bench.http).await.unwrap();
    let head = format!(
        "POST / HTTP/1.1\r\nHost: api.test:{}\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
        address.port()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut buffer = [0; 4096];
    let length = tokio::io::AsyncReadExt::read(&mut stream, &mut buffer)
        .await
        .unwrap();
    let mut answer = String::from_utf8_lossy(&buffer[..length]).into_owned();
    if answer.starts_with("HTTP/1.1 100 ") {
        stream.write_all(b"hello").await.unwrap();
        answer += &crate::support::read_all(&mut stream).await;
    }
    let got = got.lock().unwrap().clone();
    (answer, got)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_waits_for_continue_is_told_what_the_upstream_says() {
    const DONE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ndone";
    let (answer, got) = expecting(&["HTTP/1.1 100 Continue\r\n\r\n", DONE]).await;
    assert!(
        answer.starts_with("HTTP/1.1 100 Continue\r\n\r\n") && answer.ends_with("done"),
        "{answer}"
    );
    assert_eq!(got[1], "hello");
    assert!(got[0].contains("expect: 100-continue"), "{got:?}");

    // An upstream that does not want the body: it is never asked for.
    let (answer, got) = expecting(&["HTTP/1.1 413 Too much\r\ncontent-length: 2\r\n\r\nno"]).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert_eq!(got.len(), 1, "{got:?}");

    // One that says nothing gets the body after a while.
    let (answer, got) = expecting(&["", DONE]).await;
    assert!(
        answer.starts_with("HTTP/1.1 100 Continue\r\n\r\n") && answer.ends_with("done"),
        "{answer}"
    );
    assert_eq!(got[1], "hello");
}

#[tokio::test(flavor = "multi_thread")]
async fn early_hints_do_not_disturb_the_response() {
    let (address, _) = scripted(&[
        "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ndone",
    ])
    .await;
    let origin = Origin::start().await;
    let mut plan = Plan::new(&origin);
    plan.allowlist = plan
        .allowlist
        .replace("80, 443]", &format!("{}]", address.port()));
    let bench = plan.start().await;
    let answer = bench
        .curl(&[&format!("http://api.test:{}/", address.port())])
        .await;
    assert_eq!(answer, "done\n200 1.1");
}
