//! Bodies of signed requests: chunks, trailers, and those that must be hashed first.

use cordon_proxy::{Limits, Verdict};

use super::{line, now, prepared, send};
use crate::support::{
    Plan,
    client::Client,
    echo::{BROKEN, Echo},
    secrets::{KEY_ID, SESSION_TOKEN, aws},
};

#[tokio::test(flavor = "multi_thread")]
async fn an_error_while_signing_chunks_sends_nothing_unsigned() {
    let good = [chunk(&[b'a'; 100_000]), chunk(&[b'b'; 100_000]), chunk(b"")].concat();
    let cut = good.len() - 50;
    let bad: [Vec<u8>; 5] = [
        b"no chunk at all, but a long text that is not signed".to_vec(),
        [chunk(&[b'a'; 100_000]), b"unsigned".repeat(20_000)].concat(),
        good[..cut].to_vec(),
        [good.as_slice(), b"trailing garbage"].concat(),
        [chunk(&[b'a'; 100_000]), chunk(b"")].concat(),
    ];
    for protocol in ["h2", "http/1.1"] {
        let (echo, prepared) = (Echo::with_protocols(&[protocol]).await, prepared(aws(None)));
        let bench = echo.plan(&prepared.replacements).start().await;
        let key_id = &prepared.env["AWS_ACCESS_KEY_ID"];
        let url = echo.url("s3.api.test", "/big");
        let fields = [
            ("x-amz-content-sha256", CHUNKS),
            ("x-amz-decoded-content-length", "200000"),
        ];
        for body in &bad {
            let mut client = Client::connect(&bench, "s3.api.test", false).await;
            let answer = send(&mut client, &url, key_id, "s3", &fields, body).await;
            let told = (answer.status.as_u16(), answer.code());
            assert_eq!(
                told,
                (400, "signing_failed".to_owned()),
                "{protocol}: {}",
                answer.text()
            );
            assert!(
                answer.text().contains("aws-chunked body is malformed"),
                "{}",
                answer.text()
            );
        }
        for seen in echo.seen() {
            assert!(seen.contains(BROKEN), "{protocol}: {:.500}", seen);
            assert!(
                !seen.contains("unsigned")
                    && !seen.contains("garbage")
                    && !seen.contains("not signed")
            );
            let data = seen.split_once("\n\n").map_or("", |(_, data)| data);
            assert!(
                data.is_empty() || data.starts_with("10000;chunk-signature="),
                "{data:.200}"
            );
            assert!(
                !data.contains(&"1".repeat(64)) && !data.contains("\r\n0;chunk"),
                "{data:.200}"
            );
        }
        let mut client = Client::connect(&bench, "s3.api.test", false).await;
        let answer = send(&mut client, &url, key_id, "s3", &fields, &good).await;
        assert_eq!(answer.status, 200, "{protocol}: {}", answer.text());
        let seen = echo.seen().pop().unwrap();
        let length: usize = line(&seen, "content-length").parse().unwrap();
        assert_eq!(seen.split_once("\n\n").unwrap().1.len(), length);
        assert_eq!(
            seen.matches("chunk-signature=").count(),
            5,
            "four chunks of 64 KiB and the end"
        );
        let requests = bench.requests(6).await;
        assert!(requests[..5].iter().all(|request| matches!(
            request.verdict,
            Verdict::Failed {
                code: "signing_failed",
                ..
            }
        )));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn session_tokens_sigv4a_trailers_and_trailing_slashes_are_signed() {
    let (echo, prepared) = (Echo::start().await, prepared(aws(Some(SESSION_TOKEN))));
    let bench = echo.plan(&prepared.replacements).start().await;
    let (key_id, token) = (
        &prepared.env["AWS_ACCESS_KEY_ID"],
        &prepared.env["AWS_SESSION_TOKEN"],
    );
    let date = now();
    let mut client = Client::connect(&bench, "s3.api.test", false).await;
    let value = format!(
        "AWS4-ECDSA-P256-SHA256 Credential={key_id}/{}/s3/aws4_request, \
         SignedHeaders=host;x-amz-date;x-amz-region-set;x-amz-security-token, Signature={}",
        &date[..8],
        "30".repeat(70)
    );
    let trailer = [
        chunk(b"hello"),
        b"0;chunk-signature=".to_vec(),
        vec![b'1'; 144],
        b"\r\n".to_vec(),
    ]
    .concat();
    let trailer = [
        trailer,
        b"x-amz-checksum-crc32:NhCmhg==\r\nx-amz-trailer-signature:".to_vec(),
        vec![b'2'; 144],
        b"\r\n\r\n".to_vec(),
    ]
    .concat();
    let fields = [
        ("authorization", value.as_str()),
        ("x-amz-date", &date),
        ("x-amz-region-set", "*"),
        ("x-amz-security-token", token),
        (
            "x-amz-content-sha256",
            "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD-TRAILER",
        ),
        ("x-amz-decoded-content-length", "5"),
        ("x-amz-trailer", "x-amz-checksum-crc32"),
    ];
    let answer = client
        .send("PUT", &echo.url("s3.api.test", "/prod/"), &fields, &trailer)
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let seen = echo.seen().pop().unwrap();
    assert!(seen.starts_with("PUT /prod/\n"), "{seen}");
    assert!(
        line(&seen, "authorization")
            .starts_with(&format!("AWS4-ECDSA-P256-SHA256 Credential={KEY_ID}/")),
        "{seen}"
    );
    assert_eq!(line(&seen, "x-amz-security-token"), SESSION_TOKEN);
    let body = seen.split_once("\n\n").unwrap().1;
    assert!(
        body.contains("\r\nx-amz-checksum-crc32:NhCmhg==\r\nx-amz-trailer-signature:30"),
        "{body}"
    );
    assert!(
        !body.contains(&"1".repeat(64)) && !body.contains(&"2".repeat(64)),
        "{body}"
    );
    bench.requests(1).await;
    assert!(!bench.lines()[1].contains("region"), "{:?}", bench.lines());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_must_be_hashed_first_is_kept_within_the_limit() {
    let (echo, prepared) = (Echo::start().await, prepared(aws(None)));
    let limits = Limits {
        signed_bytes: 100_000,
        ..Limits::default()
    };
    let bench = Plan {
        limits,
        ..echo.plan(&prepared.replacements)
    }
    .start()
    .await;
    let key_id = &prepared.env["AWS_ACCESS_KEY_ID"];
    let url = echo.url("dynamodb.api.test", "/");
    let body = "x".repeat(100_000);
    // One after the other, if there is no room for all at once.
    let all = (0..8).map(|_| async {
        let mut client = Client::connect(&bench, "dynamodb.api.test", true).await;
        send(&mut client, &url, key_id, "dynamodb", &[], body.as_bytes()).await
    });
    for answer in futures_util::future::join_all(all).await {
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(answer.text().ends_with(&body));
    }
    let mut client = Client::connect(&bench, "dynamodb.api.test", false).await;
    let answer = send(&mut client, &url, key_id, "dynamodb", &[], &[b'x'; 100_001]).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (413, "body_too_long_to_sign")
    );
    assert_eq!(echo.seen().len(), 8);
    bench.requests(9).await;
}

const CHUNKS: &str = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD";

fn chunk(data: &[u8]) -> Vec<u8> {
    let head = format!("{:x};chunk-signature={}\r\n", data.len(), "1".repeat(64));
    [head.as_bytes(), data, b"\r\n"].concat()
}
