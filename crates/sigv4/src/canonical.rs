//! Canonical forms and strings to sign.
//!
//! Everything is computed from the raw text of the request, so that the result is what the service computes from the
//! same bytes. Nothing here knows a key.

use std::fmt::Write as _;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::{Algorithm, CredentialScope, Error, Field, SignedHeaders, Timestamp, signed_headers};

/// How a service reads the path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PathRule {
    /// S3: keys are opaque, and the path is decoded and encoded once.
    Single,
    /// All others: dot segments and double slashes are removed, and the path as sent is encoded once more.
    Double,
}

impl PathRule {
    /// The rule of the service with that signing name.
    #[must_use]
    pub fn of(service: &str) -> Self {
        match service {
            "s3" | "s3express" | "s3-outposts" | "s3-object-lambda" => Self::Single,
            _ => Self::Double,
        }
    }
}

/// What every string to sign starts with.
#[derive(Clone, Debug)]
pub struct Context {
    /// Algorithm of the request and its chunks.
    pub algorithm: Algorithm,
    /// Time of the request.
    pub timestamp: Timestamp,
    /// Scope of the request.
    pub scope: CredentialScope,
}

impl Context {
    /// The string to sign for a request.
    #[must_use]
    pub fn string_to_sign(&self, canonical_request: &[u8]) -> String {
        self.begin("", &[&hash(canonical_request)])
    }

    /// The string to sign for a chunk; `previous` is the signature before it, without padding.
    #[must_use]
    pub fn chunk_string_to_sign(&self, previous: &str, data: &[u8]) -> String {
        self.begin("-PAYLOAD", &[previous, &hash(b""), &hash(data)])
    }

    /// The string to sign for the trailers, given as `name:value` lines that each end with a line feed.
    #[must_use]
    pub fn trailer_string_to_sign(&self, previous: &str, trailers: &[u8]) -> String {
        self.begin("-TRAILER", &[previous, &hash(trailers)])
    }

    fn begin(&self, suffix: &str, rest: &[&str]) -> String {
        format!(
            "{}{suffix}\n{}\n{}\n{}",
            self.algorithm.name(),
            self.timestamp,
            self.scope,
            rest.join("\n")
        )
    }
}

/// The canonical request.
///
/// The parts are the canonical forms that the functions below make; `payload_hash` is the hash or the word that stands
/// for it.
#[must_use]
pub fn request(
    method: &str,
    uri: &str,
    query: &str,
    headers: &[u8],
    signed: &SignedHeaders,
    payload_hash: &str,
) -> Vec<u8> {
    let mut request = format!("{method}\n{uri}\n{query}\n").into_bytes();
    request.extend_from_slice(headers);
    request.extend_from_slice(format!("\n{signed}\n{payload_hash}").as_bytes());
    request
}

/// The canonical path. A query behind `?` is ignored.
#[must_use]
pub fn uri(target: &str, rule: PathRule) -> String {
    let (path, _) = split_target(target);
    match rule {
        PathRule::Single if path.is_empty() => "/".to_owned(),
        PathRule::Single => recode(path, b"/"),
        PathRule::Double => {
            // A space cannot be in a request line: whoever has one here has decoded it.
            let path = path.replace(' ', "%20");
            let parts = segments(&path);
            let slash = if path.ends_with('/') && !parts.is_empty() {
                "/"
            } else {
                ""
            };
            format!("/{}{slash}", encode(&parts.join("/"), b"/"))
        }
    }
}

/// The canonical query: parameters encoded and sorted, repeated ones kept, empty ones dropped.
///
/// `+` stays as it is. Clients disagree on it (a space, an encoded plus); this is what botocore signs.
#[must_use]
pub fn query(raw: &str) -> String {
    join(raw, |_| true)
}

/// [`query`] without `X-Amz-Signature`, which cannot sign itself.
#[must_use]
pub fn presigned_query(raw: &str) -> String {
    join(raw, |name| !name.eq_ignore_ascii_case(SIGNATURE))
}

/// The canonical headers, one line each.
///
/// Values keep their order and are joined with a comma; runs of white space become one space. `host` is the `Host`
/// header if there is one with a value, else `authority`. A header that is signed but absent has no value.
pub fn headers(
    fields: &[Field<'_>],
    signed: &SignedHeaders,
    authority: &str,
) -> Result<Vec<u8>, Error> {
    let mut block = Vec::new();
    for name in signed.iter() {
        block.extend_from_slice(name.as_bytes());
        block.push(b':');
        if name == signed_headers::HOST {
            block.extend_from_slice(host(fields, authority)?.trim_ascii());
        } else {
            let values = fields
                .iter()
                .filter(|(field, _)| field.eq_ignore_ascii_case(name));
            for (index, (_, value)) in values.enumerate() {
                if index > 0 {
                    block.push(b',');
                }
                squeeze(value, &mut block);
            }
        }
        block.push(b'\n');
    }
    Ok(block)
}

/// Percent-encodes everything but unreserved characters and the bytes in `keep`.
#[must_use]
pub fn encode(text: &str, keep: &[u8]) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        push(byte, keep, &mut encoded);
    }
    encoded
}

/// The hash of `data`, in lower-case hexadecimal.
#[must_use]
pub fn hash(data: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(data))
}

/// Path and query of a request target.
pub(crate) fn split_target(target: &str) -> (&str, &str) {
    target.split_once('?').unwrap_or((target, ""))
}

/// The segments of a path without empty ones and dots.
pub(crate) fn segments(path: &str) -> Vec<&str> {
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    segments
}

/// Percent-decodes; `None` if the result is not UTF-8. `+` is a plus.
pub(crate) fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    for (byte, _) in Escapes(text.as_bytes()) {
        bytes.push(byte);
    }
    String::from_utf8(bytes).ok()
}

pub(crate) const SIGNATURE: &str = "x-amz-signature";

fn join(raw: &str, keep: impl Fn(&str) -> bool) -> String {
    let mut pairs: Vec<_> = raw
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (recode(name, b"+"), recode(value, b"+")))
        .filter(|(name, _)| keep(name))
        .collect();
    pairs.sort_unstable();
    let pairs: Vec<_> = pairs
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.join("&")
}

/// The one canonical encoding of text that may be encoded already: escapes are in upper case and only where needed,
/// and an escaped character never becomes one that separates.
fn recode(text: &str, keep: &[u8]) -> String {
    let mut encoded = String::with_capacity(text.len());
    for (byte, escaped) in Escapes(text.as_bytes()) {
        push(byte, if escaped { b"" } else { keep }, &mut encoded);
    }
    encoded
}

fn push(byte: u8, keep: &[u8], encoded: &mut String) {
    if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) || keep.contains(&byte) {
        encoded.push(char::from(byte));
    } else {
        // Writing to a string cannot fail.
        let _ = write!(encoded, "%{byte:02X}");
    }
}

/// The bytes that percent-encoded text stands for, and whether each was escaped. A stray `%` stands for itself.
struct Escapes<'a>(&'a [u8]);

impl Iterator for Escapes<'_> {
    type Item = (u8, bool);

    fn next(&mut self) -> Option<(u8, bool)> {
        if let [b'%', high, low, rest @ ..] = self.0
            && let (Some(high), Some(low)) = (digit(*high), digit(*low))
        {
            self.0 = rest;
            return Some((high << 4 | low, true));
        }
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some((*first, false))
    }
}

fn digit(hex: u8) -> Option<u8> {
    char::from(hex)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

fn host<'a>(fields: &[Field<'a>], authority: &'a str) -> Result<&'a [u8], Error> {
    let mut hosts = fields
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case(signed_headers::HOST))
        .map(|(_, value)| *value);
    match (hosts.next(), hosts.next()) {
        (_, Some(_)) => Err(Error::Duplicate { field: "host" }),
        (Some(host), None) if !host.trim_ascii().is_empty() => Ok(host),
        (Some(_) | None, None) => Ok(authority.as_bytes()),
    }
}

fn squeeze(value: &[u8], block: &mut Vec<u8>) {
    let words = value
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    for (index, word) in words.enumerate() {
        if index > 0 {
            block.push(b' ');
        }
        block.extend_from_slice(word);
    }
}

#[cfg(test)]
mod tests;
