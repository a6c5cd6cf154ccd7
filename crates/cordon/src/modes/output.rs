//! Output that is kept up to a limit while it streams.

use std::sync::{Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};

/// How much of each output stream is kept unless the request says otherwise.
pub const OUTPUT_LIMIT: usize = 10 * 1024 * 1024;

/// The beginning of a stream.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    kept: Vec<u8>,
    truncated: bool,
}

/// Reads a stream to its end and keeps up to `limit` bytes of it, where others may look before the end.
/// What is beyond is read and dropped, so that the writer never waits.
pub(crate) async fn collect(cut: &Mutex<Cut>, mut stream: impl AsyncRead + Unpin, limit: usize) {
    let mut buffer = vec![0; BUFFER];
    // A stream that breaks has ended.
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        let mut cut = cut.lock().unwrap_or_else(PoisonError::into_inner);
        cut.push(&buffer[..count], limit);
    }
}

impl Cut {
    /// Takes the next piece.
    pub(crate) fn push(&mut self, piece: &[u8], limit: usize) {
        let room = limit.saturating_sub(self.kept.len());
        self.truncated |= piece.len() > room;
        self.kept.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    /// What was kept, ending with a whole character and, if something is missing, with a notice; and
    /// whether something is.
    pub(crate) fn finish(mut self) -> (Vec<u8>, bool) {
        if self.truncated {
            self.kept.truncate(whole_characters(&self.kept));
            let notice = format!("\n[output cut after {} bytes]\n", self.kept.len());
            self.kept.extend_from_slice(notice.as_bytes());
        }
        (self.kept, self.truncated)
    }
}

/// How many bytes there are up to the last whole character. Bytes that are no UTF-8 at all stay.
fn whole_characters(bytes: &[u8]) -> usize {
    let tail = bytes.len().saturating_sub(LONGEST_CHARACTER - 1);
    let Some(lead) = (tail..bytes.len())
        .rev()
        .find(|&at| bytes[at] & 0b1100_0000 != 0b1000_0000)
    else {
        return bytes.len();
    };
    let length = match bytes[lead] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    if lead + length > bytes.len() {
        lead
    } else {
        bytes.len()
    }
}

/// The text without the escape sequences that terminals obey: colours, cursor movement, titles.
#[must_use]
pub fn strip_ansi(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        rest = match (byte, after.first()) {
            (ESCAPE, Some(b'[')) => beyond_csi(&after[1..]),
            (ESCAPE, Some(b']' | b'P' | b'X' | b'^' | b'_')) => beyond_string(&after[1..]),
            (ESCAPE, Some(0x20..=0x2f)) => beyond(after, |byte| (0x30..=0x7e).contains(&byte)),
            (ESCAPE, Some(_)) => &after[1..],
            (ESCAPE, None) => after,
            _ => {
                plain.push(byte);
                after
            }
        };
    }
    plain
}

/// Behind a control sequence, whose last byte is the first from `@` to `~`.
fn beyond_csi(bytes: &[u8]) -> &[u8] {
    beyond(bytes, |byte| (0x40..=0x7e).contains(&byte))
}

fn beyond(bytes: &[u8], last: impl Fn(u8) -> bool) -> &[u8] {
    match bytes.iter().position(|&byte| last(byte)) {
        Some(at) => &bytes[at + 1..],
        None => &[],
    }
}

/// Behind a control string, which a bell or `ESC \` ends.
fn beyond_string(bytes: &[u8]) -> &[u8] {
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at..] {
            [BELL, ..] => return &bytes[at + 1..],
            [ESCAPE, b'\\', ..] => return &bytes[at + 2..],
            _ => at += 1,
        }
    }
    &[]
}

const BUFFER: usize = 16 * 1024;
const LONGEST_CHARACTER: usize = 4;
const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;

#[cfg(test)]
mod tests {
    use super::*;

    async fn collected(stream: &[u8], limit: usize) -> Cut {
        let cut = Mutex::default();
        collect(&cut, stream, limit).await;
        cut.into_inner().unwrap()
    }

    #[tokio::test]
    async fn output_within_the_limit_is_kept_whole() {
        let cut = collected(b"four", 4).await;
        assert_eq!(cut.finish(), (b"four".to_vec(), false));
    }

    #[tokio::test]
    async fn output_is_cut_at_a_character_with_a_notice() {
        let text = "aé€𝄞".as_bytes();
        for limit in 0..text.len() {
            let (kept, truncated) = collected(text, limit).await.finish();
            assert!(truncated);
            let kept = String::from_utf8(kept).unwrap();
            assert!(kept.contains("\n[output cut after "), "{kept:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_kept_as_they_are() {
        let mut cut = Cut::default();
        cut.push(&[0xff; 8], 6);
        let (kept, _) = cut.finish();
        assert!(kept.starts_with(&[0xff; 6]));
    }

    #[test]
    fn escape_sequences_go_and_text_stays() {
        let cases: &[(&[u8], &[u8])] = &[
            (b"plain\ttext\n", b"plain\ttext\n"),
            (b"\x1b[1;31mred\x1b[0m", b"red"),
            (b"\x1b]0;title\x07after", b"after"),
            (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", b"link"),
            (b"\x1b(Bx", b"x"),
            (b"\x1b7y\x1b8", b"y"),
            (b"cut \x1b[38;5", b"cut "),
            (b"\x1b", b""),
            ("é\x1b[2Kü".as_bytes(), "éü".as_bytes()),
        ];
        for (written, plain) in cases {
            assert_eq!(strip_ansi(written), *plain, "{written:?}");
        }
    }
}
