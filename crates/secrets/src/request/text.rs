//! Finds surrogates in a piece of text and puts the real values there, in one pass over the original.

use std::collections::BTreeSet;

use zeroize::Zeroizing;

use super::Rules;

/// Which neighbours a surrogate may have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Edges {
    /// It must not be a part of a longer word.
    Words,
    /// Any: some services glue the token to a word of the path.
    Anything,
}

/// A surrogate that is to be replaced.
pub(super) struct Hit {
    pub(super) value: usize,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Rules<'_> {
    /// The surrogates in a text that stand for one of the `wanted` values and may be replaced.
    pub(super) fn hits(&self, text: &[u8], edges: Edges, wanted: &BTreeSet<usize>) -> Vec<Hit> {
        let found = self.inner.surrogates.matches(text).map(|found| Hit {
            value: found.owner,
            start: found.start,
            end: found.end,
        });
        let replaceable = |hit: &Hit| {
            let stands_alone = match edges {
                Edges::Words => stands_alone(text, hit),
                Edges::Anything => true,
            };
            self.usable[hit.value] && wanted.contains(&hit.value) && stands_alone
        };
        found.filter(replaceable).collect()
    }

    /// The text with the real values in the place of the hits.
    pub(super) fn splice(&self, text: &[u8], hits: &[Hit]) -> Zeroizing<Vec<u8>> {
        let mut out = Zeroizing::new(Vec::with_capacity(text.len()));
        let mut done = 0;
        for hit in hits {
            out.extend_from_slice(&text[done..hit.start]);
            out.extend_from_slice(self.real(hit.value));
            done = hit.end;
        }
        out.extend_from_slice(&text[done..]);
        out
    }
}

/// The values that hits stand for, each once.
pub(super) fn distinct(hits: &[Hit]) -> u32 {
    let values: BTreeSet<_> = hits.iter().map(|hit| hit.value).collect();
    values.len() as u32
}

fn stands_alone(text: &[u8], hit: &Hit) -> bool {
    let before = hit.start.checked_sub(1).map(|at| text[at]);
    let after = text.get(hit.end).copied();
    !before.is_some_and(is_word) && !after.is_some_and(is_word)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}
