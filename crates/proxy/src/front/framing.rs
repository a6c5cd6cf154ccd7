//! Follows a request body to its end, so that the next head is found.
//!
//! Decides nothing: the HTTP library reads the same bytes and refuses bodies that are malformed.

/// How much of a body is still to come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Framing {
    /// This many bytes.
    Length(u64),
    /// Chunks.
    Chunked(Chunk),
    /// Nobody knows; the library will refuse the body and close the connection.
    Lost,
}

/// Where in a chunked body we are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Chunk {
    /// In the digits of a size.
    Size(u64),
    /// After the digits, before the line feed.
    SizeEnd(u64),
    /// In the data, with its closing CR LF.
    Data(u64),
    /// In a trailer line; true while it is empty.
    Trailer { empty: bool },
    /// Behind the last line feed.
    Done,
}

impl Framing {
    pub(super) const CHUNKED: Self = Self::Chunked(Chunk::Size(0));

    pub(super) fn is_done(self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunked(Chunk::Done))
    }

    /// How much may be read without reading past the end.
    pub(super) fn at_most(self) -> usize {
        match self {
            Self::Length(left) => usize::try_from(left).unwrap_or(usize::MAX),
            Self::Chunked(_) | Self::Lost => usize::MAX,
        }
    }

    /// Takes note of bytes that were read. Returns how many of them belong to the body.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> usize {
        match self {
            Self::Length(left) => {
                *left = left.saturating_sub(bytes.len() as u64);
                bytes.len()
            }
            Self::Chunked(chunk) => match chunk.advance(bytes) {
                Some(used) => used,
                None => {
                    *self = Self::Lost;
                    bytes.len()
                }
            },
            Self::Lost => bytes.len(),
        }
    }
}

impl Chunk {
    /// None when the bytes are no chunks.
    fn advance(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() && *self != Self::Done {
            let byte = bytes[at];
            *self = match *self {
                Self::Size(size) => match char::from(byte).to_digit(16) {
                    Some(digit) => Self::Size(size.checked_mul(16)?.checked_add(digit.into())?),
                    None if byte == b'\n' => Self::after_size(size)?,
                    None => Self::SizeEnd(size),
                },
                Self::SizeEnd(size) if byte == b'\n' => Self::after_size(size)?,
                Self::SizeEnd(size) => Self::SizeEnd(size),
                Self::Data(left) => {
                    let step = left.min((bytes.len() - at) as u64);
                    // At least one byte is left of the data or its line end, so the step is not 0.
                    at += usize::try_from(step).ok()? - 1;
                    if left == step {
                        Self::Size(0)
                    } else {
                        Self::Data(left - step)
                    }
                }
                Self::Trailer { empty: true } if byte == b'\n' => Self::Done,
                Self::Trailer { .. } if byte == b'\n' => Self::Trailer { empty: true },
                Self::Trailer { empty } => Self::Trailer {
                    empty: empty && byte == b'\r',
                },
                Self::Done => Self::Done,
            };
            at += 1;
        }
        Some(at)
    }

    fn after_size(size: u64) -> Option<Self> {
        if size == 0 {
            return Some(Self::Trailer { empty: true });
        }
        Some(Self::Data(size.checked_add(LINE_END)?))
    }
}

/// CR LF behind the data of a chunk.
const LINE_END: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunked_body_ends_where_its_last_line_does() {
        let body = b"5\r\nhello\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n";
        let mut message = body.to_vec();
        message.extend(b"GET / HTTP/1.1\r\n");
        for split in 0..message.len() {
            let mut framing = Framing::CHUNKED;
            let first = framing.advance(&message[..split]);
            let second = if framing.is_done() {
                0
            } else {
                framing.advance(&message[split..])
            };
            assert!(framing.is_done(), "split at {split}");
            assert_eq!(first + second, body.len(), "split at {split}");
        }
    }

    #[test]
    fn a_size_beyond_all_bounds_is_lost() {
        let mut framing = Framing::CHUNKED;
        assert_eq!(framing.advance(b"fffffffffffffffff\r\n"), 19);
        assert_eq!(framing, Framing::Lost);
        let mut framing = Framing::CHUNKED;
        framing.advance(b"ffffffffffffffff\r\n");
        assert_eq!(framing, Framing::Lost);
    }

    #[test]
    fn a_length_is_counted_down() {
        let mut framing = Framing::Length(5);
        assert_eq!(framing.at_most(), 5);
        framing.advance(b"abc");
        assert_eq!(framing, Framing::Length(2));
        framing.advance(b"de");
        assert!(framing.is_done());
    }
}
