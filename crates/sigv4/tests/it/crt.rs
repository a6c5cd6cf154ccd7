//! What awscrt signs with surrogates, signed again, is what it signs with the real credentials. It is the only signer
//! for Python that knows SigV4A.

use cordon_sigv4::{
    Algorithm, Credentials, SignedRequest,
    canonical::{self, Context, PathRule},
    ecdsa_scalar,
};
use data_encoding::HEXLOWER;
use p256::ecdsa::{DerSignature, SigningKey, signature::Verifier};
use serde_json::json;

use crate::python::{self, Captured};

#[test]
fn requests_of_awscrt_become_those_of_the_real_credentials() {
    for (surrogate, real) in python::pairs() {
        let input = json!([python::to_json(&surrogate), python::to_json(&real)]);
        let cases = python::run("crt.py", &[], &input);
        let cases = cases.as_object().unwrap();
        assert!(cases.len() >= 12);
        for (name, case) in cases {
            let sent = Captured::new(&case[0]);
            let expected = Captured::new(&case[1]);
            let resigned = sent.resign(&real);
            compare(name, &sent.edited(&resigned), &expected, &real);
        }
    }
}

/// An HMAC must be the same. An ECDSA signature never is: both must be good for the same string under the same key.
fn compare(name: &str, ours: &Captured, theirs: &Captured, real: &Credentials<'_>) {
    let (our_request, our_signature) = without_signature(ours);
    let (their_request, their_signature) = without_signature(theirs);
    assert_eq!(our_request, their_request, "{name}");
    if name.starts_with("v4 ") {
        assert_eq!(our_signature, their_signature, "{name}");
        return;
    }
    let scalar = ecdsa_scalar(real.access_key_id, real.secret_access_key).unwrap();
    let key = SigningKey::from_slice(&*scalar).unwrap();
    let text = string_to_sign(theirs);
    for signature in [&our_signature, &their_signature] {
        let der = HEXLOWER.decode(signature.as_bytes()).unwrap();
        let der = DerSignature::from_bytes(&der).unwrap();
        key.verifying_key()
            .verify(text.as_bytes(), &der)
            .unwrap_or_else(|_| panic!("{name}: {text}"));
    }
}

fn without_signature(request: &Captured) -> (String, String) {
    let mut headers = request.sorted();
    headers.retain(|(name, _)| name != "content-length");
    let text = format!("{} {headers:?}", request.target);
    let (start, rest) = text.split_once("Signature=").unwrap();
    let end = rest
        .find(|letter: char| !letter.is_ascii_hexdigit())
        .unwrap_or(rest.len());
    (format!("{start}{}", &rest[end..]), rest[..end].to_owned())
}

fn string_to_sign(request: &Captured) -> String {
    let fields = request.fields();
    let head = request.head(&fields);
    let signed = SignedRequest::parse(&head).unwrap().unwrap();
    assert_eq!(signed.algorithm(), Algorithm::EcdsaP256Sha256);
    let (path, query) = head.target.split_once('?').unwrap_or((head.target, ""));
    let canonical = canonical::request(
        head.method,
        &canonical::uri(path, PathRule::of(signed.scope().service())),
        &canonical::presigned_query(query),
        &canonical::headers(&fields, signed.signed_headers(), head.authority).unwrap(),
        signed.signed_headers(),
        &signed
            .payload()
            .canonical(signed.algorithm())
            .unwrap_or_else(|| canonical::hash(&request.body)),
    );
    Context {
        algorithm: signed.algorithm(),
        timestamp: signed.timestamp(),
        scope: signed.scope().clone(),
    }
    .string_to_sign(&canonical)
}
