//! Makes hostile bytes harmless in one line of text.
//!
//! The result is printable ASCII without backslashes of the sender's making, so no input can end a
//! line, begin one, or move a terminal's cursor.

use std::fmt::{self, Write};

/// Shows bytes with everything but visible ASCII as `\xNN`, the backslash included.
pub(crate) struct Escaped<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escape(f, self.0, |byte| byte.is_ascii_graphic())
    }
}

/// The same for sentences: spaces stay.
pub(crate) struct EscapedText<'a>(pub(crate) &'a str);

impl fmt::Display for EscapedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escape(f, self.0.as_bytes(), |byte| {
            byte.is_ascii_graphic() || byte == b' '
        })
    }
}

/// The same for one DNS label, where a dot would look like the end of the label.
pub(crate) struct EscapedLabel<'a>(pub(crate) &'a [u8]);

impl fmt::Display for EscapedLabel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escape(f, self.0, |byte| byte.is_ascii_graphic() && byte != b'.')
    }
}

fn escape(f: &mut fmt::Formatter<'_>, bytes: &[u8], keep: fn(u8) -> bool) -> fmt::Result {
    for chunk in bytes.chunk_by(|&left, &right| keeps(left, keep) && keeps(right, keep)) {
        match std::str::from_utf8(chunk) {
            Ok(text) if keeps(chunk[0], keep) => f.write_str(text)?,
            _ => write!(f, "\\x{:02x}", chunk[0])?,
        }
    }
    Ok(())
}

fn keeps(byte: u8, keep: fn(u8) -> bool) -> bool {
    byte != b'\\' && keep(byte)
}

/// `Escaped` as a new string.
pub(crate) fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    // Writing to a string cannot fail.
    let _ = write!(text, "{}", Escaped(bytes));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_visible_ascii_stays() {
        assert_eq!(escaped(b"/a?b=%20"), "/a?b=%20");
        assert_eq!(
            escaped(b"x\nALLOWED\r\x1b[2J\\\xff y"),
            r"x\x0aALLOWED\x0d\x1b[2J\x5c\xff\x20y"
        );
        assert_eq!(EscapedText("a b\n").to_string(), r"a b\x0a");
        assert_eq!(EscapedLabel(b"a.b").to_string(), r"a\x2eb");
    }
}
