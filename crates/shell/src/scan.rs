//! Bounds a line before the grammar sees it.
//!
//! Follows quotes, comments and here-documents and nothing else. Whatever nests (substitutions, expansions) is
//! refused here, and what is left is counted, so that no line can exhaust the parser's stack. What a line means is
//! not decided here.

use crate::{Reason, Refusal};

/// Refuses what is too much, or could never be judged.
pub(crate) fn scan(line: &str) -> Result<(), Refusal> {
    if line.len() > MAX_LINE {
        let size = format!("{} bytes, of {MAX_LINE} at most", line.len());
        return Err(Refusal::new(Reason::TooLong, size, None));
    }
    if let Some((at, character)) = line.chars().enumerate().find(|(_, c)| is_unseen(*c)) {
        let text = format!("the character U+{:04X}", u32::from(character));
        return Err(Refusal::new(Reason::Character, text, Some(at)));
    }
    let mut scan = Scan {
        characters: line.chars().collect(),
        at: 0,
        word: Some(String::new()),
        negated: false,
        nested: 0,
        separators: 0,
        waiting: Vec::new(),
    };
    scan.run()
}

struct Scan {
    characters: Vec<char>,
    at: usize,
    /// The word so far, as long as it could be a reserved one.
    word: Option<String>,
    /// The word before was a `!`. Two of them are an error in some shells, and none at all in others.
    negated: bool,
    nested: usize,
    separators: usize,
    waiting: Vec<Tag>,
}

/// A here-document whose body has not come yet.
struct Tag {
    name: String,
    expands: bool,
    strips_tabs: bool,
    at: usize,
}

impl Scan {
    fn run(&mut self) -> Result<(), Refusal> {
        while let Some(character) = self.next() {
            match character {
                '\'' => self.single_quotes()?,
                '"' => self.double_quotes()?,
                // A line that is continued goes on as if there were nothing between.
                '\\' => match self.next() {
                    Some('\n') => {}
                    Some(_) => self.word = None,
                    None => {
                        return Err(Refusal::new(
                            Reason::Syntax,
                            "nothing behind a `\\`",
                            Some(self.at - 1),
                        ));
                    }
                },
                '$' => self.dollar(Quotes::None)?,
                '`' => return Err(self.refuse(Reason::Substitution, self.at - 1)),
                '#' if self.word.as_deref() == Some("") => self.comment()?,
                '<' | '>' => self.angle(character)?,
                '(' => self.parenthesis()?,
                '[' => self.bracket()?,
                '&' if self.peek() == Some('>') => {
                    return Err(self.refuse(Reason::Differs, self.at - 1));
                }
                ';' | '&' | '|' | ')' | '\n' => self.separator(character)?,
                ' ' | '\t' => self.word_ends()?,
                other => {
                    if let Some(word) = &mut self.word {
                        word.push(other);
                    }
                }
            }
        }
        self.word_ends()?;
        match self.waiting.first() {
            Some(tag) => Err(Refusal::new(Reason::HereDocument, &tag.name, Some(tag.at))),
            None => Ok(()),
        }
    }

    fn single_quotes(&mut self) -> Result<(), Refusal> {
        self.word = None;
        let from = self.at - 1;
        while let Some(character) = self.next() {
            if character == '\'' {
                return Ok(());
            }
        }
        Err(Refusal::new(
            Reason::Syntax,
            "a quote that does not end",
            Some(from),
        ))
    }

    fn double_quotes(&mut self) -> Result<(), Refusal> {
        self.word = None;
        let from = self.at - 1;
        while let Some(character) = self.next() {
            match character {
                '"' => return Ok(()),
                '\\' => {
                    self.next();
                }
                '$' => self.dollar(Quotes::Double)?,
                '`' => return Err(self.refuse(Reason::Substitution, self.at - 1)),
                _ => {}
            }
        }
        Err(Refusal::new(
            Reason::Syntax,
            "a quote that does not end",
            Some(from),
        ))
    }

    fn dollar(&mut self, quotes: Quotes) -> Result<(), Refusal> {
        self.word = None;
        let from = self.at - 1;
        match (self.peek(), self.characters.get(self.at + 1)) {
            (Some('('), Some('(')) | (Some('['), _) => Err(self.refuse(Reason::Arithmetic, from)),
            (Some('('), _) => Err(self.refuse(Reason::Substitution, from)),
            (Some('\'' | '"'), _) if quotes == Quotes::None => {
                Err(self.refuse(Reason::Differs, from))
            }
            (Some('{'), _) => {
                let rest = &self.characters[self.at + 1..];
                let end = rest.iter().position(|c| !is_name(*c)).unwrap_or(rest.len());
                let plain = end > 0 && rest.get(end) == Some(&'}') && !rest[0].is_ascii_digit();
                if !plain {
                    return Err(self.refuse(Reason::Expansion, from));
                }
                self.at += end + 2;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Skips a comment, and counts it all the same: some shells see fewer comments than others.
    fn comment(&mut self) -> Result<(), Refusal> {
        while let Some(character) = self.peek().filter(|c| *c != '\n') {
            self.at += 1;
            if "({;|&!".contains(character) {
                self.nests()?;
            }
        }
        Ok(())
    }

    /// Some shells read on behind `NAME[` until the bracket is closed, over blanks and operators.
    fn bracket(&mut self) -> Result<(), Refusal> {
        let named = |word: &String| !word.is_empty() && word.chars().all(is_name);
        if self.word.as_ref().is_some_and(named) {
            let rest = &self.characters[self.at..];
            let end = rest
                .iter()
                .position(|c| !is_name(*c) && !"-.!^*?@,".contains(*c));
            if end.is_none_or(|end| rest[end] != ']') {
                return Err(self.refuse(Reason::Differs, self.at - 1));
            }
        }
        self.word = None;
        Ok(())
    }

    fn angle(&mut self, character: char) -> Result<(), Refusal> {
        self.word_ends()?;
        let from = self.at - 1;
        match (character, self.peek()) {
            (_, Some('(')) => Err(self.refuse(Reason::ProcessSubstitution, from)),
            ('<', Some('<')) => {
                self.at += 1;
                self.here_tag(from)
            }
            // The `&` of `>&` ends no command.
            (_, Some('&')) => {
                self.at += 1;
                Ok(())
            }
            (_, Some('>' | '|')) => {
                self.at += 1;
                match self.peek() {
                    Some('(') => Err(self.refuse(Reason::ProcessSubstitution, self.at - 1)),
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Reads the delimiter of a here-document, which must be a plain word, or one in one pair of quotes.
    fn here_tag(&mut self, from: usize) -> Result<(), Refusal> {
        if self.peek() == Some('<') {
            return Err(self.refuse(Reason::Differs, from));
        }
        let strips_tabs = self.peek() == Some('-');
        self.at += usize::from(strips_tabs);
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.at += 1;
        }
        let quote = self.peek().filter(|c| matches!(c, '\'' | '"' | '\\'));
        self.at += usize::from(quote.is_some());
        let mut name = String::new();
        while let Some(character) = self.peek().filter(|c| is_name(*c)) {
            name.push(character);
            self.at += 1;
        }
        let closed = match quote {
            Some(quote @ ('\'' | '"')) => self.next() == Some(quote),
            _ => true,
        };
        let ended = self.peek().is_none_or(|c| " \t\n;|&<>()".contains(c));
        if name.is_empty() || !closed || !ended {
            return Err(self.refuse(Reason::HereDocument, from));
        }
        self.waiting.push(Tag {
            name,
            expands: quote.is_none(),
            strips_tabs,
            at: from,
        });
        Ok(())
    }

    fn parenthesis(&mut self) -> Result<(), Refusal> {
        let from = self.at - 1;
        if self.peek() == Some('(') {
            return Err(self.refuse(Reason::Arithmetic, from));
        }
        if self.word.as_deref() != Some("") {
            let reason = match self.peek() {
                Some(')') => Reason::Function,
                // An array, or an extended pattern.
                _ => Reason::Differs,
            };
            return Err(self.refuse(reason, from));
        }
        self.nests()
    }

    fn separator(&mut self, character: char) -> Result<(), Refusal> {
        self.word_ends()?;
        self.negated = false;
        self.separators += 1;
        if self.separators > MAX_SEPARATORS {
            let text = format!("more than {MAX_SEPARATORS} commands");
            return Err(Refusal::new(Reason::TooDeep, text, Some(self.at - 1)));
        }
        if character == '\n' {
            for tag in std::mem::take(&mut self.waiting) {
                self.here_body(&tag)?;
            }
        }
        Ok(())
    }

    fn here_body(&mut self, tag: &Tag) -> Result<(), Refusal> {
        let refusal = || Refusal::new(Reason::HereDocument, &tag.name, Some(tag.at));
        while self.at < self.characters.len() {
            let rest = &self.characters[self.at..];
            let length = rest.iter().position(|c| *c == '\n').unwrap_or(rest.len());
            let line = &rest[..length];
            let tabs = line
                .iter()
                .take_while(|c| tag.strips_tabs && **c == '\t')
                .count();
            let ends = line[tabs..].iter().copied().eq(tag.name.chars());
            let almost = line[tabs..].iter().collect::<String>().trim_end() == tag.name;
            let expands = tag.expands && line.iter().any(|c| matches!(c, '$' | '`' | '\\'));
            if !ends && (almost || expands) {
                return Err(refusal());
            }
            self.at += (length + 1).min(rest.len());
            if ends {
                return Ok(());
            }
        }
        Err(refusal())
    }

    fn word_ends(&mut self) -> Result<(), Refusal> {
        let word = self.word.replace(String::new());
        let again = self.negated && word.as_deref() == Some("!");
        if again {
            return Err(Refusal::new(Reason::Differs, "! !", Some(self.at)));
        }
        match word {
            // Blanks between words.
            Some(word) if word.is_empty() => Ok(()),
            Some(word) if OPENING.contains(&word.as_str()) => {
                self.negated = word == "!";
                self.nests()
            }
            _ => {
                self.negated = false;
                Ok(())
            }
        }
    }

    fn nests(&mut self) -> Result<(), Refusal> {
        self.nested += 1;
        if self.nested > MAX_NESTED {
            let text = format!("more than {MAX_NESTED} compound commands");
            return Err(Refusal::new(Reason::TooDeep, text, Some(self.at)));
        }
        Ok(())
    }

    fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.at += 1;
        Some(character)
    }

    fn peek(&self) -> Option<char> {
        self.characters.get(self.at).copied()
    }

    fn refuse(&self, reason: Reason, from: usize) -> Refusal {
        let shown = self.characters[from..].iter();
        let text: String = shown.take_while(|c| **c != '\n').collect();
        Refusal::new(reason, text, Some(from))
    }
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Quotes {
    None,
    Double,
}

pub(crate) fn is_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

/// Whether a reader cannot see the character, or shells disagree about it.
fn is_unseen(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{ad}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}' => true,
        other => other.is_control(),
    }
}

/// Words that can begin a command inside a command.
const OPENING: &[&str] = &[
    "{", "if", "elif", "while", "until", "for", "case", "select", "function", "coproc", "time",
    "!", "[[",
];

/// Long enough for a file that is written through a here-document.
const MAX_LINE: usize = 120 * 1024;

/// Every one of these may be a level of the parser's recursion. Nobody writes more by hand, and the stack that the
/// grammar gets holds twenty times as many.
const MAX_NESTED: usize = 48;

/// Lists nest to the left, so that each separator may be a level of the tree.
const MAX_SEPARATORS: usize = 400;
