//! Percent encoding and JSON escapes, in the variants that programs in use produce.

use super::Form;

/// The escaped spellings of a value; those that equal the value itself are among them.
pub(super) fn forms(real: &str, stand_in: &[u8]) -> Vec<Form> {
    let mut forms = Vec::new();
    for kept in KEPT {
        for hex in [UPPER_HEX, LOWER_HEX] {
            forms.push(percent_form(real.as_bytes(), stand_in, kept, hex));
        }
    }
    for escaped in JSON_ESCAPED {
        for hex in [UPPER_HEX, LOWER_HEX] {
            forms.push(json_form(real, stand_in, *escaped, hex));
        }
    }
    forms
}

/// Encodes everything but letters, digits and `-._~`.
pub(crate) fn percent_encode(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    for &byte in value {
        if is_kept(byte, b"-._~") {
            out.push(byte);
        } else {
            push_percent(&mut out, byte, UPPER_HEX);
        }
    }
    out
}

/// The stand-in is encoded at the places where the real value is, and so decodes to the stand-in.
fn percent_form(real: &[u8], stand_in: &[u8], kept: &[u8], hex: &[u8; 16]) -> Form {
    let (mut pattern, mut replacement) = (Vec::new(), Vec::new());
    for (&byte, &instead) in real.iter().zip(stand_in) {
        if byte == b' ' && kept.contains(&b' ') {
            pattern.push(b'+');
            replacement.push(instead);
        } else if is_kept(byte, kept) {
            pattern.push(byte);
            replacement.push(instead);
        } else {
            push_percent(&mut pattern, byte, hex);
            push_percent(&mut replacement, instead, hex);
        }
    }
    Form::new(pattern, replacement)
}

/// No escape of two characters gives a letter, so the stand-in is padded where the real value is escaped.
fn json_form(real: &str, stand_in: &[u8], escaped: fn(char) -> bool, hex: &[u8; 16]) -> Form {
    let (mut pattern, mut replacement) = (Vec::new(), Vec::new());
    for (at, c) in real.char_indices() {
        push_json(&mut pattern, c, escaped, hex);
        replacement.extend_from_slice(&stand_in[at..at + c.len_utf8()]);
        replacement.resize(pattern.len(), b'x');
    }
    Form::new(pattern, replacement)
}

fn push_json(out: &mut Vec<u8>, c: char, escaped: fn(char) -> bool, hex: &[u8; 16]) {
    let short = match c {
        '"' | '\\' => Some(c as u8),
        '/' if escaped(c) => Some(b'/'),
        '\n' => Some(b'n'),
        '\r' => Some(b'r'),
        '\t' => Some(b't'),
        '\u{8}' => Some(b'b'),
        '\u{c}' => Some(b'f'),
        _ => None,
    };
    if let Some(short) = short {
        out.extend([b'\\', short]);
    } else if c.is_ascii_control() || escaped(c) {
        for unit in c.encode_utf16(&mut [0; 2]) {
            out.extend_from_slice(b"\\u");
            out.extend([12, 8, 4, 0].map(|shift| hex[usize::from(*unit >> shift & 0xf)]));
        }
    } else {
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

fn push_percent(out: &mut Vec<u8>, byte: u8, hex: &[u8; 16]) {
    out.extend([
        b'%',
        hex[usize::from(byte >> 4)],
        hex[usize::from(byte & 0xf)],
    ]);
}

fn is_kept(byte: u8, kept: &[u8]) -> bool {
    byte.is_ascii_alphanumeric() || kept.contains(&byte)
}

/// What encoders leave alone beside letters and digits: RFC 3986, the same with slashes, JavaScript's
/// `encodeURIComponent`, HTML forms (where a blank becomes a plus) and what a path may hold.
const KEPT: &[&[u8]] = &[
    b"-._~",
    b"-._~/",
    b"-_.!~*'()",
    b"*-._ ",
    b"-._~!$&'()*+,;=:@/",
];

/// What JSON writers escape beside what they must: nothing, slashes, all but ASCII, what HTML gives a meaning.
const JSON_ESCAPED: &[fn(char) -> bool] = &[
    |_| false,
    |c| c == '/',
    |c| !c.is_ascii(),
    |c| c == '/' || !c.is_ascii(),
    |c| matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}'),
];

const UPPER_HEX: &[u8; 16] = b"0123456789ABCDEF";
const LOWER_HEX: &[u8; 16] = b"0123456789abcdef";
