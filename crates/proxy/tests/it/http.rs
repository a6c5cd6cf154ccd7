//! Requests and responses as curl sees them.

use cordon_proxy::Verdict;
use http::Version;

use crate::support::{Bench, Origin};

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
        assert_eq!(bench.curl(&[option, &url]).await, format!("hello from /a\n200 {version}"), "{url} {option}");
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
    assert_eq!(versions, [Version::HTTP_11, Version::HTTP_2, Version::HTTP_2, Version::HTTP_2]);
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
        assert_eq!(body["hint"], "add `evil.test` to `domains` in the allowlist");
    }
    bench.requests(2).await;
    assert_eq!(bench.lines()[1], "BLOCKED GET https://evil.test/secret?x=1 -> 403");
    assert!(origin.seen().is_empty());
}
