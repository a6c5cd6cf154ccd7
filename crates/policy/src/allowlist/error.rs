//! What is wrong with an allowlist, and where.

use std::fmt;

use crate::InvalidPattern;

/// An allowlist that cannot be used, with the place of the mistake.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{kind} (line {line}, column {column})")]
pub struct AllowlistError {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// What is wrong.
    pub kind: AllowlistErrorKind,
}

impl AllowlistError {
    /// The error as compilers print it: `allowlist.yaml:3:5: unknown key `hosts``.
    pub fn in_file(&self, name: impl fmt::Display) -> String {
        format!("{name}:{}:{}: {}", self.line, self.column, self.kind)
    }

    /// What to write instead.
    pub fn hint(&self) -> String {
        self.kind.hint()
    }
}

/// What is wrong with an allowlist. Places are paths into the document, such as `url_prefixes[0].methods`.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum AllowlistErrorKind {
    /// The text is no YAML.
    #[error("this is not valid YAML: {message}")]
    Yaml {
        /// What the parser says.
        message: String,
    },
    /// The text is no JSON.
    #[error("this is not valid JSON: {message}")]
    Json {
        /// What the parser says.
        message: String,
    },
    /// More than one document in the file.
    #[error("an allowlist is one document, and here begins another")]
    ManyDocuments,
    /// Deeper or larger than any allowlist.
    #[error("the allowlist is too large")]
    TooLarge,
    /// `!something` before a value.
    #[error("the tag `{tag}` means nothing here")]
    Tag {
        /// The tag as it was written.
        tag: String,
    },
    /// A key that is a list, a map or a number.
    #[error("a key must be a word")]
    Key,
    /// The same key twice in one map.
    #[error("the key `{key}` stands here twice")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// A key that does not belong here.
    #[error("unknown key `{key}` in {place}")]
    UnknownKey {
        /// Where.
        place: String,
        /// The key.
        key: String,
        /// The keys that do belong here.
        known: &'static [&'static str],
    },
    /// An entry without its host.
    #[error("{place} has no `{key}`")]
    MissingKey {
        /// Where.
        place: String,
        /// The key.
        key: &'static str,
    },
    /// A string where a list belongs, and the like.
    #[error("{place} must be {expected}, not {found}")]
    WrongType {
        /// Where.
        place: String,
        /// What belongs there.
        expected: &'static str,
        /// What stands there.
        found: &'static str,
    },
    /// A value of the right type that means nothing.
    #[error("{place} cannot be `{value}`: it must be {expected}")]
    WrongValue {
        /// Where.
        place: String,
        /// What stands there.
        value: String,
        /// What belongs there.
        expected: &'static str,
    },
    /// A host or path that could never match.
    #[error("{place} cannot be `{value}`: {source}")]
    Pattern {
        /// Where.
        place: String,
        /// What stands there.
        value: String,
        /// What is wrong with it.
        source: InvalidPattern,
    },
}

impl AllowlistErrorKind {
    pub(super) fn at(self, line: usize, column: usize) -> AllowlistError {
        AllowlistError {
            line,
            column,
            kind: self,
        }
    }

    fn hint(&self) -> String {
        match self {
            Self::Yaml { .. } => "quote patterns that begin with `*`: \"*.example.com\"".to_owned(),
            Self::Json { .. } => "write the allowlist with `to_json`, or use YAML".to_owned(),
            Self::ManyDocuments => "remove the `---` line and what follows it".to_owned(),
            Self::TooLarge => "use patterns instead of long lists".to_owned(),
            Self::Tag { .. } => "remove the tag; values in an allowlist are plain".to_owned(),
            Self::Key => "write `domains:` or `url_prefixes:` with a list below it".to_owned(),
            Self::DuplicateKey { .. } => "merge the two into one".to_owned(),
            Self::UnknownKey { key, known, .. } => unknown_key_hint(key, known),
            Self::MissingKey { .. } => "name the host, or use \"*\" for every host".to_owned(),
            Self::WrongType {
                expected, found, ..
            } => wrong_type_hint(expected, found),
            Self::WrongValue { expected, .. } => format!("write {expected}"),
            Self::Pattern { source, .. } => source.hint().to_owned(),
        }
    }
}

fn unknown_key_hint(key: &str, known: &[&str]) -> String {
    let alike = |other: &&&str| other.starts_with(key) || key.starts_with(**other);
    match known.iter().find(alike) {
        Some(other) => format!("did you mean `{other}`?"),
        None => format!("the keys are {}", known.join(", ")),
    }
}

fn wrong_type_hint(expected: &str, found: &str) -> String {
    match (expected, found) {
        ("a list", "nothing") => "write `[]` or remove the key".to_owned(),
        ("a list", _) => "put a `- ` before each item, or brackets around them".to_owned(),
        ("a string", "nothing") => "write \"\" or remove the key".to_owned(),
        ("a string", "a number" | "a boolean") => "put quotes around it".to_owned(),
        _ => format!("write {expected}"),
    }
}
