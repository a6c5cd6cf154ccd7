//! What `context.json` holds.

use cordon_agents::{Agent, Transcript, Usage};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The version of `context.json` that this crate writes, in the file's first field.
pub const SCHEMA_VERSION: u64 = 1;

/// A context: who it is and what it has answered so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionMetadata {
    /// The caller's name for it.
    pub execution_context_id: String,
    /// The model to use for it, where one was chosen.
    pub model: Option<String>,
    /// Every reply, oldest first.
    pub replies: Vec<SessionReply>,
}

impl SessionMetadata {
    /// The newest session that a reply names.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        let ids = self.replies.iter().rev().map(|reply| &reply.session_id);
        ids.map(String::as_str).find(|id| !id.is_empty())
    }

    /// The text of the newest reply that went well and said something.
    #[must_use]
    pub fn last_successful_response(&self) -> Option<&str> {
        let good = self.replies.iter().rev().filter(|reply| !reply.is_error);
        good.filter_map(|reply| reply.response_text.as_deref())
            .find(|text| !text.is_empty())
    }

    /// What all replies cost together.
    #[must_use]
    pub fn total_cost_usd(&self) -> f64 {
        self.replies.iter().map(|reply| reply.total_cost_usd).sum()
    }

    /// The turns of all replies together.
    #[must_use]
    pub fn total_turns(&self) -> u64 {
        self.replies.iter().map(|reply| reply.num_turns).sum()
    }
}

/// One execution and its answer.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct SessionReply {
    /// The agent's name for the session; empty while unknown.
    pub session_id: String,
    /// When the execution began, or was last recorded as a whole.
    pub timestamp: Timestamp,
    /// How long it took.
    pub duration_ms: u64,
    /// What it cost, in US dollars.
    pub total_cost_usd: f64,
    /// Answers of the model.
    pub num_turns: u64,
    /// Whether it failed; true while it runs, so that one that never ended counts as failed.
    pub is_error: bool,
    /// Tokens used.
    pub usage: Usage,
    /// The prompt.
    pub request_text: Option<String>,
    /// The answer.
    pub response_text: Option<String>,
    /// The program that ran, by its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// How the execution ended, by the outcome's name; none while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Where its events begin in the journal, where they are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events_offset: Option<u64>,
}

impl SessionReply {
    pub(crate) fn begun(agent: Option<Agent>, request_text: Option<&str>) -> Self {
        Self {
            session_id: String::new(),
            timestamp: Timestamp::now(),
            duration_ms: 0,
            total_cost_usd: 0.0,
            num_turns: 0,
            is_error: true,
            usage: Usage::default(),
            request_text: request_text.map(str::to_owned),
            response_text: None,
            agent: agent.map(|agent| agent.name().to_owned()),
            outcome: None,
            events_offset: None,
        }
    }

    pub(crate) fn update(&mut self, update: ReplyUpdate) {
        self.session_id = update.session_id.unwrap_or_default();
        self.duration_ms = update.duration_ms;
        self.total_cost_usd = update.total_cost_usd;
        self.num_turns = update.num_turns;
        self.is_error = update.is_error;
        self.usage = update.usage;
        self.response_text = update.response_text;
        self.outcome = update.outcome;
    }
}

/// What is known of a reply at some moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplyUpdate {
    /// The agent's name for the session.
    pub session_id: Option<String>,
    /// How long it took.
    pub duration_ms: u64,
    /// What it cost, in US dollars.
    pub total_cost_usd: f64,
    /// Answers of the model.
    pub num_turns: u64,
    /// Whether it failed.
    pub is_error: bool,
    /// Tokens used.
    pub usage: Usage,
    /// The answer.
    pub response_text: Option<String>,
    /// How the execution ended, by the outcome's name.
    pub outcome: Option<String>,
}

impl ReplyUpdate {
    /// What a run says of itself: its result, or an interruption if it has none.
    ///
    /// The result names the session; without one, the start of the session does.
    #[must_use]
    pub fn of(transcript: &Transcript) -> Self {
        let session_id = transcript.session_id().map(str::to_owned);
        match transcript.summary() {
            Some(summary) => Self {
                session_id,
                duration_ms: summary.duration_ms,
                total_cost_usd: summary.total_cost_usd,
                num_turns: summary.num_turns,
                is_error: summary.is_error,
                usage: summary.usage,
                ..Self::default()
            },
            None => Self {
                session_id,
                is_error: true,
                ..Self::default()
            },
        }
    }
}

/// The file, written: the version comes first.
#[derive(Serialize)]
struct WrittenFile<'a> {
    version: u64,
    execution_context_id: &'a str,
    model: Option<&'a str>,
    replies: &'a [SessionReply],
}

/// The file, read.
#[derive(Deserialize)]
struct ReadFile {
    execution_context_id: String,
    model: Option<String>,
    replies: Vec<SessionReply>,
}

/// What the bytes of a context file turned out to be.
pub(crate) enum Contents {
    Current(SessionMetadata),
    /// Valid JSON without a version; perhaps of an older layout.
    Unversioned(serde_json::Value),
    Newer(u64),
    Broken(String),
}

pub(crate) fn parse(bytes: &[u8]) -> Contents {
    #[derive(Deserialize)]
    struct Head {
        version: Option<u64>,
    }
    match serde_json::from_slice(bytes) {
        Ok(Head {
            version: Some(SCHEMA_VERSION),
        }) => match serde_json::from_slice::<ReadFile>(bytes) {
            Ok(file) => Contents::Current(SessionMetadata {
                execution_context_id: file.execution_context_id,
                model: file.model,
                replies: file.replies,
            }),
            Err(error) => Contents::Broken(error.to_string()),
        },
        Ok(Head { version: None }) => match serde_json::from_slice(bytes) {
            Ok(value) => Contents::Unversioned(value),
            Err(error) => Contents::Broken(error.to_string()),
        },
        Ok(Head {
            version: Some(found),
        }) if found > SCHEMA_VERSION => Contents::Newer(found),
        Ok(Head { .. }) => Contents::Broken("there never was such a version".to_owned()),
        Err(error) => Contents::Broken(error.to_string()),
    }
}

pub(crate) fn render(metadata: &SessionMetadata) -> Result<Vec<u8>, serde_json::Error> {
    let file = WrittenFile {
        version: SCHEMA_VERSION,
        execution_context_id: &metadata.execution_context_id,
        model: metadata.model.as_deref(),
        replies: &metadata.replies,
    };
    let mut bytes = serde_json::to_vec_pretty(&file)?;
    bytes.push(b'\n');
    Ok(bytes)
}
