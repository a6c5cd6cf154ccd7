//! The tree, and the readers that take it apart.
//!
//! Every reader refuses a tag. Whoever knows tags takes the node's tag out before reading it, so that none is overlooked.

use std::fmt;

use crate::{Error, ErrorKind};

/// A value and where it stands. Its printed form says of what type it is, and not what it is.
#[derive(Clone)]
pub struct Node {
    /// Where the value begins.
    pub at: Position,
    /// The tag before it.
    pub tag: Option<Tag>,
    /// What it is.
    pub value: Value,
}

/// A place in a text. Both count from 1.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// `!something` before a value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Tag {
    /// Where it stands.
    pub at: Position,
    /// The tag with its exclamation mark.
    pub name: String,
}

/// What a value is, by the core schema of YAML 1.2. A scalar with quotes or a tag is a string.
#[derive(Clone)]
pub enum Value {
    /// Nothing, or one of the words for it.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it was written.
    Number(String),
    /// Text.
    String(String),
    /// A list.
    List(Vec<Node>),
    /// A map, in the order of the text.
    Map(Vec<(Key, Node)>),
}

/// A key and where it stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Key {
    /// Where it begins.
    pub at: Position,
    /// The key itself.
    pub name: String,
}

impl Node {
    /// The text of a string.
    pub fn string(self, place: &str) -> Result<String, Error> {
        self.untagged()?;
        match self.value {
            Value::String(text) => Ok(text),
            _ => Err(self.wrong_type(place, "a string")),
        }
    }

    /// The text of a string, a number as it was written, `true` or `false`.
    pub fn scalar(self, place: &str) -> Result<String, Error> {
        self.untagged()?;
        match self.value {
            Value::String(text) | Value::Number(text) => Ok(text),
            Value::Bool(value) => Ok(value.to_string()),
            Value::Null | Value::List(_) | Value::Map(_) => {
                Err(self.wrong_type(place, "a string, a number or a boolean"))
            }
        }
    }

    /// Whether it is true.
    pub fn boolean(self, place: &str) -> Result<bool, Error> {
        self.untagged()?;
        match self.value {
            Value::Bool(value) => Ok(value),
            _ => Err(self.wrong_type(place, "true or false")),
        }
    }

    /// A whole number.
    pub fn integer(self, place: &str) -> Result<i64, Error> {
        self.untagged()?;
        let Value::Number(text) = &self.value else {
            return Err(self.wrong_type(place, "a number"));
        };
        integer(text).ok_or_else(|| {
            ErrorKind::wrong_value(place, text.clone(), "a whole number").at(self.at)
        })
    }

    /// The items of a list, each read with its own place, such as `domains[2]`.
    pub fn list<T, E: From<Error>>(
        self,
        place: &str,
        mut item: impl FnMut(Self, &str) -> Result<T, E>,
    ) -> Result<Vec<T>, E> {
        self.untagged()?;
        let Value::List(nodes) = self.value else {
            return Err(self.wrong_type(place, "a list").into());
        };
        let items = nodes.into_iter().enumerate();
        items
            .map(|(index, node)| item(node, &format!("{place}[{index}]")))
            .collect()
    }

    /// The entries of a map; `expected` says what kind of map belongs there.
    pub fn map(self, place: &str, expected: &'static str) -> Result<Vec<(Key, Self)>, Error> {
        self.untagged()?;
        match self.value {
            Value::Map(entries) => Ok(entries),
            _ => Err(self.wrong_type(place, expected)),
        }
    }

    /// The error of a value of another type than `expected`.
    pub fn wrong_type(&self, place: &str, expected: &'static str) -> Error {
        ErrorKind::WrongType {
            place: place.to_owned(),
            expected,
            found: self.value.kind(),
        }
        .at(self.at)
    }

    fn untagged(&self) -> Result<(), Error> {
        match &self.tag {
            Some(tag) => Err(ErrorKind::Tag {
                tag: tag.name.clone(),
            }
            .at(tag.at)),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} at {}:{}",
            self.value.kind(),
            self.at.line,
            self.at.column
        )
    }
}

impl Value {
    fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}

impl Key {
    /// The error of a key that does not belong in `place`.
    pub fn unknown(self, place: &str, known: &'static [&'static str]) -> Error {
        ErrorKind::UnknownKey {
            place: place.to_owned(),
            key: self.name,
            known,
        }
        .at(self.at)
    }
}

/// The whole number that a text is, by the core schema of YAML 1.2.
pub(crate) fn integer(text: &str) -> Option<i64> {
    let radix = |prefix, radix| {
        let digits: &str = text.strip_prefix(prefix)?;
        let signed = digits.starts_with(['+', '-']);
        i64::from_str_radix(digits, radix).ok().filter(|_| !signed)
    };
    text.parse()
        .ok()
        .or_else(|| radix("0x", 16))
        .or_else(|| radix("0o", 8))
}
