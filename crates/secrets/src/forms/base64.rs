//! What the base64 of a text looks like that holds a value somewhere inside.
//!
//! Three alignments are possible, and the first and last character of the value's share also carry bits of its
//! neighbours. Those two are spelled out for all values of the neighbours' bits: replacing only the characters in between
//! would leave some bits of the real value in place, and the surrogate's echo would not decode to the surrogate.

use std::ops::RangeInclusive;

use data_encoding::{BASE64, BASE64URL, Encoding};
use zeroize::Zeroizing;

use super::Form;

/// The value's share at every alignment, with all neighbours that make a difference.
pub(super) fn forms(real: &[u8], stand_in: &[u8]) -> Vec<Form> {
    let mut forms = Vec::new();
    for before in 0..=2 {
        let head = Edge::head(before, real, stand_in);
        let tail = Edge::tail((before + real.len()) % 3, real, stand_in);
        for (before_bits, after_bits) in combinations(head, tail) {
            let share = Share {
                before,
                before_bits,
                after_bits,
                whole_head: head == Edge::Shared,
                whole_tail: tail == Edge::Shared,
            };
            for alphabet in [&BASE64, &BASE64URL] {
                forms.push(Form::new(
                    share.of(real, alphabet),
                    share.of(stand_in, alphabet),
                ));
            }
        }
    }
    forms
}

/// The characters that depend on the value alone, at every alignment: enough to tell that it is there.
pub(crate) fn cores(value: &[u8]) -> Vec<Vec<u8>> {
    let mut cores = Vec::new();
    for before in 0..=2 {
        let share = Share {
            before,
            before_bits: 0,
            after_bits: 0,
            whole_head: false,
            whole_tail: false,
        };
        cores.extend([&BASE64, &BASE64URL].map(|alphabet| share.of(value, alphabet)));
    }
    cores.sort_unstable();
    cores.dedup();
    cores
}

/// How the value's share begins or ends.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Edge {
    /// On a character of its own, or in a character that is left alone.
    Clean,
    /// In a character that also holds bits of the neighbour, and whose own bits have to change.
    Shared,
}

impl Edge {
    fn head(before: usize, real: &[u8], stand_in: &[u8]) -> Self {
        let high = |value: &[u8]| value.first().map(|byte| byte >> 4);
        Self::at(before, real, high(real) == high(stand_in))
    }

    fn tail(after: usize, real: &[u8], stand_in: &[u8]) -> Self {
        let low = |value: &[u8]| value.last().map(|byte| byte & 0x0f);
        Self::at(after, real, low(real) == low(stand_in))
    }

    fn at(alignment: usize, real: &[u8], same_bits: bool) -> Self {
        if alignment == 0 || same_bits || real.len() > EXACT_LIMIT {
            return Self::Clean;
        }
        Self::Shared
    }
}

fn combinations(head: Edge, tail: Edge) -> impl Iterator<Item = (u8, u8)> {
    let range = |edge| -> RangeInclusive<u8> {
        match edge {
            Edge::Clean => 0..=0,
            Edge::Shared => 0..=15,
        }
    };
    range(head).flat_map(move |before| range(tail).map(move |after| (before, after)))
}

/// Where a value lies in the text that is encoded, and what lies beside it.
struct Share {
    before: usize,
    before_bits: u8,
    after_bits: u8,
    whole_head: bool,
    whole_tail: bool,
}

impl Share {
    /// The characters of the encoded text that belong to the value.
    fn of(&self, value: &[u8], alphabet: &Encoding) -> Vec<u8> {
        let mut text = Zeroizing::new(vec![self.before_bits; self.before]);
        text.extend_from_slice(value);
        let (first_bit, end_bit) = (8 * self.before, 8 * text.len());
        while !text.len().is_multiple_of(3) {
            text.push(self.after_bits << 4);
        }
        let start = if self.whole_head {
            first_bit / 6
        } else {
            first_bit.div_ceil(6)
        };
        let end = if self.whole_tail {
            end_bit.div_ceil(6)
        } else {
            end_bit / 6
        };
        let encoded = Zeroizing::new(alphabet.encode(&text));
        encoded.as_bytes()[start..end].to_vec()
    }
}

/// Of longer values, the four bits at either end are no loss, and thousands of characters for each of their
/// neighbours would be one of memory.
const EXACT_LIMIT: usize = 256;
