//! Surrogates on their way out: where they become real, and where they are an alarm.

use cordon_proxy::{Event, Verdict};
use cordon_secrets::{BodyRule, PreparedSecrets, Secret, prepare_secrets};
use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL_NOPAD};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{
    Bench, Origin, Plan,
    client::{Client, secured},
    echo::Echo,
    read,
    secrets::{TOKEN, assert_absent, masked, token},
};

fn surrogate(prepared: &PreparedSecrets) -> &str {
    &prepared.env["GH_TOKEN"]
}

/// The values of a header in a request, as the echo tells it.
fn values<'a>(echoed: &'a str, name: &str) -> Vec<&'a str> {
    let prefix = format!("{name}: ");
    echoed
        .lines()
        .filter_map(|line| line.strip_prefix(&prefix))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_surrogate_becomes_real_on_its_way_to_a_host_in_scope() {
    let (echo, prepared) = (Echo::start().await, token());
    let bench = echo.plan(&prepared.replacements).start().await;
    for http2 in [false, true] {
        let mut client = Client::connect(&bench, "api.test", http2).await;
        let bearer = format!("Bearer {}", surrogate(&prepared));
        let fields = [
            ("authorization", bearer.as_str()),
            ("x-key", surrogate(&prepared)),
        ];
        let answer = client
            .send("GET", &echo.url("api.test", "/x"), &fields, b"")
            .await;
        assert_eq!(answer.status, 200);
        let seen = echo.seen().pop().unwrap();
        assert_eq!(values(&seen, "authorization"), [format!("Bearer {TOKEN}")]);
        assert_eq!(values(&seen, "x-key"), [TOKEN]);
        assert_eq!(values(&seen, "accept-encoding"), ["identity"]);
    }
    bench.requests(2).await;
    let line = format!(
        "ALLOWED GET {} -> 200 [masked: 2] [scrubbed: 2]",
        echo.url("api.test", "/x")
    );
    assert_eq!(bench.lines()[1..], [line.clone(), line]);
}

#[tokio::test(flavor = "multi_thread")]
async fn basic_credentials_in_any_case_and_padding_are_replaced() {
    let (echo, prepared) = (Echo::start().await, token());
    let bench = echo.plan(&prepared.replacements).start().await;
    let mut client = Client::connect(&bench, "api.test", false).await;
    for user in ["x-access-token", "git", "u"] {
        let pair = format!("{user}:{}", surrogate(&prepared));
        for scheme in ["Basic", "basic", "BASIC"] {
            for encoded in [
                BASE64.encode(pair.as_bytes()),
                BASE64_NOPAD.encode(pair.as_bytes()),
                BASE64URL_NOPAD.encode(pair.as_bytes()),
            ] {
                let value = format!("{scheme} {encoded}");
                client
                    .send(
                        "GET",
                        &echo.url("api.test", "/"),
                        &[("authorization", &value)],
                        b"",
                    )
                    .await;
                let expected = BASE64.encode(format!("{user}:{TOKEN}").as_bytes());
                let seen = echo.seen().pop().unwrap();
                assert_eq!(
                    values(&seen, "authorization"),
                    [format!("Basic {expected}")],
                    "{value}"
                );
            }
        }
    }
    let answer = client
        .send(
            "GET",
            &echo.url("api.test", "/body"),
            &[(
                "authorization",
                &format!(
                    "Basic {}",
                    BASE64.encode(format!("git:{}", surrogate(&prepared)).as_bytes())
                ),
            )],
            b"",
        )
        .await;
    assert_absent(TOKEN, &answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn query_path_and_body_are_replaced_where_the_secret_says_so() {
    let echo = Echo::start().await;
    let mut secret = masked("KEY", TOKEN, &["api.test"], &[]);
    secret.query = vec!["key".to_owned()];
    secret.path = true;
    secret.body = Some(BodyRule {
        content_types: vec!["application/json".to_owned()],
    });
    let prepared = prepare_secrets(vec![secret], Vec::new()).unwrap();
    let surrogate = prepared.env["KEY"].as_str();
    let bench = echo.plan(&prepared.replacements).start().await;
    let body = format!(
        "{{\"filler\": \"{}\", \"token\": \"{surrogate}\"}}",
        "x".repeat(200_000)
    );
    for http2 in [false, true] {
        let mut client = Client::connect(&bench, "api.test", http2).await;
        let url = echo.url(
            "api.test",
            &format!("/bot{surrogate}/send?key={surrogate}&other=1&key=foreign"),
        );
        let answer = client
            .send(
                "POST",
                &url,
                &[("content-type", "application/json; charset=utf-8")],
                body.as_bytes(),
            )
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let seen = echo.seen().pop().unwrap();
        assert!(
            seen.starts_with(&format!("POST /bot{TOKEN}/send?key={TOKEN}&other=1\n")),
            "{}",
            &seen[..200]
        );
        assert!(seen.ends_with(&format!("\"token\": \"{TOKEN}\"}}")));
        assert_absent(TOKEN, &answer.text());
        assert!(answer.text().ends_with(&body));

        // Other types are passed on as they are.
        client
            .send(
                "POST",
                &echo.url("api.test", "/"),
                &[("content-type", "text/plain")],
                body.as_bytes(),
            )
            .await;
        assert!(echo.seen().pop().unwrap().ends_with(&body));
    }
    let request = &bench.requests(4).await[0];
    assert_eq!(request.notes.as_ref().unwrap().masked, 3);
    let url = echo.url(
        "api.test",
        &format!("/bot{surrogate}/send?key={surrogate}&other=1&key=foreign"),
    );
    let record = bench
        .records()
        .into_iter()
        .find(|record| matches!(record.event, Event::Request(_)))
        .unwrap();
    let collapsed = format!(
        "COLLAPSED 2 duplicate 'key' parameters in POST {url} (duplicate credential parameters removed)"
    );
    assert_eq!(record.lines()[0], collapsed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_surrogate_on_an_out_of_scope_host_is_an_alarm_and_is_never_dialled() {
    let (echo, prepared) = (Echo::start().await, token());
    let bench = echo.plan(&prepared.replacements).start().await;
    let surrogate = surrogate(&prepared);
    let basic = format!(
        "Basic {}",
        BASE64.encode(format!("user:{surrogate}").as_bytes())
    );
    let escaped: String = surrogate
        .bytes()
        .map(|byte| format!("%{byte:02x}"))
        .collect();
    let (upper, bearer) = (surrogate.to_uppercase(), format!("Bearer {surrogate}"));
    let cases = [
        ("/", ("authorization", bearer.as_str())),
        ("/", ("authorization", &basic)),
        ("/", ("x-anything", surrogate)),
        ("/", ("cookie", &upper)),
        (&format!("/{surrogate}"), ("a", "b")),
        (&format!("/?q={surrogate}"), ("a", "b")),
        (&format!("/?q={escaped}"), ("a", "b")),
    ];
    // One host is allowed and one is not; neither is in scope.
    for host in ["other.api.test", "evil.test"] {
        for http2 in [false, true] {
            let mut client = Client::connect(&bench, host, http2).await;
            for (target, field) in &cases {
                let answer = client
                    .send("GET", &echo.url(host, target), &[*field], b"")
                    .await;
                assert_eq!(answer.status, 403);
                assert_eq!(
                    answer.code(),
                    "surrogate_out_of_scope",
                    "{host} {target} {field:?}"
                );
            }
        }
    }
    let requests = bench.requests(28).await;
    for request in requests {
        let Verdict::Alarm { code, variable, .. } = &request.verdict else {
            panic!("{request:?}")
        };
        assert_eq!(
            (*code, variable.as_str()),
            ("surrogate_out_of_scope", "GH_TOKEN")
        );
    }
    let line = format!(
        "ALARM GET {} -> 403 (the surrogate of GH_TOKEN is in the headers of a request that must not carry it)",
        echo.url("other.api.test", "/")
    );
    assert_eq!(bench.lines()[1], line);
    assert_eq!(echo.connections(), 0);
    assert_eq!(bench.stop().await.0.alarms, 28);
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_http_never_gets_a_secret() {
    let (origin, prepared) = (Origin::start().await, token());
    let plan = Plan {
        replacements: prepared.replacements.clone(),
        ..Plan::new(&origin)
    };
    let bench = plan.start().await;
    let field = format!("Authorization: Bearer {}", surrogate(&prepared));
    let answer = bench.curl(&["-H", &field, &origin.http_url("/x")]).await;
    assert!(
        answer.contains("surrogate_out_of_scope") && answer.ends_with("\n403 1.1"),
        "{answer}"
    );
    assert!(origin.seen().is_empty());
    // Without a surrogate there is nothing to hide.
    let answer = bench
        .curl(&["-H", "Authorization: Bearer own", &origin.http_url("/x")])
        .await;
    assert!(answer.ends_with("\n200 1.1"), "{answer}");
    assert!(!origin.seen()[0].headers.contains_key("authorization"));
    bench.requests(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_cannot_prove_its_name_gets_nothing() {
    let (echo, prepared) = (Echo::start().await, token());
    let mut plan = echo.plan(&prepared.replacements);
    plan.upstream.extra_roots.clear();
    let bench = plan.start().await;
    let mut client = Client::connect(&bench, "api.test", true).await;
    let bearer = format!("Bearer {}", surrogate(&prepared));
    let answer = client
        .send(
            "GET",
            &echo.url("api.test", "/"),
            &[("authorization", &bearer)],
            b"",
        )
        .await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (502, "certificate_not_trusted")
    );
    assert!(echo.seen().is_empty());
    assert_absent(TOKEN, &answer.text());
    bench.requests(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicate_headers_are_not_joined_and_the_foreign_part_does_not_survive() {
    let (echo, prepared) = (Echo::start().await, token());
    let bench = echo.plan(&prepared.replacements).start().await;
    let ours = format!("Bearer {}", surrogate(&prepared));
    for http2 in [false, true] {
        let mut client = Client::connect(&bench, "api.test", http2).await;
        for lines in [
            ["Bearer attacker", &ours],
            [&ours, "Bearer attacker"],
            [&ours, &ours],
        ] {
            let fields = lines.map(|line| ("authorization", line));
            client
                .send("GET", &echo.url("api.test", "/d"), &fields, b"")
                .await;
            let seen = echo.seen().pop().unwrap();
            assert_eq!(values(&seen, "authorization"), [format!("Bearer {TOKEN}")]);
        }
    }
    bench.requests(6).await;
    let log = read(&bench.directory.path().join("network-sandbox.log"));
    let url = echo.url("api.test", "/d");
    let collapsed = format!(
        "COLLAPSED 2 duplicate 'authorization' headers in GET {url} (duplicate credential headers removed) {{id="
    );
    assert_eq!(log.matches(&collapsed).count(), 6, "{log}");
    let json = read(&bench.directory.path().join("network-sandbox.jsonl"));
    assert_eq!(
        json.matches("\"collapsed\":[\"authorization\"]").count(),
        6,
        "{json}"
    );
    assert_eq!(json.lines().count(), 7, "{json}");
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_credentials_are_stripped_from_every_listed_channel() {
    let echo = Echo::start().await;
    let mut secret = masked(
        "KEY",
        TOKEN,
        &["api.test"],
        &["Authorization", "Cookie", "X-Api-Key"],
    );
    secret.query = vec!["api_key".to_owned()];
    let prepared = prepare_secrets(vec![secret], Vec::new()).unwrap();
    let bench = echo.plan(&prepared.replacements).start().await;
    let mut client = Client::connect(&bench, "api.test", false).await;
    let fields = [
        ("authorization", "Bearer mine"),
        ("cookie", "session=mine"),
        ("x-api-key", "mine"),
        ("accept", "*/*"),
    ];
    let url = echo.url("api.test", "/s?api_key=mine&page=2");
    assert_eq!(client.send("GET", &url, &fields, b"").await.status, 200);
    let seen = echo.seen().pop().unwrap();
    assert!(seen.starts_with("GET /s?page=2\n"), "{seen}");
    assert!(!seen.contains("mine"), "{seen}");
    assert_eq!(values(&seen, "accept"), ["*/*"]);
    bench.requests(1).await;
    let records = bench.records();
    let lines = records.last().unwrap().lines();
    assert!(
        lines.contains(&format!(
            "STRIPPED header 'authorization' from GET {url} (foreign credential blocked)"
        )),
        "{lines:?}"
    );
    assert!(
        lines.contains(&format!(
            "STRIPPED parameter 'api_key' from GET {url} (foreign credential blocked)"
        )),
        "{lines:?}"
    );
    assert_eq!(
        lines.last().unwrap(),
        &format!("ALLOWED GET {url} -> 200 [dropped: 4]")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn short_secrets_are_refused_and_only_whole_tokens_are_replaced() {
    assert!(
        prepare_secrets(
            vec![masked("PIN", "1234", &["api.test"], &["X-Pin"])],
            Vec::new()
        )
        .is_err()
    );
    let (echo, prepared) = (Echo::start().await, token());
    let bench = echo.plan(&prepared.replacements).start().await;
    let mut client = Client::connect(&bench, "api.test", false).await;
    let longer = format!("Bearer x{}", surrogate(&prepared));
    client
        .send(
            "GET",
            &echo.url("api.test", "/"),
            &[("authorization", &longer)],
            b"",
        )
        .await;
    let seen = echo.seen().pop().unwrap();
    assert_absent(TOKEN, &seen);
}

#[tokio::test(flavor = "multi_thread")]
async fn handshakes_of_websockets_get_the_secret_and_no_compression() {
    let (echo, prepared) = (Echo::start().await, token());
    let bench = echo.plan(&prepared.replacements).start().await;
    let mut stream = secured(&bench, "api.test", b"http/1.1").await;
    let request = format!(
        "GET /socket HTTP/1.1\r\nHost: api.test:{}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Extensions: permessage-deflate\r\nAuthorization: Bearer {}\r\n\r\n",
        echo.address.port(),
        surrogate(&prepared)
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 101");
    let seen = echo.seen().pop().unwrap();
    assert_eq!(values(&seen, "authorization"), [format!("Bearer {TOKEN}")]);
    assert!(
        values(&seen, "sec-websocket-extensions").is_empty(),
        "{seen}"
    );
    drop(stream);
    let request = &bench.requests(1).await[0];
    assert_eq!(request.notes.as_ref().unwrap().masked, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fresh_value_takes_the_place_of_the_old_one_while_requests_are_served() {
    const FRESH: &str = "ghp_freshfreshfreshfreshfreshfreshfresh0";
    let (echo, prepared) = (Echo::start().await, token());
    let bench = echo.plan(&prepared.replacements).start().await;
    let mut client = Client::connect(&bench, "api.test", true).await;
    let bearer = format!("Bearer {}", surrogate(&prepared));
    let fresh = prepared
        .replacements
        .with_value("GH_TOKEN", Secret::new(FRESH))
        .unwrap();
    bench.proxy().replace_secrets(fresh);
    let fields = [("authorization", bearer.as_str())];
    let answer = client
        .send(
            "POST",
            &echo.url("api.test", "/"),
            &fields,
            TOKEN.as_bytes(),
        )
        .await;
    let seen = echo.seen().pop().unwrap();
    assert_eq!(values(&seen, "authorization"), [format!("Bearer {FRESH}")]);
    // The old value may still be in use somewhere.
    assert_absent(TOKEN, &answer.text());
    assert_absent(FRESH, &answer.text());
    bench.requests(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_value_in_a_request_is_an_alarm_that_repeats_it_nowhere() {
    let (echo, prepared) = (Echo::start().await, token());
    let bench = echo.plan(&prepared.replacements).start().await;
    let mut client = Client::connect(&bench, "api.test", false).await;
    let encoded = BASE64.encode(TOKEN.as_bytes());
    let cases = [
        (format!("/{TOKEN}"), ("a", "b")),
        (format!("/?q={TOKEN}"), ("a", "b")),
        (format!("/?q={encoded}"), ("a", "b")),
        ("/".to_owned(), ("x-key", TOKEN)),
    ];
    for (target, field) in &cases {
        let answer = client
            .send("GET", &echo.url("api.test", target), &[*field], b"")
            .await;
        assert_eq!(
            (answer.status.as_u16(), answer.code().as_str()),
            (403, "real_value_in_request")
        );
        assert_absent(TOKEN, &answer.text());
    }
    bench.requests(4).await;
    for line in bench.lines() {
        assert_absent(TOKEN, &line);
    }
    for name in ["network-sandbox.log", "network-sandbox.jsonl"] {
        let log = read(&bench.directory.path().join(name));
        assert_absent(TOKEN, &log);
        assert_eq!(log.matches("[redacted]").count(), 3, "{log}");
    }
    assert_eq!(echo.connections(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_secrets_is_not_touched() {
    let echo = Echo::start().await;
    let bench: Bench = echo.plan(&Default::default()).start().await;
    let mut client = Client::connect(&bench, "api.test", false).await;
    let fields = [
        ("authorization", "Bearer mine"),
        ("accept-encoding", "gzip"),
        ("authorization", "Bearer two"),
    ];
    let answer = client
        .send("GET", &echo.url("api.test", "/gzip"), &fields, b"")
        .await;
    assert_eq!(answer.headers["etag"], "\"strong\"");
    let seen = echo.seen().pop().unwrap();
    assert_eq!(
        values(&seen, "authorization"),
        ["Bearer mine", "Bearer two"]
    );
    assert_eq!(values(&seen, "accept-encoding"), ["gzip"]);
    assert!(bench.requests(1).await[0].notes.is_none());
}
