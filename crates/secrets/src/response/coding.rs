//! The content codings of HTTP: a decoder that is fed and emptied in small steps, and an encoder that can be flushed.
//!
//! `zstd` rather than a decoder in Rust: the one there is keeps a whole window back until the frame ends, and so would hold
//! every event of a stream. Brotli is written without compression; no encoder is worth its size for what servers send
//! although nobody asked.

use std::{fmt, io, io::Write, mem};

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::{
    Compression, Decompress, FlushDecompress, Status,
    write::{DeflateEncoder, GzEncoder, ZlibEncoder},
};
use http::{HeaderMap, header::CONTENT_ENCODING};
use zstd::stream::{raw, raw::Operation, write};

use super::ScrubError;

/// A content coding.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Coding {
    /// `gzip`, also called `x-gzip`.
    Gzip,
    /// `deflate`: zlib by the standard, but some servers send the bare format.
    Deflate,
    /// `br`.
    Brotli,
    /// `zstd`.
    Zstd,
}

impl Coding {
    /// The coding that a response declares; `None` for a plain body.
    pub(super) fn declared(headers: &HeaderMap) -> Result<Option<Self>, ScrubError> {
        let mut found = None;
        for value in headers.get_all(CONTENT_ENCODING) {
            let value = value.to_str().map_err(|_| ScrubError::UnknownCoding)?;
            for name in value.split(',').map(str::trim) {
                let coding = match name.to_ascii_lowercase().as_str() {
                    // Not codings at all, but in use as if they were.
                    "" | "identity" | "none" | "binary" | "utf-8" | "aws-chunked" => continue,
                    "gzip" | "x-gzip" => Self::Gzip,
                    "deflate" => Self::Deflate,
                    "br" => Self::Brotli,
                    "zstd" => Self::Zstd,
                    _ => return Err(ScrubError::UnknownCoding),
                };
                if found.replace(coding).is_some() {
                    return Err(ScrubError::UnknownCoding);
                }
            }
        }
        Ok(found)
    }
}

impl fmt::Display for Coding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        })
    }
}

/// Unpacks a body.
pub(super) enum Decoder {
    Gzip(Decompress),
    /// With the first bytes, the format is known.
    Deflate(Option<Decompress>),
    Brotli(Box<Brotli>),
    Zstd(Box<raw::Decoder<'static>>),
}

type Brotli = BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>;

/// What one step did.
pub(super) struct Step {
    pub(super) consumed: usize,
    pub(super) produced: usize,
    /// The body, or one of several bodies that follow each other, is complete.
    pub(super) ended: bool,
}

impl Decoder {
    pub(super) fn new(coding: Coding) -> Result<Self, ScrubError> {
        Ok(match coding {
            Coding::Gzip => Self::Gzip(Decompress::new_gzip(MAX_WINDOW_BITS)),
            Coding::Deflate => Self::Deflate(None),
            Coding::Brotli => {
                let alloc = StandardAlloc::default;
                Self::Brotli(Box::new(BrotliState::new_strict(alloc(), alloc(), alloc())))
            }
            Coding::Zstd => {
                let malformed = |_: io::Error| ScrubError::Malformed { coding };
                let mut decoder = raw::Decoder::new().map_err(malformed)?;
                let window = zstd::zstd_safe::DParameter::WindowLogMax(ZSTD_WINDOW_LOG);
                decoder.set_parameter(window).map_err(malformed)?;
                Self::Zstd(Box::new(decoder))
            }
        })
    }

    /// Unpacks some of the input into the output.
    pub(super) fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, ScrubError> {
        match self {
            Self::Gzip(inflate) => step_inflate(inflate, input, output, Coding::Gzip),
            Self::Deflate(inflate) => {
                let inflate = inflate.get_or_insert_with(|| Decompress::new(is_zlib(input)));
                step_inflate(inflate, input, output, Coding::Deflate)
            }
            Self::Brotli(state) => step_brotli(state, input, output),
            Self::Zstd(decoder) => step_zstd(decoder, input, output),
        }
    }
}

fn step_inflate(
    inflate: &mut Decompress,
    input: &[u8],
    output: &mut [u8],
    coding: Coding,
) -> Result<Step, ScrubError> {
    let (before_in, before_out) = (inflate.total_in(), inflate.total_out());
    let status = inflate
        .decompress(input, output, FlushDecompress::None)
        .map_err(|_| ScrubError::Malformed { coding })?;
    Ok(Step {
        consumed: (inflate.total_in() - before_in) as usize,
        produced: (inflate.total_out() - before_out) as usize,
        ended: status == Status::StreamEnd,
    })
}

fn step_brotli(state: &mut Brotli, input: &[u8], output: &mut [u8]) -> Result<Step, ScrubError> {
    let (mut left, mut consumed) = (input.len(), 0);
    let (mut room, mut produced, mut total) = (output.len(), 0, 0);
    let result = BrotliDecompressStream(
        &mut left,
        &mut consumed,
        input,
        &mut room,
        &mut produced,
        output,
        &mut total,
        state,
    );
    match result {
        BrotliResult::ResultFailure => Err(ScrubError::Malformed {
            coding: Coding::Brotli,
        }),
        BrotliResult::ResultSuccess
        | BrotliResult::NeedsMoreInput
        | BrotliResult::NeedsMoreOutput => Ok(Step {
            consumed,
            produced,
            ended: matches!(result, BrotliResult::ResultSuccess),
        }),
    }
}

fn step_zstd(
    decoder: &mut raw::Decoder<'static>,
    input: &[u8],
    output: &mut [u8],
) -> Result<Step, ScrubError> {
    let status = decoder
        .run_on_buffers(input, output)
        .map_err(|_| ScrubError::Malformed {
            coding: Coding::Zstd,
        })?;
    Ok(Step {
        consumed: status.bytes_read,
        produced: status.bytes_written,
        ended: status.remaining == 0,
    })
}

/// The two bytes that begin zlib data are a multiple of 31 and name the method; bare data seldom does.
fn is_zlib(input: &[u8]) -> bool {
    match *input {
        [first] => first & 0x0f == 8,
        [first, second, ..] => {
            first & 0x0f == 8 && (u16::from(first) << 8 | u16::from(second)).is_multiple_of(31)
        }
        [] => true,
    }
}

/// Packs a body again, in the coding that it came in.
pub(super) enum Encoder {
    Gzip(GzEncoder<Vec<u8>>),
    Zlib(ZlibEncoder<Vec<u8>>),
    Deflate(DeflateEncoder<Vec<u8>>),
    Brotli(StoredBrotli),
    Zstd(write::Encoder<'static, Vec<u8>>),
}

impl Encoder {
    /// The encoder for what the decoder reads, once that has seen the first bytes.
    pub(super) fn like(decoder: &Decoder, first: &[u8]) -> io::Result<Self> {
        let level = Compression::fast();
        Ok(match decoder {
            Decoder::Gzip(_) => Self::Gzip(GzEncoder::new(Vec::new(), level)),
            Decoder::Deflate(_) if is_zlib(first) => {
                Self::Zlib(ZlibEncoder::new(Vec::new(), level))
            }
            Decoder::Deflate(_) => Self::Deflate(DeflateEncoder::new(Vec::new(), level)),
            Decoder::Brotli(_) => Self::Brotli(StoredBrotli::default()),
            Decoder::Zstd(_) => Self::Zstd(write::Encoder::new(Vec::new(), ZSTD_LEVEL)?),
        })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Gzip(encoder) => encoder.write_all(bytes),
            Self::Zlib(encoder) => encoder.write_all(bytes),
            Self::Deflate(encoder) => encoder.write_all(bytes),
            Self::Brotli(encoder) => {
                encoder.write(bytes);
                Ok(())
            }
            Self::Zstd(encoder) => encoder.write_all(bytes),
        }
    }

    /// Makes everything written so far readable at the other end.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Gzip(encoder) => encoder.flush(),
            Self::Zlib(encoder) => encoder.flush(),
            Self::Deflate(encoder) => encoder.flush(),
            Self::Brotli(_) => Ok(()),
            Self::Zstd(encoder) => encoder.flush(),
        }
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Gzip(encoder) => encoder.try_finish(),
            Self::Zlib(encoder) => encoder.try_finish(),
            Self::Deflate(encoder) => encoder.try_finish(),
            Self::Brotli(encoder) => {
                encoder.finish();
                Ok(())
            }
            Self::Zstd(encoder) => encoder.do_finish(),
        }
    }

    /// What is ready to be sent.
    pub(super) fn take(&mut self) -> Vec<u8> {
        mem::take(match self {
            Self::Gzip(encoder) => encoder.get_mut(),
            Self::Zlib(encoder) => encoder.get_mut(),
            Self::Deflate(encoder) => encoder.get_mut(),
            Self::Brotli(encoder) => &mut encoder.out,
            Self::Zstd(encoder) => encoder.get_mut(),
        })
    }
}

/// Brotli of uncompressed blocks only (RFC 7932, section 9.2).
#[derive(Default)]
pub(super) struct StoredBrotli {
    out: Vec<u8>,
    started: bool,
}

impl StoredBrotli {
    fn write(&mut self, bytes: &[u8]) {
        for block in bytes.chunks(STORED_BLOCK) {
            // From the lowest bit: not the last block, four digits of length, the length less one, stored.
            let length = (block.len() - 1) as u32;
            let mut header = length << 3 | 1 << 19;
            if !self.started {
                // One zero bit before the first block stands for a window of 64 KiB.
                header <<= 1;
                self.started = true;
            }
            self.out.extend_from_slice(&header.to_le_bytes()[..3]);
            self.out.extend_from_slice(block);
        }
    }

    fn finish(&mut self) {
        // The last block, and empty.
        let end = 0b11;
        self.out.push(if self.started { end } else { end << 1 });
    }
}

/// What the length of a stored block has room for.
const STORED_BLOCK: usize = 1 << 16;

/// The largest window there is: 32 KiB.
const MAX_WINDOW_BITS: u8 = 15;

/// 8 MiB: what RFC 9659 lets a server count on, and no more memory than that.
const ZSTD_WINDOW_LOG: u32 = 23;

/// The container is on the same machine; time is worth more than bytes.
const ZSTD_LEVEL: i32 = 1;
