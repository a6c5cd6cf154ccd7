//! The real credentials, borrowed for the time of one call.

use std::fmt;

/// What to sign with. Owned, and wiped, by the caller.
#[derive(Clone, Copy)]
pub struct Credentials<'a> {
    /// Public name of the key.
    pub access_key_id: &'a str,
    /// The key.
    pub secret_access_key: &'a str,
    /// Goes with temporary credentials.
    pub session_token: Option<&'a str>,
}

impl fmt::Debug for Credentials<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}
