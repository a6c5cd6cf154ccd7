//! Requests and responses as curl sees them.

use cordon_proxy::Verdict;
use http::Version;

use crate::support::{Bench, Origin, Plan};

#[tokio::test(flavor = "multi_thread")]
async fn an_allowed_request_reaches_its_origin() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    for (url, option, version) in [
        (origin.http_url("/a?b=c"), "--http1.1", "1.1"),
        (origin.https_url("/a?b=c"), "--http1.1", "1.1"),
        (origin.https_url("/a?b=c"), "--http2", "2"),
        (origin.http_url("/a?b=c"), "--http2-prior-knowledge", "2"),
    ] {
        assert_eq!(
            bench.curl(&[option, &url]).await,
            format!("hello from /a\n200 {version}"),
            "{url} {option}"
        );
    }
    let requests = bench.requests(4).await;
    for request in &requests {
        assert!(matches!(request.verdict, Verdict::Allowed { .. }));
        assert_eq!(request.status, Some(200));
        assert_eq!(request.bytes_down, 13);
        assert_eq!(request.broken, None);
        assert!(request.upstream.unwrap().ip().is_loopback());
    }
    let seen = origin.seen();
    let versions: Vec<_> = seen.iter().map(|seen| seen.version).collect();
    assert_eq!(
        versions,
        [
            Version::HTTP_11,
            Version::HTTP_2,
            Version::HTTP_2,
            Version::HTTP_2
        ]
    );
    assert!(seen.iter().all(|seen| seen.target == "/a?b=c"));
    assert_eq!(
        bench.lines()[1..],
        [
            format!("ALLOWED GET {} -> 200", origin.http_url("/a?b=c")),
            format!("ALLOWED GET {} -> 200", origin.https_url("/a?b=c")),
            format!("ALLOWED GET {} -> 200", origin.https_url("/a?b=c")),
            format!("ALLOWED GET {} -> 200", origin.http_url("/a?b=c")),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_request_says_why_and_how_to_allow_it() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    for option in ["--http1.1", "--http2"] {
        let answer = bench.curl(&[option, "https://evil.test/secret?x=1"]).await;
        let (body, status) = answer.rsplit_once('\n').unwrap();
        assert!(status.starts_with("403 "), "{answer}");
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["error"], "blocked_by_network_allowlist");
        assert_eq!(body["code"], "host_not_listed");
        assert_eq!(body["host"], "evil.test");
        assert_eq!(body["path"], "/secret?x=1");
        assert_eq!(body["method"], "GET");
        assert_eq!(
            body["hint"],
            "add `evil.test` to `domains` in the allowlist"
        );
    }
    bench.requests(2).await;
    assert_eq!(
        bench.lines()[1],
        "BLOCKED GET https://evil.test/secret?x=1 -> 403"
    );
    assert!(origin.seen().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_pass_both_ways_on_every_pair_of_protocols() {
    for protocols in [&["http/1.1"][..], &["h2"]] {
        let origin = Origin::with_protocols(protocols).await;
        let bench = Bench::start(&origin).await;
        for option in ["--http1.1", "--http2"] {
            let url = origin.https_url("/echo");
            let body = "0123456789".repeat(10_000);
            let file = bench.directory.path().join("body");
            std::fs::write(&file, &body).unwrap();
            let data = format!("@{}", file.display());
            for framing in [
                "Content-Type: text/plain",
                "Transfer-Encoding: chunked",
                "Expect: 100-continue",
            ] {
                let answer = bench
                    .curl(&[option, &url, "-H", framing, "--data-binary", &data])
                    .await;
                let (echoed, status) = answer.rsplit_once('\n').unwrap();
                assert!(
                    status.starts_with("200 "),
                    "{protocols:?} {option} {framing}: {status}"
                );
                assert!(
                    echoed == body,
                    "{protocols:?} {option} {framing}: {} bytes",
                    echoed.len()
                );
            }
        }
        for request in bench.requests(6).await {
            assert_eq!((request.bytes_up, request.bytes_down), (100_000, 100_000));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_request_has_a_length_and_no_body() {
    for protocols in [&["http/1.1"][..], &["h2"]] {
        let origin = Origin::with_protocols(protocols).await;
        let bench = Bench::start(&origin).await;
        for option in ["--http1.1", "--http2"] {
            let output = bench
                .curl_output(&[option, "--head", &origin.https_url("/bytes?1234")])
                .await;
            let answer = format!(
                "{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
            assert!(
                answer.to_lowercase().contains("content-length: 1234"),
                "{answer}"
            );
            assert!(answer.contains("\n200 "), "{answer}");
        }
        bench.requests(2).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn statuses_and_headers_pass_unchanged() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    for option in ["--http1.1", "--http2"] {
        assert!(
            bench
                .curl(&[option, &origin.https_url("/teapot")])
                .await
                .contains("short and stout\n418")
        );
        let output = bench
            .curl_output(&[option, "-i", &origin.https_url("/headers")])
            .await;
        let head = String::from_utf8_lossy(&output.stdout).to_lowercase();
        assert_eq!(head.matches("set-cookie: ").count(), 2, "{head}");
        assert!(!head.contains("alt-svc"), "{head}");
        assert!(
            output
                .stdout
                .windows(3)
                .any(|window| window == b"\xe9t\xe9"),
            "{head}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_the_connection_stays_on_it() {
    let origin = Origin::with_protocols(&["http/1.1"]).await;
    let bench = Bench::start(&origin).await;
    let url = origin.https_url("/");
    bench
        .curl(&[
            "--http1.1",
            &url,
            "-H",
            "Connection: x-mine, close, host",
            "-H",
            "X-Mine: 1",
            "-H",
            "Keep-Alive: 5",
            "-H",
            "Proxy-Authorization: Basic eA==",
            "-H",
            "Proxy-Connection: keep-alive",
            "-H",
            "X-Theirs: 2",
        ])
        .await;
    let seen = &origin.seen()[0];
    let mut names: Vec<_> = seen.headers.keys().map(http::HeaderName::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["accept", "host", "user-agent", "x-theirs"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn cookies_in_pieces_become_one_header_for_http1() {
    let origin = Origin::with_protocols(&["http/1.1"]).await;
    let bench = Bench::start(&origin).await;
    bench
        .curl(&[
            "--http2",
            &origin.https_url("/"),
            "-H",
            "Cookie: a=1",
            "-H",
            "Cookie: b=2",
        ])
        .await;
    let seen = &origin.seen()[0];
    assert_eq!(
        seen.headers.get_all("cookie").iter().collect::<Vec<_>>(),
        ["a=1; b=2"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_upstream_gets_the_host_that_was_judged() {
    let origin = Origin::with_protocols(&["http/1.1"]).await;
    let bench = Bench::start(&origin).await;
    let port = origin.http.port();
    for host in ["API.test", "api.test.", "Api.Test."] {
        let request = format!("GET / HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n");
        let answer = bench.raw(request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    bench.requests(3).await;
    for seen in origin.seen() {
        assert_eq!(seen.headers["host"], format!("api.test:{port}"));
    }
    assert_eq!(
        bench.lines()[1],
        format!("ALLOWED GET http://api.test:{port}/ -> 200")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_name_that_is_not_the_host_is_refused() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    for option in ["--http1.1", "--http2"] {
        let answer = bench
            .curl(&[option, "-H", "Host: evil.test", &origin.https_url("/")])
            .await;
        let (body, status) = answer.rsplit_once('\n').unwrap();
        assert!(status.starts_with("403 "), "{answer}");
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["code"], "host_mismatch");
        assert_eq!(body["url_host"], "api.test");
    }
    bench.requests(2).await;
    assert!(
        bench.lines()[1].ends_with("-> 403 (host mismatch: header=evil.test, url=api.test)"),
        "{:?}",
        bench.lines()
    );
    assert!(origin.seen().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_to_an_origin_are_used_again() {
    for protocols in [&["http/1.1"][..], &["h2"]] {
        let origin = Origin::with_protocols(protocols).await;
        let bench = Bench::start(&origin).await;
        for option in ["--http1.1", "--http2", "--http1.1"] {
            bench
                .curl(&[option, &origin.https_url("/a"), &origin.https_url("/b")])
                .await;
            bench
                .curl(&[
                    option,
                    &origin.https_url("/echo"),
                    &origin.https_url("/echo"),
                    "-d",
                    "x",
                ])
                .await;
        }
        let seen = origin.seen();
        assert_eq!(seen.len(), 12);
        assert!(
            seen.iter().all(|request| request.peer == seen[0].peer),
            "{seen:#?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn trailers_pass_on_every_pair_of_protocols() {
    for protocols in [&["http/1.1"][..], &["h2"]] {
        let origin = Origin::with_protocols(protocols).await;
        let bench = Bench::start(&origin).await;
        let url = origin.https_url("/trailers");
        for (option, expected) in [
            ("--http1.1", "grpc-status: 0"),
            ("--http2", "grpc-status: 0"),
        ] {
            let answer = bench
                .curl(&[
                    option,
                    "-v",
                    "-H",
                    "TE: trailers",
                    "--raw",
                    "--stderr",
                    "-",
                    &url,
                ])
                .await;
            assert!(
                answer.contains("message") && answer.contains(expected),
                "{protocols:?} {option}: {answer}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_at_the_same_time_share_one_http2_connection() {
    let origin = Origin::with_protocols(&["h2"]).await;
    let bench = Bench::start(&origin).await;
    let ca = bench.ca().display().to_string();
    let connect = format!("::{}", bench.https);
    let url = origin.https_url("/n/[1-40]");
    let arguments = [
        "-s",
        "--http2",
        "--parallel",
        "--parallel-max",
        "40",
        "--cacert",
        &ca,
        "--connect-to",
        &connect,
        &url,
    ];
    crate::support::stdout("curl", &arguments).await;
    bench.requests(40).await;
    let seen = origin.seen();
    assert!(seen.iter().all(|request| request.peer == seen[0].peer));
}

/// Sends a request and returns the code of the refusal.
async fn denial(bench: &Bench, arguments: &[&str]) -> String {
    let answer = bench.curl(arguments).await;
    let (body, status) = answer.rsplit_once('\n').unwrap();
    assert!(status.starts_with("403 "), "{answer}");
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    body["code"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_listed_port_scheme_path_and_method_pass() {
    let origin = Origin::start().await;
    let mut plan = Plan::new(&origin);
    let (http, https) = (origin.http.port(), origin.https.port());
    plan.allowlist = format!(
        "url_prefixes:\n\
         - {{host: api.test, path: /in/*, methods: [GET, HEAD], ports: [{https}, {http}], private_addresses: true}}\n"
    );
    let bench = plan.start().await;
    assert!(
        bench
            .curl(&[&origin.https_url("/in/a")])
            .await
            .contains("200")
    );
    assert_eq!(
        denial(&bench, &["https://api.test:22/in/a"]).await,
        "port_not_listed"
    );
    assert_eq!(
        denial(&bench, &[&origin.http_url("/in/a")]).await,
        "scheme_not_listed"
    );
    assert_eq!(
        denial(&bench, &[&origin.https_url("/out")]).await,
        "path_not_listed"
    );
    assert_eq!(
        denial(&bench, &["-d", "x", &origin.https_url("/in/a")]).await,
        "method_not_listed"
    );
    assert_eq!(
        denial(&bench, &["--path-as-is", &origin.https_url("/in/../out")]).await,
        "malformed_target"
    );
    bench.requests(6).await;
    assert_eq!(origin.seen().len(), 1);
    assert_eq!(
        bench.lines()[2],
        "BLOCKED GET https://api.test:22/in/a -> 403 (port 22 of `api.test` is not allowed by url_prefixes[0])"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_an_entry_judges_is_read_before_anything_is_dialled() {
    let origin = Origin::start().await;
    let mut plan = Plan::new(&origin);
    let https = origin.https.port();
    plan.allowlist = format!(
        "url_prefixes:\n\
         - {{host: api.test, path: /echo, ports: [{https}], private_addresses: true, graphql: {{queries: [viewer]}}}}\n"
    );
    let bench = plan.start().await;
    let url = origin.https_url("/echo");
    for option in ["--http1.1", "--http2"] {
        let query = r#"{"query": "{ viewer { login } }"}"#;
        let answer = bench.curl(&[option, "--json", query, &url]).await;
        assert!(answer.starts_with(query), "{answer}");
        for refused in [
            r#"{"query": "mutation { deleteRepository }"}"#,
            r#"{"query": "{ secrets }"}"#,
            "no JSON",
        ] {
            let code = denial(&bench, &[option, "--json", refused, &url]).await;
            assert_eq!(code, "graphql_operation_not_listed");
        }
        let large = bench.directory.path().join("large");
        std::fs::write(
            &large,
            format!(
                r#"{{"query": "{{ viewer }}", "x": "{}"}}"#,
                "x".repeat(2_000_000)
            ),
        )
        .unwrap();
        let data = format!("@{}", large.display());
        assert_eq!(
            denial(&bench, &[option, "--json", &data, &url]).await,
            "graphql_operation_not_listed"
        );
    }
    bench.requests(10).await;
    assert_eq!(origin.seen().len(), 2);
}
