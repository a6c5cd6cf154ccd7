//! Signatures of AWS, chunked bodies, and the scrubbing of responses.

use std::sync::OnceLock;

use bytes::Bytes;
use cordon_policy::{Host, HostPattern, NamePattern};
use cordon_secrets::{BodyScrubber, MaskedSecret, Scrub, Secret, prepare_secrets};
use cordon_sigv4::{
    Algorithm, ChunkSigner, ChunkStream, CredentialScope, Credentials, Head, Resigning,
    SignedRequest, SigningKey, Timestamp, canonical::Context,
};
use http::{HeaderMap, HeaderValue, StatusCode, header};

/// A chunked body is signed again the same way however it was cut, and a broken one writes no end.
pub fn aws_chunked(data: &[u8]) {
    let Some((&cut, data)) = data.split_first() else {
        return;
    };
    for trailers in [None, Some(vec!["x-amz-checksum-crc32c".to_owned()])] {
        let whole = sign_chunks(data, data.len().max(1), trailers.clone());
        let pieces = sign_chunks(data, usize::from(cut).max(1), trailers);
        assert_eq!(whole.is_some(), pieces.is_some());
        assert_eq!(whole, pieces);
    }
}

fn sign_chunks(data: &[u8], size: usize, trailers: Option<Vec<String>>) -> Option<Vec<u8>> {
    let algorithm = Algorithm::HmacSha256;
    let scope = CredentialScope::parse(algorithm, "20260101/eu-west-1/s3/aws4_request");
    let scope = scope.expect("a scope");
    let key = SigningKey::derive(algorithm, &REAL, &scope).expect("a key");
    let timestamp = Timestamp::parse("20260101T000000Z").expect("a time");
    let context = Context {
        algorithm,
        timestamp,
        scope,
    };
    let stream = ChunkStream {
        decoded_length: None,
        trailers,
    };
    let mut signer = ChunkSigner::new(key, context, "00".repeat(32), stream).expect("a signer");
    let mut output = Vec::new();
    for piece in data.chunks(size) {
        signer.push(piece, &mut output).ok()?;
    }
    signer.finish(&mut output).ok()?;
    Some(output)
}

/// Reads bytes as a method, a target and fields, one a line; what is signed can be signed again, and
/// the surrogate is gone from it.
pub fn sigv4(data: &[u8]) {
    let mut lines = data.split(|&byte| byte == b'\n');
    let mut text = || lines.next().and_then(|line| str::from_utf8(line).ok());
    let (Some(method), Some(target)) = (text(), text()) else {
        return;
    };
    let mut headers = vec![("host", &b"bucket.s3.amazonaws.com"[..])];
    headers.extend(lines.filter_map(|line| {
        let colon = line.iter().position(|&byte| byte == b':')?;
        Some((str::from_utf8(&line[..colon]).ok()?, &line[colon + 1..]))
    }));
    let head = Head {
        method,
        target,
        authority: "bucket.s3.amazonaws.com",
        headers: &headers,
    };
    let Ok(Some(signed)) = SignedRequest::parse(&head) else {
        return;
    };
    let resigned = match signed.resign(&head, &REAL) {
        Ok(Resigning::Ready(resigned) | Resigning::Chunked(resigned, _)) => resigned,
        Ok(Resigning::Deferred(mut deferred)) => {
            deferred.update(b"body");
            deferred.finish()
        }
        Err(_) => return,
    };
    for edit in &resigned.headers {
        let value = edit.value.as_deref().unwrap_or_default();
        assert!(HeaderValue::from_str(value).is_ok(), "{value:?}");
    }
}

/// No spelling of the value is left, the length stays, and how the bytes were cut changes nothing.
pub fn scrubber(data: &[u8]) {
    let Some((&cut, data)) = data.split_first() else {
        return;
    };
    let scrub = scrub();
    let whole = scrub_pieces(&scrub, data, data.len().max(1));
    assert_eq!(whole.len(), data.len());
    assert_eq!(whole, scrub_pieces(&scrub, data, usize::from(cut).max(1)));
    assert!(
        !whole
            .windows(SECRET.len())
            .any(|window| window == SECRET.as_bytes())
    );
    scrub_frames(&scrub, data, usize::from(cut).max(1));
    for coding in ["gzip", "deflate", "br", "zstd"] {
        scrub_coded(&scrub, data, coding);
    }
}

fn scrub_pieces(scrub: &Scrub, data: &[u8], size: usize) -> Vec<u8> {
    let mut scrubber = scrub.stream();
    let mut output = Vec::new();
    for piece in data.chunks(size) {
        output.extend_from_slice(&scrubber.push(Bytes::copy_from_slice(piece)));
    }
    output.extend_from_slice(&scrubber.flush());
    output
}

fn scrub_frames(scrub: &Scrub, data: &[u8], size: usize) {
    let mut frames = scrub.frames();
    let mut length = 0;
    for piece in data.chunks(size) {
        match frames.push(Bytes::copy_from_slice(piece)) {
            Ok(passed) => length += passed.len(),
            Err(_) => return,
        }
    }
    length += frames.finish().len();
    assert!(length <= data.len(), "frames do not grow");
}

/// Broken bodies end in an error, never in a hang.
fn scrub_coded(scrub: &Scrub, data: &[u8], coding: &'static str) {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
    let Ok(mut body) = scrub.body(StatusCode::OK, &mut headers) else {
        return;
    };
    body.feed(Bytes::copy_from_slice(data));
    if drain(&mut body) {
        body.end();
        drain(&mut body);
    }
}

/// Whether the body is good so far.
fn drain(body: &mut BodyScrubber) -> bool {
    loop {
        match body.take() {
            Ok(Some(piece)) => assert!(!piece.is_empty(), "a piece that is nothing"),
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

fn scrub() -> Scrub {
    static SCRUB: OnceLock<Scrub> = OnceLock::new();
    let make = || {
        let scope = HostPattern::parse("api.example.com").expect("a pattern");
        let names = vec![NamePattern::new("Authorization")];
        let secret = MaskedSecret::new("TOKEN", Secret::new(SECRET), vec![scope], names);
        let prepared = prepare_secrets(vec![secret], Vec::new()).expect("a secret");
        let host = Host::parse("api.example.com").expect("a host");
        prepared.replacements.scrub(&host).expect("a host in scope")
    };
    SCRUB.get_or_init(make).clone()
}

const SECRET: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

const REAL: Credentials<'_> = Credentials {
    access_key_id: "AKIAREAL",
    secret_access_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    session_token: None,
};

pub(crate) const CHUNKS: &[&[u8]] = &[
    b"\x055;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648\r\nhello\r\n0;chunk-signature=b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9\r\n\r\n",
    b"\x01400;chunk-signature=00\r\n",
    b"\x070;chunk-signature=b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9\r\nx-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:63bddb248ad2590c92712055f51b8e78ab024eead08276b24f010b0efd74843f\r\n\r\n",
    b"\x02ffffffffffffffff;chunk-signature=0\r\n",
];

pub(crate) const SIGNED: &[&[u8]] = &[
    b"GET\n/photos/cat.jpg?a=b\nx-amz-date:20260101T000000Z\nx-amz-content-sha256:UNSIGNED-PAYLOAD\nauthorization:AWS4-HMAC-SHA256 Credential=AKIASURROGATE/20260101/eu-west-1/s3/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=00ff",
    b"GET\n/x?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIASURROGATE%2F20260101%2Feu-west-1%2Fs3%2Faws4_request&X-Amz-Date=20260101T000000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Signature=00ff",
    b"PUT\n/x\nx-amz-date:20260101T000000Z\nx-amz-decoded-content-length:5\nx-amz-content-sha256:STREAMING-AWS4-HMAC-SHA256-PAYLOAD\nauthorization:AWS4-HMAC-SHA256 Credential=AKIASURROGATE/20260101/eu-west-1/s3/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length, Signature=00ff",
    b"POST\n/\nx-amz-date:20260101T000000Z\nx-amz-region-set:*\nauthorization:AWS4-ECDSA-P256-SHA256 Credential=AKIASURROGATE/20260101/sts/aws4_request, SignedHeaders=host;x-amz-date;x-amz-region-set, Signature=00ff",
];

pub(crate) const BODIES: &[&[u8]] = &[
    b"\x03{\"token\": \"ghp_16C7e42F292c6912E7710c838347Ae178B4a\"}",
    b"\x09ghp_16C7e42F292ghp_16C7e42F292c6912E7710c838347Ae178B4aghp_",
    b"\x05\x81\x05hello\x01\x03abc\x80\x02de\x89\0",
    b"\x05Z2hwXzE2QzdlNDJGMjkyYzY5MTJFNzcxMGM4MzgzNDdBZTE3OEI0YQ==",
    b"\xff\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b\x4c\x4a\x06\0\xc2\x41\x24\x35\x03\0\0\0",
    b"\xff\x28\xb5\x2f\xfd\x04\x00\x19\x00\x00abc",
];
