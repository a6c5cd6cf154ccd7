//! Takes over what older programs left: `session.json`, and a `context.json` that had the events
//! inside and no version.
//!
//! The events move to the journal, the original file keeps a name of its own. Each step may be
//! the last before a kill; doing them again leads to the same place.

use std::path::Path;

use cordon_agents::{StreamEvent, Transcript, Usage};
use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    Error, SessionMetadata, SessionReply, Warning,
    files::{self, set_aside},
};

/// An older file, understood.
pub(crate) struct Legacy {
    pub(crate) metadata: SessionMetadata,
    /// The events of each reply, as JSON.
    events: Vec<Vec<Value>>,
}

#[derive(Deserialize)]
struct OldFile {
    #[serde(alias = "conversation_id", alias = "task_id")]
    execution_context_id: String,
    model: Option<String>,
    replies: Vec<OldReply>,
}

#[derive(Deserialize)]
struct OldReply {
    session_id: Option<String>,
    #[serde(default)]
    timestamp: String,
    #[serde(default)]
    duration_ms: f64,
    #[serde(default)]
    total_cost_usd: f64,
    #[serde(default)]
    num_turns: u64,
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    usage: Usage,
    request_text: Option<String>,
    response_text: Option<String>,
    #[serde(default)]
    events: Vec<Value>,
}

impl Legacy {
    pub(crate) fn parse(value: Value) -> Result<Self, serde_json::Error> {
        let file: OldFile = serde_json::from_value(value)?;
        let mut events = Vec::new();
        let mut replies = Vec::new();
        for mut reply in file.replies {
            events.push(std::mem::take(&mut reply.events));
            replies.push(SessionReply::from_old(reply, events.last()));
        }
        Ok(Self {
            metadata: SessionMetadata {
                execution_context_id: file.execution_context_id,
                model: file.model,
                replies,
            },
            events,
        })
    }

    /// Puts the events into the journal, unless they are there already, and tells the replies
    /// where theirs begin.
    pub(crate) fn move_events(
        &mut self,
        journal: &Path,
        redact: impl Fn(&str) -> String,
    ) -> Result<Option<Warning>, Error> {
        let mut bytes = Vec::new();
        for (reply, events) in self.metadata.replies.iter_mut().zip(&self.events) {
            if events.is_empty() {
                continue;
            }
            if !bytes.is_empty() {
                bytes.push(b'\n');
            }
            reply.events_offset = Some(bytes.len() as u64);
            for event in events {
                bytes.extend_from_slice(redact(&event.to_string()).as_bytes());
                bytes.push(b'\n');
            }
        }
        let there = files::read(journal)?.unwrap_or_default();
        if there.starts_with(&bytes) {
            return Ok(None);
        }
        let mut warning = None;
        if !there.is_empty() {
            warning = Some(Warning::SetAside {
                path: journal.to_owned(),
                moved_to: set_aside(journal)?,
                reason: "it is not the journal of the older file beside it".to_owned(),
            });
        }
        files::replace(journal, &bytes)?;
        Ok(warning)
    }
}

impl SessionReply {
    fn from_old(old: OldReply, events: Option<&Vec<Value>>) -> Self {
        let named = old.session_id.filter(|id| !id.is_empty());
        Self {
            session_id: named.or_else(|| session_id(events?)).unwrap_or_default(),
            timestamp: timestamp(&old.timestamp),
            // The cast saturates, and NaN becomes 0.
            duration_ms: old.duration_ms as u64,
            total_cost_usd: old.total_cost_usd,
            num_turns: old.num_turns,
            is_error: old.is_error,
            usage: old.usage,
            request_text: old.request_text,
            response_text: old.response_text,
            agent: None,
            outcome: None,
            events_offset: None,
        }
    }
}

fn session_id(events: &[Value]) -> Option<String> {
    let mut transcript = Transcript::new(cordon_agents::Agent::Claude);
    for event in events {
        if let Some(event) = StreamEvent::parse_any(&event.to_string()) {
            transcript.push_event(&event);
        }
    }
    transcript.session_id().map(str::to_owned)
}

/// With an offset or without one, which then is UTC.
fn timestamp(text: &str) -> Timestamp {
    let naive = || {
        let civil: DateTime = text.parse().ok()?;
        let zoned = civil.to_zoned(TimeZone::UTC).ok()?;
        Some(zoned.timestamp())
    };
    text.parse()
        .ok()
        .or_else(naive)
        .unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Added to the name of a file that was taken over.
pub(crate) const KEPT: &str = ".before-v1";
