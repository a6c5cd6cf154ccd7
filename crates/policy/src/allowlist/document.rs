//! A YAML document as a tree that knows its lines, strict where the language is lax.
//!
//! Tags are refused wherever they stand: a parser that drops one reads something else than its author wrote. So are
//! duplicate keys. Knows nothing of allowlists.

use std::collections::HashMap;

use granit_parser::{Event, Marker, Parser, ScalarStyle, Span, StrInput};

use super::error::{AllowlistError, AllowlistErrorKind};

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) value: Value,
}

/// What a value is.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    Float,
    String(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// A key and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) name: String,
}

/// Reads the one document of a text; no document at all is null.
pub(super) fn parse(text: &str) -> Result<Node, AllowlistError> {
    let mut builder = Builder {
        events: Parser::new_from_str_with_options(
            text,
            granit_parser::options! { emit_comments: false },
        ),
        anchors: HashMap::new(),
        nodes: 0,
    };
    let mut root = None;
    loop {
        let (event, span) = builder.next()?;
        match event {
            Event::StreamEnd => break,
            Event::DocumentStart(..) if root.is_some() => {
                return Err(at(span.start, AllowlistErrorKind::ManyDocuments));
            }
            Event::DocumentStart(..) => {
                let (event, span) = builder.next()?;
                root = Some(builder.node(event, span, 0)?);
            }
            _ => {}
        }
    }
    Ok(root.unwrap_or(Node {
        line: 1,
        column: 1,
        value: Value::Null,
    }))
}

struct Builder<'a> {
    events: Parser<'a, StrInput<'a>>,
    /// What anchors stand for, with the number of nodes in it.
    anchors: HashMap<usize, (Node, usize)>,
    nodes: usize,
}

impl<'a> Builder<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), AllowlistError> {
        match self.events.next() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => Err(syntax(error.marker(), error.info())),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node, AllowlistError> {
        let before = self.nodes;
        self.nodes += 1;
        if depth > MAX_DEPTH || self.nodes > MAX_NODES {
            return Err(at(span.start, AllowlistErrorKind::TooLarge));
        }
        let (value, anchor) = match event {
            Event::Scalar(_, _, _, Some(tag))
            | Event::SequenceStart(_, _, Some(tag))
            | Event::MappingStart(_, _, Some(tag)) => {
                let start = span.tag_span().map_or(span.start, |tag| tag.start);
                let tag = tag.to_string();
                return Err(at(start, AllowlistErrorKind::Tag { tag }));
            }
            Event::Scalar(text, ScalarStyle::Plain, anchor, None) => (plain(&text), anchor),
            Event::Scalar(text, _, anchor, None) => (Value::String(text.into_owned()), anchor),
            Event::SequenceStart(_, anchor, None) => (Value::List(self.list(depth)?), anchor),
            Event::MappingStart(_, anchor, None) => (Value::Map(self.map(depth)?), anchor),
            Event::Alias(id) => (self.alias(id, span.start)?, NO_ANCHOR),
            _ => return Err(syntax(&span.start, "a value is missing here".to_owned())),
        };
        let node = Node {
            line: span.start.line(),
            column: span.start.col() + 1,
            value,
        };
        if anchor != NO_ANCHOR {
            let size = self.nodes - before;
            self.anchors.insert(anchor, (node.clone(), size));
        }
        Ok(node)
    }

    /// Aliases repeat what they stand for, so a short text can mean an endless one: all of it counts.
    fn alias(&mut self, id: usize, start: Marker) -> Result<Value, AllowlistError> {
        let Some((node, size)) = self.anchors.get(&id) else {
            return Err(syntax(
                &start,
                "this alias stands inside what it stands for".to_owned(),
            ));
        };
        self.nodes += size;
        if self.nodes > MAX_NODES {
            return Err(at(start, AllowlistErrorKind::TooLarge));
        }
        Ok(node.value.clone())
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, AllowlistError> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::SequenceEnd | Event::StreamEnd) {
                return Ok(items);
            }
            items.push(self.node(event, span, depth + 1)?);
        }
    }

    fn map(&mut self, depth: usize) -> Result<Vec<(Key, Node)>, AllowlistError> {
        let mut entries: Vec<(Key, Node)> = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd | Event::StreamEnd) {
                return Ok(entries);
            }
            let key = self.node(event, span, depth + 1)?;
            let Value::String(name) = key.value else {
                return Err(AllowlistErrorKind::Key.at(key.line, key.column));
            };
            if entries.iter().any(|(other, _)| other.name == name) {
                return Err(AllowlistErrorKind::DuplicateKey { key: name }.at(key.line, key.column));
            }
            let (event, span) = self.next()?;
            let value = self.node(event, span, depth + 1)?;
            let key = Key {
                line: key.line,
                column: key.column,
                name,
            };
            entries.push((key, value));
        }
    }
}

/// The value of a scalar without quotes, by the core schema of YAML 1.2.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ if !text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first)) => {
            Value::String(text.to_owned())
        }
        _ => number(text).unwrap_or_else(|| Value::String(text.to_owned())),
    }
}

fn number(text: &str) -> Option<Value> {
    let radix = |prefix, radix| {
        let digits = text.strip_prefix(prefix)?;
        i64::from_str_radix(digits, radix).ok()
    };
    let integer = text
        .parse()
        .ok()
        .or_else(|| radix("0x", 16))
        .or_else(|| radix("0o", 8));
    if let Some(integer) = integer {
        return Some(Value::Integer(integer));
    }
    let special = text.trim_start_matches(['+', '-']).to_ascii_lowercase();
    let float = matches!(special.as_str(), ".inf" | ".nan") || text.parse::<f64>().is_ok();
    float.then_some(Value::Float)
}

fn at(start: Marker, kind: AllowlistErrorKind) -> AllowlistError {
    kind.at(start.line(), start.col() + 1)
}

fn syntax(start: &Marker, message: String) -> AllowlistError {
    at(*start, AllowlistErrorKind::Yaml { message })
}

const NO_ANCHOR: usize = 0;

/// An allowlist is four levels deep.
const MAX_DEPTH: usize = 16;

/// Enough for tens of thousands of entries, and a bound on what aliases can blow up to.
const MAX_NODES: usize = 200_000;
