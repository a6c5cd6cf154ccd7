//! Keeps real values out of everything that is written down: logs, errors, events, context files.
//!
//! Where a scrubber gives the surrogate back, a redactor says that something was there.

use std::{borrow::Cow, fmt, sync::Arc};

use crate::{
    SecretReplacements,
    forms::forms,
    rewrite::{Patterns, Target},
};

/// Replaces real values in texts: as they are, in base64, percent-encoded or escaped for JSON.
///
/// ```
/// # use cordon_secrets::{Redactor, SecretReplacements};
/// let redactor = Redactor::new(&SecretReplacements::default()).and(["hunter2-hunter2"]);
/// assert_eq!(redactor.redact("login hunter2-hunter2 failed"), "login [redacted] failed");
/// ```
#[derive(Clone)]
pub struct Redactor {
    searches: Vec<Arc<Patterns>>,
}

impl Redactor {
    /// Redacts every real value of a run.
    pub fn new(replacements: &SecretReplacements) -> Self {
        Self {
            searches: vec![Arc::clone(&replacements.inner().reals)],
        }
    }

    /// Redacts these values as well. Values of less than four bytes are too common to be looked for.
    pub fn and<'a>(mut self, values: impl IntoIterator<Item = &'a str>) -> Self {
        let values = values.into_iter().filter(|value| value.len() >= MIN_LENGTH);
        let spellings = values.flat_map(|value| forms(value, "*")).map(|form| {
            let replacement = form.replacement;
            (
                form.pattern,
                Target {
                    owner: 0,
                    replacement,
                },
            )
        });
        self.searches.push(Arc::new(Patterns::new(spellings)));
        self
    }

    /// The text without the values.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut found = self.found(text.as_bytes());
        // The matches of two searches may overlap, and each goes whole.
        found.sort_unstable();
        let mut out = String::new();
        let mut done = 0;
        for (start, end) in found {
            if start >= done {
                out.push_str(text.get(done..start).unwrap_or_default());
                out.push_str(MARK);
            }
            done = done.max(end);
        }
        if done == 0 {
            return Cow::Borrowed(text);
        }
        out.push_str(text.get(done..).unwrap_or_default());
        Cow::Owned(out)
    }

    fn found(&self, text: &[u8]) -> Vec<(usize, usize)> {
        let found = self
            .searches
            .iter()
            .flat_map(|patterns| patterns.matches(text));
        found.map(|found| (found.start, found.end)).collect()
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

const MARK: &str = "[redacted]";

/// Shorter values occur in every other word.
const MIN_LENGTH: usize = 4;

#[cfg(test)]
mod tests;
