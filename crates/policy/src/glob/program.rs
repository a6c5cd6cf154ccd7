//! A compiled pattern, and the loop that runs it.

/// The steps of a pattern.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Program(Box<[Token]>);

impl Program {
    pub(crate) fn new(pattern: &str, case: Case) -> Self {
        Self(if is_pattern(pattern) {
            compile(pattern, case).into()
        } else {
            literal(pattern, case).into_iter().collect()
        })
    }

    /// Whether the whole text matches.
    pub(crate) fn matches(&self, text: &str) -> bool {
        match &*self.0 {
            // Most patterns over hosts, and most hosts differ in the last letter already.
            [Token::Many, Token::Text(end)] => ends_with(text.as_bytes(), end.as_bytes()),
            tokens => run(tokens, text),
        }
    }

    /// Whether the pattern covers a path with its query.
    ///
    /// A `*` at the very end covers any query. Otherwise a `?` or `[?]` must stand for the question mark, with what
    /// comes before it matching the path and what comes after it the query.
    pub(crate) fn covers(&self, path: &str, query: &str) -> bool {
        let tokens = &self.0;
        if tokens.last() == Some(&Token::Rest) && run(tokens, path) {
            return true;
        }
        (0..tokens.len()).any(|at| {
            tokens[at].may_separate() && run(&tokens[..at], path) && run(&tokens[at + 1..], query)
        })
    }
}

/// Whether a text has wildcards. Without any it matches only itself, brackets included.
pub(crate) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Case {
    Sensitive,
    Ignored,
}

/// One step of a compiled pattern.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum Token {
    /// This text.
    Text(Box<str>),
    /// This text in any case; kept in lower case.
    Name(Box<str>),
    /// One character.
    One,
    /// Any run of characters.
    Many,
    /// Whatever is left: a `*` at the end.
    Rest,
    /// One character of a class.
    Class(Class),
}

impl Token {
    /// Whether the token is a way to write a question mark.
    fn may_separate(&self) -> bool {
        match self {
            Self::One => true,
            Self::Class(class) => !class.negated && class.contains('?'),
            Self::Text(_) | Self::Name(_) | Self::Many | Self::Rest => false,
        }
    }

    /// The number of bytes at the start of the text that the token takes.
    fn take(&self, text: &str) -> Option<usize> {
        let bytes = text.as_bytes();
        match self {
            Self::Text(expected) => text.starts_with(&**expected).then_some(expected.len()),
            Self::Name(expected) => bytes
                .get(..expected.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(expected.as_bytes()))
                .then_some(expected.len()),
            Self::One => text.chars().next().map(char::len_utf8),
            Self::Class(class) => {
                let character = text.chars().next()?;
                (class.contains(character) != class.negated).then_some(character.len_utf8())
            }
            Self::Many | Self::Rest => Some(0),
        }
    }

    /// Whether the text ends with the token, where that can be told without reading it from its start.
    fn ends(&self, text: &str) -> Option<bool> {
        match self {
            Self::Text(expected) => Some(ends_with(text.as_bytes(), expected.as_bytes())),
            Self::Name(expected) => {
                let start = text.len().checked_sub(expected.len());
                let end = start.map(|start| &text.as_bytes()[start..]);
                Some(end.is_some_and(|end| end.eq_ignore_ascii_case(expected.as_bytes())))
            }
            Self::One | Self::Many | Self::Rest | Self::Class(_) => None,
        }
    }
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Class {
    negated: bool,
    fold: bool,
    ranges: Box<[(char, char)]>,
}

impl Class {
    fn contains(&self, character: char) -> bool {
        let character = if self.fold {
            character.to_ascii_lowercase()
        } else {
            character
        };
        self.ranges
            .iter()
            .any(|&(first, last)| (first..=last).contains(&character))
    }
}

/// Tells a text with another last byte without a call.
fn ends_with(text: &[u8], end: &[u8]) -> bool {
    text.last() == end.last() && text.ends_with(end)
}

/// Matches the whole text. Only the latest `*` is ever widened, so the work is bounded by text times pattern.
fn run(tokens: &[Token], text: &str) -> bool {
    let (mut token, mut at) = (0, 0);
    let mut star = None;
    loop {
        match tokens.get(token) {
            Some(Token::Rest) => return true,
            Some(Token::Many) => {
                token += 1;
                // What comes last stands at the end, and nowhere else is worth a look.
                if let [last] = &tokens[token..]
                    && let Some(found) = last.ends(&text[at..])
                {
                    return found;
                }
                star = Some((token, at));
                continue;
            }
            Some(step) => {
                if let Some(taken) = step.take(&text[at..]) {
                    token += 1;
                    at += taken;
                    continue;
                }
            }
            None if at == text.len() => return true,
            None => {}
        }
        let Some((after, from)) = star else {
            return false;
        };
        let Some(skipped) = text[from..].chars().next() else {
            return false;
        };
        (token, at) = (after, from + skipped.len_utf8());
        star = Some((token, at));
    }
}

fn literal(text: &str, case: Case) -> Option<Token> {
    if text.is_empty() {
        return None;
    }
    Some(match case {
        Case::Sensitive => Token::Text(text.into()),
        Case::Ignored => Token::Name(text.to_ascii_lowercase().into()),
    })
}

fn compile(pattern: &str, case: Case) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut text = String::new();
    let mut rest = pattern;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        let token = match character {
            '*' => Token::Many,
            '?' => Token::One,
            '[' => match class(rest, case) {
                Some((class, length)) => {
                    rest = &rest[length..];
                    Token::Class(class)
                }
                None => {
                    text.push('[');
                    continue;
                }
            },
            other => {
                text.push(other);
                continue;
            }
        };
        tokens.extend(literal(&text, case));
        text.clear();
        if token != Token::Many || tokens.last() != Some(&Token::Many) {
            tokens.push(token);
        }
    }
    tokens.extend(literal(&text, case));
    if let Some(last @ Token::Many) = tokens.last_mut() {
        *last = Token::Rest;
    }
    tokens
}

/// Reads a class after its `[`; none where no `]` closes it. A `]` that comes first belongs to the class.
fn class(rest: &str, case: Case) -> Option<(Class, usize)> {
    let negated = rest.starts_with('!');
    let start = usize::from(negated);
    let first = rest[start..].chars().next()?.len_utf8();
    let end = start + first + rest[start + first..].find(']')?;
    let body = match case {
        Case::Sensitive => rest[start..end].to_owned(),
        Case::Ignored => rest[start..end].to_ascii_lowercase(),
    };
    let characters = Vec::from_iter(body.chars());
    let mut ranges = Vec::new();
    let mut index = 0;
    while index < characters.len() {
        match characters[index..] {
            [low, '-', high, ..] => {
                ranges.push((low, high));
                index += 3;
            }
            [single, ..] => {
                ranges.push((single, single));
                index += 1;
            }
            [] => break,
        }
    }
    let class = Class {
        negated,
        fold: case == Case::Ignored,
        ranges: ranges.into(),
    };
    Some((class, end + 1))
}
