use std::{
    io::{Read, Write},
    sync::LazyLock,
};

use data_encoding::BASE64;
use flate2::{
    Compression,
    read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder},
    write::{DeflateEncoder, GzEncoder, ZlibEncoder},
};
use http::{StatusCode, header::CONTENT_ENCODING};
use proptest::prelude::*;

use super::*;
use crate::{
    PreparedSecrets,
    fixture::{GITHUB, PASSWORD, SECRET_KEY, aws, github, header_map, host, masked, prepared},
    prepare_secrets,
};

static SECRETS: LazyLock<PreparedSecrets> = LazyLock::new(|| {
    let password = masked("PASSWORD", PASSWORD, &["*.example.com"], &["Authorization"]);
    prepare_secrets(
        vec![github(), password],
        vec![aws(Some(&"session".repeat(90)))],
    )
    .unwrap()
});

fn scrub() -> Scrub {
    SECRETS
        .replacements
        .scrub(&host("api.example.com"))
        .unwrap()
}

/// What an echo server makes of a request: every value in every spelling.
fn echo() -> String {
    let basic = |user: &str| BASE64.encode(format!("{user}:{GITHUB}").as_bytes());
    let json = serde_json::to_string(PASSWORD).unwrap();
    let session = "session".repeat(90);
    let (one, two, three) = (basic("u"), basic("us"), basic("use"));
    format!(
        "Authorization: Bearer {GITHUB}\nBasic {one} {two} {three}\n{json}\n\
         ?p=Tr0ub4dor%263%2F%22zw%C3%B6lf%22%20Pferde&k={SECRET_KEY}&t={session}\nghp_ghp_16C7e42"
    )
}

/// The real values, in all spellings that the echo has.
fn reals() -> Vec<String> {
    let encoded = BASE64.encode(GITHUB.as_bytes());
    let plain = [
        GITHUB,
        PASSWORD,
        SECRET_KEY,
        "sessionsession",
        "Tr0ub4dor",
        &encoded[..50],
    ];
    plain.map(str::to_owned).into()
}

fn clean(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    reals().iter().all(|real| !text.contains(real))
}

/// Feeds a body in pieces of the given lengths, over and over.
fn feed(body: &mut BodyScrubber, bytes: &[u8], lengths: &[usize]) -> Result<Vec<u8>, ScrubError> {
    let mut out = Vec::new();
    let mut rest = bytes;
    for &length in lengths.iter().cycle() {
        let (piece, after) = rest.split_at(length.clamp(1, rest.len().max(1)).min(rest.len()));
        rest = after;
        body.feed(Bytes::copy_from_slice(piece));
        while let Some(piece) = body.take()? {
            out.extend_from_slice(&piece);
        }
        if rest.is_empty() {
            break;
        }
    }
    body.end();
    while let Some(piece) = body.take()? {
        out.extend_from_slice(&piece);
    }
    Ok(out)
}

fn coded(coding: &str) -> BodyScrubber {
    let mut headers = header_map(&[("content-encoding", coding)]);
    scrub().body(StatusCode::OK, &mut headers).unwrap()
}

fn encode(coding: &str, text: &[u8]) -> Vec<u8> {
    let level = Compression::default();
    match coding {
        "gzip" => {
            let mut encoder = GzEncoder::new(Vec::new(), level);
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        }
        "deflate" => {
            let mut encoder = ZlibEncoder::new(Vec::new(), level);
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        }
        "raw deflate" => {
            let mut encoder = DeflateEncoder::new(Vec::new(), level);
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        }
        "br" => {
            let mut out = Vec::new();
            let mut encoder = brotli::CompressorWriter::new(&mut out, 4096, 5, 18);
            encoder.write_all(text).unwrap();
            drop(encoder);
            out
        }
        "zstd" => zstd::encode_all(text, 3).unwrap(),
        other => panic!("no encoder for {other}"),
    }
}

fn decode(coding: &str, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    match coding {
        "gzip" => MultiGzDecoder::new(bytes).read_to_end(&mut out),
        "deflate" => ZlibDecoder::new(bytes).read_to_end(&mut out),
        "raw deflate" => DeflateDecoder::new(bytes).read_to_end(&mut out),
        "br" => brotli::Decompressor::new(bytes, 4096).read_to_end(&mut out),
        "zstd" => zstd::Decoder::new(bytes).unwrap().read_to_end(&mut out),
        other => panic!("no decoder for {other}"),
    }
    .unwrap();
    out
}

const CODINGS: [&str; 5] = ["gzip", "deflate", "raw deflate", "br", "zstd"];

fn declared(coding: &str) -> &str {
    coding.strip_prefix("raw ").unwrap_or(coding)
}

#[test]
fn a_real_value_in_a_response_comes_back_as_its_surrogate() {
    let surrogate = &SECRETS.env["GH_TOKEN"];
    let text = format!(
        "token={GITHUB}; {}",
        BASE64.encode(format!("me:{GITHUB}").as_bytes())
    );
    let expected = format!(
        "token={surrogate}; {}",
        BASE64.encode(format!("me:{surrogate}").as_bytes())
    );
    let mut stream = scrub().stream();
    assert_eq!(stream.push(text.into()), expected);
    assert_eq!((stream.count(), stream.held()), (2, 0));
}

#[test]
fn responses_of_hosts_in_no_scope_are_not_touched() {
    assert!(SECRETS.replacements.scrub(&host("example.org")).is_none());
}

#[test]
fn where_two_secrets_share_a_value_the_host_sees_its_own_surrogate() {
    let secrets = ["one", "two"].map(|name| {
        masked(
            &name.to_uppercase(),
            GITHUB,
            &[&format!("{name}.test")],
            &["Authorization"],
        )
    });
    let prepared = prepared(secrets.into());
    for name in ["one", "two"] {
        let scrub = prepared
            .replacements
            .scrub(&host(&format!("{name}.test")))
            .unwrap();
        assert_eq!(
            scrub.stream().push(GITHUB.into()),
            prepared.env[&name.to_uppercase()]
        );
    }
}

#[test]
fn headers_and_trailers_are_scrubbed() {
    let mut headers = header_map(&[
        ("x-echo", &format!("Bearer {GITHUB}")),
        (
            "location",
            "https://x/?k=wJalrXUtnFEMI%2FK7MDENG%2FbPxRfiCYEXAMPLEKEY",
        ),
        ("set-cookie", &format!("a={PASSWORD}")),
        ("date", "today"),
    ]);
    assert_eq!(scrub().headers(&mut headers), 3);
    assert_eq!(
        headers["x-echo"],
        format!("Bearer {}", SECRETS.env["GH_TOKEN"])
    );
    assert_eq!(headers["date"], "today");
    assert!(
        headers
            .values()
            .all(|value| clean(value.as_bytes()) && !value.is_empty())
    );
    assert_eq!(scrub().headers(&mut headers), 0);
}

#[test]
fn an_event_is_not_held_back() {
    let mut stream = scrub().stream();
    for event in [
        "data: {\"delta\":\"ghp\"}\n\n",
        ": ping\n\n",
        "data: [DONE]\n\n",
    ] {
        assert_eq!(stream.push(event.into()), event);
        assert_eq!(stream.held(), 0);
    }
    assert_eq!(stream.push("data: ghp_16C7".into()), "data: ");
    assert_eq!(stream.push("x\n\n".into()), "ghp_16C7x\n\n");
}

#[test]
fn a_compressed_event_is_not_held_back() {
    let event = format!("data: {GITHUB}\n\n");
    let expected = format!("data: {}\n\n", SECRETS.env["GH_TOKEN"]);
    let mut zstd = zstd::Encoder::new(Vec::new(), 3).unwrap();
    zstd.write_all(event.as_bytes()).unwrap();
    zstd.flush().unwrap();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(event.as_bytes()).unwrap();
    gzip.flush().unwrap();
    let mut br = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 18);
    br.write_all(event.as_bytes()).unwrap();
    br.flush().unwrap();
    for (coding, bytes) in [
        ("zstd", zstd.get_ref()),
        ("gzip", gzip.get_ref()),
        ("br", br.get_ref()),
    ] {
        let mut body = coded(coding);
        body.feed(Bytes::copy_from_slice(bytes));
        let mut out = Vec::new();
        while let Some(piece) = body.take().unwrap() {
            out.extend_from_slice(&piece);
        }
        let mut text = vec![0; expected.len()];
        match coding {
            "zstd" => zstd::Decoder::new(&out[..]).unwrap().read_exact(&mut text),
            "gzip" => MultiGzDecoder::new(&out[..]).read_exact(&mut text),
            _ => brotli::Decompressor::new(&out[..], 4096).read_exact(&mut text),
        }
        .unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), expected, "{coding}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn an_echo_never_shows_a_real_value_at_any_split(
        lengths in proptest::collection::vec(1_usize..90, 1..8),
    ) {
            let mut body = scrub().body(StatusCode::OK, &mut HeaderMap::new()).unwrap();
        let out = feed(&mut body, echo().as_bytes(), &lengths).unwrap();
        prop_assert!(clean(&out), "{}", String::from_utf8_lossy(&out));
        prop_assert_eq!(out.len(), echo().len());
        prop_assert_eq!(body.count(), 8);
        let at_once = feed(&mut scrub().body(StatusCode::OK, &mut HeaderMap::new()).unwrap(), echo().as_bytes(), &[usize::MAX]);
        prop_assert_eq!(out, at_once.unwrap());
    }

    #[test]
    fn a_compressed_echo_never_shows_a_real_value_at_any_split(
        coding in proptest::sample::select(&CODINGS[..]),
        lengths in proptest::collection::vec(1_usize..200, 1..8),
    ) {
            let mut body = coded(declared(coding));
        let text = echo().repeat(20);
        let out = feed(&mut body, &encode(coding, text.as_bytes()), &lengths).unwrap();
        let decoded = decode(coding, &out);
        prop_assert!(clean(&decoded), "{}", String::from_utf8_lossy(&decoded));
        prop_assert_eq!(decoded.len(), text.len());
        prop_assert_eq!(body.count(), 160);
    }

    #[test]
    fn no_bytes_from_a_server_break_a_decoder(
        coding in proptest::sample::select(&CODINGS[..]),
        cut in 0_usize..200,
        noise in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut bytes = encode(coding, echo().as_bytes());
        bytes.truncate(cut);
        bytes.extend(noise);
        // Whether it is an error or not depends on the noise; it must neither hang nor panic nor show anything.
        if let Ok(out) = feed(&mut coded(declared(coding)), &bytes, &[7, 31]) {
            prop_assert!(clean(&decode_what_there_is(coding, &out)));
        }
    }
}

fn decode_what_there_is(coding: &str, bytes: &[u8]) -> Vec<u8> {
    if bytes.is_empty() {
        Vec::new()
    } else {
        decode(coding, bytes)
    }
}

#[test]
fn bodies_that_follow_each_other_are_all_scrubbed() {
    for coding in ["gzip", "zstd"] {
        let text = echo();
        let twice = encode(coding, text.as_bytes()).repeat(2);
        let out = feed(&mut coded(coding), &twice, &[11]).unwrap();
        let decoded = decode(coding, &out);
        assert_eq!(decoded.len(), 2 * text.len());
        assert!(clean(&decoded));
    }
}

#[test]
fn an_empty_compressed_body_stays_empty() {
    for coding in CODINGS {
        let out = feed(&mut coded(declared(coding)), &[], &[1]).unwrap();
        assert!(out.is_empty(), "{coding}");
        let packed = encode(coding, b"");
        let out = feed(&mut coded(declared(coding)), &packed, &[1]).unwrap();
        assert!(decode(coding, &out).is_empty(), "{coding}");
    }
}

#[test]
fn a_body_that_is_cut_off_is_an_error() {
    for coding in CODINGS {
        let mut bytes = encode(coding, echo().as_bytes());
        bytes.truncate(bytes.len() - 5);
        let error = feed(&mut coded(declared(coding)), &bytes, &[50]).unwrap_err();
        assert!(
            matches!(error, ScrubError::Truncated { .. }),
            "{coding}: {error}"
        );
    }
}

#[test]
fn a_bomb_ends_the_response_and_never_fills_memory() {
    for coding in ["gzip", "br", "zstd"] {
        let bomb = encode(coding, &vec![0; 48 << 20]);
        let mut body = coded(coding);
        body.feed(bomb.into());
        let mut largest = 0;
        let error = loop {
            match body.take() {
                Ok(Some(piece)) => largest = largest.max(piece.len()),
                Ok(None) => panic!("the {coding} bomb went through"),
                Err(error) => break error,
            }
        };
        assert!(
            matches!(error, ScrubError::Bomb { .. }),
            "{coding}: {error}"
        );
        assert!(
            largest < 256 * 1024,
            "{coding} gave {largest} bytes at once"
        );
    }
}

#[test]
fn headers_that_speak_of_the_bytes_go_with_a_compressed_body_only() {
    let about_bytes = [
        ("content-length", "99"),
        ("accept-ranges", "bytes"),
        ("content-md5", "x"),
        ("x-amz-checksum-crc32", "x"),
        ("etag", "\"v1\""),
        ("content-type", "text/plain"),
    ];
    let mut plain = header_map(&about_bytes);
    scrub().body(StatusCode::OK, &mut plain).unwrap();
    assert_eq!(plain, header_map(&about_bytes));

    let mut packed = header_map(&about_bytes);
    packed.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    scrub().body(StatusCode::OK, &mut packed).unwrap();
    let left = [
        ("content-encoding", "gzip"),
        ("etag", "W/\"v1\""),
        ("content-type", "text/plain"),
    ];
    assert_eq!(packed, header_map(&left));
}

#[test]
fn what_cannot_be_decoded_is_refused() {
    for coding in ["compress", "gzip, br", "dcb", "x"] {
        let mut headers = header_map(&[("content-encoding", coding)]);
        let error = scrub().body(StatusCode::OK, &mut headers).unwrap_err();
        assert!(matches!(error, ScrubError::UnknownCoding), "{coding}");
    }
    let mut headers = header_map(&[("content-encoding", "gzip")]);
    let error = scrub()
        .body(StatusCode::PARTIAL_CONTENT, &mut headers)
        .unwrap_err();
    assert!(matches!(
        error,
        ScrubError::Partial {
            coding: Coding::Gzip
        }
    ));
    let mut headers = header_map(&[("content-encoding", "aws-chunked, identity")]);
    assert!(
        scrub()
            .body(StatusCode::PARTIAL_CONTENT, &mut headers)
            .is_ok()
    );
}

#[test]
fn a_request_asks_for_what_can_be_scrubbed() {
    let mut headers = header_map(&[
        ("accept-encoding", "gzip, br"),
        ("accept-encoding", "zstd"),
        ("sec-websocket-extensions", "permessage-deflate"),
        ("accept", "*/*"),
    ]);
    scrub().ask_plain(&mut headers);
    assert_eq!(
        headers,
        header_map(&[("accept-encoding", "identity"), ("accept", "*/*")])
    );
}
