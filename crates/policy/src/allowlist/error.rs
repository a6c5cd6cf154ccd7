//! What is wrong with an allowlist, and where.

use std::fmt;

use cordon_yaml::{ErrorKind, Position};

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

impl From<cordon_yaml::Error> for AllowlistError {
    fn from(error: cordon_yaml::Error) -> Self {
        AllowlistErrorKind::Document(error.kind).at(error.at)
    }
}

/// What is wrong with an allowlist. Places are paths into the document, such as `url_prefixes[0].methods`.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum AllowlistErrorKind {
    /// The text is no YAML, or not the keys and values of an allowlist.
    #[error(transparent)]
    Document(ErrorKind),
    /// The text is no JSON.
    #[error("this is not valid JSON: {message}")]
    Json {
        /// What the parser says.
        message: String,
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
    pub(super) fn at(self, at: Position) -> AllowlistError {
        AllowlistError {
            line: at.line,
            column: at.column,
            kind: self,
        }
    }

    fn hint(&self) -> String {
        let hint = match self {
            Self::Document(ErrorKind::Yaml { .. }) => {
                "quote patterns that begin with `*`: \"*.example.com\""
            }
            Self::Document(ErrorKind::TooLarge { .. }) => "use patterns instead of long lists",
            Self::Document(ErrorKind::Tag { .. }) => {
                "remove the tag; values in an allowlist are plain"
            }
            Self::Document(ErrorKind::Key) => {
                "write `domains:` or `url_prefixes:` with a list below it"
            }
            Self::Document(ErrorKind::MissingKey { .. }) => {
                "name the host, or use \"*\" for every host"
            }
            Self::Document(other) => return other.hint(),
            Self::Json { .. } => "write the allowlist with `to_json`, or use YAML",
            Self::Pattern { source, .. } => source.hint(),
        };
        hint.to_owned()
    }
}
