//! What callers say about their credentials: the value, where it may go, and where in a request it may stand.

use std::fmt;

use cordon_policy::{HostPattern, NamePattern};

use crate::Secret;

/// A token or password that the container sees only as its surrogate.
pub struct MaskedSecret {
    /// The variable that carries the surrogate in the container.
    pub env_var: String,
    /// The real value; an empty one means that the variable is not set at all.
    pub value: Secret,
    /// The hosts that may be sent the real value.
    pub scopes: Vec<HostPattern>,
    /// The headers in which the surrogate is replaced. A header that is named without wildcards is a credential header:
    /// on hosts in scope it carries the surrogate or is stripped.
    pub headers: Vec<NamePattern>,
    /// Leaves other credentials in those headers alone.
    pub allow_foreign_credentials: bool,
    /// Names of query parameters in which the surrogate is replaced; they are credential parameters as such headers are.
    pub query: Vec<String>,
    /// Replaces the surrogate in the path.
    pub path: bool,
    /// Replaces the surrogate in bodies.
    pub body: Option<BodyRule>,
}

impl MaskedSecret {
    /// A secret that is replaced in headers only.
    pub fn new(
        env_var: impl Into<String>,
        value: impl Into<Secret>,
        scopes: Vec<HostPattern>,
        headers: Vec<NamePattern>,
    ) -> Self {
        Self {
            env_var: env_var.into(),
            value: value.into(),
            scopes,
            headers,
            allow_foreign_credentials: false,
            query: Vec::new(),
            path: false,
            body: None,
        }
    }
}

impl fmt::Debug for MaskedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaskedSecret")
            .field("env_var", &self.env_var)
            .field("scopes", &self.scopes)
            .field("headers", &self.headers)
            .finish_non_exhaustive()
    }
}

/// The bodies in which a surrogate is replaced.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BodyRule {
    /// Content types without their parameters, such as `application/json`.
    pub content_types: Vec<String>,
}

/// AWS credentials, with which the proxy signs again what the container signed with their surrogates.
pub struct SigningCredential {
    /// The variable of the access key id.
    pub access_key_id_env_var: String,
    /// The real access key id.
    pub access_key_id: Secret,
    /// The variable of the secret access key.
    pub secret_access_key_env_var: String,
    /// The real secret access key.
    pub secret_access_key: Secret,
    /// The variable of the session token.
    pub session_token_env_var: Option<String>,
    /// The real session token, for temporary credentials.
    pub session_token: Option<Secret>,
    /// The hosts whose requests are signed.
    pub scopes: Vec<HostPattern>,
    /// Lets calls through whose answers carry new, real credentials.
    pub allow_credential_minting: bool,
    /// Lets requests through that are signed with keys of somebody else.
    pub allow_foreign_credentials: bool,
}

impl fmt::Debug for SigningCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningCredential")
            .field("access_key_id_env_var", &self.access_key_id_env_var)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}
