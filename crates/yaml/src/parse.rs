//! From text to tree.

use std::collections::{HashMap, HashSet};

use granit_parser::{Event, Marker, Parser, ScalarStyle, Span, StrInput};

use crate::{Error, ErrorKind, Key, Node, Position, Tag, Value, node::integer};

/// Reads the one document of a text; no document at all is null. `what` is what errors call it: "the allowlist".
pub fn parse(text: &str, what: &'static str) -> Result<Node, Error> {
    let mut builder = Builder {
        events: Parser::new_from_str_with_options(
            text,
            granit_parser::options! { emit_comments: false },
        ),
        anchors: HashMap::new(),
        nodes: 0,
        what,
    };
    let mut root = None;
    loop {
        let (event, span) = builder.next()?;
        match event {
            Event::StreamEnd => break,
            Event::DocumentStart(..) if root.is_some() => {
                return Err(ErrorKind::ManyDocuments { what }.at(position(&span.start)));
            }
            Event::DocumentStart(..) => {
                let (event, span) = builder.next()?;
                root = Some(builder.node(event, span, 0)?);
            }
            _ => {}
        }
    }
    Ok(root.unwrap_or(Node {
        at: Position { line: 1, column: 1 },
        tag: None,
        value: Value::Null,
    }))
}

struct Builder<'a> {
    events: Parser<'a, StrInput<'a>>,
    /// What anchors stand for, with the number of nodes in it.
    anchors: HashMap<usize, (Node, usize)>,
    nodes: usize,
    what: &'static str,
}

impl<'a> Builder<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), Error> {
        match self.events.next() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => Err(syntax(error.marker(), error.info())),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node, Error> {
        let before = self.nodes;
        let at = position(&span.start);
        self.nodes += 1;
        if depth > MAX_DEPTH {
            return Err(self.too_large(at));
        }
        self.bounded(at)?;
        let (value, anchor, tag) = match event {
            Event::Scalar(text, ScalarStyle::Plain, anchor, None) => (plain(&text), anchor, None),
            Event::Scalar(text, _, anchor, tag) => (Value::String(text.into_owned()), anchor, tag),
            Event::SequenceStart(_, anchor, tag) => (Value::List(self.list(depth)?), anchor, tag),
            Event::MappingStart(_, anchor, tag) => (Value::Map(self.map(depth)?), anchor, tag),
            Event::Alias(id) => return self.alias(id, at),
            _ => return Err(syntax(&span.start, "a value is missing here".to_owned())),
        };
        let tag = tag.map(|tag| Tag {
            at: span.tag_span().map_or(at, |tag| position(&tag.start)),
            name: tag.to_string(),
        });
        let node = Node { at, tag, value };
        if anchor != NO_ANCHOR {
            let size = self.nodes - before;
            self.anchors.insert(anchor, (node.clone(), size));
        }
        Ok(node)
    }

    /// Aliases repeat what they stand for, so a short text can mean an endless one: all of it counts.
    fn alias(&mut self, id: usize, at: Position) -> Result<Node, Error> {
        let Some((node, size)) = self.anchors.get(&id) else {
            let message = "this alias stands inside what it stands for".to_owned();
            return Err(ErrorKind::Yaml { message }.at(at));
        };
        self.nodes += size;
        self.bounded(at)?;
        Ok(Node { at, ..node.clone() })
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, Error> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::SequenceEnd | Event::StreamEnd) {
                return Ok(items);
            }
            items.push(self.node(event, span, depth + 1)?);
        }
    }

    fn map(&mut self, depth: usize) -> Result<Vec<(Key, Node)>, Error> {
        let mut entries = Vec::new();
        let mut names = HashSet::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd | Event::StreamEnd) {
                return Ok(entries);
            }
            let key = self.key(event, span, depth + 1)?;
            if !names.insert(key.name.clone()) {
                return Err(ErrorKind::DuplicateKey { key: key.name }.at(key.at));
            }
            let (event, span) = self.next()?;
            let value = self.node(event, span, depth + 1)?;
            entries.push((key, value));
        }
    }

    fn key(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Key, Error> {
        let node = self.node(event, span, depth)?;
        let at = node.at;
        match (node.tag, node.value) {
            (Some(tag), _) => Err(ErrorKind::Tag { tag: tag.name }.at(tag.at)),
            (None, Value::String(name)) => Ok(Key { at, name }),
            (None, _) => Err(ErrorKind::Key.at(at)),
        }
    }

    fn bounded(&self, at: Position) -> Result<(), Error> {
        if self.nodes > MAX_NODES {
            return Err(self.too_large(at));
        }
        Ok(())
    }

    fn too_large(&self, at: Position) -> Error {
        ErrorKind::TooLarge { what: self.what }.at(at)
    }
}

/// The value of a scalar without quotes, by the core schema of YAML 1.2.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ if is_number(text) => Value::Number(text.to_owned()),
        _ => Value::String(text.to_owned()),
    }
}

fn is_number(text: &str) -> bool {
    if !text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first)) {
        return false;
    }
    let special = text.trim_start_matches(['+', '-']).to_ascii_lowercase();
    integer(text).is_some()
        || matches!(special.as_str(), ".inf" | ".nan")
        || text.parse::<f64>().is_ok()
}

fn position(marker: &Marker) -> Position {
    Position {
        line: marker.line(),
        column: marker.col() + 1,
    }
}

fn syntax(marker: &Marker, message: String) -> Error {
    ErrorKind::Yaml { message }.at(position(marker))
}

const NO_ANCHOR: usize = 0;

/// Files that people write are a handful of levels deep.
const MAX_DEPTH: usize = 16;

/// Enough for tens of thousands of entries, and a bound on what aliases can blow up to.
const MAX_NODES: usize = 200_000;

#[cfg(test)]
mod tests;
