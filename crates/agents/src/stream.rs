//! From the bytes of an agent's stdout to events.

use crate::{Agent, Line, LineSplitter, MAX_LINE_BYTES, StreamEvent};

/// A push parser for one run's stdout: bytes in, events out.
///
/// Whatever the bytes are, it neither fails nor holds more than [`MAX_LINE_BYTES`] of them.
#[derive(Debug)]
pub struct EventStream {
    agent: Agent,
    limit: usize,
    lines: LineSplitter,
}

/// What a line of stdout turned out to be.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// An event.
    Event(Box<StreamEvent>),
    /// Anything else, without the white space round it; never empty.
    Plain(String),
}

impl EventStream {
    /// A stream in the agent's dialect.
    #[must_use]
    pub fn new(agent: Agent) -> Self {
        Self::with_limit(agent, MAX_LINE_BYTES)
    }

    /// The same, with another limit for the length of a line.
    #[must_use]
    pub fn with_limit(agent: Agent, limit: usize) -> Self {
        Self {
            agent,
            limit,
            lines: LineSplitter::new(limit),
        }
    }

    /// Takes the next bytes and returns what they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Output> {
        let (agent, limit) = (self.agent, self.limit);
        let mut outputs = Vec::new();
        self.lines
            .push(bytes, |line| outputs.extend(output(agent, limit, line)));
        outputs
    }

    /// Returns what a last line without LF holds.
    pub fn finish(&mut self) -> Vec<Output> {
        let (agent, limit) = (self.agent, self.limit);
        let mut outputs = Vec::new();
        self.lines
            .finish(|line| outputs.extend(output(agent, limit, line)));
        outputs
    }
}

fn output(agent: Agent, limit: usize, line: Line<'_>) -> Option<Output> {
    let line = match line {
        Line::Whole(line) => String::from_utf8_lossy(line),
        Line::Oversized(head) => {
            return Some(Output::Event(Box::new(StreamEvent::oversized(head, limit))));
        }
    };
    if let Some(event) = StreamEvent::parse(agent, &line) {
        return Some(Output::Event(Box::new(event)));
    }
    let plain = line.trim();
    (!plain.is_empty()).then(|| Output::Plain(plain.to_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn events_plain_lines_and_overlong_ones() {
        let mut stream = EventStream::with_limit(Agent::Claude, 64);
        let mut outputs = stream.push(b"warning: no terminal\n\n  \n{\"type\":\"sys");
        outputs.extend(stream.push(b"tem\"}\r\n"));
        outputs.extend(stream.push(&[b'x'; 100]));
        outputs.extend(stream.push(b"\n{\"type\":\"result\"}"));
        outputs.extend(stream.finish());
        let kinds: Vec<_> = outputs
            .iter()
            .map(|output| match output {
                Output::Event(event) => event.type_name(),
                Output::Plain(line) => line,
            })
            .collect();
        assert_eq!(
            kinds,
            ["warning: no terminal", "system", "_oversized", "result"]
        );
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(bytes in proptest::collection::vec(any::<u8>(), 0..400), cut in 0usize..400) {
            for agent in Agent::ALL {
                let mut stream = EventStream::with_limit(agent, 50);
                let cut = cut.min(bytes.len());
                stream.push(&bytes[..cut]);
                stream.push(&bytes[cut..]);
                stream.finish();
            }
        }

        #[test]
        fn no_json_breaks_it(
            kind in "(system|assistant|user|result|item.completed|turn.failed|message|tool_use|error)",
            field in "(message|item|error|usage|result|stats|content|role|subtype|session_id)",
            value in "(null|1|-1e999|\"x\"|\\[1\\]|\\{\\}|\\{\"content\":\\[\\{\"type\":\"text\"\\}, 3\\]\\}|\\{\"type\":\"x\"\\})",
        ) {
            let line = format!(r#"{{"type":"{kind}","{field}":{value}}}"#);
            for agent in Agent::ALL {
                let raw = StreamEvent::parse(agent, &line).map(|event| event.raw().to_owned());
                prop_assert!(raw.is_none_or(|raw| raw == line));
            }
            let again = StreamEvent::parse_any(&line);
            prop_assert_eq!(StreamEvent::parse_any(&line), again);
        }
    }
}
