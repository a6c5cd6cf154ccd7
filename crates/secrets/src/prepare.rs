//! Draws the surrogates of a run.
//!
//! A surrogate is no part of another one nor of any real value, and the reverse, in any case of letters: what is found in
//! a request or a response then means one thing only.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use cordon_policy::HostPattern;

use crate::{
    MaskedSecret, Secret, SecretReplacements, SecretsError, Shape, SigningCredential, Surrogate,
    replacements::{Masked, Role, Signing, Value},
    surrogate::{MIN_RANDOM_BITS, overlap},
};

/// What `prepare_secrets` gives: the variables for the container and the rules for the proxy.
#[derive(Clone, Debug)]
pub struct PreparedSecrets {
    /// Variables with their surrogates; safe to show to anybody.
    pub env: BTreeMap<String, String>,
    /// What the proxy does with the surrogates.
    pub replacements: SecretReplacements,
}

/// Draws a surrogate for every value. A value that is empty gives no variable and no rule.
pub fn prepare_secrets(
    masked: Vec<MaskedSecret>,
    signing: Vec<SigningCredential>,
) -> Result<PreparedSecrets, SecretsError> {
    let masked = Vec::from_iter(masked.into_iter().filter(|secret| !secret.value.is_empty()));
    let signing = Vec::from_iter(signing.into_iter().filter(|credential| {
        !(credential.access_key_id.is_empty() && credential.secret_access_key.is_empty())
    }));
    let mut drawing = Drawing::default();
    let mut rules = Vec::new();
    for secret in masked {
        let scopes = secret.scopes.into();
        let value = drawing.declare(secret.env_var, secret.value, Role::Masked, &scopes)?;
        rules.push(Masked {
            value,
            headers: secret.headers,
            allow_foreign_credentials: secret.allow_foreign_credentials,
            query: secret.query,
            path: secret.path,
            body: secret.body,
        });
    }
    let signing = signing
        .into_iter()
        .map(|credential| drawing.declare_signing(credential))
        .collect::<Result<_, _>>()?;
    let values = drawing.draw()?;
    for rule in &rules {
        rule.check(&values[rule.value])?;
    }
    let env = |value: &Value| (value.env_var.clone(), value.surrogate.to_string());
    Ok(PreparedSecrets {
        env: values.iter().map(env).collect(),
        replacements: SecretReplacements::build(values, rules, signing),
    })
}

/// The values of a run. All have to be known before the first surrogate is drawn.
#[derive(Default)]
struct Drawing {
    declared: Vec<Declared>,
    variables: BTreeSet<String>,
}

struct Declared {
    env_var: String,
    real: Secret,
    role: Role,
    scopes: Arc<[HostPattern]>,
}

impl Drawing {
    fn declare(
        &mut self,
        env_var: String,
        real: Secret,
        role: Role,
        scopes: &Arc<[HostPattern]>,
    ) -> Result<usize, SecretsError> {
        if env_var.is_empty() || env_var.contains(['=', '\0']) {
            return Err(SecretsError::InvalidVariable { env_var });
        }
        if !self.variables.insert(env_var.clone()) {
            return Err(SecretsError::DuplicateVariable { env_var });
        }
        let scopes = Arc::clone(scopes);
        self.declared.push(Declared {
            env_var,
            real,
            role,
            scopes,
        });
        Ok(self.declared.len() - 1)
    }

    fn declare_signing(&mut self, credential: SigningCredential) -> Result<Signing, SecretsError> {
        let env_var = credential.access_key_id_env_var;
        if credential.access_key_id.is_empty() || credential.secret_access_key.is_empty() {
            return Err(SecretsError::IncompleteCredential { env_var });
        }
        let session_token = credential.session_token.filter(|token| !token.is_empty());
        let session_token = match (session_token, credential.session_token_env_var) {
            (Some(token), Some(variable)) => Some((variable, token)),
            (Some(_), None) => return Err(SecretsError::NoSessionVariable { env_var }),
            (None, _) => None,
        };
        let scopes = credential.scopes.into();
        let secret_env_var = credential.secret_access_key_env_var;
        Ok(Signing {
            key_id: self.declare(
                env_var,
                credential.access_key_id,
                Role::AccessKeyId,
                &scopes,
            )?,
            secret_key: self.declare(
                secret_env_var,
                credential.secret_access_key,
                Role::SecretAccessKey,
                &scopes,
            )?,
            session_token: session_token
                .map(|(variable, token)| self.declare(variable, token, Role::SessionToken, &scopes))
                .transpose()?,
            allow_credential_minting: credential.allow_credential_minting,
            allow_foreign_credentials: credential.allow_foreign_credentials,
        })
    }

    fn draw(self) -> Result<Vec<Value>, SecretsError> {
        let mut drawn: Vec<Surrogate> = Vec::new();
        for declared in &self.declared {
            let surrogate = self.draw_one(declared, &drawn)?;
            drawn.push(surrogate);
        }
        let value = |(declared, surrogate): (Declared, Surrogate)| Value {
            env_var: declared.env_var,
            surrogate,
            real: Arc::new(declared.real),
            former: Vec::new(),
            role: declared.role,
            scopes: declared.scopes,
        };
        Ok(self.declared.into_iter().zip(drawn).map(value).collect())
    }

    fn draw_one(
        &self,
        declared: &Declared,
        drawn: &[Surrogate],
    ) -> Result<Surrogate, SecretsError> {
        let shape = match declared.role {
            Role::SessionToken => Shape::session_token(),
            Role::Masked | Role::AccessKeyId | Role::SecretAccessKey => {
                Shape::of(declared.real.expose())
            }
        };
        let bits = shape.random_bits();
        if bits < MIN_RANDOM_BITS {
            let env_var = declared.env_var.clone();
            return Err(SecretsError::TooShort { env_var, bits });
        }
        for _ in 0..ATTEMPTS {
            let surrogate = shape.draw()?;
            let text = surrogate.as_str();
            let clash = self
                .declared
                .iter()
                .any(|other| overlap(text, other.real.expose()))
                || drawn.iter().any(|other| overlap(text, other.as_str()));
            if !clash {
                return Ok(surrogate);
            }
        }
        Err(SecretsError::Collision {
            env_var: declared.env_var.clone(),
        })
    }
}

/// One clash in two hundred years is bad luck; this many in a row are no chance.
const ATTEMPTS: usize = 16;

#[cfg(test)]
mod tests;
