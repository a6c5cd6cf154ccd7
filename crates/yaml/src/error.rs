//! What is wrong with a file, and where.

use crate::Position;

/// A file that cannot be used, with the place of the mistake.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{kind} (line {}, column {})", at.line, at.column)]
pub struct Error {
    /// Where.
    pub at: Position,
    /// What is wrong.
    pub kind: ErrorKind,
}

/// What is wrong with a file. Places are paths into the document, such as `url_prefixes[0].methods`.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ErrorKind {
    /// The text is no YAML.
    #[error("this is not valid YAML: {message}")]
    Yaml {
        /// What the parser says; it quotes no more than a character.
        message: String,
    },
    /// More than one document in the file.
    #[error("{what} is one document, and here begins another")]
    ManyDocuments {
        /// What the file is.
        what: &'static str,
    },
    /// Deeper or larger than any file of its kind.
    #[error("{what} is too large")]
    TooLarge {
        /// What the file is.
        what: &'static str,
    },
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
    /// An entry without a key that it needs.
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
    /// A value of the right type that means nothing. Not for values that must not be seen.
    #[error("{place} cannot be `{value}`: it must be {expected}")]
    WrongValue {
        /// Where.
        place: String,
        /// What stands there.
        value: String,
        /// What belongs there.
        expected: &'static str,
    },
}

impl ErrorKind {
    /// The error of this kind at that place.
    pub fn at(self, at: Position) -> Error {
        Error { at, kind: self }
    }

    /// The error of an entry without a key that it needs.
    pub fn missing(place: &str, key: &'static str) -> Self {
        Self::MissingKey {
            place: place.to_owned(),
            key,
        }
    }

    /// The error of a value of the right type that means nothing.
    pub fn wrong_value(place: &str, value: String, expected: &'static str) -> Self {
        Self::WrongValue {
            place: place.to_owned(),
            value,
            expected,
        }
    }

    /// What to write instead.
    pub fn hint(&self) -> String {
        match self {
            Self::Yaml { .. } => {
                "indent with spaces, and put quotes around text with special characters".to_owned()
            }
            Self::ManyDocuments { .. } => "remove the `---` line and what follows it".to_owned(),
            Self::TooLarge { .. } => "make it shorter".to_owned(),
            Self::Tag { .. } => "remove the tag".to_owned(),
            Self::Key => "put quotes around the key".to_owned(),
            Self::DuplicateKey { .. } => "merge the two into one".to_owned(),
            Self::UnknownKey { key, known, .. } => match nearest(key, known) {
                Some(other) => format!("did you mean `{other}`?"),
                None => format!("the keys are {}", known.join(", ")),
            },
            Self::MissingKey { key, .. } => format!("add `{key}:`"),
            Self::WrongType {
                expected, found, ..
            } => wrong_type_hint(expected, found),
            Self::WrongValue { expected, .. } => format!("write {expected}"),
        }
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

/// The known key that was probably meant: one that only lacks an end, or that is a slip or two away.
fn nearest<'a>(key: &str, known: &[&'a str]) -> Option<&'a str> {
    let lacks_an_end =
        |other: &&&str| !key.is_empty() && (other.starts_with(key) || key.starts_with(**other));
    if let Some(other) = known.iter().find(lacks_an_end) {
        return Some(other);
    }
    // A long key would cost its length squared, and nobody means a short one by it.
    let slips = |other: &&str| match key.len() {
        0..=MAX_KEY => distance(key, other),
        _ => usize::MAX,
    };
    let (nearest, slips) = known
        .iter()
        .map(|other| (*other, slips(other)))
        .min_by_key(|(_, slips)| *slips)?;
    (slips <= nearest.chars().count() / 3).then_some(nearest)
}

/// How many letters have to be added, removed, changed or swapped with their neighbour.
fn distance(left: &str, right: &str) -> usize {
    let right = Vec::from_iter(right.chars());
    let mut rows = [Vec::new(), Vec::new(), Vec::from_iter(0..=right.len())];
    let mut before = None;
    for (row, letter) in left.chars().enumerate() {
        rows.rotate_left(1);
        let [two_above, above, current] = &mut rows;
        *current = vec![row + 1];
        for (column, other) in right.iter().enumerate() {
            let change = above[column] + usize::from(letter != *other);
            let mut least = change.min(above[column + 1] + 1).min(current[column] + 1);
            if column > 0 && before == Some(*other) && right[column - 1] == letter {
                least = least.min(two_above[column - 1] + 1);
            }
            current.push(least);
        }
        before = Some(letter);
    }
    let [.., last] = &rows;
    last.last().copied().unwrap_or_default()
}

const MAX_KEY: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_counted() {
        for (left, right, slips) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("scopes", "scopes", 0),
            ("socpes", "scopes", 1),
            ("scope", "scopes", 1),
            ("sckopes", "scopes", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(left, right), slips, "{left} {right}");
        }
    }

    #[test]
    fn a_slip_finds_its_key_and_a_guess_does_not() {
        let known = &["scopes", "headers", "allow_foreign_credentials"];
        assert_eq!(nearest("socpe", known), Some("scopes"));
        assert_eq!(nearest("header", known), Some("headers"));
        assert_eq!(nearest("alow_foriegn_credential", known), Some(known[2]));
        for key in ["", "x", "hosts", &"s".repeat(100_000)] {
            assert_eq!(nearest(key, known), None);
        }
    }
}
