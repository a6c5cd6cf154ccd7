use super::*;
use crate::Algorithm;

const REAL: Credentials<'_> = Credentials {
    access_key_id: "AKIAREAL",
    secret_access_key: "real-secret",
    session_token: Some("real+token/="),
};
const LONG_TERM: Credentials<'_> = Credentials {
    session_token: None,
    ..REAL
};
const AUTHORIZATION: &[u8] =
    b"AWS4-HMAC-SHA256 Credential=AKIASURROGATE/20260101/us-east-1/s3/aws4_request, \
      SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token, Signature=00";
const DATE: Field<'_> = ("x-amz-date", b"20260101T000000Z");
const UNSIGNED: Field<'_> = ("x-amz-content-sha256", b"UNSIGNED-PAYLOAD");
const PRESIGNED: &str = "/key?b=2&X-Amz-Algorithm=AWS4-HMAC-SHA256\
    &X-Amz-Credential=AKIASURROGATE%2F20260101%2Fus-east-1%2Fs3%2Faws4_request\
    &X-Amz-Date=20260101T000000Z&X-Amz-Expires=600&X-Amz-Security-Token=surrogate\
    &X-Amz-SignedHeaders=host&X-Amz-Signature=00&b=1";

fn head<'a>(target: &'a str, headers: &'a [Field<'a>]) -> Head<'a> {
    Head {
        method: "PUT",
        target,
        authority: "bucket.s3.amazonaws.com",
        headers,
    }
}

fn resign(head: &Head<'_>, credentials: &Credentials<'_>) -> Result<Resigning, Error> {
    SignedRequest::parse(head)
        .unwrap()
        .unwrap()
        .resign(head, credentials)
}

fn ready(head: &Head<'_>, credentials: &Credentials<'_>) -> Resigned {
    match resign(head, credentials).unwrap() {
        Resigning::Ready(resigned) => resigned,
        other => panic!("{other:?}"),
    }
}

fn value<'a>(resigned: &'a Resigned, name: &str) -> Option<&'a str> {
    let edit = resigned.headers.iter().find(|edit| edit.name == name)?;
    edit.value.as_deref()
}

#[test]
fn a_session_token_is_exchanged_before_it_is_signed() {
    let surrogate: &[Field<'_>] = &[
        ("authorization", AUTHORIZATION),
        DATE,
        UNSIGNED,
        ("x-amz-security-token", b"surrogate"),
    ];
    let real: &[Field<'_>] = &[
        ("authorization", AUTHORIZATION),
        DATE,
        UNSIGNED,
        ("x-amz-security-token", b"real+token/="),
    ];
    let from_surrogate = ready(&head("/key", surrogate), &REAL);
    let from_real = ready(&head("/key", real), &REAL);
    assert_eq!(from_surrogate.headers, from_real.headers);
    assert_eq!(value(&from_surrogate, SESSION_TOKEN), REAL.session_token);
}

#[test]
fn a_presigned_session_token_is_exchanged_before_it_is_signed_and_encoded() {
    let token = "real%2Btoken%2F%3D";
    let real = PRESIGNED.replace("Token=surrogate", &format!("Token={token}"));
    let from_surrogate = ready(&head(PRESIGNED, &[]), &REAL).target.unwrap();
    let from_real = ready(&head(&real, &[]), &REAL).target.unwrap();
    assert_eq!(from_surrogate, from_real);
    assert!(from_surrogate.contains(token));
}

#[test]
fn a_presigned_url_keeps_its_parameters_and_their_order() {
    let target = ready(&head(PRESIGNED, &[]), &REAL).target.unwrap();
    let names = |target: &str| -> Vec<String> {
        let (_, query) = target.split_once('?').unwrap();
        query
            .split('&')
            .map(|pair| pair.split_once('=').unwrap().0.to_owned())
            .collect()
    };
    assert_eq!(names(&target), names(PRESIGNED));
    assert!(target.starts_with("/key?b=2&") && target.ends_with("&b=1"));
    assert!(!target.contains("SURROGATE") && !target.contains("Signature=00&"));
}

#[test]
fn a_foreign_token_does_not_ride_on_credentials_without_one() {
    let headers: &[Field<'_>] = &[
        ("authorization", AUTHORIZATION),
        DATE,
        UNSIGNED,
        ("x-amz-security-token", b"foreign"),
    ];
    for head in [head("/key", headers), head(PRESIGNED, &[])] {
        assert_eq!(
            resign(&head, &LONG_TERM).unwrap_err(),
            Error::UnexpectedSessionToken
        );
    }
}

#[test]
fn a_signature_for_another_host_than_the_receiver_is_refused() {
    let case = |host: &'static [u8]| {
        let headers: &[Field<'_>] = &[
            ("host", host),
            ("authorization", AUTHORIZATION),
            DATE,
            UNSIGNED,
        ];
        resign(&head("/key", headers), &LONG_TERM).map(|_| ())
    };
    assert_eq!(case(b"other.s3.amazonaws.com"), Err(Error::HostMismatch));
    assert_eq!(
        case(b"bucket.s3.amazonaws.com:9000"),
        Err(Error::HostMismatch)
    );
    for same in [
        &b"bucket.s3.amazonaws.com"[..],
        b"Bucket.S3.amazonaws.com:443",
        b"",
    ] {
        assert_eq!(case(same), Ok(()));
    }
}

#[test]
fn a_deferred_signature_is_that_of_the_same_request_with_its_hash() {
    let list = str::from_utf8(AUTHORIZATION)
        .unwrap()
        .replace(";x-amz-content-sha256", "");
    let authorization: Field<'_> = ("authorization", list.as_bytes());
    let hash = canonical::hash(b"hello");
    let hash: Field<'_> = ("x-amz-content-sha256", hash.as_bytes());
    let known = ready(&head("/key", &[authorization, DATE, hash]), &LONG_TERM);

    let deferred = |body: &[&[u8]]| {
        let Resigning::Deferred(mut waiting) =
            resign(&head("/key", &[authorization, DATE]), &LONG_TERM).unwrap()
        else {
            panic!("the hash is known already");
        };
        for part in body {
            waiting.update(part);
        }
        waiting.finish()
    };
    assert_eq!(deferred(&[b"he", b"", b"llo"]).headers, known.headers);
    assert_ne!(deferred(&[]).headers, known.headers);
}

fn chunked<'a>(list: &'a str, extra: &[Field<'a>]) -> Vec<Field<'a>> {
    let mut headers = vec![
        ("authorization", list.as_bytes()),
        DATE,
        (
            "x-amz-content-sha256",
            &b"STREAMING-AWS4-HMAC-SHA256-PAYLOAD"[..],
        ),
    ];
    headers.extend_from_slice(extra);
    headers
}

const WITH_LENGTH: &str = "AWS4-HMAC-SHA256 Credential=AKIASURROGATE/20260101/us-east-1/s3/aws4_request, \
     SignedHeaders=content-length;host;x-amz-date, Signature=00";

#[test]
fn a_signed_content_length_is_that_of_the_new_body() {
    let length: Field<'_> = ("x-amz-decoded-content-length", b"66560");
    let old = chunked(WITH_LENGTH, &[("content-length", b"99999"), length]);
    let new = chunked(WITH_LENGTH, &[("content-length", b"66824"), length]);
    let (Resigning::Chunked(old, body), Resigning::Chunked(new, _)) = (
        resign(&head("/key", &old), &LONG_TERM).unwrap(),
        resign(&head("/key", &new), &LONG_TERM).unwrap(),
    ) else {
        panic!("the body is chunked");
    };
    assert_eq!(old.headers, new.headers);
    assert_eq!(value(&old, CONTENT_LENGTH), Some("66824"));
    assert_eq!(body.content_length(), Some(66_824));
}

#[test]
fn an_unknown_length_is_not_signed() {
    let headers = chunked(WITH_LENGTH, &[("content-length", b"99999")]);
    assert_eq!(
        resign(&head("/key", &headers), &LONG_TERM).unwrap_err(),
        Error::UnknownLength
    );
    let list = WITH_LENGTH.replace("content-length;", "");
    let headers = chunked(&list, &[("content-length", b"99999")]);
    let Resigning::Chunked(resigned, _) = resign(&head("/key", &headers), &LONG_TERM).unwrap()
    else {
        panic!("the body is chunked");
    };
    let removed = HeaderEdit {
        name: CONTENT_LENGTH,
        value: None,
    };
    assert!(resigned.headers.contains(&removed));
}

#[test]
fn a_decoded_length_that_is_no_number_is_refused() {
    for length in [&b"x"[..], b"+1", b"", b"-1", b"99999999999999999999"] {
        let headers = chunked(WITH_LENGTH, &[("x-amz-decoded-content-length", length)]);
        assert_eq!(
            resign(&head("/key", &headers), &LONG_TERM).unwrap_err(),
            Error::Malformed {
                field: "x-amz-decoded-content-length"
            }
        );
    }
}

#[test]
fn all_other_authorization_fields_give_way() {
    let headers: &[Field<'_>] = &[
        ("authorization", b"Bearer foreign"),
        ("authorization", AUTHORIZATION),
        DATE,
        UNSIGNED,
    ];
    let resigned = ready(&head("/key", headers), &LONG_TERM);
    let edits: Vec<_> = resigned.headers.iter().map(|edit| edit.name).collect();
    assert_eq!(edits, ["authorization"]);
}

#[test]
fn nothing_is_printed_of_credentials_or_signatures() {
    let headers: &[Field<'_>] = &[
        ("authorization", AUTHORIZATION),
        DATE,
        UNSIGNED,
        ("x-amz-security-token", b"surrogate"),
    ];
    let head = head("/key", headers);
    let resigning = resign(&head, &REAL).unwrap();
    let key = SigningKey::derive(
        Algorithm::HmacSha256,
        &REAL,
        SignedRequest::parse(&head).unwrap().unwrap().scope(),
    )
    .unwrap();
    for text in [
        format!("{resigning:?}"),
        format!("{REAL:?}"),
        format!("{key:?}"),
    ] {
        assert!(
            !["AKIAREAL", "secret\"", "token/", "Signature="]
                .iter()
                .any(|secret| text.contains(secret)),
            "{text}"
        );
    }
}
