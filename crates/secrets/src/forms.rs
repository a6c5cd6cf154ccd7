//! The spellings under which a value can come back: as it is, in base64, percent-encoded, escaped for JSON.
//!
//! Each spelling of the real value comes with the text that takes its place, always of the same length, so that no
//! length field in front of it becomes wrong.

mod base64;
mod escape;

use zeroize::Zeroizing;

pub(crate) use base64::cores;
pub(crate) use escape::percent_encode;

/// One spelling of a real value, and what is written instead.
pub(crate) struct Form {
    pub(crate) pattern: Zeroizing<Vec<u8>>,
    pub(crate) replacement: Zeroizing<Vec<u8>>,
}

/// All spellings of `real`, with those of `surrogate` in their place.
pub(crate) fn forms(real: &str, surrogate: &str) -> Vec<Form> {
    let stand_in = fit(surrogate.as_bytes(), real.len());
    let mut forms = vec![Form::new(real.as_bytes().to_vec(), stand_in.clone())];
    forms.extend(escape::forms(real, &stand_in));
    if real.len() >= MIN_BASE64 {
        forms.extend(base64::forms(real.as_bytes(), &stand_in));
    }
    forms.sort_by(|a, b| a.pattern.as_slice().cmp(b.pattern.as_slice()));
    forms.dedup_by(|a, b| a.pattern == b.pattern);
    forms
}

impl Form {
    fn new(pattern: Vec<u8>, replacement: Vec<u8>) -> Self {
        Self {
            pattern: Zeroizing::new(pattern),
            replacement: Zeroizing::new(replacement),
        }
    }
}

/// The surrogate, cut or repeated to a length; only session tokens and renewed values have another length than theirs.
fn fit(surrogate: &[u8], length: usize) -> Vec<u8> {
    surrogate.iter().copied().cycle().take(length).collect()
}

/// The base64 of less is so short that it occurs in ordinary text.
const MIN_BASE64: usize = 6;

#[cfg(test)]
mod tests;
