//! What an engine has, line by line.
//!
//! Engines list first and look at each thing then; podman fails when one is gone in between, which on a
//! busy machine happens every day.

use crate::{Engine, Error};

/// How often an engine is asked before its refusal is believed.
const TRIES: usize = 5;

/// What engines say of a thing that was there a moment ago.
const GONE: [&str; 5] = [
    "not known",
    "no such",
    "not found",
    "no container with",
    "does not exist",
];

impl Engine {
    /// The lines of a listing.
    pub(crate) async fn listing(
        &self,
        words: &[&str],
        options: &[&str],
    ) -> Result<Vec<String>, Error> {
        let mut tries = 1;
        let output = loop {
            match self.call(words).args(options).success(b"").await {
                Err(Error::Rejected { stderr, .. }) if tries < TRIES && is_gone(&stderr) => {}
                ended => break ended?,
            }
            tries += 1;
        };
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().map(str::to_owned).collect())
    }
}

fn is_gone(stderr: &str) -> bool {
    let lower = stderr.to_lowercase();
    GONE.iter().any(|sign| lower.contains(sign))
}
