//! As much of the GraphQL language as it takes to know the top-level fields of each operation.
//!
//! Nested selections are skipped, balanced. Anything unexpected ends in a refusal, never in a guess.

use super::{GraphqlDenial, OperationKind};

/// An operation and the real names of its top-level fields.
#[derive(Debug)]
pub(super) struct Operation<'a> {
    pub(super) kind: OperationKind,
    pub(super) fields: Vec<&'a str>,
}

/// The operations of a document, of which there is at least one.
pub(super) fn operations(document: &str) -> Result<Vec<Operation<'_>>, GraphqlDenial> {
    let mut parser = Parser {
        tokens: tokens(document)?,
        at: 0,
    };
    let mut operations = Vec::new();
    while let Some(token) = parser.peek() {
        match token {
            Token::Punctuator(b'{') => operations.push(parser.operation(OperationKind::Query)?),
            Token::Name("query") => operations.push(parser.named_operation(OperationKind::Query)?),
            Token::Name("mutation") => {
                operations.push(parser.named_operation(OperationKind::Mutation)?)
            }
            Token::Name("subscription") => {
                operations.push(parser.named_operation(OperationKind::Subscription)?);
            }
            Token::Name("fragment") => parser.fragment()?,
            Token::Name(_) | Token::Punctuator(_) | Token::Spread | Token::Value => {
                return Err(GraphqlDenial::NotADocument);
            }
        }
    }
    if operations.is_empty() {
        return Err(GraphqlDenial::NotADocument);
    }
    Ok(operations)
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
}

impl<'a> Parser<'a> {
    fn named_operation(&mut self, kind: OperationKind) -> Result<Operation<'a>, GraphqlDenial> {
        self.next()?;
        if let Some(Token::Name(_)) = self.peek() {
            self.next()?;
        }
        self.skip_optional(b'(')?;
        self.directives()?;
        self.operation(kind)
    }

    fn operation(&mut self, kind: OperationKind) -> Result<Operation<'a>, GraphqlDenial> {
        let mut fields = Vec::new();
        self.selection(&mut fields, 0)?;
        Ok(Operation { kind, fields })
    }

    fn fragment(&mut self) -> Result<(), GraphqlDenial> {
        self.next()?;
        self.name()?;
        if self.name()? != "on" {
            return Err(GraphqlDenial::NotADocument);
        }
        self.name()?;
        self.directives()?;
        self.skip(b'{')
    }

    fn selection(&mut self, fields: &mut Vec<&'a str>, depth: usize) -> Result<(), GraphqlDenial> {
        self.expect(b'{')?;
        if depth > MAX_INLINE_FRAGMENTS || self.peek() == Some(Token::Punctuator(b'}')) {
            return Err(GraphqlDenial::NotADocument);
        }
        loop {
            match self.next()? {
                Token::Punctuator(b'}') => return Ok(()),
                Token::Spread => self.inline_fragment(fields, depth)?,
                Token::Name(name) => {
                    fields.push(self.field(name)?);
                }
                Token::Punctuator(_) | Token::Value => return Err(GraphqlDenial::NotADocument),
            }
        }
    }

    fn inline_fragment(
        &mut self,
        fields: &mut Vec<&'a str>,
        depth: usize,
    ) -> Result<(), GraphqlDenial> {
        match self.peek() {
            Some(Token::Name("on")) => {
                self.next()?;
                self.name()?;
            }
            Some(Token::Name(name)) => {
                let name = name.to_owned();
                return Err(GraphqlDenial::TopLevelFragment { name });
            }
            _ => {}
        }
        self.directives()?;
        self.selection(fields, depth + 1)
    }

    /// Reads a field from behind its first name, which may be an alias; returns its real name.
    fn field(&mut self, first: &'a str) -> Result<&'a str, GraphqlDenial> {
        let name = if self.peek() == Some(Token::Punctuator(b':')) {
            self.next()?;
            self.name()?
        } else {
            first
        };
        self.skip_optional(b'(')?;
        self.directives()?;
        self.skip_optional(b'{')?;
        Ok(name)
    }

    fn directives(&mut self) -> Result<(), GraphqlDenial> {
        while self.peek() == Some(Token::Punctuator(b'@')) {
            self.next()?;
            self.name()?;
            self.skip_optional(b'(')?;
        }
        Ok(())
    }

    fn skip_optional(&mut self, open: u8) -> Result<(), GraphqlDenial> {
        if self.peek() == Some(Token::Punctuator(open)) {
            self.skip(open)?;
        }
        Ok(())
    }

    /// Skips a group in brackets, whatever it holds, as long as its brackets pair up.
    fn skip(&mut self, open: u8) -> Result<(), GraphqlDenial> {
        self.expect(open)?;
        let mut closers = vec![closer(open)];
        while let Some(expected) = closers.last() {
            match self.next()? {
                Token::Punctuator(open @ (b'(' | b'[' | b'{')) => closers.push(closer(open)),
                Token::Punctuator(close @ (b')' | b']' | b'}')) => {
                    if close != *expected {
                        return Err(GraphqlDenial::NotADocument);
                    }
                    closers.pop();
                }
                Token::Punctuator(_) | Token::Name(_) | Token::Spread | Token::Value => {}
            }
        }
        Ok(())
    }

    fn expect(&mut self, punctuator: u8) -> Result<(), GraphqlDenial> {
        if self.next()? == Token::Punctuator(punctuator) {
            Ok(())
        } else {
            Err(GraphqlDenial::NotADocument)
        }
    }

    fn name(&mut self) -> Result<&'a str, GraphqlDenial> {
        match self.next()? {
            Token::Name(name) => Ok(name),
            Token::Punctuator(_) | Token::Spread | Token::Value => Err(GraphqlDenial::NotADocument),
        }
    }

    fn next(&mut self) -> Result<Token<'a>, GraphqlDenial> {
        let token = self.peek().ok_or(GraphqlDenial::NotADocument)?;
        self.at += 1;
        Ok(token)
    }

    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).copied()
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Token<'a> {
    Punctuator(u8),
    /// `...`
    Spread,
    Name(&'a str),
    /// A number or a string.
    Value,
}

fn tokens(document: &str) -> Result<Vec<Token<'_>>, GraphqlDenial> {
    let mut tokens = Vec::new();
    let mut rest = document;
    while let Some(&first) = rest.as_bytes().first() {
        let (token, length) = match first {
            b' ' | b'\t' | b'\n' | b'\r' | b',' => (None, 1),
            b'#' => (None, rest.find(['\n', '\r']).unwrap_or(rest.len())),
            b'.' if rest.starts_with("...") => (Some(Token::Spread), 3),
            b'{' | b'}' | b'(' | b')' | b'[' | b']' | b':' | b'=' | b'!' | b'$' | b'@' | b'|'
            | b'&' => (Some(Token::Punctuator(first)), 1),
            b'"' => (Some(Token::Value), string_length(rest)?),
            b'_' | b'a'..=b'z' | b'A'..=b'Z' => {
                let length = word_length(rest, |byte| byte == b'_' || byte.is_ascii_alphanumeric());
                (Some(Token::Name(&rest[..length])), length)
            }
            b'-' | b'0'..=b'9' => {
                let length = word_length(rest, |byte| {
                    b"+-._".contains(&byte) || byte.is_ascii_alphanumeric()
                });
                (Some(Token::Value), length)
            }
            _ => return Err(GraphqlDenial::NotADocument),
        };
        tokens.extend(token);
        rest = &rest[length..];
    }
    Ok(tokens)
}

fn word_length(text: &str, belongs: impl Fn(u8) -> bool) -> usize {
    text.bytes()
        .position(|byte| !belongs(byte))
        .unwrap_or(text.len())
}

/// The length of the string, plain or block, at the start of the text.
fn string_length(text: &str) -> Result<usize, GraphqlDenial> {
    let bytes = text.as_bytes();
    let block = bytes.starts_with(br#"""""#);
    let mut at = if block { 3 } else { 1 };
    while at < bytes.len() {
        match &bytes[at..] {
            [b'"', b'"', b'"', ..] if block => return Ok(at + 3),
            [b'\\', b'"', b'"', b'"', ..] if block => at += 4,
            [b'"', ..] if !block => return Ok(at + 1),
            [b'\\', ..] if !block => at += 2,
            [b'\n' | b'\r', ..] if !block => break,
            _ => at += 1,
        }
    }
    Err(GraphqlDenial::NotADocument)
}

fn closer(open: u8) -> u8 {
    match open {
        b'(' => b')',
        b'[' => b']',
        _ => b'}',
    }
}

/// Clients nest inline fragments once; deeper nesting at the top level only makes reading harder.
const MAX_INLINE_FRAGMENTS: usize = 8;
