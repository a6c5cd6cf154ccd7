//! The bytes in which secrets go to the process that serves the proxy, over its standard input and nowhere else.
//!
//! Explicit instead of `Serialize`, so that no secret is written by accident as a part of something larger.

use std::{io, sync::Arc};

use cordon_policy::{HostPattern, NamePattern};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

use super::{Masked, Role, SecretReplacements, Signing, Value};
use crate::{BodyRule, Secret, SecretsError, Surrogate};

impl SecretReplacements {
    /// The bytes for the other process; they hold every real value.
    ///
    /// They are JSON: `version`, then `masked` and `signing` with the fields of [`MaskedSecret`](crate::MaskedSecret)
    /// and [`SigningCredential`](crate::SigningCredential), where each value has its `env_var`, `surrogate` and `real`.
    pub fn to_stdin_bytes(&self) -> Result<Zeroizing<Vec<u8>>, SecretsError> {
        let values = &self.inner().values;
        let wire = Wire {
            version: HANDOVER_VERSION,
            masked: self
                .inner()
                .masked
                .iter()
                .map(|masked| WireMasked::of(masked, values))
                .collect(),
            signing: self
                .inner()
                .signing
                .iter()
                .map(|signing| WireSigning::of(signing, values))
                .collect(),
        };
        // Measured first: a buffer that grows leaves copies behind.
        let mut length = Length(0);
        serde_json::to_writer(&mut length, &wire).map_err(without_text)?;
        let mut bytes = Zeroizing::new(Vec::with_capacity(length.0));
        serde_json::to_writer(&mut *bytes, &wire).map_err(without_text)?;
        Ok(bytes)
    }

    /// Reads what `to_stdin_bytes` wrote. The surrogates are taken as they are, however short.
    pub fn from_stdin_bytes(bytes: &[u8]) -> Result<Self, SecretsError> {
        let Version { version } = serde_json::from_slice(bytes).map_err(without_text)?;
        if version != HANDOVER_VERSION {
            return Err(SecretsError::HandoverVersion { version });
        }
        let wire: Wire = serde_json::from_slice(bytes).map_err(without_text)?;
        let (mut values, mut masked, mut signing) = (Vec::new(), Vec::new(), Vec::new());
        for entry in wire.masked {
            masked.push(entry.into_masked(&mut values)?);
        }
        for entry in wire.signing {
            signing.push(entry.into_signing(&mut values)?);
        }
        Ok(Self::build(values, masked, signing))
    }
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    version: u32,
    masked: Vec<WireMasked>,
    signing: Vec<WireSigning>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WireMasked {
    value: WireValue,
    scopes: Vec<String>,
    headers: Vec<String>,
    allow_foreign_credentials: bool,
    query: Vec<String>,
    path: bool,
    body_content_types: Option<Vec<String>>,
}

impl WireMasked {
    fn of(masked: &Masked, values: &[Value]) -> Self {
        let value = &values[masked.value];
        Self {
            value: WireValue::of(value),
            scopes: scopes_of(value),
            headers: masked
                .headers
                .iter()
                .map(|header| header.as_str().to_owned())
                .collect(),
            allow_foreign_credentials: masked.allow_foreign_credentials,
            query: masked.query.clone(),
            path: masked.path,
            body_content_types: masked.body.as_ref().map(|body| body.content_types.clone()),
        }
    }

    fn into_masked(self, values: &mut Vec<Value>) -> Result<Masked, SecretsError> {
        let scopes = parse_scopes(&self.value.env_var, &self.scopes)?;
        let value = self.value.into_value(Role::Masked, scopes)?;
        let masked = Masked {
            value: values.len(),
            headers: self
                .headers
                .iter()
                .map(|header| NamePattern::new(header))
                .collect(),
            allow_foreign_credentials: self.allow_foreign_credentials,
            query: self.query,
            path: self.path,
            body: self
                .body_content_types
                .map(|content_types| BodyRule { content_types }),
        };
        masked.check(&value)?;
        values.push(value);
        Ok(masked)
    }
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WireSigning {
    access_key_id: WireValue,
    secret_access_key: WireValue,
    session_token: Option<WireValue>,
    scopes: Vec<String>,
    allow_credential_minting: bool,
    allow_foreign_credentials: bool,
}

impl WireSigning {
    fn of(signing: &Signing, values: &[Value]) -> Self {
        Self {
            access_key_id: WireValue::of(&values[signing.key_id]),
            secret_access_key: WireValue::of(&values[signing.secret_key]),
            session_token: signing
                .session_token
                .map(|index| WireValue::of(&values[index])),
            scopes: scopes_of(&values[signing.key_id]),
            allow_credential_minting: signing.allow_credential_minting,
            allow_foreign_credentials: signing.allow_foreign_credentials,
        }
    }

    fn into_signing(self, values: &mut Vec<Value>) -> Result<Signing, SecretsError> {
        let scopes = parse_scopes(&self.access_key_id.env_var, &self.scopes)?;
        let mut add = |value: WireValue, role| {
            values.push(value.into_value(role, Arc::clone(&scopes))?);
            Ok(values.len() - 1)
        };
        Ok(Signing {
            key_id: add(self.access_key_id, Role::AccessKeyId)?,
            secret_key: add(self.secret_access_key, Role::SecretAccessKey)?,
            session_token: self
                .session_token
                .map(|token| add(token, Role::SessionToken))
                .transpose()?,
            allow_credential_minting: self.allow_credential_minting,
            allow_foreign_credentials: self.allow_foreign_credentials,
        })
    }
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WireValue {
    env_var: String,
    surrogate: String,
    real: Exposed,
    former: Vec<Exposed>,
}

impl WireValue {
    fn of(value: &Value) -> Self {
        Self {
            env_var: value.env_var.clone(),
            surrogate: value.surrogate.as_str().to_owned(),
            real: Exposed(Arc::clone(&value.real)),
            former: value
                .former
                .iter()
                .map(|former| Exposed(Arc::clone(former)))
                .collect(),
        }
    }

    fn into_value(self, role: Role, scopes: Arc<[HostPattern]>) -> Result<Value, SecretsError> {
        let Some(surrogate) = Surrogate::parse(&self.surrogate) else {
            return Err(SecretsError::InvalidSurrogate {
                env_var: self.env_var,
            });
        };
        if self.real.0.is_empty() {
            return Err(SecretsError::EmptyValue {
                env_var: self.env_var,
            });
        }
        Ok(Value {
            env_var: self.env_var,
            surrogate,
            real: self.real.0,
            former: self.former.into_iter().map(|former| former.0).collect(),
            role,
            scopes,
        })
    }
}

/// The one form in which a secret is written; it does not leave this file.
struct Exposed(Arc<Secret>);

impl Serialize for Exposed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.expose())
    }
}

impl<'de> Deserialize<'de> for Exposed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = String::deserialize(deserializer)?;
        Ok(Self(Arc::new(Secret::new(value))))
    }
}

/// Counts what is written.
struct Length(usize);

impl io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn scopes_of(value: &Value) -> Vec<String> {
    value
        .scopes
        .iter()
        .map(|scope| scope.as_str().to_owned())
        .collect()
}

fn parse_scopes(env_var: &str, scopes: &[String]) -> Result<Arc<[HostPattern]>, SecretsError> {
    let parse = |scope: &String| {
        HostPattern::parse(scope).map_err(|source| SecretsError::InvalidScope {
            env_var: env_var.to_owned(),
            source,
        })
    };
    scopes.iter().map(parse).collect()
}

fn without_text(error: serde_json::Error) -> SecretsError {
    SecretsError::Handover {
        line: error.line(),
        column: error.column(),
    }
}

/// Changes whenever the bytes mean something else.
pub(crate) const HANDOVER_VERSION: u32 = 1;
