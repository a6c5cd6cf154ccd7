//! Events: one line of an agent's output, typed.
//!
//! The three programs speak three dialects; all become the same [`StreamEvent`]. A line that is
//! not an event is no error, and nothing of a line that is one gets lost: unknown kinds keep
//! all their fields, and every event keeps its line.

mod claude;
mod codex;
mod gemini;

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::{Agent, Usage, usage::whole};

/// One event of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamEvent {
    /// What happened.
    pub kind: EventKind,
    /// The agent's finer name for it.
    pub subtype: Option<String>,
    /// The session it belongs to, where the event says so.
    pub session_id: Option<String>,
    /// The tool call that started the sub-agent which speaks here; none for the main agent.
    pub parent_tool_use_id: Option<String>,
    /// All fields that have no place of their own here.
    pub extra: Map<String, Value>,
    raw: String,
}

/// What an event tells.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// News about the run: its start (`init`), retries, trouble, tasks.
    System,
    /// The model speaks or calls a tool.
    Assistant(Message),
    /// Something is said to the model: the prompt, or what a tool gave.
    User(Message),
    /// The agent ends a turn of the conversation; normally the last event.
    Result(Box<RunResult>),
    /// The line was longer than allowed and is lost; the raw text is a note of ours.
    Oversized,
    /// A kind that this crate does not know, by its name.
    Unknown(String),
}

/// A message to or from the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message {
    /// The API's id of the message; several events may share one.
    pub id: Option<String>,
    /// The model that wrote it.
    pub model: Option<String>,
    /// Text, tool calls and tool results; other kinds of blocks are left out.
    pub blocks: Vec<ContentBlock>,
    /// Tokens of this message, where told.
    pub usage: Option<Usage>,
    /// Set when the agent itself wrote this to report a failed request; the kind of failure.
    pub error: Option<String>,
    /// Whether the text is one piece of a message that goes on in the next event.
    pub partial: bool,
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum ContentBlock {
    /// Something said.
    Text(String),
    /// A tool call.
    ToolUse {
        /// Which call this is.
        id: String,
        /// The tool.
        name: String,
        /// Its arguments.
        input: Map<String, Value>,
    },
    /// What a tool call gave.
    ToolResult {
        /// The call it answers.
        tool_use_id: String,
        /// What the tool said: a string, or a list of content blocks.
        content: Value,
        /// Whether the call failed.
        is_error: bool,
    },
}

/// What the agent says at its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunResult {
    /// Whether it went wrong; absent when the agent does not say.
    pub is_error: Option<bool>,
    /// The answer, or the agent's own words about what went wrong.
    pub text: Option<String>,
    /// Further messages about what went wrong.
    pub errors: Vec<String>,
    /// The HTTP status with which the API refused.
    pub api_status: Option<u16>,
    /// How long the agent says it took.
    pub duration_ms: u64,
    /// How many answers of the model it took.
    pub num_turns: u64,
    /// What it cost; no agent but Claude Code says.
    pub total_cost_usd: Option<f64>,
    /// Tokens used.
    pub usage: Usage,
}

/// The agent is about to repeat a request that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiRetry {
    /// Which attempt failed, from 1.
    pub attempt: u64,
    /// How long it will wait, as the API asked or as it thinks fit.
    pub delay: Option<Duration>,
    /// The HTTP status; none when no answer came.
    pub status: Option<u16>,
}

/// Parses one line of Claude Code's stream; `None` if it is not an event.
///
/// [`StreamEvent::parse`] does the same for any agent.
#[must_use]
pub fn parse_event(line: &str) -> Option<StreamEvent> {
    StreamEvent::parse(Agent::Claude, line)
}

impl StreamEvent {
    /// Parses one line of the agent's stream; `None` if it is not an event.
    #[must_use]
    pub fn parse(agent: Agent, line: &str) -> Option<Self> {
        let line = line.trim();
        match parse_object(line)? {
            Parsed::AsIs(fields) => Self::from_fields(agent, fields, line.to_owned()),
            Parsed::Mended(fields, mended) => Self::from_fields(agent, fields, mended),
        }
    }

    /// Parses one line of whichever agent wrote it, by its shape.
    #[must_use]
    pub fn parse_any(line: &str) -> Option<Self> {
        let line = line.trim();
        let (fields, raw) = match parse_object(line)? {
            Parsed::AsIs(fields) => (fields, line.to_owned()),
            Parsed::Mended(fields, mended) => (fields, mended),
        };
        let agent = dialect(&fields)?;
        Self::from_fields(agent, fields, raw)
    }

    /// Stands for a line that was too long to be read, of which this is the beginning.
    #[must_use]
    pub fn oversized(head: &[u8], limit: usize) -> Self {
        let head = String::from_utf8_lossy(&head[..head.len().min(OVERSIZED_HEAD_BYTES)]);
        let note = json!({"type": OVERSIZED, "limit": limit, "head": head});
        let mut extra = note.as_object().cloned().unwrap_or_default();
        extra.remove("type");
        Self {
            kind: EventKind::Oversized,
            subtype: None,
            session_id: None,
            parent_tool_use_id: None,
            extra,
            raw: note.to_string(),
        }
    }

    /// The line that the agent wrote, without the white space round it.
    #[must_use]
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// `system`, `assistant`, `user` or `result`; `_unknown` and `_oversized` for the rest.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            EventKind::System => "system",
            EventKind::Assistant(_) => "assistant",
            EventKind::User(_) => "user",
            EventKind::Result(_) => "result",
            EventKind::Oversized => OVERSIZED,
            EventKind::Unknown(_) => "_unknown",
        }
    }

    /// The content of a message; empty for other events.
    #[must_use]
    pub fn blocks(&self) -> &[ContentBlock] {
        match &self.kind {
            EventKind::Assistant(message) | EventKind::User(message) => &message.blocks,
            EventKind::System
            | EventKind::Result(_)
            | EventKind::Oversized
            | EventKind::Unknown(_) => &[],
        }
    }

    /// What the model itself says in this event: text of the main agent, not of a sub-agent and
    /// not an error report.
    #[must_use]
    pub fn spoken(&self) -> Option<String> {
        match &self.kind {
            EventKind::Assistant(message)
                if self.parent_tool_use_id.is_none() && message.error.is_none() =>
            {
                message.text()
            }
            EventKind::Assistant(_)
            | EventKind::User(_)
            | EventKind::System
            | EventKind::Result(_)
            | EventKind::Oversized
            | EventKind::Unknown(_) => None,
        }
    }

    /// Whether this is the event with which a session begins.
    #[must_use]
    pub fn is_init(&self) -> bool {
        self.kind == EventKind::System && self.subtype.as_deref() == Some(INIT)
    }

    /// The retry that this event announces, if it does.
    #[must_use]
    pub fn api_retry(&self) -> Option<ApiRetry> {
        if self.kind != EventKind::System || self.subtype.as_deref() != Some("api_retry") {
            return None;
        }
        let delay = self.extra.get("retry_delay_ms").and_then(Value::as_f64);
        Some(ApiRetry {
            attempt: self.extra.get("attempt").map_or(0, whole),
            delay: delay.and_then(|ms| Duration::try_from_secs_f64(ms / 1000.0).ok()),
            status: self.extra.get("error_status").and_then(status),
        })
    }

    fn from_fields(agent: Agent, fields: Map<String, Value>, raw: String) -> Option<Self> {
        let mut event = match agent {
            Agent::Claude => claude::event(fields),
            Agent::Codex => codex::event(fields),
            Agent::Gemini => gemini::event(fields),
        }?;
        event.raw = raw;
        Some(event)
    }

    /// An event with no line yet, for the dialects to fill.
    fn new(kind: EventKind, extra: Map<String, Value>) -> Self {
        Self {
            kind,
            subtype: None,
            session_id: None,
            parent_tool_use_id: None,
            extra,
            raw: String::new(),
        }
    }
}

impl Message {
    /// All text of the message, its blocks parted by blank lines.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let texts: Vec<_> = self
            .blocks
            .iter()
            .filter_map(|block| match block {
                ContentBlock::Text(text) => Some(text.as_str()),
                ContentBlock::ToolUse { .. } | ContentBlock::ToolResult { .. } => None,
            })
            .collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    fn of(block: ContentBlock) -> Self {
        Self {
            blocks: vec![block],
            ..Self::default()
        }
    }
}

/// A JSON object, and its line where that had to be mended.
enum Parsed {
    AsIs(Map<String, Value>),
    Mended(Map<String, Value>, String),
}

/// JavaScript may write half a surrogate pair (a text cut in the middle of an emoji); strict
/// parsers refuse such a line, and with it perhaps the result of the run.
fn parse_object(line: &str) -> Option<Parsed> {
    if let Ok(fields) = serde_json::from_str(line) {
        return Some(Parsed::AsIs(fields));
    }
    let mended = mend_surrogates(line)?;
    let fields = serde_json::from_str(&mended).ok()?;
    Some(Parsed::Mended(fields, mended))
}

/// Replaces escapes of lone surrogates by that of the replacement character.
fn mend_surrogates(line: &str) -> Option<String> {
    let mut mended = String::with_capacity(line.len());
    let mut rest = line;
    let mut found = false;
    while let Some(at) = rest.find('\\') {
        mended.push_str(&rest[..at]);
        rest = &rest[at..];
        let taken = match (unit(rest), rest.get(6..).and_then(unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                found = true;
                mended.push_str("\\ufffd");
                rest = &rest[6..];
                continue;
            }
            (Some(_), _) => 6,
            (None, _) => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        mended.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    mended.push_str(rest);
    found.then_some(mended)
}

/// The code unit of an escape `\uXXXX` at the beginning.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit())
        .then(|| u16::from_str_radix(digits, 16).ok())?
}

fn dialect(fields: &Map<String, Value>) -> Option<Agent> {
    let kind = fields.get("type")?.as_str()?;
    Some(match kind {
        "init" | "message" | "tool_use" | "tool_result" => Agent::Gemini,
        "result" if fields.contains_key("stats") => Agent::Gemini,
        "error" => Agent::Codex,
        _ if ["thread.", "turn.", "item."]
            .iter()
            .any(|prefix| kind.starts_with(prefix)) =>
        {
            Agent::Codex
        }
        _ => Agent::Claude,
    })
}

/// Takes a field that must be a string; others, and empty ones, count as absent.
fn take_string(fields: &mut Map<String, Value>, name: &str) -> Option<String> {
    match fields.remove(name) {
        Some(Value::String(text)) if !text.is_empty() => Some(text),
        _ => None,
    }
}

fn string(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// An HTTP status, if it looks like one.
fn status(value: &Value) -> Option<u16> {
    let status = u16::try_from(value.as_u64()?).ok()?;
    (100..1000).contains(&status).then_some(status)
}

/// What Python and JavaScript take for true.
fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

/// The subtype of the event with which a session begins.
const INIT: &str = "init";

/// The type of the note that stands for a line too long.
const OVERSIZED: &str = "_oversized";

/// How much of an overlong line is worth keeping: enough to see what it was.
const OVERSIZED_HEAD_BYTES: usize = 1024;

#[cfg(test)]
mod tests;
