//! What must hold for any input.

use cordon_sigv4::{
    Algorithm, ChunkSigner, ChunkStream, CredentialScope, Credentials, Error, Field, Head,
    Resigning, SignedHeaders, SignedRequest, SigningKey, Timestamp,
    canonical::{self, Context, PathRule},
    ecdsa_scalar, minting,
};
use data_encoding::HEXLOWER;
use p256::ecdsa::{DerSignature, signature::Verifier};
use proptest::{collection::vec, prelude::*};

const CREDENTIALS: Credentials<'_> = Credentials {
    access_key_id: "AKIAREAL",
    secret_access_key: "real-secret",
    session_token: None,
};

/// A chunked body, as a client would send it, and its data.
#[derive(Clone, Debug)]
struct Body {
    data: Vec<u8>,
    encoded: Vec<u8>,
    trailers: bool,
}

fn body() -> impl Strategy<Value = Body> {
    let chunk = prop_oneof![
        vec(any::<u8>(), 1..40),
        (60_000..140_000_usize).prop_map(|size| vec![b'x'; size]),
    ];
    (vec(chunk, 0..5), any::<bool>()).prop_map(|(chunks, trailers)| {
        let mut encoded = Vec::new();
        for chunk in &chunks {
            encoded.extend(format!("{:X};chunk-signature=0**\r\n", chunk.len()).bytes());
            encoded.extend(chunk);
            encoded.extend(b"\r\n");
        }
        encoded.extend(b"0;chunk-signature=0\r\n");
        if trailers {
            encoded.extend(b"x-amz-checksum-crc32:AAAAAA==\r\nx-amz-trailer-signature:0\r\n");
        }
        encoded.extend(b"\r\n");
        Body {
            data: chunks.concat(),
            encoded,
            trailers,
        }
    })
}

fn algorithm() -> impl Strategy<Value = Algorithm> {
    prop_oneof![
        Just(Algorithm::HmacSha256),
        Just(Algorithm::EcdsaP256Sha256)
    ]
}

fn context(algorithm: Algorithm) -> Context {
    let scope = match algorithm {
        Algorithm::HmacSha256 => "20260101/eu-west-1/s3/aws4_request",
        Algorithm::EcdsaP256Sha256 => "20260101/s3/aws4_request",
    };
    Context {
        algorithm,
        timestamp: Timestamp::parse("20260101T000000Z").unwrap(),
        scope: CredentialScope::parse(algorithm, scope).unwrap(),
    }
}

fn signer(algorithm: Algorithm, body: &Body) -> ChunkSigner {
    let context = context(algorithm);
    let key = SigningKey::derive(algorithm, &CREDENTIALS, &context.scope).unwrap();
    let stream = ChunkStream {
        decoded_length: Some(body.data.len() as u64),
        trailers: body
            .trailers
            .then(|| vec!["x-amz-checksum-crc32".to_owned()]),
    };
    ChunkSigner::new(key, context, "5eed".to_owned(), stream).unwrap()
}

fn sign(algorithm: Algorithm, body: &Body, cuts: &[usize]) -> Result<Vec<u8>, Error> {
    let mut signer = signer(algorithm, body);
    let mut output = Vec::new();
    let mut rest = &body.encoded[..];
    for cut in cuts {
        let (part, more) = rest.split_at(cut % (rest.len() + 1));
        signer.push(part, &mut output)?;
        rest = more;
    }
    signer.push(rest, &mut output)?;
    signer.finish(&mut output)?;
    Ok(output)
}

/// Checks every signature of a chunked body as its receiver would, and returns the data.
fn verify(algorithm: Algorithm, mut body: &[u8]) -> Vec<u8> {
    let context = context(algorithm);
    let check = |text: &str, signature: &str| match algorithm {
        Algorithm::HmacSha256 => {
            let key = SigningKey::derive(algorithm, &CREDENTIALS, &context.scope).unwrap();
            assert_eq!(key.sign(text), signature);
        }
        Algorithm::EcdsaP256Sha256 => {
            let scalar =
                ecdsa_scalar(CREDENTIALS.access_key_id, CREDENTIALS.secret_access_key).unwrap();
            let key = p256::ecdsa::SigningKey::from_slice(&*scalar).unwrap();
            let der = HEXLOWER.decode(signature.as_bytes()).unwrap();
            let der = DerSignature::from_bytes(&der).unwrap();
            key.verifying_key().verify(text.as_bytes(), &der).unwrap();
        }
    };
    let width = match algorithm {
        Algorithm::HmacSha256 => 64,
        Algorithm::EcdsaP256Sha256 => 144,
    };
    let line = |body: &mut &[u8]| {
        let end = body.windows(2).position(|pair| pair == b"\r\n").unwrap();
        let text = str::from_utf8(&body[..end]).unwrap().to_owned();
        *body = &body[end + 2..];
        text
    };
    let mut previous = "5eed".to_owned();
    let mut data = Vec::new();
    loop {
        let head = line(&mut body);
        let (size, signature) = head.split_once(";chunk-signature=").unwrap();
        assert_eq!(signature.len(), width);
        let signature = signature.trim_end_matches('*');
        let size = usize::from_str_radix(size, 16).unwrap();
        let chunk = &body[..size];
        check(&context.chunk_string_to_sign(&previous, chunk), signature);
        previous = signature.to_owned();
        if size == 0 {
            break;
        }
        data.extend_from_slice(chunk);
        body = body[size..].strip_prefix(b"\r\n").unwrap();
    }
    let end = line(&mut body);
    if !end.is_empty() {
        let signature = line(&mut body);
        let signature = signature.strip_prefix("x-amz-trailer-signature:").unwrap();
        assert_eq!(signature.len(), width);
        let text = context.trailer_string_to_sign(&previous, format!("{end}\n").as_bytes());
        check(&text, signature.trim_end_matches('*'));
        assert_eq!(line(&mut body), "");
    }
    assert!(body.is_empty());
    data
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_chunked_body_is_verified_by_its_receiver(algorithm in algorithm(), body in body()) {
        let output = sign(algorithm, &body, &[]).unwrap();
        prop_assert_eq!(signer(algorithm, &body).content_length(), Some(output.len() as u64));
        prop_assert!(verify(algorithm, &output) == body.data);
    }

    #[test]
    fn any_split_of_the_input_gives_the_same_output(
        body in body(),
        cuts in vec(0..200_000_usize, 0..20),
    ) {
        let whole = sign(Algorithm::HmacSha256, &body, &[]).unwrap();
        prop_assert!(sign(Algorithm::HmacSha256, &body, &cuts).unwrap() == whole);
        let bytes = vec![1; body.encoded.len().min(2_000)];
        prop_assert!(sign(Algorithm::HmacSha256, &body, &bytes).unwrap() == whole);
    }

    #[test]
    fn a_damaged_body_is_never_completed(body in body(), at in any::<usize>(), byte in any::<u8>()) {
        let mut damaged = body.clone();
        let at = at % damaged.encoded.len();
        damaged.encoded.truncate(at);
        let cut = sign(Algorithm::HmacSha256, &damaged, &[]);
        // Only the line end behind the last line may be missing.
        prop_assert!(cut.is_err() || at + 2 >= body.encoded.len(), "cut at {}", at);

        damaged.encoded.clone_from(&body.encoded);
        damaged.encoded[at] = byte;
        if let Ok(output) = sign(Algorithm::HmacSha256, &damaged, &[]) {
            prop_assert_eq!(
                verify(Algorithm::HmacSha256, &output).len(),
                body.data.len()
            );
        }
    }
}

/// Text like that of the protocol, so that parsers are reached in depth.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "\\PC{0,4}",
        "[ -~]{0,6}",
        "[%+/.;,=&*]{1,3}",
        prop_oneof![
            Just("AWS4-HMAC-SHA256 "),
            Just("AWS4-ECDSA-P256-SHA256 "),
            Just("Credential=AKID/20260101/us-east-1/s3/aws4_request"),
            Just("SignedHeaders=host;x-amz-date"),
            Just("Signature=00ff"),
            Just("X-Amz-Algorithm=AWS4-HMAC-SHA256"),
            Just("X-Amz-Credential=AKID%2F20260101%2Fr%2Fs3%2Faws4_request"),
            Just("X-Amz-SignedHeaders=host"),
            Just("X-Amz-Signature=00"),
            Just("X-Amz-Date=20260101T000000Z"),
            Just("20260101T000000Z"),
            Just("STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"),
            Just("UNSIGNED-PAYLOAD"),
            Just("Action=AssumeRole"),
            Just("%2"),
            Just(", "),
        ]
        .prop_map(str::to_owned),
    ];
    vec(piece, 0..10).prop_map(|pieces| pieces.concat())
}

fn name() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec![
        "Authorization",
        "host",
        "x-amz-date",
        "date",
        "x-amz-content-sha256",
        "x-amz-security-token",
        "x-amz-decoded-content-length",
        "x-amz-trailer",
        "x-amz-target",
        "content-encoding",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_request_makes_anything_panic(
        target in text(),
        authority in text(),
        headers in vec((name(), prop_oneof![text().prop_map(String::into_bytes), vec(any::<u8>(), 0..20)]), 0..8),
        body in vec(any::<u8>(), 0..64),
    ) {
        let fields: Vec<Field<'_>> = headers.iter().map(|(name, value)| (*name, &value[..])).collect();
        let head = Head { method: "GET", target: &target, authority: &authority, headers: &fields };
        let _ = minting::judge(&head, Some(&authority));
        let _ = minting::judge_body(target.as_bytes());
        let _ = Timestamp::parse(&target);
        let _ = SignedHeaders::parse(&target);
        let _ = CredentialScope::parse(Algorithm::HmacSha256, &target);
        for rule in [PathRule::Single, PathRule::Double] {
            let uri = canonical::uri(&target, rule);
            prop_assert!(uri.is_ascii());
        }
        if let Ok(Some(signed)) = SignedRequest::parse(&head)
            && let Ok(Resigning::Chunked(_, mut chunks)) = signed.resign(&head, &CREDENTIALS)
        {
            let _ = chunks.push(&body, &mut Vec::new());
        }
    }

    #[test]
    fn no_chunked_body_makes_anything_panic(
        parts in vec(prop_oneof![
            vec(any::<u8>(), 0..8),
            Just(b"4;chunk-signature=00\r\n".to_vec()),
            Just(b"0;chunk-signature=00\r\n".to_vec()),
            Just(b"test\r\n".to_vec()),
            Just(b"x-amz-trailer-signature:00\r\n".to_vec()),
            Just(b"a:b\r\n".to_vec()),
        ], 0..12),
        trailers in any::<bool>(),
    ) {
        let body = Body { data: Vec::new(), encoded: parts.concat(), trailers };
        let mut signer = signer(Algorithm::HmacSha256, &body);
        let mut output = Vec::new();
        let failed = parts.iter().any(|part| signer.push(part, &mut output).is_err());
        let before = output.clone();
        if signer.finish(&mut output).is_err() {
            prop_assert_eq!(output, before);
        } else {
            prop_assert!(!failed);
            verify(Algorithm::HmacSha256, &output);
        }
    }

    #[test]
    fn canonical_forms_are_stable(path in text(), query in text()) {
        let path = path.replace('?', "");
        let once = canonical::uri(&path, PathRule::Single);
        prop_assert_eq!(canonical::uri(&once, PathRule::Single), once);
        let query = query.replace('#', "");
        let once = canonical::query(&query);
        prop_assert_eq!(canonical::query(&once), once);
    }

    #[test]
    fn signing_again_is_deterministic_and_does_not_depend_on_the_surrogate(
        path in "/[ -~]{0,20}",
        surrogate in "[A-Z0-9]{16,20}",
        signature in "[0-9a-f]{64}",
        ecdsa in any::<bool>(),
    ) {
        let resign = |surrogate: &str, signature: &str| {
            let context = context(if ecdsa { Algorithm::EcdsaP256Sha256 } else { Algorithm::HmacSha256 });
            let value = format!(
                "{} Credential={surrogate}/{}, SignedHeaders=host;x-amz-date, Signature={signature}",
                context.algorithm.name(),
                context.scope
            );
            let headers: &[Field<'_>] = &[
                ("authorization", value.as_bytes()),
                ("x-amz-date", b"20260101T000000Z"),
                ("x-amz-content-sha256", b"UNSIGNED-PAYLOAD"),
            ];
            let head = Head { method: "GET", target: &path, authority: "example.com", headers };
            // A path may hold a query that looks signed.
            let signed = SignedRequest::parse(&head).ok().flatten()?;
            match signed.resign(&head, &CREDENTIALS).unwrap() {
                Resigning::Ready(resigned) => resigned.headers[0].value.clone(),
                other => panic!("{other:?}"),
            }
        };
        prop_assert_eq!(resign(&surrogate, &signature), resign("AKIAOTHER", "00"));
    }
}
