//! Everything the proxy needs to know about the secrets of one run, in one value that is cheap to share.
//!
//! Built by `prepare_secrets`, or from the bytes that another process handed over. Callers pass it on unread; a changed
//! secret gives a new one, so a request never sees half of a change.

mod handover;

use std::{fmt, sync::Arc};

use cordon_policy::{Host, HostPattern, NamePattern};
use http::HeaderValue;
use zeroize::Zeroizing;

use crate::{
    BodyRule, Secret, SecretsError, Surrogate,
    forms::{Form, cores, forms},
    rewrite::{Patterns, Target},
    surrogate::overlap,
};

pub(crate) use handover::HANDOVER_VERSION;

/// Which surrogate stands for which secret, and where it may be replaced. The default has no secrets.
#[derive(Clone, Default)]
pub struct SecretReplacements(Arc<Inner>);

impl SecretReplacements {
    pub(crate) fn build(values: Vec<Value>, masked: Vec<Masked>, signing: Vec<Signing>) -> Self {
        let all = || values.iter().enumerate();
        Self(Arc::new(Inner {
            surrogates: Patterns::new(all().map(|(owner, value)| value.surrogate_pattern(owner))),
            sightings: Sightings::of(&values),
            reals: Arc::new(Patterns::new(
                all().flat_map(|(owner, value)| value.spellings(owner)),
            )),
            values,
            masked,
            signing,
        }))
    }

    /// Whether there is nothing to replace.
    pub fn is_empty(&self) -> bool {
        self.0.values.is_empty()
    }

    /// The variables of the container, with the surrogates that they carry.
    pub fn surrogates(&self) -> impl Iterator<Item = (&str, &Surrogate)> {
        self.0
            .values
            .iter()
            .map(|value| (value.env_var.as_str(), &value.surrogate))
    }

    /// The same with a new value for one variable; its surrogate stays, and the old value is still scrubbed and redacted.
    pub fn with_value(&self, env_var: &str, value: Secret) -> Result<Self, SecretsError> {
        let index = self
            .0
            .values
            .iter()
            .position(|known| known.env_var == env_var);
        let index = index.ok_or_else(|| SecretsError::UnknownVariable {
            env_var: env_var.to_owned(),
        })?;
        if value.is_empty() {
            return Err(SecretsError::EmptyValue {
                env_var: env_var.to_owned(),
            });
        }
        if self
            .0
            .values
            .iter()
            .any(|known| overlap(known.surrogate.as_str(), value.expose()))
        {
            return Err(SecretsError::Collision {
                env_var: env_var.to_owned(),
            });
        }
        let mut values = self.0.values.clone();
        let changed = &mut values[index];
        changed.former.insert(0, Arc::clone(&changed.real));
        changed.former.truncate(FORMER_VALUES);
        changed.real = Arc::new(value);
        for masked in self.0.masked.iter().filter(|masked| masked.value == index) {
            masked.check(&values[index])?;
        }
        Ok(Self::build(
            values,
            self.0.masked.clone(),
            self.0.signing.clone(),
        ))
    }

    /// The real credentials behind a surrogate access key id, if they may sign for the host.
    pub fn signing(&self, host: &Host, access_key_id: &str) -> Option<SigningEntry<'_>> {
        let value = |index: usize| &self.0.values[index];
        let entry = self.0.signing.iter().find(|entry| {
            let key_id = value(entry.key_id);
            key_id.surrogate.as_str() == access_key_id && key_id.in_scope(host)
        })?;
        Some(SigningEntry {
            access_key_id: &value(entry.key_id).real,
            secret_access_key: &value(entry.secret_key).real,
            session_token: entry.session_token.map(|index| SessionToken {
                surrogate: &value(index).surrogate,
                real: &value(index).real,
            }),
            allow_credential_minting: entry.allow_credential_minting,
        })
    }

    /// Whether requests to the host are signed with any of the credentials.
    pub fn is_signing_scope(&self, host: &Host) -> bool {
        self.signing_for(host).next().is_some()
    }

    /// Whether requests to the host that somebody else's AWS keys signed are to be refused, presigned URLs included.
    pub fn refuses_foreign_signing(&self, host: &Host) -> bool {
        self.signing_for(host)
            .any(|entry| !entry.allow_foreign_credentials)
    }

    fn signing_for(&self, host: &Host) -> impl Iterator<Item = &Signing> {
        let in_scope = |entry: &&Signing| self.0.values[entry.key_id].in_scope(host);
        self.0.signing.iter().filter(in_scope)
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }
}

impl fmt::Debug for SecretReplacements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.values.iter().map(|value| &value.env_var);
        f.debug_tuple("SecretReplacements")
            .field(&Vec::from_iter(names))
            .finish()
    }
}

/// Borrowed AWS credentials, for one signature.
#[derive(Clone, Copy)]
#[expect(
    missing_debug_implementations,
    reason = "it shows secrets to whoever holds it"
)]
pub struct SigningEntry<'a> {
    /// The real access key id.
    pub access_key_id: &'a Secret,
    /// The real secret access key.
    pub secret_access_key: &'a Secret,
    /// The session token, for temporary credentials.
    pub session_token: Option<SessionToken<'a>>,
    /// Whether calls may be signed whose answers carry new, real credentials.
    pub allow_credential_minting: bool,
}

/// A session token as the container knows it, and as AWS does.
#[derive(Clone, Copy)]
#[expect(
    missing_debug_implementations,
    reason = "it shows a secret to whoever holds it"
)]
pub struct SessionToken<'a> {
    /// What the container sends.
    pub surrogate: &'a Surrogate,
    /// What is signed and sent on.
    pub real: &'a Secret,
}

#[derive(Default)]
pub(crate) struct Inner {
    pub(crate) values: Vec<Value>,
    pub(crate) masked: Vec<Masked>,
    pub(crate) signing: Vec<Signing>,
    /// Finds surrogates as they are.
    pub(crate) surrogates: Patterns,
    pub(crate) sightings: Sightings,
    /// Finds every spelling of every real value.
    pub(crate) reals: Arc<Patterns>,
}

impl Inner {
    /// For each value, whether the host is in its scope.
    pub(crate) fn in_scope(&self, host: &Host) -> Vec<bool> {
        self.values
            .iter()
            .map(|value| value.in_scope(host))
            .collect()
    }
}

/// One real value and its surrogate.
#[derive(Clone)]
pub(crate) struct Value {
    pub(crate) env_var: String,
    pub(crate) surrogate: Surrogate,
    pub(crate) real: Arc<Secret>,
    /// What the value was before, newest first.
    pub(crate) former: Vec<Arc<Secret>>,
    pub(crate) role: Role,
    pub(crate) scopes: Arc<[HostPattern]>,
}

/// What a value is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    Masked,
    AccessKeyId,
    SecretAccessKey,
    SessionToken,
}

impl Value {
    pub(crate) fn in_scope(&self, host: &Host) -> bool {
        self.scopes.iter().any(|scope| scope.matches(host))
    }

    /// The present value and the former ones.
    pub(crate) fn reals(&self) -> impl Iterator<Item = &str> {
        [&self.real]
            .into_iter()
            .chain(&self.former)
            .map(|real| real.expose())
    }

    pub(crate) fn surrogate_pattern(&self, owner: usize) -> (Zeroizing<Vec<u8>>, Target) {
        let replacement = Zeroizing::new(self.real.expose().into());
        (
            Zeroizing::new(self.surrogate.as_str().into()),
            Target { owner, replacement },
        )
    }

    fn spellings(&self, owner: usize) -> impl Iterator<Item = (Zeroizing<Vec<u8>>, Target)> {
        let forms = self
            .reals()
            .flat_map(|real| forms(real, self.surrogate.as_str()));
        forms.map(
            move |Form {
                      pattern,
                      replacement,
                  }| (pattern, Target { owner, replacement }),
        )
    }
}

/// Where a masked secret is replaced.
#[derive(Clone)]
pub(crate) struct Masked {
    /// Index of its value.
    pub(crate) value: usize,
    pub(crate) headers: Vec<NamePattern>,
    pub(crate) allow_foreign_credentials: bool,
    pub(crate) query: Vec<String>,
    pub(crate) path: bool,
    pub(crate) body: Option<BodyRule>,
}

impl Masked {
    /// Whether the value can stand where it is to be put.
    pub(crate) fn check(&self, value: &Value) -> Result<(), SecretsError> {
        let env_var = || value.env_var.clone();
        let real = value.real.expose();
        if !self.headers.is_empty() && HeaderValue::from_str(real).is_err() {
            return Err(SecretsError::NotAHeaderValue { env_var: env_var() });
        }
        let Some(body) = &self.body else {
            return Ok(());
        };
        if real.len() != value.surrogate.as_str().len() {
            return Err(SecretsError::LengthChanged { env_var: env_var() });
        }
        let refuses = |content_type: &&String| !body_carries(content_type, real);
        match body.content_types.iter().find(refuses) {
            Some(content_type) => Err(SecretsError::NotABodyValue {
                env_var: env_var(),
                content_type: content_type.clone(),
            }),
            None => Ok(()),
        }
    }
}

/// Whether a body of the type holds the value without escapes.
fn body_carries(content_type: &str, value: &str) -> bool {
    if content_type.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        return value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~*".contains(&byte));
    }
    value
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && !b"\"\\<>&'".contains(&byte))
}

/// AWS credentials, as indexes of their values.
#[derive(Clone)]
pub(crate) struct Signing {
    pub(crate) key_id: usize,
    pub(crate) secret_key: usize,
    pub(crate) session_token: Option<usize>,
    pub(crate) allow_credential_minting: bool,
    pub(crate) allow_foreign_credentials: bool,
}

/// Finds surrogates under any spelling that survives being looked at: any case, and inside base64.
#[derive(Default)]
pub(crate) struct Sightings(Patterns);

impl Sightings {
    fn of(values: &[Value]) -> Self {
        let patterns = values.iter().enumerate().flat_map(|(owner, value)| {
            let surrogate = value.surrogate.as_str().as_bytes();
            let encoded = cores(surrogate)
                .into_iter()
                .filter(|core| core.len() >= MIN_CORE);
            encoded.chain([surrogate.to_vec()]).map(move |pattern| {
                let replacement = Zeroizing::default();
                (
                    Zeroizing::new(pattern.to_ascii_lowercase()),
                    Target { owner, replacement },
                )
            })
        });
        Self(Patterns::new(patterns))
    }

    /// The values whose surrogates occur in a text.
    pub(crate) fn owners(&self, text: &[u8]) -> Vec<usize> {
        self.0.owners(&text.to_ascii_lowercase()).collect()
    }
}

/// Shorter pieces of base64 turn up by chance.
const MIN_CORE: usize = 6;

/// A value that was replaced may still be on its way back; four replacements later it no longer is.
const FORMER_VALUES: usize = 4;

#[cfg(test)]
mod tests;
