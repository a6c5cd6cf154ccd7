//! Secrets whose surrogates are given, not drawn: what several kinds of case begin with.

use cordon_secrets::SecretReplacements;
use serde_json::{Map, Value, json};

use crate::Unreadable;

/// What a map from surrogates to entries says.
#[derive(Debug)]
pub(crate) enum Given {
    Replacements(SecretReplacements),
    /// The type of an entry that there is nothing for.
    Unsupported(String),
}

/// Reads such a map, as it is written in cases.
pub(crate) fn given(replacements: &Value) -> Result<Given, Unreadable> {
    let (mut masked, mut signing) = (Vec::new(), Vec::new());
    for (surrogate, entry) in replacements.as_object().ok_or(SHAPE)? {
        let mut entry = entry.as_object().ok_or(SHAPE)?.clone();
        match entry.remove("type") {
            None => masked.push(masked_entry(surrogate, entry)?),
            Some(Value::String(kind)) if kind == "aws-sigv4" => {
                signing.push(signing_entry(surrogate, entry)?)
            }
            Some(Value::String(kind)) => return Ok(Given::Unsupported(kind)),
            Some(_) => return Err(SHAPE),
        }
    }
    read(masked, signing).map(Given::Replacements)
}

/// One secret, with its own headers, that may go to every host.
pub(crate) fn single(
    surrogate: &str,
    real: &str,
    header: &str,
) -> Result<SecretReplacements, Unreadable> {
    let entry = json!({ "value": real, "scopes": ["*"], "headers": [header], "allow_foreign_credentials": true });
    let Value::Object(entry) = entry else {
        return Err(SHAPE);
    };
    read(vec![masked_entry(surrogate, entry)?], Vec::new())
}

/// The bytes that hand secrets over are the one way in for surrogates that somebody else chose.
fn read(masked: Vec<Value>, signing: Vec<Value>) -> Result<SecretReplacements, Unreadable> {
    let mut handover: Value =
        serde_json::from_slice(&SecretReplacements::default().to_stdin_bytes()?)?;
    handover["masked"] = masked.into();
    handover["signing"] = signing.into();
    let bytes = serde_json::to_vec(&handover)?;
    Ok(SecretReplacements::from_stdin_bytes(&bytes)?)
}

fn masked_entry(surrogate: &str, mut entry: Map<String, Value>) -> Result<Value, Unreadable> {
    let masked = json!({
        "value": value(surrogate, surrogate, entry.remove("value")),
        "scopes": entry.remove("scopes"),
        "headers": entry.remove("headers"),
        "allow_foreign_credentials": entry.remove("allow_foreign_credentials").unwrap_or(Value::Bool(false)),
        "query": [],
        "path": false,
        "body_content_types": null,
    });
    if entry.is_empty() {
        Ok(masked)
    } else {
        Err(SHAPE)
    }
}

fn signing_entry(surrogate: &str, mut entry: Map<String, Value>) -> Result<Value, Unreadable> {
    let token = entry
        .remove("session_token")
        .filter(|token| !token.is_null());
    let token_surrogate = entry.remove("surrogate_session_token");
    let token = token.map(|real| {
        let surrogate = token_surrogate
            .as_ref()
            .and_then(Value::as_str)
            .unwrap_or_default();
        value("AWS_SESSION_TOKEN", surrogate, Some(real))
    });
    let signing = json!({
        "access_key_id": value("AWS_ACCESS_KEY_ID", surrogate, entry.remove("access_key_id")),
        "secret_access_key":
            value("AWS_SECRET_ACCESS_KEY", UNKNOWN_SURROGATE, entry.remove("secret_access_key")),
        "session_token": token,
        "scopes": entry.remove("scopes"),
        "allow_credential_minting": false,
        "allow_foreign_credentials": true,
    });
    if entry.is_empty() {
        Ok(signing)
    } else {
        Err(SHAPE)
    }
}

fn value(env_var: &str, surrogate: &str, real: Option<Value>) -> Value {
    json!({ "env_var": env_var, "surrogate": surrogate, "real": real, "former": [] })
}

/// Cases do not tell the surrogate of a secret access key, since no request carries it.
const UNKNOWN_SURROGATE: &str = "surrogate+of+a+secret+access+key";

const SHAPE: Unreadable = Unreadable::Shape("replacements");
