//! Keys and chunk signatures judged by aws-sigv4, which is not used outside of tests.

use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials as Identity;
use aws_sigv4::sign::{v4, v4a};
use cordon_sigv4::{
    Algorithm, ChunkSigner, ChunkStream, CredentialScope, Credentials, SigningKey, Timestamp,
    canonical::Context, ecdsa_scalar, hmac_key,
};

use crate::python::REAL;

#[test]
fn keys_are_those_of_aws_sigv4() {
    let day = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600);
    for secret in ["", "s", REAL.secret_access_key, &"long".repeat(40)] {
        let ours = hmac_key(secret, "20260101", "eu-west-1", "s3");
        let theirs = v4::generate_signing_key(secret, day, "eu-west-1", "s3");
        assert_eq!(&ours[..], theirs.as_ref());
        for id in ["AKID", "AKIAIOSFODNN7EXAMPLE", "a", &"A".repeat(128)] {
            let ours = ecdsa_scalar(id, secret).unwrap();
            let theirs = v4a::generate_signing_key(id, secret);
            assert_eq!(&ours[..], theirs.as_ref());
        }
    }
}

#[test]
fn chunks_are_signed_as_by_aws_sigv4() {
    let data = vec![7; 150_000];
    let identity = Identity::new(
        REAL.access_key_id,
        REAL.secret_access_key,
        None,
        None,
        "test",
    );
    let identity = identity.into();
    let parameters = v4::SigningParams::builder()
        .identity(&identity)
        .region("eu-west-1")
        .name("s3")
        .time(SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600))
        .settings(())
        .build()
        .unwrap();
    let mut previous = "0".repeat(64);
    let mut expected = Vec::new();
    for chunk in data.chunks(65_536).chain([&[][..]]) {
        let signed = v4::sign_chunk(&chunk.to_vec().into(), &previous, &parameters).unwrap();
        previous = signed.signature().to_owned();
        let head = format!("{:x};chunk-signature={previous}\r\n", chunk.len());
        expected.extend_from_slice(head.as_bytes());
        expected.extend_from_slice(chunk);
        expected.extend_from_slice(b"\r\n");
    }

    let mut signer = signer(ChunkStream {
        decoded_length: Some(150_000),
        trailers: None,
    });
    let length = signer.content_length();
    let mut output = Vec::new();
    for part in [
        b"249f0;chunk-signature=00\r\n",
        &data[..],
        b"\r\n0;chunk-signature=00\r\n\r\n",
    ] {
        signer.push(part, &mut output).unwrap();
    }
    signer.finish(&mut output).unwrap();
    assert!(output == expected);
    assert_eq!(length, Some(expected.len() as u64));
}

fn signer(stream: ChunkStream) -> ChunkSigner {
    let algorithm = Algorithm::HmacSha256;
    let scope = CredentialScope::parse(algorithm, "20260101/eu-west-1/s3/aws4_request").unwrap();
    let credentials = Credentials {
        session_token: None,
        ..REAL
    };
    let key = SigningKey::derive(algorithm, &credentials, &scope).unwrap();
    let context = Context {
        algorithm,
        timestamp: Timestamp::parse("20260101T000000Z").unwrap(),
        scope,
    };
    ChunkSigner::new(key, context, "0".repeat(64), stream).unwrap()
}
