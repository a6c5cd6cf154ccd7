//! Cuts a stream of bytes into lines without ever holding more than one line's worth.

/// A push parser: bytes in, lines out.
///
/// A line ends at LF, which is not part of it. A line that grows past the limit is reported once,
/// as soon as it does, and the rest of it is thrown away up to the next LF.
#[derive(Debug)]
pub struct LineSplitter {
    limit: usize,
    partial: Vec<u8>,
    skipping: bool,
}

/// What came out of a [`LineSplitter`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Line<'a> {
    /// A whole line without its LF.
    Whole(&'a [u8]),
    /// The beginning of a line that is longer than allowed; the rest is lost.
    Oversized(&'a [u8]),
}

impl LineSplitter {
    /// A splitter for lines of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            partial: Vec::new(),
            skipping: false,
        }
    }

    /// Takes the next bytes and hands every line they complete to `each`.
    pub fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(Line<'_>)) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (piece, rest) = (&bytes[..end], &bytes[end + 1..]);
            bytes = rest;
            if self.skipping {
                self.skipping = false;
            } else if self.partial.is_empty() && piece.len() <= self.limit {
                each(Line::Whole(piece));
            } else {
                self.hold(piece, &mut each);
                if !std::mem::take(&mut self.skipping) {
                    each(Line::Whole(&self.partial));
                }
                self.partial.clear();
            }
        }
        if !self.skipping {
            self.hold(bytes, &mut each);
        }
    }

    /// Hands over a last line that had no LF.
    pub fn finish(&mut self, mut each: impl FnMut(Line<'_>)) {
        if !self.partial.is_empty() {
            each(Line::Whole(&self.partial));
        }
        self.partial = Vec::new();
        self.skipping = false;
    }

    /// Adds to the held line, or reports it and goes over to skipping.
    fn hold(&mut self, piece: &[u8], each: &mut impl FnMut(Line<'_>)) {
        let room = self.limit - self.partial.len();
        if piece.len() <= room {
            self.partial.extend_from_slice(piece);
            return;
        }
        self.partial.extend_from_slice(&piece[..room]);
        each(Line::Oversized(&self.partial));
        self.partial = Vec::new();
        self.skipping = true;
    }
}

impl Default for LineSplitter {
    fn default() -> Self {
        Self::new(MAX_LINE_BYTES)
    }
}

/// The longest line that becomes an event. A tool result with an image in it has some megabytes;
/// parsing costs a few times the line's size in memory.
pub const MAX_LINE_BYTES: usize = 8 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Eq, PartialEq)]
    enum Owned {
        Whole(Vec<u8>),
        Oversized(Vec<u8>),
    }

    fn split(limit: usize, chunks: &[&[u8]]) -> Vec<Owned> {
        let mut splitter = LineSplitter::new(limit);
        let mut lines = Vec::new();
        let mut keep = |line: Line<'_>| {
            lines.push(match line {
                Line::Whole(line) => Owned::Whole(line.to_vec()),
                Line::Oversized(head) => Owned::Oversized(head.to_vec()),
            });
        };
        for chunk in chunks {
            splitter.push(chunk, &mut keep);
        }
        splitter.finish(&mut keep);
        lines
    }

    /// The same rule, said over the whole text at once.
    fn reference(limit: usize, text: &[u8]) -> Vec<Owned> {
        let mut pieces: Vec<_> = text.split(|byte| *byte == b'\n').collect();
        if pieces.last().is_some_and(|last| last.is_empty()) {
            pieces.pop();
        }
        pieces
            .into_iter()
            .map(|piece| match piece.get(..limit) {
                Some(head) if piece.len() > limit => Owned::Oversized(head.to_vec()),
                _ => Owned::Whole(piece.to_vec()),
            })
            .collect()
    }

    #[test]
    fn an_endless_line_is_reported_once_and_skipped() {
        let mut splitter = LineSplitter::new(8);
        let mut reports = 0;
        for _ in 0..1000 {
            splitter.push(b"aaaaaaaaaaaaaaaa", |line| {
                assert_eq!(line, Line::Oversized(b"aaaaaaaa"));
                reports += 1;
            });
            assert!(splitter.partial.capacity() <= 16);
        }
        assert_eq!(reports, 1);
        let mut seen = Vec::new();
        splitter.push(b"aa\nnext\n", |line| seen.push(format!("{line:?}")));
        assert_eq!(seen, [format!("{:?}", Line::Whole(b"next"))]);
    }

    #[test]
    fn a_line_of_exactly_the_limit_is_whole() {
        assert_eq!(
            split(4, &[b"ab", b"cd\nabcde\nx"]),
            [
                Owned::Whole(b"abcd".to_vec()),
                Owned::Oversized(b"abcd".to_vec()),
                Owned::Whole(b"x".to_vec())
            ]
        );
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_the_bytes_arrive(
            text in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'a'), any::<u8>()], 0..200),
            cuts in proptest::collection::vec(0usize..200, 0..20),
            limit in 1usize..20,
        ) {
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let chunks: Vec<_> = cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
            prop_assert_eq!(split(limit, &chunks), reference(limit, &text));
        }
    }
}
