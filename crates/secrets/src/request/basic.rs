//! HTTP Basic credentials, read as generously as servers read them.
//!
//! The scheme in any case, the standard or the URL-safe alphabet, padding or none.

use data_encoding::BASE64;
use zeroize::Zeroizing;

/// A user name and a password, erased when dropped.
#[expect(missing_debug_implementations, reason = "it may hold a secret")]
pub struct Credentials {
    text: Zeroizing<Vec<u8>>,
    colon: usize,
}

impl Credentials {
    /// What stands before the first colon.
    pub fn user(&self) -> &[u8] {
        &self.text[..self.colon]
    }

    /// What stands after it.
    pub fn password(&self) -> &[u8] {
        &self.text[self.colon + 1..]
    }
}

/// Reads a header value; `None` unless it is Basic, decodes, and has a colon.
pub fn decode(value: &[u8]) -> Option<Credentials> {
    let (scheme, rest) = value.split_at_checked(SCHEME.len())?;
    if !scheme.eq_ignore_ascii_case(SCHEME) || !rest.starts_with(b" ") {
        return None;
    }
    let text = decode_base64(rest.trim_ascii())?;
    let colon = text.iter().position(|&byte| byte == b':')?;
    Some(Credentials { text, colon })
}

/// Writes a header value.
pub fn encode(user: &[u8], password: &[u8]) -> Zeroizing<String> {
    let text = Zeroizing::new([user, b":", password].concat());
    let mut value = Zeroizing::new(String::with_capacity(
        SCHEME.len() + 1 + BASE64.encode_len(text.len()),
    ));
    value.push_str("Basic ");
    BASE64.encode_append(&text, &mut value);
    value
}

fn decode_base64(text: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let end = text
        .iter()
        .rposition(|&byte| byte != b'=')
        .map_or(0, |last| last + 1);
    let mut out = Zeroizing::new(Vec::with_capacity(end * 3 / 4));
    let (mut bits, mut count) = (0_u32, 0);
    for &byte in &text[..end] {
        bits = bits << 6 | u32::from(sextet(byte)?);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    // One character alone is no byte.
    (end % 4 != 1).then_some(out)
}

fn sextet(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}

const SCHEME: &[u8] = b"basic";
