//! The caller's name for state that lasts across runs.

use std::{fmt, str::FromStr};

/// Names an execution context. The sandbox does not know what it stands for: a conversation, a job, a
/// pull request.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ContextId(String);

/// A text that cannot name a context.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` cannot name a context")]
pub struct InvalidContextId(String);

impl ContextId {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ContextId {
    type Err = InvalidContextId;

    /// Callers use it as a directory's name, so it must be one everywhere.
    fn from_str(text: &str) -> Result<Self, InvalidContextId> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let plain = text.bytes().all(allowed) && !text.starts_with('.');
        match text.len() {
            1..=128 if plain => Ok(Self(text.to_owned())),
            _ => Err(InvalidContextId(text.to_owned())),
        }
    }
}

impl fmt::Display for ContextId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
