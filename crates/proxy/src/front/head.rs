//! Parses an HTTP/1 request head and refuses whatever two programs could read in two ways.

use std::mem::MaybeUninit;

use bytes::Bytes;
use http::Uri;
use httparse::{Header, Request, Status};

use super::framing::Framing;
use crate::refusal::MalformedHead;

/// What the start of a buffer is.
pub(super) enum Parsed {
    /// The beginning of a head.
    Partial,
    /// A head that means one thing, and how its body is framed.
    Complete { length: usize, framing: Framing },
    /// Not a head that can be served.
    Bad(MalformedHead),
}

pub(super) fn parse(buffer: &[u8], max_count: usize) -> Parsed {
    if max_count <= USUAL_COUNT {
        let mut fields = [const { MaybeUninit::uninit() }; USUAL_COUNT];
        return parse_into(buffer, &mut fields[..max_count]);
    }
    let mut fields = Vec::new();
    fields.resize_with(max_count, MaybeUninit::uninit);
    parse_into(buffer, &mut fields)
}

fn parse_into<'b>(buffer: &'b [u8], fields: &mut [MaybeUninit<Header<'b>>]) -> Parsed {
    let mut request = Request::new(&mut []);
    match request.parse_with_uninit_headers(buffer, fields) {
        Ok(Status::Partial) => Parsed::Partial,
        Ok(Status::Complete(length)) => match check(&request, &buffer[..length]) {
            Ok(framing) => Parsed::Complete { length, framing },
            Err(why) => Parsed::Bad(why),
        },
        Err(error) => Parsed::Bad(reason(&error)),
    }
}

fn reason(error: &httparse::Error) -> MalformedHead {
    match error {
        httparse::Error::TooManyHeaders => MalformedHead::TooManyFields,
        httparse::Error::HeaderName => MalformedHead::FieldName,
        httparse::Error::HeaderValue => MalformedHead::FieldValue,
        httparse::Error::Version => MalformedHead::Version,
        httparse::Error::NewLine => MalformedHead::LineEnd,
        httparse::Error::Status | httparse::Error::Token => MalformedHead::RequestLine,
    }
}

fn check(request: &Request<'_, '_>, head: &[u8]) -> Result<Framing, MalformedHead> {
    if bare_line_feed(head) {
        return Err(MalformedHead::LineEnd);
    }
    let (Some(version), Some(method), Some(target)) =
        (request.version, request.method, request.path)
    else {
        return Err(MalformedHead::RequestLine);
    };
    check_target(method, target)?;

    let mut hosts = 0;
    let mut length = None;
    let mut chunked = false;
    for header in request.headers.iter() {
        // The names of interest have lengths that few others have.
        match header.name.len() {
            4 if header.name.eq_ignore_ascii_case("host") => hosts += 1,
            14 if header.name.eq_ignore_ascii_case("content-length") => {
                let before = length.replace(parse_length(header.value)?);
                if before.is_some() {
                    return Err(MalformedHead::TwoLengths);
                }
            }
            17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                if chunked || version == 0 || !header.value.eq_ignore_ascii_case(b"chunked") {
                    return Err(MalformedHead::TransferEncoding);
                }
                chunked = true;
            }
            _ => {}
        }
    }
    match hosts {
        0 if version == 1 => return Err(MalformedHead::NoHost),
        0 | 1 => {}
        _ => return Err(MalformedHead::TwoHosts),
    }
    match (chunked, length) {
        (true, Some(_)) => Err(MalformedHead::LengthAndChunks),
        (true, None) => Ok(Framing::CHUNKED),
        (false, length) => Ok(Framing::Length(length.unwrap_or(0))),
    }
}

/// The library drops a fragment without a word and refuses what is no URI; both are ours to refuse.
fn check_target(method: &str, target: &str) -> Result<(), MalformedHead> {
    let plain = |byte: u8| matches!(byte, b'!' | b'$'..=b';' | b'=' | b'?'..=b'Z' | b'_' | b'a'..=b'z' | b'~');
    if target.len() > MAX_TARGET {
        return Err(MalformedHead::TooLarge);
    }
    if target.starts_with('/') && target.bytes().all(plain) {
        return Ok(());
    }
    // Only CONNECT names a bare `host:port`.
    let form = method == "CONNECT" || target.contains("://") || target.starts_with(['/', '*']);
    if !form || target.contains('#') || target.parse::<Uri>().is_err() {
        return Err(MalformedHead::Target);
    }
    Ok(())
}

fn parse_length(value: &[u8]) -> Result<u64, MalformedHead> {
    let digits = std::str::from_utf8(value).map_err(|_| MalformedHead::Length)?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(MalformedHead::Length);
    }
    digits
        .parse()
        .ok()
        .filter(|&length| length <= MAX_LENGTH)
        .ok_or(MalformedHead::Length)
}

fn bare_line_feed(head: &[u8]) -> bool {
    let mut before = b'\r';
    for &byte in head {
        if byte == b'\n' && before != b'\r' {
            return true;
        }
        before = byte;
    }
    false
}

/// A head that was refused, with what can be told of it for the record.
#[derive(Debug)]
pub(crate) struct BadHead {
    pub(crate) why: MalformedHead,
    pub(crate) method: Bytes,
    pub(crate) target: Bytes,
    pub(crate) host: Bytes,
}

impl BadHead {
    /// Guesses at the parts of a head that is not one. For showing only.
    pub(super) fn new(head: &[u8], why: MalformedHead) -> Self {
        let mut lines = head
            .split(|&byte| byte == b'\n')
            .map(<[u8]>::trim_ascii)
            .skip_while(|line| line.is_empty());
        let first = lines.next().unwrap_or_default();
        let mut words = first
            .split(|&byte| byte == b' ')
            .filter(|word| !word.is_empty());
        let method = words.next().unwrap_or_default();
        let target = words.next().unwrap_or_default();
        let host = lines
            .find_map(|line| {
                let (name, value) = line.split_at_checked(HOST.len())?;
                name.eq_ignore_ascii_case(HOST).then(|| value.trim_ascii())
            })
            .unwrap_or_default();
        Self {
            why,
            method: shown(method),
            target: shown(target),
            host: shown(host),
        }
    }
}

fn shown(bytes: &[u8]) -> Bytes {
    Bytes::copy_from_slice(&bytes[..bytes.len().min(MAX_SHOWN)])
}

const HOST: &[u8] = b"host:";

/// As many fields as fit on the stack.
const USUAL_COUNT: usize = 100;

/// The longest target that the HTTP library takes.
const MAX_TARGET: usize = 65_534;

/// The two highest numbers mean something else to the HTTP library.
const MAX_LENGTH: u64 = u64::MAX - 2;

/// A bad head may be all noise; the record shows the beginning of each part.
const MAX_SHOWN: usize = 1024;
