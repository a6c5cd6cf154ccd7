//! One case, read field by field, so that a field nobody read is noticed.

use std::{fmt, io};

use serde_json::{Map, Value};

/// The fields of a case that are still to be read.
#[derive(Debug)]
pub(crate) struct Case {
    id: String,
    fields: Map<String, Value>,
}

impl Case {
    pub(crate) fn new(case: Value) -> Result<Self, Unreadable> {
        let Value::Object(mut fields) = case else {
            return Err(Unreadable::Shape("case"));
        };
        match fields.remove("id") {
            Some(Value::String(id)) => Ok(Self { id, fields }),
            _ => Err(Unreadable::Shape("id")),
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Takes a field that may be missing.
    pub(crate) fn optional(&mut self, name: &'static str) -> Option<Value> {
        self.fields.remove(name)
    }

    /// Takes a field that must be there.
    pub(crate) fn value(&mut self, name: &'static str) -> Result<Value, Unreadable> {
        self.optional(name).ok_or(Unreadable::Missing(name))
    }

    /// Takes a text.
    pub(crate) fn text(&mut self, name: &'static str) -> Result<String, Unreadable> {
        match self.value(name)? {
            Value::String(text) => Ok(text),
            _ => Err(Unreadable::Shape(name)),
        }
    }

    /// Takes bytes in any of their three spellings.
    pub(crate) fn bytes(&mut self, name: &'static str) -> Result<Vec<u8>, Unreadable> {
        bytes(&self.value(name)?).ok_or(Unreadable::Shape(name))
    }

    /// Takes what is expected; the safer value wins.
    pub(crate) fn expected(&mut self) -> Result<Value, Unreadable> {
        let observed = self.value("expect")?;
        Ok(self.optional("safer_expect").unwrap_or(observed))
    }

    /// Makes sure that nothing but remarks is left unread.
    pub(crate) fn finish(mut self) -> Result<(), Unreadable> {
        for remark in ["source", "note", "name", "safer_behaviour"] {
            self.fields.remove(remark);
        }
        match self.fields.keys().next() {
            None => Ok(()),
            Some(field) => Err(Unreadable::Unknown(field.clone())),
        }
    }
}

/// `{"utf8": …}`, `{"hex": …}` or `{"fill": "x", "len": 3}`.
pub(crate) fn bytes(value: &Value) -> Option<Vec<u8>> {
    let fields = value.as_object()?;
    match (
        fields.get("utf8"),
        fields.get("hex"),
        fields.get("fill"),
        fields.len(),
    ) {
        (Some(text), None, None, 1) => Some(text.as_str()?.as_bytes().to_vec()),
        (None, Some(digits), None, 1) => hex(digits.as_str()?),
        (None, None, Some(fill), 2) => {
            let length = usize::try_from(fields.get("len")?.as_u64()?).ok()?;
            Some(fill.as_str()?.repeat(length).into_bytes())
        }
        _ => None,
    }
}

/// Bytes from pairs of hexadecimal digits.
pub(crate) fn hex(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => Some(nibble(*high)? << 4 | nibble(*low)?),
            _ => None,
        })
        .collect()
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

/// What a case asks for and what the code answered.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) expected: Value,
    pub(crate) got: Value,
    /// Why the code answered so, where that is known.
    pub(crate) because: String,
}

impl Check {
    pub(crate) fn new(expected: impl Into<Value>, got: impl Into<Value>) -> Self {
        Self {
            expected: expected.into(),
            got: got.into(),
            because: String::new(),
        }
    }

    pub(crate) fn because(mut self, reason: impl fmt::Display) -> Self {
        self.because = reason.to_string();
        self
    }

    pub(crate) fn passes(&self) -> bool {
        self.expected == self.got
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n  expected {}\n  got      {}", self.expected, self.got)?;
        match self.because.as_str() {
            "" => Ok(()),
            reason => write!(f, "\n  because  {reason}"),
        }
    }
}

/// A file or case that cannot be run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("no kind of case has this file name")]
    File,
    #[error("the file is not a list of cases")]
    NoCases,
    #[error("the field `{0}` is missing")]
    Missing(&'static str),
    #[error("the field `{0}` has a shape that is not known")]
    Shape(&'static str),
    #[error("the field `{0}` is not known")]
    Unknown(String),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("no answer came in time")]
    Silence,
    #[error(transparent)]
    Allowlist(#[from] cordon_policy::AllowlistError),
    #[error(transparent)]
    Certificate(#[from] rcgen::Error),
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    #[error(transparent)]
    Host(#[from] cordon_policy::InvalidHost),
    #[error(transparent)]
    Secrets(#[from] cordon_secrets::SecretsError),
    #[error(transparent)]
    Proxy(#[from] cordon_proxy::Error),
    #[error(transparent)]
    Session(#[from] cordon_session::Error),
    #[error(transparent)]
    Signing(#[from] cordon_sigv4::Error),
}
