use super::*;

const AUTHORIZATION: &[u8] =
    b"AWS4-HMAC-SHA256 Credential=AKID/20260101/us-east-1/s3/aws4_request, \
      SignedHeaders=host;x-amz-date, Signature=00";
const QUERY: &str = "/key?X-Amz-Algorithm=AWS4-HMAC-SHA256\
    &X-Amz-Credential=AKID%2F20260101%2Fus-east-1%2Fs3%2Faws4_request\
    &X-Amz-Date=20260101T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=00";

fn parse(target: &str, headers: &[Field<'_>]) -> Result<Option<SignedRequest>, Error> {
    SignedRequest::parse(&Head {
        method: "GET",
        target,
        authority: "example.com",
        headers,
    })
}

fn with_payload(payload: &str) -> Result<Payload, Error> {
    let headers: &[Field<'_>] = &[
        ("authorization", AUTHORIZATION),
        ("x-amz-date", b"20260101T000000Z"),
        ("x-amz-content-sha256", payload.as_bytes()),
    ];
    parse("/", headers).map(|request| request.unwrap().payload)
}

#[test]
fn every_kind_of_payload_is_told_apart() {
    let hash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    for (text, payload) in [
        (hash, Payload::Hash(hash.to_owned())),
        ("UNSIGNED-PAYLOAD", Payload::Unsigned),
        (
            "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
            Payload::UnsignedTrailer,
        ),
        ("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", Payload::Chunked),
        (
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
            Payload::ChunkedTrailer,
        ),
    ] {
        let found = with_payload(text).unwrap();
        assert_eq!(found, payload);
        assert_eq!(found.canonical(Algorithm::HmacSha256).unwrap(), text);
    }
}

#[test]
fn a_payload_that_cannot_be_signed_is_refused() {
    for (text, error) in [
        ("STREAMING-AWS4-HMAC-SHA256-EVENTS", Error::EventStream),
        (
            "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD",
            Error::ChunkAlgorithm,
        ),
        ("STREAMING-AWS4-HMAC-SHA256-PAYLOAD-NEW", MALFORMED),
        ("STREAMING-NEW", MALFORMED),
        ("required", MALFORMED),
        ("", MALFORMED),
    ] {
        assert_eq!(with_payload(text), Err(error), "{text}");
    }
    const MALFORMED: Error = Error::Malformed {
        field: "x-amz-content-sha256",
    };
}

#[test]
fn a_request_without_a_payload_hash_waits_for_its_body() {
    let headers: &[Field<'_>] = &[
        ("Authorization", AUTHORIZATION),
        ("X-Amz-Date", b"20260101T000000Z"),
    ];
    let request = parse("/", headers).unwrap().unwrap();
    assert_eq!(*request.payload(), Payload::Deferred);
    assert_eq!(request.payload().canonical(request.algorithm()), None);
    assert_eq!(request.placement(), Placement::Header);
}

#[test]
fn only_s3_leaves_the_body_of_a_presigned_url_open() {
    let s3 = parse(QUERY, &[]).unwrap().unwrap();
    assert_eq!(*s3.payload(), Payload::Unsigned);
    assert_eq!(s3.placement(), Placement::Query);
    let sts = parse(&QUERY.replace("Fs3", "Fsts"), &[]).unwrap().unwrap();
    assert_eq!(*sts.payload(), Payload::Deferred);
    let said = format!("{QUERY}&X-Amz-Content-Sha256=UNSIGNED-PAYLOAD").replace("Fs3", "Fsts");
    assert_eq!(
        *parse(&said, &[]).unwrap().unwrap().payload(),
        Payload::Unsigned
    );
}

#[test]
fn the_time_is_taken_from_either_header() {
    let auth = ("authorization", AUTHORIZATION);
    let date: Field<'_> = ("date", b"Thu, 01 Jan 2026 00:00:00 GMT");
    let request = parse("/", &[auth, date]).unwrap().unwrap();
    assert_eq!(request.timestamp().to_string(), "20260101T000000Z");
    let amz: Field<'_> = ("x-amz-date", b"20250101T000000Z");
    let request = parse("/", &[auth, date, amz]).unwrap().unwrap();
    assert_eq!(request.timestamp().to_string(), "20250101T000000Z");

    let missing = Error::Missing {
        field: "x-amz-date",
    };
    assert_eq!(parse("/", &[auth]).unwrap_err(), missing);
    assert!(parse("/", &[auth, amz, amz]).is_err());
}

#[test]
fn an_unsigned_request_is_none() {
    assert!(
        parse("/?a=b", &[("authorization", b"Bearer x")])
            .unwrap()
            .is_none()
    );
}

#[test]
fn a_request_signed_twice_is_refused() {
    let headers: &[Field<'_>] = &[
        ("authorization", AUTHORIZATION),
        ("x-amz-date", b"20260101T000000Z"),
    ];
    assert_eq!(parse(QUERY, headers).unwrap_err(), Error::SignedTwice);
}

#[test]
fn a_presigned_url_is_seen_behind_another_authorization() {
    let request = parse(QUERY, &[("authorization", b"Bearer x")]).unwrap();
    assert_eq!(request.unwrap().access_key_id(), "AKID");
}

#[test]
fn a_presigned_url_may_be_as_old_as_it_says() {
    let request = parse(QUERY, &[]).unwrap().unwrap();
    let at = |text: &str| request.skew(text.parse().unwrap());
    assert_eq!(at("2026-01-01T23:00:00Z"), None);
    assert!(matches!(at("2026-01-02T01:00:00Z"), Some(Skew::Behind(_))));
    assert!(matches!(at("2025-12-31T23:00:00Z"), Some(Skew::Ahead(_))));
}

#[test]
fn nothing_is_printed_of_a_token() {
    let headers: &[Field<'_>] = &[
        ("authorization", AUTHORIZATION),
        ("x-amz-date", b"20260101T000000Z"),
        ("x-amz-security-token", b"TOKEN"),
    ];
    let request = parse("/", headers).unwrap().unwrap();
    assert_eq!(request.session_token(), Some("TOKEN"));
    let head = Head {
        method: "GET",
        target: "/",
        authority: "example.com",
        headers,
    };
    for text in [format!("{request:?}"), format!("{head:?}")] {
        assert!(!text.contains("TOKEN") && !text.contains("AKID"), "{text}");
    }
}
