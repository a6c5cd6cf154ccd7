//! Reads the client's `aws-chunked` framing.
//!
//! Holds no data: what belongs to a chunk is handed on as it comes. Only lines and trailers are kept, and they have
//! limits. The client's signatures are skipped.

use crate::{Framing, signed_headers::is_token};

use super::{CHUNK_SIGNATURE, MAX_CHUNK_LINE, MAX_TRAILERS, TRAILER_SIGNATURE};

/// Names, in lower case and sorted, and values.
pub(super) type Trailers = Vec<(String, String)>;

/// A reader of chunks.
pub(super) struct Decoder {
    state: State,
    /// The unfinished line, or the trailers.
    kept: Vec<u8>,
    signed_trailers: bool,
}

enum State {
    /// In the line before a chunk.
    Head,
    /// In a chunk, with so many bytes to come.
    Data(u64),
    /// In the line end behind a chunk.
    DataEnd,
    /// Behind the last chunk, where one line end may follow.
    Tail,
    /// Behind the last chunk, in the trailers.
    Trailers,
}

impl Decoder {
    pub(super) fn new(signed_trailers: bool) -> Self {
        Self {
            state: State::Head,
            kept: Vec::new(),
            signed_trailers,
        }
    }

    /// The next piece of data in `input`; `None` when all of it is read.
    pub(super) fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<&'a [u8]>, Framing> {
        while !input.is_empty() {
            match self.state {
                State::Head => {
                    if self.take_line(input)? {
                        self.state = match (parse_head(&self.kept)?, self.signed_trailers) {
                            (0, true) => State::Trailers,
                            (0, false) => State::Tail,
                            (size, _) => State::Data(size),
                        };
                        self.kept.clear();
                    }
                }
                State::Data(left) => {
                    let here = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
                    let (data, rest) = input.split_at(here);
                    *input = rest;
                    self.state = match left - here as u64 {
                        0 => State::DataEnd,
                        left => State::Data(left),
                    };
                    return Ok(Some(data));
                }
                State::DataEnd => {
                    if self.take_line_end(input, Framing::ChunkEnd)? {
                        self.kept.clear();
                        self.state = State::Head;
                    }
                }
                State::Tail => {
                    self.take_line_end(input, Framing::DataAfterEnd)?;
                }
                State::Trailers => {
                    if self.kept.len() + input.len() > MAX_TRAILERS {
                        return Err(Framing::TrailersTooLong);
                    }
                    self.kept.extend_from_slice(input);
                    *input = &[];
                }
            }
        }
        Ok(None)
    }

    /// The trailers, if the body is whole and has signed ones.
    pub(super) fn finish(&self) -> Result<Option<Trailers>, Framing> {
        match self.state {
            State::Head | State::Data(_) | State::DataEnd => Err(Framing::Truncated),
            State::Tail if self.kept.is_empty() || self.kept == LINE_END => Ok(None),
            State::Tail => Err(Framing::Truncated),
            State::Trailers => parse_trailers(&self.kept).map(Some),
        }
    }

    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.kept.capacity()
    }

    /// Moves bytes up to and with the next line feed to `kept`. True if there was one.
    fn take_line(&mut self, input: &mut &[u8]) -> Result<bool, Framing> {
        let end = input.iter().position(|&byte| byte == b'\n');
        let (line, rest) = input.split_at(end.map_or(input.len(), |end| end + 1));
        if self.kept.len() + line.len() > MAX_CHUNK_LINE {
            return Err(Framing::LineTooLong);
        }
        self.kept.extend_from_slice(line);
        *input = rest;
        Ok(end.is_some())
    }

    /// Moves a line end, and nothing else, to `kept`. True once it is complete.
    fn take_line_end(&mut self, input: &mut &[u8], otherwise: Framing) -> Result<bool, Framing> {
        while let Some((&byte, rest)) = input.split_first() {
            if LINE_END.get(self.kept.len()) != Some(&byte) {
                return Err(otherwise);
            }
            self.kept.push(byte);
            *input = rest;
            if self.kept == LINE_END {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The size in `size;chunk-signature=signature`.
fn parse_head(line: &[u8]) -> Result<u64, Framing> {
    let head = line
        .strip_suffix(LINE_END)
        .and_then(|line| str::from_utf8(line).ok())
        .and_then(|line| line.split_once(CHUNK_SIGNATURE));
    let Some((size, signature)) = head else {
        return Err(Framing::ChunkHeader);
    };
    let digits = !size.is_empty() && size.bytes().all(|b| b.is_ascii_hexdigit());
    if !digits || !is_signature(signature) {
        return Err(Framing::ChunkHeader);
    }
    u64::from_str_radix(size, 16).map_err(|_| Framing::ChunkHeader)
}

/// Hexadecimal digits, and stars where it was padded. Not verified.
fn is_signature(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'*')
}

/// Reads `name:value` lines up to the signature. Some clients write a line feed of their own before the line end, so
/// empty lines are skipped.
fn parse_trailers(text: &[u8]) -> Result<Trailers, Framing> {
    let text = str::from_utf8(text).map_err(|_| Framing::Trailer)?;
    // What is behind the last line feed is not a line yet.
    let (text, rest) = text.rsplit_once('\n').ok_or(Framing::TrailerSignature)?;
    if !rest.trim_ascii().is_empty() {
        return Err(Framing::Truncated);
    }
    let mut lines = text.split('\n').map(str::trim_ascii);
    let mut trailers = Trailers::new();
    loop {
        let line = lines.next().ok_or(Framing::TrailerSignature)?;
        if line.is_empty() {
            continue;
        }
        let (name, value) = line.split_once(':').ok_or(Framing::Trailer)?;
        let name = name.to_ascii_lowercase();
        let value = value.trim_ascii();
        if name == TRAILER_SIGNATURE {
            if !is_signature(value) {
                return Err(Framing::TrailerSignature);
            }
            break;
        }
        let printable = value.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
        if name.is_empty() || !name.bytes().all(is_token) || !printable {
            return Err(Framing::Trailer);
        }
        trailers.push((name, value.to_owned()));
    }
    if lines.any(|line| !line.is_empty()) {
        return Err(Framing::DataAfterEnd);
    }
    trailers.sort_unstable();
    if trailers.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err(Framing::Trailer);
    }
    Ok(trailers)
}

const LINE_END: &[u8] = b"\r\n";
