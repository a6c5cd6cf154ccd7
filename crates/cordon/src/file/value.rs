//! Values that are known once the file is resolved.

use cordon_secrets::Secret;
use cordon_yaml::{Node, Position};

use super::error::{FileErrorKind, Mistake};

/// A value of a variable or secret, as the file gives it.
pub(super) struct Value {
    pub(super) at: Position,
    /// The path to it, for errors.
    pub(super) place: String,
    pub(super) given: Given,
}

/// How a value is given.
pub(super) enum Given {
    /// As it is.
    Literal(Secret),
    /// `!env NAME`: a variable of the host, which must be set.
    Env(String),
    /// `!secret NAME`: a secret, which must be there.
    Secret(String),
    /// `!secret? NAME`: a secret; the entry is left out if there is none.
    Optional(String),
}

impl Value {
    pub(super) fn read(mut node: Node, place: &str) -> Result<Self, Mistake> {
        let place = place.to_owned();
        let Some(tag) = node.tag.take() else {
            let at = node.at;
            let given = Given::Literal(node.scalar(&place)?.into());
            return Ok(Self { at, place, given });
        };
        let at = tag.at;
        let (tag, given): (_, fn(String) -> Given) = match tag.name.as_str() {
            "!env" => ("!env", Given::Env),
            "!secret" => ("!secret", Given::Secret),
            "!secret?" => ("!secret?", Given::Optional),
            _ => {
                let kind = FileErrorKind::UnknownTag { place };
                return Err(Mistake { at, kind });
            }
        };
        match node.scalar(&place) {
            Ok(name) if is_name(&name) => Ok(Self {
                at,
                place,
                given: given(name),
            }),
            _ => {
                let kind = FileErrorKind::TagWithoutName { place, tag };
                Err(Mistake { at, kind })
            }
        }
    }

    /// The name behind the tag, if there is one.
    pub(super) fn name(&self) -> Option<&str> {
        match &self.given {
            Given::Literal(_) => None,
            Given::Env(name) | Given::Secret(name) | Given::Optional(name) => Some(name),
        }
    }
}

/// Whether a text can name a secret or a variable of the host.
fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_control)
}

/// Whether a variable of the container can have the name. Some programs want punctuation in theirs.
pub(super) fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'=')
}
