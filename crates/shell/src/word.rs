//! One word of a line: what of it is fixed text, and what the shell would put there.
//!
//! Reads what the grammar left raw. Anything that is neither text, a plain variable nor a file pattern is refused.

use crate::{Reason, Refusal, scan::is_name};

/// A word, in pieces.
#[derive(Clone, Debug, Default)]
pub(crate) struct Word {
    pieces: Vec<Piece>,
    raw: String,
    at: Option<usize>,
}

#[derive(Clone, Debug)]
enum Piece {
    /// Text that stays as it is.
    Text(String),
    /// Part of a file pattern.
    Pattern(String),
    /// A variable, by its name.
    Variable { name: String, quoted: bool },
}

impl Word {
    /// Reads a word as it is written in a line.
    pub(crate) fn read(raw: &str, at: Option<usize>) -> Result<Self, Refusal> {
        let mut reader = Reader {
            rest: raw,
            word: Self {
                pieces: Vec::new(),
                raw: raw.to_owned(),
                at,
            },
        };
        reader.run()?;
        Ok(reader.word)
    }

    /// A word that is exactly that text.
    pub(crate) fn fixed(text: &str) -> Self {
        Self {
            pieces: vec![Piece::Text(text.to_owned())],
            raw: text.to_owned(),
            at: None,
        }
    }

    /// The text, if nothing of it is put there by the shell.
    pub(crate) fn text(&self) -> Option<String> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(part) => text.push_str(part),
                Piece::Pattern(_) | Piece::Variable { .. } => return None,
            }
        }
        Some(text)
    }

    /// Whether it is one word, whatever the shell puts into it.
    pub(crate) fn is_one(&self) -> bool {
        self.pieces.iter().all(|piece| match piece {
            Piece::Text(_) => true,
            Piece::Variable { quoted, .. } => *quoted,
            Piece::Pattern(_) => false,
        })
    }

    /// Whether it is a number: written, or one of those that the shell itself keeps.
    pub(crate) fn is_number(&self) -> bool {
        match self.pieces.as_slice() {
            [Piece::Text(text)] => {
                let digits = text.strip_prefix('-').unwrap_or(text);
                !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
            }
            [Piece::Variable { name, .. }] => matches!(name.as_str(), "?" | "#" | "$"),
            _ => false,
        }
    }

    /// Whether it may come out as an option, or as anything but what it says.
    pub(crate) fn may_be_option(&self) -> bool {
        match self.pieces.first() {
            Some(Piece::Text(text)) if self.text().is_none() => {
                // A variable that splits makes words that begin with anything.
                let splits = |piece: &Piece| matches!(piece, Piece::Variable { quoted: false, .. });
                text.starts_with('-') || text.is_empty() || self.pieces.iter().any(splits)
            }
            Some(Piece::Text(_)) => false,
            Some(Piece::Pattern(_) | Piece::Variable { .. }) => true,
            None => false,
        }
    }

    /// As it is written, for a refusal.
    pub(crate) fn refuse(&self, reason: Reason) -> Refusal {
        Refusal::new(reason, &self.raw, self.at)
    }

    /// Writes it such that every shell reads it alike.
    pub(crate) fn print(&self, out: &mut String) {
        if self.pieces.is_empty() {
            out.push_str("''");
        }
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => quote(text, out),
                Piece::Pattern(pattern) => out.push_str(pattern),
                Piece::Variable { name, quoted } => {
                    let quotes = if *quoted { "\"" } else { "" };
                    let expansion = if is_variable(name) {
                        format!("${{{name}}}")
                    } else {
                        format!("${name}")
                    };
                    out.push_str(&format!("{quotes}{expansion}{quotes}"));
                }
            }
        }
    }

    fn push(&mut self, text: &str) {
        match self.pieces.last_mut() {
            Some(Piece::Text(last)) => last.push_str(text),
            _ => self.pieces.push(Piece::Text(text.to_owned())),
        }
    }

    fn push_character(&mut self, character: char) {
        self.push(character.encode_utf8(&mut [0; 4]));
    }
}

/// Writes text in single quotes.
pub(crate) fn quote(text: &str, out: &mut String) {
    out.push('\'');
    out.push_str(&text.replace('\'', r"'\''"));
    out.push('\'');
}

struct Reader<'a> {
    rest: &'a str,
    word: Word,
}

impl Reader<'_> {
    fn run(&mut self) -> Result<(), Refusal> {
        if self.rest.is_empty() {
            return Err(Refusal::new(
                Reason::Syntax,
                "a word is missing",
                self.word.at,
            ));
        }
        if self.rest.starts_with('~') {
            return Err(self.word.refuse(Reason::Home));
        }
        while let Some(character) = self.next() {
            match character {
                '\'' => self.single_quotes()?,
                '"' => self.double_quotes()?,
                '\\' => match self.next() {
                    Some('\n') => {}
                    Some(escaped) => self.word.push_character(escaped),
                    None => return Err(self.word.refuse(Reason::Syntax)),
                },
                '$' => self.variable(false)?,
                '`' => return Err(self.word.refuse(Reason::Substitution)),
                '*' | '?' => self.word.pieces.push(Piece::Pattern(character.to_string())),
                '[' => self.bracket()?,
                '{' if self.expands() => return Err(self.word.refuse(Reason::Differs)),
                ' ' | '\t' | '\n' | '|' | '&' | ';' | '(' | ')' | '<' | '>' => {
                    return Err(self.word.refuse(Reason::Syntax));
                }
                other => self.word.push_character(other),
            }
        }
        Ok(())
    }

    fn single_quotes(&mut self) -> Result<(), Refusal> {
        let Some((text, rest)) = self.rest.split_once('\'') else {
            return Err(self.word.refuse(Reason::Syntax));
        };
        self.rest = rest;
        self.word.push(text);
        Ok(())
    }

    fn double_quotes(&mut self) -> Result<(), Refusal> {
        // Even an empty pair makes a word.
        if self.rest.starts_with('"') {
            self.word.push("");
        }
        while let Some(character) = self.next() {
            match character {
                '"' => return Ok(()),
                '$' => self.variable(true)?,
                '`' => return Err(self.word.refuse(Reason::Substitution)),
                '\\' => match self.next() {
                    Some('\n') => {}
                    Some(escaped @ ('$' | '`' | '"' | '\\')) => self.word.push_character(escaped),
                    Some(other) => {
                        self.word.push("\\");
                        self.word.push_character(other);
                    }
                    None => break,
                },
                other => self.word.push_character(other),
            }
        }
        Err(self.word.refuse(Reason::Syntax))
    }

    /// Reads what is behind a `$`.
    fn variable(&mut self, quoted: bool) -> Result<(), Refusal> {
        let reason = match self.rest.chars().next() {
            Some('{') => {
                let inner = &self.rest[1..];
                let end = inner.find('}').unwrap_or(inner.len());
                let name = &inner[..end];
                if end < inner.len() && is_variable(name) {
                    self.rest = &inner[end + 1..];
                    self.push_variable(name, quoted);
                    return Ok(());
                }
                Reason::Expansion
            }
            Some(first) if is_name(first) && !first.is_ascii_digit() => {
                let end = self.rest.find(|c| !is_name(c)).unwrap_or(self.rest.len());
                let (name, rest) = self.rest.split_at(end);
                self.rest = rest;
                self.push_variable(name, quoted);
                return Ok(());
            }
            Some(special @ ('?' | '!' | '$' | '#')) => {
                self.rest = &self.rest[1..];
                self.push_variable(&special.to_string(), quoted);
                return Ok(());
            }
            Some('(') if self.rest.starts_with("((") => Reason::Arithmetic,
            Some('(') => Reason::Substitution,
            Some('[') => Reason::Arithmetic,
            Some('\'' | '"') if !quoted => Reason::Differs,
            Some('@' | '*' | '-' | '0'..='9') => Reason::Expansion,
            _ => {
                self.word.push("$");
                return Ok(());
            }
        };
        Err(self.word.refuse(reason))
    }

    fn push_variable(&mut self, name: &str, quoted: bool) {
        self.word.pieces.push(Piece::Variable {
            name: name.to_owned(),
            quoted,
        });
    }

    /// Reads a set of characters of a file pattern; one that is not closed is text.
    fn bracket(&mut self) -> Result<(), Refusal> {
        let Some(end) = self.rest.find(']') else {
            self.word.push("[");
            return Ok(());
        };
        let inner = &self.rest[..end];
        let plain = |c: char| is_name(c) || "-.!".contains(c);
        if inner.is_empty() || !inner.chars().all(plain) {
            return Err(self.word.refuse(Reason::Differs));
        }
        let pattern = format!("[{inner}]");
        self.rest = &self.rest[end + 1..];
        self.word.pieces.push(Piece::Pattern(pattern));
        Ok(())
    }

    /// Whether the brace that was just read begins what bash takes for several words.
    fn expands(&self) -> bool {
        self.rest.contains(',') || self.rest.contains("..") || self.rest.contains('$')
    }

    fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let character = characters.next()?;
        self.rest = characters.as_str();
        Some(character)
    }
}

/// Whether that is a variable's name.
pub(crate) fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.chars().all(is_name) && !name.starts_with(|c: char| c.is_ascii_digit())
}
