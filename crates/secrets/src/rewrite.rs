//! Replaces byte strings in a stream, whatever the pieces it comes in.
//!
//! Of overlapping strings the leftmost counts, and of those that begin together the longest. Only an end of the stream so
//! far that may be the beginning of one of the strings is kept back; everything else goes on at once, uncopied where
//! nothing in it changed. Memory is bounded by the longest string.

use std::{iter, mem, sync::Arc};

use bytes::Bytes;
use zeroize::Zeroizing;

/// What to look for and what to write instead, shared by all streams. The default finds nothing.
#[derive(Default)]
pub(crate) struct Patterns {
    /// In the order of their bytes, which puts each one before those that it begins.
    sorted: Vec<Pattern>,
    filter: Filter,
}

struct Pattern {
    text: Zeroizing<Vec<u8>>,
    targets: Vec<Target>,
}

/// What takes the place of a pattern, on behalf of one of the values that are spelled so.
pub(crate) struct Target {
    pub(crate) owner: usize,
    pub(crate) replacement: Zeroizing<Vec<u8>>,
}

impl Patterns {
    /// Collects patterns; empty ones are left out.
    pub(crate) fn new(entries: impl IntoIterator<Item = (Zeroizing<Vec<u8>>, Target)>) -> Self {
        let mut entries = Vec::from_iter(entries.into_iter().filter(|(text, _)| !text.is_empty()));
        entries.sort_by(|(a, _), (b, _)| a.as_slice().cmp(b.as_slice()));
        let mut sorted = Vec::<Pattern>::new();
        for (text, target) in entries {
            match sorted.last_mut() {
                Some(last) if last.text == text => last.targets.push(target),
                _ => sorted.push(Pattern {
                    text,
                    targets: vec![target],
                }),
            }
        }
        Self {
            filter: Filter::of(&sorted),
            sorted,
        }
    }

    /// Where patterns stand in a text, without overlaps.
    pub(crate) fn matches<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = Found> + 'a {
        let mut from = 0;
        iter::from_fn(move || match self.next(text, from, Text::Whole) {
            Next::Match {
                pattern,
                start,
                end,
            } => {
                from = end;
                let targets = &self.sorted[pattern].targets;
                Some(Found {
                    owner: targets[0].owner,
                    start,
                    end,
                })
            }
            Next::Open(_) | Next::Nothing => None,
        })
    }

    /// The owners of everything that stands in a text, overlaps included.
    pub(crate) fn owners<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
        let mut from = 0;
        let starts = iter::from_fn(move || {
            let start = self.filter.next(text, from)?;
            from = start + 1;
            Some(start)
        });
        let found = starts.filter_map(|start| self.longest_at(&text[start..]));
        found.flat_map(|pattern| {
            self.sorted[pattern]
                .targets
                .iter()
                .map(|target| target.owner)
        })
    }

    /// The first place at which something is found or may still be found.
    fn next(&self, text: &[u8], mut from: usize, kind: Text) -> Next {
        while let Some(start) = self.filter.next(text, from) {
            let rest = &text[start..];
            if kind == Text::Beginning && self.is_beginning(rest) {
                return Next::Open(start);
            }
            if let Some(pattern) = self.longest_at(rest) {
                let end = start + self.sorted[pattern].text.len();
                return Next::Match {
                    pattern,
                    start,
                    end,
                };
            }
            from = start + 1;
        }
        Next::Nothing
    }

    /// Whether a text is the beginning of a longer pattern.
    fn is_beginning(&self, text: &[u8]) -> bool {
        let after = self
            .sorted
            .partition_point(|pattern| pattern.text.as_slice() <= text);
        self.sorted
            .get(after)
            .is_some_and(|pattern| pattern.text.starts_with(text))
    }

    /// The longest pattern that a text begins with.
    fn longest_at(&self, mut text: &[u8]) -> Option<usize> {
        loop {
            let after = self
                .sorted
                .partition_point(|pattern| pattern.text.as_slice() <= text);
            let candidate = after.checked_sub(1)?;
            let pattern = self.sorted[candidate].text.as_slice();
            let common = iter::zip(pattern, text).take_while(|(a, b)| a == b).count();
            if common == pattern.len() {
                return Some(candidate);
            }
            // Whatever the text begins with stands between its own beginning and the candidate, and begins both.
            text = &text[..common];
        }
    }
}

/// One match in a text, on behalf of the first of its owners.
pub(crate) struct Found {
    pub(crate) owner: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// How much of the text is there.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Text {
    Whole,
    Beginning,
}

/// What the search came upon.
enum Next {
    Match {
        pattern: usize,
        start: usize,
        end: usize,
    },
    /// From here on the text may become a match.
    Open(usize),
    Nothing,
}

/// One stream that is being rewritten.
pub(crate) struct Rewriter {
    patterns: Arc<Patterns>,
    /// Whose replacement to take where several values are spelled alike; by owner.
    preferred: Arc<[bool]>,
    held: Zeroizing<Vec<u8>>,
    count: u64,
}

impl Rewriter {
    pub(crate) fn new(patterns: Arc<Patterns>, preferred: Arc<[bool]>) -> Self {
        Self {
            patterns,
            preferred,
            held: Zeroizing::default(),
            count: 0,
        }
    }

    /// How many replacements were made.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// How many bytes wait for what follows them.
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// Takes the next piece and gives back what is settled.
    pub(crate) fn push(&mut self, piece: Bytes) -> Bytes {
        if !self.held.is_empty() {
            let mut text = mem::take(&mut self.held);
            text.extend_from_slice(&piece);
            let settled = self.rewrite(&text, Text::Beginning);
            self.held.extend_from_slice(&text[settled.end..]);
            let unchanged = || text[..settled.end].to_vec();
            return Bytes::from(settled.text.unwrap_or_else(unchanged));
        }
        let settled = self.rewrite(&piece, Text::Beginning);
        self.held.extend_from_slice(&piece[settled.end..]);
        match settled.text {
            Some(text) => Bytes::from(text),
            None => piece.slice(..settled.end),
        }
    }

    /// Gives back what waited; the stream ends here, and another one may begin.
    pub(crate) fn finish(&mut self) -> Bytes {
        let mut text = mem::take(&mut self.held);
        let settled = self.rewrite(&text, Text::Whole);
        Bytes::from(settled.text.unwrap_or_else(|| mem::take(&mut *text)))
    }

    /// Rewrites a whole text; `None` if nothing in it changes.
    pub(crate) fn whole(&mut self, text: &[u8]) -> Option<Vec<u8>> {
        self.rewrite(text, Text::Whole).text
    }

    /// Rewrites up to the first place that is still open.
    fn rewrite(&mut self, text: &[u8], kind: Text) -> Settled {
        let patterns = Arc::clone(&self.patterns);
        let mut out: Option<Vec<u8>> = None;
        let mut done = 0;
        let end = loop {
            match patterns.next(text, done, kind) {
                Next::Match {
                    pattern,
                    start,
                    end,
                } => {
                    let out = out.get_or_insert_with(|| Vec::with_capacity(text.len()));
                    out.extend_from_slice(&text[done..start]);
                    out.extend_from_slice(self.replacement(&patterns.sorted[pattern]));
                    self.count += 1;
                    done = end;
                }
                Next::Open(start) => break start,
                Next::Nothing => break text.len(),
            }
        };
        if let Some(out) = &mut out {
            out.extend_from_slice(&text[done..end]);
        }
        Settled { text: out, end }
    }

    fn replacement<'a>(&self, pattern: &'a Pattern) -> &'a [u8] {
        let preferred =
            |target: &&Target| self.preferred.get(target.owner).copied().unwrap_or(false);
        let target = pattern
            .targets
            .iter()
            .find(preferred)
            .or_else(|| pattern.targets.first());
        target.map_or(&[], |target| target.replacement.as_slice())
    }
}

/// How far a text is settled, and what it became if it changed.
struct Settled {
    text: Option<Vec<u8>>,
    end: usize,
}

/// Says at once of nearly every place that nothing begins there.
#[derive(Default)]
struct Filter {
    /// Which of the first four bytes count: as many as the shortest pattern has.
    mask: u32,
    /// One bit for each hash of the first bytes of a pattern.
    bits: Option<Box<[u64; TABLE]>>,
}

impl Filter {
    fn of(patterns: &[Pattern]) -> Self {
        let mask = match patterns.iter().map(|pattern| pattern.text.len()).min() {
            None => return Self::default(),
            Some(0 | 1) => 0xff,
            Some(2) => 0xffff,
            Some(3) => 0xff_ffff,
            Some(_) => u32::MAX,
        };
        let mut bits = Box::new([0; TABLE]);
        for pattern in patterns {
            let mut first = [0; 4];
            iter::zip(&mut first, pattern.text.iter()).for_each(|(first, &byte)| *first = byte);
            let (word, bit) = place(first, mask);
            bits[word] |= bit;
        }
        Self {
            mask,
            bits: Some(bits),
        }
    }

    /// The next place, from here on, at which something may begin.
    fn next(&self, text: &[u8], from: usize) -> Option<usize> {
        let bits = self.bits.as_deref()?;
        let passes = |first: &[u8]| {
            let Ok(first) = first.try_into() else {
                return true;
            };
            let (word, bit) = place(first, self.mask);
            bits[word] & bit != 0
        };
        if let Some(at) = text.get(from..)?.windows(4).position(passes) {
            return Some(from + at);
        }
        // Too little is left there for a hash.
        let last = from.max(text.len().saturating_sub(3));
        (last < text.len()).then_some(last)
    }
}

/// Where the bit of some first bytes is.
fn place(first: [u8; 4], mask: u32) -> (usize, u64) {
    let hash = (u32::from_le_bytes(first) & mask).wrapping_mul(0x9e37_79b1) >> 16;
    (hash as usize / 64 % TABLE, 1 << (hash % 64))
}

/// Words for sixteen bits of hash: 8 KiB, which stay in the processor's first cache.
const TABLE: usize = 1024;

#[cfg(test)]
mod tests;
