//! Responses on their way back: no real value in them, wherever and however they are cut.

use std::{io::Read as _, time::Duration};

use cordon_proxy::{Broken, Verdict};
use cordon_secrets::PreparedSecrets;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{
    Bench,
    client::{Answer, Client, secured},
    echo::{Echo, messages},
    secrets::{TOKEN, assert_absent, token},
};

fn surrogate(prepared: &PreparedSecrets) -> &str {
    &prepared.env["GH_TOKEN"]
}

async fn get(client: &mut Client, echo: &Echo, prepared: &PreparedSecrets, target: &str) -> Answer {
    let bearer = format!("Bearer {}", surrogate(prepared));
    let fields = [("authorization", bearer.as_str())];
    client
        .send("GET", &echo.url("api.test", target), &fields, b"")
        .await
}

fn gunzip(bytes: &[u8]) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes)
        .read_to_string(&mut text)
        .unwrap();
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_shows_no_real_value_at_any_cut() {
    let (echo, prepared) = (Echo::start().await, token());
    let bench = echo.plan(&prepared.replacements).start().await;
    let mut count = 0;
    for http2 in [false, true] {
        let mut client = Client::connect(&bench, "api.test", http2).await;
        let whole = get(&mut client, &echo, &prepared, "/body?cut=000").await;
        let cuts = (0..=whole.body.len())
            .map(|cut| format!("{cut:03}"))
            .chain(["all".to_owned()]);
        for cut in cuts {
            let answer = get(&mut client, &echo, &prepared, &format!("/body?cut={cut}")).await;
            let text = answer.text();
            assert!(
                text.contains(&format!("authorization: Bearer {}\n", surrogate(&prepared))),
                "cut at {cut}: {text}"
            );
            assert_absent(TOKEN, &text);
            assert_eq!(
                answer.headers["content-length"],
                answer.body.len().to_string()
            );
            count += 1;
        }
    }
    for request in bench.requests(count + 2).await {
        assert_eq!(
            (request.notes.as_ref().unwrap().scrubbed, &request.broken),
            (1, &None),
            "{request:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gzip_body_shows_no_real_value_at_any_cut() {
    let (echo, prepared) = (Echo::start().await, token());
    let bench = echo.plan(&prepared.replacements).start().await;
    for http2 in [false, true] {
        let mut client = Client::connect(&bench, "api.test", http2).await;
        let cuts = (0..180)
            .map(|cut| cut.to_string())
            .chain(["all".to_owned()]);
        for cut in cuts {
            let answer = get(&mut client, &echo, &prepared, &format!("/gzip?cut={cut}")).await;
            let text = gunzip(&answer.body);
            assert!(
                text.contains(&format!("authorization: Bearer {}\n", surrogate(&prepared))),
                "cut at {cut}: {text}"
            );
            assert_absent(TOKEN, &text);
            assert_eq!(answer.headers["content-encoding"], "gzip");
            // Neither the length nor the tag is that of the body any more.
            let length = answer.headers.get("content-length");
            assert!(
                length.is_none_or(|length| *length == answer.body.len().to_string()),
                "{length:?}"
            );
            assert_eq!(answer.headers["etag"], "W/\"strong\"");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_and_trailers_show_no_real_value() {
    let (echo, prepared) = (Echo::start().await, token());
    let bench = echo.plan(&prepared.replacements).start().await;
    let bearer = format!("Bearer {}", surrogate(&prepared));
    for http2 in [false, true] {
        let mut client = Client::connect(&bench, "api.test", http2).await;
        let answer = get(&mut client, &echo, &prepared, "/header").await;
        assert_eq!(answer.headers["x-echo"], bearer.as_str());
        let cookies: Vec<_> = answer.headers.get_all("set-cookie").iter().collect();
        assert_eq!(cookies, ["a=b", &format!("c={bearer}")]);
    }
    let mut client = Client::connect(&bench, "api.test", true).await;
    let fields = [("authorization", bearer.as_str()), ("te", "trailers")];
    let answer = client
        .send("GET", &echo.url("api.test", "/trailers"), &fields, b"")
        .await;
    assert_eq!(
        (answer.text().as_str(), &answer.trailers["x-echo"]),
        ("see below", &bearer.parse().unwrap())
    );
    let requests = bench.requests(3).await;
    assert_eq!(
        requests
            .iter()
            .map(|request| request.notes.as_ref().unwrap().scrubbed)
            .collect::<Vec<_>>(),
        [2, 2, 1]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn events_show_no_real_value_and_are_not_held_back() {
    let (echo, prepared) = (Echo::start().await, token());
    let bench = echo.plan(&prepared.replacements).start().await;
    let event = format!("data: Bearer {}\n\n", surrogate(&prepared));
    for http2 in [false, true] {
        let mut client = Client::connect(&bench, "api.test", http2).await;
        let answer = get(&mut client, &echo, &prepared, "/events").await;
        assert_eq!(answer.text(), event.repeat(3));
        let [first, second, third] = answer.times[..] else {
            panic!("{:?}", answer.times)
        };
        for (earlier, later) in [(first, second), (second, third)] {
            assert!(
                later - earlier > Duration::from_millis(100),
                "{:?}",
                answer.times
            );
        }
    }
    let requests = bench.requests(2).await;
    assert!(
        requests
            .iter()
            .all(|request| request.notes.as_ref().unwrap().scrubbed == 3)
    );
}

/// Opens a WebSocket, says something and reads two messages: the request, and what was said.
async fn converse(
    bench: &Bench,
    echo: &Echo,
    prepared: &PreparedSecrets,
    path: &str,
) -> (String, Vec<String>) {
    let mut stream = secured(bench, "api.test", b"http/1.1").await;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: api.test:{}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Authorization: Bearer {}\r\n\r\n",
        echo.address.port(),
        surrogate(prepared)
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let mut bytes = Vec::new();
    if head.starts_with("HTTP/1.1 101 ") {
        // The real value, as if the workload had guessed it.
        let said = TOKEN.as_bytes();
        let mut frame = vec![0x81, 0x80 | u8::try_from(said.len()).unwrap(), 0, 0, 0, 0];
        frame.extend_from_slice(said);
        stream.write_all(&frame).await.unwrap();
        while messages(&bytes).len() < 2 {
            let read = tokio::time::timeout(Duration::from_secs(10), stream.read_buf(&mut bytes));
            assert_ne!(read.await.unwrap().unwrap(), 0);
        }
    }
    (head, messages(&bytes))
}

#[tokio::test(flavor = "multi_thread")]
async fn websocket_messages_show_no_real_value_at_any_cut() {
    let (echo, prepared) = (Echo::start().await, token());
    let bench = echo.plan(&prepared.replacements).start().await;
    let (_, whole) = converse(&bench, &echo, &prepared, "/socket?cut=000").await;
    let mut cuts: Vec<_> = (0..whole[0].len() + 12)
        .step_by(3)
        .map(|cut| format!("{cut:03}"))
        .collect();
    cuts.push("all".to_owned());
    for cut in &cuts {
        let (head, said) = converse(&bench, &echo, &prepared, &format!("/socket?cut={cut}")).await;
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        let authorization = format!("authorization: Bearer {}\n", surrogate(&prepared));
        assert!(
            said[0].contains(&authorization),
            "cut at {cut}: {}",
            said[0]
        );
        assert_absent(TOKEN, &said[0]);
        assert_eq!(said[1], surrogate(&prepared));
    }
    let requests = bench.requests(cuts.len() + 1).await;
    assert!(
        requests
            .iter()
            .all(|request| request.notes.as_ref().unwrap().scrubbed == 2)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_that_cannot_be_scrubbed_is_refused() {
    let (echo, prepared) = (Echo::start().await, token());
    let bench = echo.plan(&prepared.replacements).start().await;
    let (head, _) = converse(&bench, &echo, &prepared, "/extension").await;
    assert!(head.starts_with("HTTP/1.1 502 "), "{head}");
    let request = &bench.requests(1).await[0];
    assert!(
        matches!(
            request.verdict,
            Verdict::Failed {
                code: "response_not_scrubbed",
                ..
            }
        ),
        "{request:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_cannot_be_scrubbed_is_refused() {
    let (echo, prepared) = (Echo::start().await, token());
    let bench = echo.plan(&prepared.replacements).start().await;
    let mut client = Client::connect(&bench, "api.test", false).await;
    let answer = get(&mut client, &echo, &prepared, "/coded").await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (502, "response_not_scrubbed")
    );
    bench.requests(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_bomb_ends_the_response() {
    let (echo, prepared) = (Echo::start().await, token());
    let bench = echo.plan(&prepared.replacements).start().await;
    for http2 in [false, true] {
        let mut client = Client::connect(&bench, "api.test", http2).await;
        let answer = get(&mut client, &echo, &prepared, "/bomb").await;
        assert!(
            answer.broken && answer.body.len() < 1024 * 1024,
            "{}",
            answer.body.len()
        );
    }
    let requests = bench.requests(2).await;
    assert!(requests.iter().all(
        |request| matches!(&request.broken, Some(Broken::Upstream(why)) if why.contains("unpacks"))
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_other_hosts_are_not_touched() {
    let (echo, prepared) = (Echo::start().await, token());
    let bench = echo.plan(&prepared.replacements).start().await;
    let mut client = Client::connect(&bench, "other.api.test", true).await;
    let url = echo.url("other.api.test", "/gzip");
    let fields = [("accept-encoding", "gzip"), ("authorization", "Bearer own")];
    // The value is in the body only, where nobody looks.
    let answer = client.send("POST", &url, &fields, TOKEN.as_bytes()).await;
    assert!(gunzip(&answer.body).ends_with(TOKEN));
    assert_eq!(answer.headers["etag"], "\"strong\"");
    assert!(echo.seen()[0].contains("accept-encoding: gzip\n"));
    assert!(bench.requests(1).await[0].notes.is_none());
}
