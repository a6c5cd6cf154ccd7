//! Signed `aws-chunked` bodies, signed again while they stream.
//!
//! A chunk's signature stands before its data, so a chunk must be buffered to be signed. To keep that buffer small
//! whatever sizes the client claims, the data is cut into chunks of [`CHUNK_SIZE`] of our own. What has been written is
//! always properly signed, and the last chunk is written only when the whole body has been found good.

mod decoder;
mod length;

use std::fmt;

use crate::{Algorithm, Error, Framing, SigningKey, canonical::Context};
use decoder::{Decoder, Trailers};
pub use length::{ChunkStream, encoded_length};

/// Turns a body signed by the client into one signed with the real credentials.
pub struct ChunkSigner {
    decoder: Decoder,
    chain: Chain,
    /// Data of the chunk in the making.
    buffer: Vec<u8>,
    /// Length of the data so far.
    decoded: u64,
    /// Length of the data as announced.
    announced: Option<u64>,
    /// Bytes written so far.
    written: u64,
    /// Bytes to write in all, if known.
    content_length: Option<u64>,
    failed: Option<Error>,
}

impl ChunkSigner {
    /// Starts behind a request whose signature is `seed`.
    pub fn new(
        key: SigningKey,
        context: Context,
        seed: String,
        stream: ChunkStream,
    ) -> Result<Self, Error> {
        let content_length = encoded_length(context.algorithm, &stream)?;
        Ok(Self {
            decoder: Decoder::new(stream.trailers.is_some()),
            chain: Chain {
                key,
                context,
                previous: seed,
            },
            buffer: Vec::new(),
            decoded: 0,
            announced: stream.decoded_length,
            written: 0,
            content_length,
            failed: None,
        })
    }

    /// Length of the new body, if it can be known: the value for `Content-Length`.
    #[must_use]
    pub fn content_length(&self) -> Option<u64> {
        self.content_length
    }

    /// Takes the next bytes of the body and appends what is ready to `output`.
    ///
    /// After an error nothing is appended any more, and the request must be given up.
    pub fn push(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<(), Error> {
        self.guarded(output, |signer, output| signer.take(input, output))
    }

    /// Ends the body: appends the last chunk and the trailers.
    pub fn finish(mut self, output: &mut Vec<u8>) -> Result<(), Error> {
        self.guarded(output, Self::end)
    }

    fn guarded(
        &mut self,
        output: &mut Vec<u8>,
        step: impl FnOnce(&mut Self, &mut Vec<u8>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let start = output.len();
        let result = step(self, output);
        if let Err(error) = result {
            output.truncate(start);
            self.failed = Some(error);
        }
        result
    }

    fn take(&mut self, mut input: &[u8], output: &mut Vec<u8>) -> Result<(), Error> {
        while let Some(mut data) = self.decoder.next(&mut input)? {
            self.decoded = self
                .decoded
                .checked_add(data.len() as u64)
                .ok_or(Error::TooLong)?;
            if self.announced.is_some_and(|length| self.decoded > length) {
                return Err(Framing::Length.into());
            }
            while !data.is_empty() {
                let room = CHUNK_SIZE - self.buffer.len();
                let (now, later) = data.split_at(room.min(data.len()));
                self.buffer.extend_from_slice(now);
                data = later;
                if self.buffer.len() == CHUNK_SIZE {
                    self.write_chunk(output);
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, output: &mut Vec<u8>) -> Result<(), Error> {
        let trailers = self.decoder.finish()?;
        if self.announced.is_some_and(|length| self.decoded != length) {
            return Err(Framing::Length.into());
        }
        let (start, before) = (output.len(), self.written);
        if !self.buffer.is_empty() {
            self.write_chunk(output);
        }
        let signature = self.chain.sign_chunk(b"");
        output.extend_from_slice(format!("0{CHUNK_SIGNATURE}{signature}\r\n").as_bytes());
        if let Some(trailers) = trailers {
            let signature = self.chain.sign_trailers(&trailers);
            for (name, value) in &trailers {
                output.extend_from_slice(format!("{name}:{value}\r\n").as_bytes());
            }
            output.extend_from_slice(format!("{TRAILER_SIGNATURE}:{signature}\r\n").as_bytes());
        }
        output.extend_from_slice(b"\r\n");

        let written = before + (output.len() - start) as u64;
        match self.content_length {
            Some(length) if length != written => Err(Framing::Length.into()),
            Some(_) | None => Ok(()),
        }
    }

    fn write_chunk(&mut self, output: &mut Vec<u8>) {
        let signature = self.chain.sign_chunk(&self.buffer);
        let head = format!("{:x}{CHUNK_SIGNATURE}{signature}\r\n", self.buffer.len());
        output.extend_from_slice(head.as_bytes());
        output.extend_from_slice(&self.buffer);
        output.extend_from_slice(b"\r\n");
        self.written += (head.len() + self.buffer.len() + 2) as u64;
        self.buffer.clear();
    }
}

impl fmt::Debug for ChunkSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkSigner")
            .field("decoded", &self.decoded)
            .field("content_length", &self.content_length)
            .finish_non_exhaustive()
    }
}

/// Size of the chunks that are written. S3 wants 8 KiB at least for all but the last; 64 KiB, which most clients use,
/// keeps both the buffer and the overhead small.
pub const CHUNK_SIZE: usize = 64 * 1024;

/// Longest line before a chunk. A size and the longest signature take 178 bytes.
pub const MAX_CHUNK_LINE: usize = 512;

/// Longest trailers in all. Checksums take some hundred bytes.
pub const MAX_TRAILERS: usize = 8 * 1024;

/// Signatures, each of which signs the one before.
struct Chain {
    key: SigningKey,
    context: Context,
    /// The signature before, without padding.
    previous: String,
}

impl Chain {
    fn sign_chunk(&mut self, data: &[u8]) -> String {
        let text = self.context.chunk_string_to_sign(&self.previous, data);
        self.sign(&text)
    }

    fn sign_trailers(&mut self, trailers: &Trailers) -> String {
        let lines: String = trailers
            .iter()
            .map(|(name, value)| format!("{name}:{value}\n"))
            .collect();
        let text = self
            .context
            .trailer_string_to_sign(&self.previous, lines.as_bytes());
        self.sign(&text)
    }

    fn sign(&mut self, text: &str) -> String {
        self.previous = self.key.sign(text);
        let width = signature_length(self.context.algorithm);
        format!("{:*<width$}", self.previous)
    }
}

/// Length of a signature in a body. ECDSA signatures vary in length and are padded to the longest.
fn signature_length(algorithm: Algorithm) -> usize {
    match algorithm {
        Algorithm::HmacSha256 => 64,
        Algorithm::EcdsaP256Sha256 => 144,
    }
}

const CHUNK_SIGNATURE: &str = ";chunk-signature=";
const TRAILER_SIGNATURE: &str = "x-amz-trailer-signature";

#[cfg(test)]
mod tests;
