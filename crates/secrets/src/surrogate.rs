//! Look-alikes that stand for secrets inside the container.
//!
//! A surrogate shows what the format of a credential shows anyway (its length, its kinds of characters, a prefix that
//! names the issuer) so that programs which check the format accept it. The rest is random and says nothing of the secret.

use std::fmt;

use zeroize::Zeroizing;

use crate::SecretsError;

mod prefixes;

use prefixes::PREFIXES;

/// A value that may be seen by everybody: it opens nothing until the proxy swaps it.
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct Surrogate(Box<str>);

impl Surrogate {
    /// Takes a surrogate that another process drew.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let printable = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        printable.then(|| Self(text.into()))
    }

    /// The surrogate as the container sees it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Surrogate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Surrogate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Surrogate({})", self.0)
    }
}

/// What a surrogate keeps of its secret.
///
/// ```
/// # use cordon_secrets::Shape;
/// let shape = Shape::of("ghp_16C7e42F292c6912E7710c838347Ae178B4a");
/// assert_eq!((shape.prefix(), shape.len()), ("ghp_", 40));
/// assert!(shape.draw()?.as_str().starts_with("ghp_"));
/// # Ok::<(), cordon_secrets::SecretsError>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Shape {
    prefix: &'static str,
    charset: String,
    length: usize,
}

impl Shape {
    /// The shape of a value: its longest known prefix, and the kinds of characters after it.
    pub fn of(value: &str) -> Self {
        let prefix = PREFIXES
            .iter()
            .copied()
            .filter(|prefix| value.starts_with(prefix))
            .max_by_key(|prefix| prefix.len())
            .unwrap_or_default();
        Self {
            prefix,
            charset: charset(&value[prefix.len()..]),
            length: value.len(),
        }
    }

    /// The shape of every AWS session token, whatever the length of the real one.
    pub fn session_token() -> Self {
        Self {
            prefix: "",
            charset: [UPPER, LOWER, DIGITS].concat(),
            length: SESSION_TOKEN_LENGTH,
        }
    }

    /// The part that is kept as it is.
    pub fn prefix(&self) -> &str {
        self.prefix
    }

    /// The characters that the rest is drawn from.
    pub fn charset(&self) -> &str {
        &self.charset
    }

    /// The length in bytes, prefix included.
    #[expect(clippy::len_without_is_empty, reason = "a length, not a collection")]
    pub fn len(&self) -> usize {
        self.length
    }

    /// How many random bits a surrogate of this shape has, rounded down.
    pub fn random_bits(&self) -> u32 {
        let characters = (self.length - self.prefix.len()) as f64;
        (characters * (self.charset.len() as f64).log2()) as u32
    }

    /// Draws a surrogate from the operating system's generator.
    pub fn draw(&self) -> Result<Surrogate, SecretsError> {
        let charset = self.charset.as_bytes();
        // Bytes past the last whole multiple would make the first characters likelier than the others.
        let fair = 256 - 256 % charset.len();
        let mut text = String::with_capacity(self.length);
        text.push_str(self.prefix);
        let mut random = [0; 64];
        while text.len() < self.length {
            getrandom::fill(&mut random).map_err(SecretsError::Random)?;
            let drawn = random
                .iter()
                .map(|&byte| usize::from(byte))
                .filter(|&byte| byte < fair)
                .map(|byte| char::from(charset[byte % charset.len()]));
            text.extend(drawn.take(self.length - text.len()));
        }
        Ok(Surrogate(text.into()))
    }
}

/// Whether one text is part of the other, as somebody who ignores case reads them.
pub(crate) fn overlap(a: &str, b: &str) -> bool {
    let lower = |text: &str| Zeroizing::new(text.to_ascii_lowercase());
    let (a, b) = (lower(a), lower(b));
    a.contains(b.as_str()) || b.contains(a.as_str())
}

fn charset(rest: &str) -> String {
    let mut found = String::new();
    if rest.contains(|c: char| c.is_ascii_uppercase()) {
        found.push_str(UPPER);
    }
    if rest.contains(|c: char| c.is_ascii_lowercase()) {
        found.push_str(LOWER);
    }
    if rest.contains(|c: char| c.is_ascii_digit()) {
        found.push_str(DIGITS);
    }
    if rest.contains(|c: char| !c.is_ascii_alphanumeric()) {
        found.push_str(OTHERS);
    }
    if found.is_empty() {
        return [LOWER, DIGITS].concat();
    }
    found
}

const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
const DIGITS: &str = "0123456789";

/// Stands for every other character: these two need no escape in a header, a URL, JSON or a shell.
const OTHERS: &str = "-_";

/// Less could turn up in ordinary text by chance, and be replaced there.
pub(crate) const MIN_RANDOM_BITS: u32 = 40;

/// Real session tokens have no fixed length; this is a usual one.
const SESSION_TOKEN_LENGTH: usize = 512;

#[cfg(test)]
mod tests;
