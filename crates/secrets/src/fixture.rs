//! Secrets that the unit tests share.

use cordon_policy::{Host, HostPattern, NamePattern};
use http::{HeaderMap, HeaderName, HeaderValue, uri::PathAndQuery};

use crate::{
    Alarm, Applied, Channel, MaskedSecret, PreparedSecrets, Secret, SigningCredential,
    prepare_secrets,
};

pub(crate) const GITHUB: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
pub(crate) const PASSWORD: &str = "Tr0ub4dor&3/\"zwölf\" Pferde";
pub(crate) const KEY_ID: &str = "AKIAIOSFODNN7EXAMPLE";
pub(crate) const SECRET_KEY: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

/// A token for `api.github.com` and `*.example.com`, in the header Authorization.
pub(crate) fn github() -> MaskedSecret {
    masked(
        "GH_TOKEN",
        GITHUB,
        &["api.github.com", "*.example.com"],
        &["Authorization"],
    )
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

/// AWS credentials for `*.amazonaws.com`, temporary if there is a token.
pub(crate) fn aws(session_token: Option<&str>) -> SigningCredential {
    SigningCredential {
        access_key_id_env_var: "AWS_ACCESS_KEY_ID".into(),
        access_key_id: Secret::new(KEY_ID),
        secret_access_key_env_var: "AWS_SECRET_ACCESS_KEY".into(),
        secret_access_key: Secret::new(SECRET_KEY),
        session_token_env_var: Some("AWS_SESSION_TOKEN".into()),
        session_token: session_token.map(Secret::new),
        scopes: patterns(&["*.amazonaws.com"]),
        allow_credential_minting: false,
        allow_foreign_credentials: false,
    }
}

pub(crate) fn prepared(masked: Vec<MaskedSecret>) -> PreparedSecrets {
    prepare_secrets(masked, Vec::new()).unwrap()
}

pub(crate) fn host(name: &str) -> Host {
    Host::parse(name).unwrap()
}

/// Sends a request head through the replacements, over verified TLS.
pub(crate) fn send(
    prepared: &PreparedSecrets,
    to: &str,
    headers: &[(&str, &str)],
    target: &str,
) -> Result<Sent, Alarm> {
    let mut headers = header_map(headers);
    let mut target = PathAndQuery::try_from(target).unwrap();
    let channel = Channel::VerifiedTls;
    let applied = prepared
        .replacements
        .apply(&host(to), channel, &mut headers, &mut target)?;
    Ok(Sent {
        applied,
        headers,
        target,
    })
}

/// A request head as it leaves.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) applied: Applied,
    pub(crate) headers: HeaderMap,
    pub(crate) target: PathAndQuery,
}

impl Sent {
    pub(crate) fn lines(&self, name: &str) -> Vec<&str> {
        self.headers
            .get_all(name)
            .iter()
            .map(|value| value.to_str().unwrap())
            .collect()
    }
}

pub(crate) fn header_map(headers: &[(&str, &str)]) -> HeaderMap {
    let pairs = headers.iter().map(|(name, value)| {
        let name: HeaderName = name.parse().unwrap();
        (name, HeaderValue::from_bytes(value.as_bytes()).unwrap())
    });
    // Collecting would keep only the last of several lines.
    let mut map = HeaderMap::new();
    pairs.for_each(|(name, value)| {
        map.append(name, value);
    });
    map
}

fn patterns(scopes: &[&str]) -> Vec<HostPattern> {
    scopes
        .iter()
        .map(|scope| HostPattern::parse(scope).unwrap())
        .collect()
}
