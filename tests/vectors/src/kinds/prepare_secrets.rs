//! Credentials before a run: which variables carry surrogates, and what stands behind them.

use cordon_policy::{HostPattern, NamePattern};
use cordon_secrets::{MaskedSecret, PreparedSecrets, Secret, SigningCredential, prepare_secrets};
use serde_json::{Map, Value, json};

use crate::{Case, Check, Unreadable};

pub(crate) fn check(case: &mut Case) -> Result<Check, Unreadable> {
    let input = case.value("input")?;
    let expected = case.expected()?;
    let entries = |name: &str| {
        input[name]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default()
    };
    if !entries("github_app_credentials").is_empty() {
        return Ok(Check::new(expected, "unsupported").because("github-app"));
    }
    let masked = entries("masked_secrets")
        .iter()
        .map(masked)
        .collect::<Option<_>>();
    let signing = entries("signing_credentials")
        .iter()
        .map(signing)
        .collect::<Option<_>>();
    let (Some(masked), Some(signing)) = (masked, signing) else {
        return Err(Unreadable::Shape("input"));
    };
    match prepare_secrets(masked, signing) {
        Ok(prepared) => {
            let empty = expected["env"]
                .as_object()
                .is_some_and(|env| env.values().any(|value| value["empty"] == true));
            let check = Check::new(expected, dump(&prepared)?);
            Ok(if empty {
                check.because("an empty value")
            } else {
                check
            })
        }
        Err(error) => Ok(Check::new(expected, "error").because(error)),
    }
}

fn masked(entry: &Value) -> Option<MaskedSecret> {
    let mut secret = MaskedSecret::new(
        entry["env_var"].as_str()?,
        Secret::new(entry["real_value"].as_str()?),
        scopes(entry)?,
        texts(&entry["headers"])?.map(NamePattern::new).collect(),
    );
    secret.allow_foreign_credentials = entry["allow_foreign_credentials"].as_bool()?;
    Some(secret)
}

fn signing(entry: &Value) -> Option<SigningCredential> {
    let text = |name: &str| entry[name].as_str().map(str::to_owned);
    Some(SigningCredential {
        access_key_id_env_var: text("access_key_id_env_var")?,
        access_key_id: Secret::new(text("access_key_id")?),
        secret_access_key_env_var: text("secret_access_key_env_var")?,
        secret_access_key: Secret::new(text("secret_access_key")?),
        session_token_env_var: text("session_token_env_var"),
        session_token: text("session_token").map(Secret::new),
        scopes: scopes(entry)?,
        allow_credential_minting: false,
        allow_foreign_credentials: false,
    })
}

fn scopes(entry: &Value) -> Option<Vec<HostPattern>> {
    texts(&entry["scopes"])?
        .map(|scope| HostPattern::parse(scope).ok())
        .collect()
}

fn texts(list: &Value) -> Option<impl Iterator<Item = &str>> {
    let list = list.as_array()?;
    list.iter()
        .all(Value::is_string)
        .then(|| list.iter().filter_map(Value::as_str))
}

/// What came out, in the words of the cases.
fn dump(prepared: &PreparedSecrets) -> Result<Value, Unreadable> {
    let env = prepared.env.iter().map(|(name, surrogate)| {
        let value = json!({ "length": surrogate.chars().count(), "empty": surrogate.is_empty() });
        (name.clone(), value)
    });
    let handover: Value = serde_json::from_slice(&prepared.replacements.to_stdin_bytes()?)?;
    let list = |name: &str| handover[name].as_array().cloned().unwrap_or_default();
    let masked = list("masked").into_iter().map(|entry| {
        json!({
            "keyed_by_env": entry["value"]["env_var"],
            "entry": {
                "real_value": entry["value"]["real"],
                "scopes": entry["scopes"],
                "headers": entry["headers"],
                "allow_foreign_credentials": entry["allow_foreign_credentials"],
            },
        })
    });
    let signing = list("signing").into_iter().map(|entry| {
        json!({
            "keyed_by_env": entry["access_key_id"]["env_var"],
            "entry": {
                "access_key_id": entry["access_key_id"]["real"],
                "secret_access_key": entry["secret_access_key"]["real"],
                "session_token": entry["session_token"]["real"],
                "surrogate_session_token": entry["session_token"]["surrogate"],
                "scopes": entry["scopes"],
            },
        })
    });
    Ok(json!({ "env": Map::from_iter(env), "replacements": Vec::from_iter(masked.chain(signing)) }))
}
