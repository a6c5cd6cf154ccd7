//! The target of a request: path and query, decoded once, or refused.
//!
//! A path that the allowlist judges must be the path that the upstream serves. So whatever a common server
//! would resolve into another path is refused here, whichever entry might have allowed it.

use std::borrow::Cow;

use percent_encoding::percent_decode;

/// A request target in origin form (`/path?query`), or the `*` of OPTIONS.
///
/// ```
/// # use cordon_policy::Target;
/// let target = Target::parse(b"/%67raphql?x=1")?;
/// assert_eq!((target.path(), target.query()), ("/graphql", Some("x=1")));
/// assert!(Target::parse(b"/repos/%2e%2e/secret").is_err());
/// # Ok::<(), cordon_policy::MalformedTarget>(())
/// ```
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Target {
    raw: Box<str>,
    /// The decoded text, where it differs from `raw`.
    decoded: Option<Box<str>>,
    /// Where the path ends in the decoded text.
    path_end: usize,
    has_query: bool,
    /// The path without its `.` segments, where it has any.
    resolved: Option<Box<str>>,
}

impl Target {
    /// Reads a target as it came over the wire. The empty one, of `http://host`, is `/`.
    pub fn parse(raw: &[u8]) -> Result<Self, MalformedTarget> {
        let raw = std::str::from_utf8(raw).map_err(|_| MalformedTarget::NotUtf8)?;
        let raw = if raw.is_empty() { "/" } else { raw };
        if raw == "*" {
            return Ok(Self::asterisk());
        }
        check_raw(raw)?;

        let (raw_path, raw_query) = match raw.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (raw, None),
        };
        let path = read(raw_path)?;
        check_segments(&path)?;
        let query = raw_query.map(read).transpose()?;
        if let Some(query) = &query {
            check_query(query)?;
        }

        let resolved = resolve(&path);
        let changed = matches!(path, Cow::Owned(_)) || matches!(query, Some(Cow::Owned(_)));
        let decoded = changed.then(|| match &query {
            Some(query) => format!("{path}?{query}").into(),
            None => path.as_ref().into(),
        });
        Ok(Self {
            raw: raw.into(),
            decoded,
            path_end: path.len(),
            has_query: query.is_some(),
            resolved,
        })
    }

    /// The target as it was sent, and as it goes upstream.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// The path, decoded, without the query.
    pub fn path(&self) -> &str {
        &self.decoded()[..self.path_end]
    }

    /// The query, decoded, without its question mark.
    pub fn query(&self) -> Option<&str> {
        self.has_query.then(|| &self.decoded()[self.path_end + 1..])
    }

    /// Whether this is the `*` that only OPTIONS may ask for.
    pub fn is_asterisk(&self) -> bool {
        &*self.raw == "*"
    }

    /// The path as a server sees it that drops `.` segments; none where there are none.
    pub(crate) fn resolved_path(&self) -> Option<&str> {
        self.resolved.as_deref()
    }

    fn asterisk() -> Self {
        Self {
            raw: "*".into(),
            decoded: None,
            path_end: 1,
            has_query: false,
            resolved: None,
        }
    }

    fn decoded(&self) -> &str {
        self.decoded.as_deref().unwrap_or(&self.raw)
    }
}

/// Why a request target is refused before any entry is asked.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, thiserror::Error)]
pub enum MalformedTarget {
    /// Bytes that are no UTF-8, not percent-encoded.
    #[error("the target holds bytes that are not UTF-8")]
    NotUtf8,
    /// An absolute URL, or anything else that does not begin with `/`.
    #[error("the target does not begin with a slash")]
    NoLeadingSlash,
    /// `*` with a method other than OPTIONS.
    #[error("the target `*` belongs to OPTIONS alone")]
    Asterisk,
    /// NUL, plain or encoded.
    #[error("the target holds a NUL byte")]
    Nul,
    /// A control character, plain or encoded, or a plain space.
    #[error("the target holds a control character or a plain space")]
    Control,
    /// `\`, plain or encoded, which some servers take for `/`.
    #[error("the target holds a backslash")]
    Backslash,
    /// `#`: a fragment never goes to a server.
    #[error("the target holds a fragment")]
    Fragment,
    /// `.` or `..` in a spelling that some server resolves.
    #[error("the target holds a dot segment")]
    DotSegment,
    /// A character encoded in more bytes than it needs, or as `%uXXXX`.
    #[error("the target encodes a character in a form that servers read differently")]
    Encoding,
}

/// What may not stand in the target before it is decoded.
fn check_raw(raw: &str) -> Result<(), MalformedTarget> {
    if !raw.starts_with('/') {
        return Err(MalformedTarget::NoLeadingSlash);
    }
    for byte in raw.bytes() {
        match byte {
            0 => return Err(MalformedTarget::Nul),
            b'\\' => return Err(MalformedTarget::Backslash),
            b'#' => return Err(MalformedTarget::Fragment),
            // A plain space would split the request line of an HTTP/1 upstream.
            1..=0x20 | 0x7f => return Err(MalformedTarget::Control),
            _ => {}
        }
    }
    Ok(())
}

/// Decodes a part of the target and checks what comes out.
fn read(raw: &str) -> Result<Cow<'_, str>, MalformedTarget> {
    let text = decode(raw)?;
    // Plain ASCII was looked at before.
    if matches!(text, Cow::Owned(_)) || !raw.is_ascii() {
        check_decoded(&text)?;
    }
    Ok(text)
}

/// Decodes percent escapes once. Malformed ones stay as they are, other bytes become U+FFFD.
fn decode(text: &str) -> Result<Cow<'_, str>, MalformedTarget> {
    let bytes = match Cow::from(percent_decode(text.as_bytes())) {
        Cow::Borrowed(_) => return Ok(Cow::Borrowed(text)),
        Cow::Owned(bytes) => bytes,
    };
    if bytes.windows(2).any(is_overlong) {
        return Err(MalformedTarget::Encoding);
    }
    let text = String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    Ok(Cow::Owned(text))
}

/// The first two bytes of a character spelled in more bytes than UTF-8 allows, as in `%c0%ae` for a dot.
fn is_overlong(pair: &[u8]) -> bool {
    matches!(
        pair,
        [0xc0 | 0xc1, 0x80..=0xbf] | [0xe0, 0x80..=0x9f] | [0xf0, 0x80..=0x8f]
    )
}

fn check_decoded(text: &str) -> Result<(), MalformedTarget> {
    for character in text.chars() {
        match character {
            '\0' => return Err(MalformedTarget::Nul),
            '\\' => return Err(MalformedTarget::Backslash),
            _ if character.is_control() => return Err(MalformedTarget::Control),
            _ => {}
        }
    }
    Ok(())
}

/// Looks for dot segments in the decoded path, and in what servers make of it that decode more than once.
///
/// A plain `.` may stay, since [`Target::resolved_path`] knows what becomes of it.
fn check_segments(path: &str) -> Result<(), MalformedTarget> {
    if !path.contains("/.") && !path.contains('%') {
        return Ok(());
    }
    let single = path.split('/').filter(|&segment| segment == ".").count();
    let only_single = |path: &str| {
        path.split(['/', '\\'])
            .filter(|segment| is_dots(segment))
            .count()
            == single
    };
    let mut path = Cow::Borrowed(path);
    for _ in 0..MAX_DECODINGS {
        if !only_single(&path) {
            return Err(MalformedTarget::DotSegment);
        }
        if !path.contains('%') {
            return Ok(());
        }
        if has_unicode_escape(&path) {
            return Err(MalformedTarget::Encoding);
        }
        path = match decode(&path)? {
            Cow::Borrowed(_) => return Ok(()),
            Cow::Owned(again) => Cow::Owned(again),
        };
    }
    Err(MalformedTarget::Encoding)
}

/// Servers strip parameters (`..;x`), what follows an encoded `?` or `#`, and trailing spaces before they resolve.
fn is_dots(segment: &str) -> bool {
    let stem = segment.split([';', '?', '#']).next().unwrap_or(segment);
    matches!(stem.trim_end_matches(' '), "." | "..")
}

/// `%u002e`, which IIS decodes and nobody else does.
fn has_unicode_escape(path: &str) -> bool {
    path.as_bytes().windows(6).any(|window| {
        matches!(window, [b'%', b'u' | b'U', digits @ ..] if digits.iter().all(u8::is_ascii_hexdigit))
    })
}

/// A query is not resolved by servers, yet ends up in redirects and includes that are.
fn check_query(query: &str) -> Result<(), MalformedTarget> {
    if query.contains("/../") || query.ends_with("/..") {
        return Err(MalformedTarget::DotSegment);
    }
    Ok(())
}

fn resolve(path: &str) -> Option<Box<str>> {
    if !path.contains("/.") || !path.split('/').any(|segment| segment == ".") {
        return None;
    }
    let mut resolved = String::with_capacity(path.len());
    for segment in path.split('/').skip(1).filter(|&segment| segment != ".") {
        resolved.push('/');
        resolved.push_str(segment);
    }
    // `/a/.` is the directory `/a/`, not the file `/a`.
    if path.ends_with("/.") {
        resolved.push('/');
    }
    Some(resolved.into())
}

/// Deeper nesting of percent escapes than any client produces; what is left then is refused.
const MAX_DECODINGS: usize = 5;

#[cfg(test)]
mod tests;
