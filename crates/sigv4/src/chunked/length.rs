//! The length of a body before it is written.

use crate::{Algorithm, Error, Head};

use super::{CHUNK_SIGNATURE, CHUNK_SIZE, TRAILER_SIGNATURE, signature_length};

/// What a request head announces about its chunks.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ChunkStream {
    /// Length of the data without framing, from `x-amz-decoded-content-length`.
    pub decoded_length: Option<u64>,
    /// Names of the signed trailers, from `x-amz-trailer`; `None` if the body has no signed trailers.
    pub trailers: Option<Vec<String>>,
}

impl ChunkStream {
    /// Reads the head of a request without signed trailers.
    pub fn plain(head: &Head<'_>) -> Result<Self, Error> {
        let malformed = Error::Malformed {
            field: DECODED_LENGTH,
        };
        let decoded_length = match head.single(DECODED_LENGTH)? {
            None => None,
            Some(text) if text.bytes().all(|b| b.is_ascii_digit()) => {
                Some(text.parse().map_err(|_| malformed)?)
            }
            Some(_) => return Err(malformed),
        };
        Ok(Self {
            decoded_length,
            trailers: None,
        })
    }

    /// Reads the head of a request with signed trailers.
    pub fn with_trailers(head: &Head<'_>) -> Result<Self, Error> {
        let mut names = Vec::new();
        for value in head.values("x-amz-trailer") {
            let value = str::from_utf8(value).map_err(|_| Error::Malformed {
                field: "x-amz-trailer",
            })?;
            names.extend(
                value
                    .split(',')
                    .map(|name| name.trim_ascii().to_ascii_lowercase())
                    .filter(|name| !name.is_empty()),
            );
        }
        Ok(Self {
            trailers: Some(names),
            ..Self::plain(head)?
        })
    }
}

/// The exact length of the body that a [`ChunkSigner`](crate::ChunkSigner) will write.
///
/// `None` if the length of the data or the trailers are not announced, or a trailer is not a checksum of known length.
pub fn encoded_length(algorithm: Algorithm, stream: &ChunkStream) -> Result<Option<u64>, Error> {
    let Some(data) = stream.decoded_length else {
        return Ok(None);
    };
    let Some(trailers) = trailers_length(algorithm, stream) else {
        return Ok(None);
    };
    let signature = signature_length(algorithm) as u64;
    let framing = |size: u64| {
        let digits = u64::from(size.checked_ilog(16).unwrap_or(0)) + 1;
        digits + CHUNK_SIGNATURE.len() as u64 + signature + LINE_END
    };

    let size = CHUNK_SIZE as u64;
    let full = (data / size).checked_mul(framing(size) + LINE_END);
    let partial = match data % size {
        0 => 0,
        rest => framing(rest) + LINE_END,
    };
    let last = framing(0) + LINE_END;
    full.and_then(|full| full.checked_add(data))
        .and_then(|sum| sum.checked_add(partial + last + trailers))
        .map(Some)
        .ok_or(Error::TooLong)
}

/// Length of the trailers and of their signature, without the empty line behind them.
fn trailers_length(algorithm: Algorithm, stream: &ChunkStream) -> Option<u64> {
    let Some(names) = &stream.trailers else {
        return Some(0);
    };
    if names.is_empty() {
        return None;
    }
    let line = |name: &str, value: usize| (name.len() + 1 + value) as u64 + LINE_END;
    let mut sum = line(TRAILER_SIGNATURE, signature_length(algorithm));
    for name in names {
        sum += line(name, checksum_length(name)?);
    }
    Some(sum)
}

/// Length of a checksum in base64.
fn checksum_length(trailer: &str) -> Option<usize> {
    let bytes: usize = match trailer.strip_prefix("x-amz-checksum-")? {
        "crc32" | "crc32c" => 4,
        "crc64nvme" => 8,
        "sha1" => 20,
        "sha256" => 32,
        _ => return None,
    };
    Some(bytes.div_ceil(3) * 4)
}

const DECODED_LENGTH: &str = "x-amz-decoded-content-length";
const LINE_END: u64 = 2;
