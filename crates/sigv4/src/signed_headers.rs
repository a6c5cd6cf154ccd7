//! The list of headers that a signature covers.

use std::fmt;

use crate::Error;

/// Names of the signed headers: lower case, sorted, unique, and always with `host`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SignedHeaders(Vec<String>);

impl SignedHeaders {
    /// Reads a list separated by semicolons. `:authority`, which some clients sign over HTTP/2, stands for `host`,
    /// because that is what the service sees.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut names = text
            .split(';')
            .map(|name| match name.to_ascii_lowercase() {
                name if name == AUTHORITY => Ok(HOST.to_owned()),
                name if !name.is_empty() && name.bytes().all(is_token) => Ok(name),
                _ => Err(Error::Malformed {
                    field: "SignedHeaders",
                }),
            })
            .collect::<Result<Vec<_>, _>>()?;
        names.sort_unstable();
        names.dedup();
        // A signature that leaves the host open could be used elsewhere by whoever receives it.
        if !names.iter().any(|name| name == HOST) {
            return Err(Error::HostNotSigned);
        }
        Ok(Self(names))
    }

    /// The names in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Is the header of that lower-case name signed?
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.0
            .binary_search_by(|known| known.as_str().cmp(name))
            .is_ok()
    }
}

impl fmt::Display for SignedHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(";"))
    }
}

/// May the byte stand in a header name?
pub(crate) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

pub(crate) const HOST: &str = "host";
pub(crate) const AUTHORITY: &str = ":authority";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_lower_case_and_unique() {
        let list = SignedHeaders::parse("X-Amz-Date;host;:authority;content-type;host").unwrap();
        assert_eq!(list.to_string(), "content-type;host;x-amz-date");
        assert!(list.contains("host"));
        assert!(!list.contains("date"));
    }

    #[test]
    fn a_signature_that_does_not_bind_the_host_is_refused() {
        assert_eq!(
            SignedHeaders::parse("x-amz-date"),
            Err(Error::HostNotSigned)
        );
    }

    #[test]
    fn names_that_are_no_header_names_are_refused() {
        for text in [
            "",
            "host;",
            ";host",
            "host;a b",
            "host;a:b",
            "host;ä",
            "host;a\nb",
        ] {
            assert!(SignedHeaders::parse(text).is_err(), "{text:?}");
        }
    }
}
