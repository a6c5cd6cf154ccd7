//! Patterns over text: the only matching code there is.
//!
//! The rules are those of shell patterns: `*` is any run of characters, `/` and `.` included, `?` is one character and
//! `[a-z]` or `[!a-z]` one of a class. A text without `*` and `?` is no pattern at all: it matches itself.

mod program;

use std::fmt;

pub(crate) use program::{Case, Program, is_pattern};

/// A pattern over case-sensitive text, compiled once.
///
/// ```
/// # use cordon_policy::Glob;
/// assert!(Glob::new("create*").matches("createIssue"));
/// assert!(!Glob::new("create*").matches("deleteIssue"));
/// ```
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct Glob {
    source: Box<str>,
    program: Program,
}

impl Glob {
    /// Compiles a pattern; every text is one.
    pub fn new(pattern: &str) -> Self {
        Self {
            source: pattern.into(),
            program: Program::new(pattern, Case::Sensitive),
        }
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Whether the whole text matches.
    pub fn matches(&self, text: &str) -> bool {
        self.program.matches(text)
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Glob({})", self.source)
    }
}

/// A pattern over names whose case does not matter, such as those of headers.
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct NamePattern {
    source: Box<str>,
    program: Program,
}

impl NamePattern {
    /// Compiles a pattern; every text is one.
    pub fn new(pattern: &str) -> Self {
        Self {
            source: pattern.into(),
            program: Program::new(pattern, Case::Ignored),
        }
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Whether the whole name matches, whatever its case.
    pub fn matches(&self, name: &str) -> bool {
        self.program.matches(name)
    }
}

impl fmt::Debug for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NamePattern({})", self.source)
    }
}

#[cfg(test)]
mod tests;
