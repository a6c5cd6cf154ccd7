//! A value that must not be seen.
//!
//! The type has no printed, compared, copied or serialised form; `expose` is the one way in, and its call sites are
//! what an audit has to read.

use zeroize::Zeroizing;

/// A real credential; its memory is overwritten when it is dropped.
#[expect(
    missing_debug_implementations,
    reason = "whatever prints a secret must not compile"
)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes the value over. Copies that the caller keeps are the caller's to erase.
    pub fn new(value: impl Into<String>) -> Self {
        Self(Zeroizing::new(value.into()))
    }

    /// The only way to read the value.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is no value; an empty secret stands for "not set".
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self::new(value)
    }
}
