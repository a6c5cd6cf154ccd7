//! Secrets of the tests.

use cordon_policy::{HostPattern, NamePattern};
use cordon_secrets::{MaskedSecret, PreparedSecrets, Secret, SigningCredential, prepare_secrets};
use data_encoding::BASE64;

pub(crate) const TOKEN: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
pub(crate) const KEY_ID: &str = "AKIAIOSFODNN7EXAMPLE";
pub(crate) const SECRET_KEY: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
pub(crate) const SESSION_TOKEN: &str =
    "IQoJb3JpZ2luX2VjEAaCXVzLWVhc3QtMSJHMEUCIQD+real/session/token==";

/// A token for `api.test`, in the headers Authorization and X-Key.
pub(crate) fn token() -> PreparedSecrets {
    let secret = masked(
        "GH_TOKEN",
        TOKEN,
        &["api.test"],
        &["Authorization", "X-Key"],
    );
    prepare_secrets(vec![secret], Vec::new()).unwrap()
}

pub(crate) fn masked(
    env_var: &str,
    value: &str,
    scopes: &[&str],
    headers: &[&str],
) -> MaskedSecret {
    let headers = headers.iter().map(|header| NamePattern::new(header));
    MaskedSecret::new(
        env_var,
        Secret::new(value),
        patterns(scopes),
        headers.collect(),
    )
}

/// AWS credentials for everything below `api.test`.
pub(crate) fn aws(session_token: Option<&str>) -> SigningCredential {
    SigningCredential {
        access_key_id_env_var: "AWS_ACCESS_KEY_ID".to_owned(),
        access_key_id: Secret::new(KEY_ID),
        secret_access_key_env_var: "AWS_SECRET_ACCESS_KEY".to_owned(),
        secret_access_key: Secret::new(SECRET_KEY),
        session_token_env_var: Some("AWS_SESSION_TOKEN".to_owned()),
        session_token: session_token.map(Secret::new),
        scopes: patterns(&["*.api.test"]),
        allow_credential_minting: false,
        allow_foreign_credentials: false,
    }
}

fn patterns(scopes: &[&str]) -> Vec<HostPattern> {
    scopes
        .iter()
        .map(|scope| HostPattern::parse(scope).unwrap())
        .collect()
}

/// Asserts that no text shows a value, be it as it is, in base64 or percent-encoded.
pub(crate) fn assert_absent(value: &str, text: &str) {
    let escaped = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    let percent: String = value.bytes().map(escaped).collect();
    assert!(!text.contains(value), "{value} is in {text}");
    assert!(!text.contains(&percent), "{percent} is in {text}");
    for skipped in 0..3 {
        let text_of = |padding: &str| BASE64.encode([padding, value].concat().as_bytes());
        let encoded = text_of(&"x".repeat(skipped));
        // The characters at both ends depend on the neighbours.
        let core = &encoded[4..encoded.len() - 8];
        assert!(!text.contains(core), "{core} is in {text}");
    }
}
