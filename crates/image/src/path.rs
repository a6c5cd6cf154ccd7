//! Where a file stands in a build context.

use std::{borrow::Borrow, fmt, path::Path, str::FromStr};

/// A relative path below the root of a build context, in one spelling only.
///
/// Parts are separated by `/`; none is empty, `.` or `..`, and none holds a backslash or a control
/// character, which engines read in different ways.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ContextPath(String);

/// A name that is no place in a build context.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{}` cannot name a file of a build context: {reason}", path.escape_debug())]
pub struct InvalidPath {
    path: String,
    reason: Reason,
}

impl ContextPath {
    /// The path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The directories on the way to it, outermost first.
    pub(crate) fn parents(&self) -> impl Iterator<Item = &str> {
        self.0.match_indices('/').map(|(at, _)| &self.0[..at])
    }
}

impl FromStr for ContextPath {
    type Err = InvalidPath;

    fn from_str(path: &str) -> Result<Self, InvalidPath> {
        match check(path) {
            Ok(()) => Ok(Self(path.to_owned())),
            Err(reason) => Err(InvalidPath {
                path: path.to_owned(),
                reason,
            }),
        }
    }
}

impl fmt::Display for ContextPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Ordered as its text is.
impl Borrow<str> for ContextPath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<Path> for ContextPath {
    fn as_ref(&self) -> &Path {
        Path::new(&self.0)
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
enum Reason {
    #[error("it is empty, or has an empty part")]
    Empty,
    #[error("it holds `.` or `..` as a part")]
    Dots,
    #[error("it holds a backslash or a control character")]
    Character,
    #[error("a part is longer than {PART_MAX} bytes, or the whole than {PATH_MAX}")]
    TooLong,
}

fn check(path: &str) -> Result<(), Reason> {
    if path.len() > PATH_MAX {
        return Err(Reason::TooLong);
    }
    if path.contains(|c: char| c == '\\' || c.is_control()) {
        return Err(Reason::Character);
    }
    for part in path.split('/') {
        match part {
            "" => return Err(Reason::Empty),
            "." | ".." => return Err(Reason::Dots),
            _ if part.len() > PART_MAX => return Err(Reason::TooLong),
            _ => {}
        }
    }
    Ok(())
}

/// What Linux file systems take as one name.
const PART_MAX: usize = 255;

/// Below the kernel's limit of 4096, with room for the directory that the context is laid out in.
const PATH_MAX: usize = 3072;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_are_taken_as_they_are() {
        for name in [
            "a",
            "a b",
            ".env",
            "..x",
            "src/main.rs",
            "ä/ö.txt",
            "a/.b/c",
        ] {
            assert_eq!(name.parse::<ContextPath>().unwrap().as_str(), name);
        }
    }

    #[test]
    fn a_path_cannot_leave_the_context_or_be_spelled_twice() {
        let long = "x".repeat(256);
        for name in [
            "", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b", "a\\b", "a\0b",
            "a\nb", &long,
        ] {
            assert!(name.parse::<ContextPath>().is_err(), "{name:?}");
        }
    }

    #[test]
    fn an_error_shows_the_name_without_its_control_characters() {
        let error = "a\nb".parse::<ContextPath>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`a\\nb` cannot name a file of a build context: it holds a backslash or a control character"
        );
    }
}
