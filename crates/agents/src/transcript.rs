//! What a run has said so far, as far as anybody asks at its end.
//!
//! It does not keep the events: its size is bounded however long the run is.

use std::collections::VecDeque;

use crate::{
    Agent, ApiRetry, ContentBlock, EventKind, Message, Output, ResultSummary, RunResult,
    StreamEvent,
    budget::Turns,
    extract::{REPLY_WINDOW, last_lines, select_reply},
};

/// The running summary of one run.
#[derive(Clone, Debug)]
pub struct Transcript {
    agent: Agent,
    result_session: Option<String>,
    init_session: Option<String>,
    began: bool,
    texts: VecDeque<String>,
    text_goes_on: bool,
    said: Tail,
    plain: Tail,
    results: Results,
    error_kind: Option<String>,
    last_retry: Option<ApiRetry>,
    turns: Turns,
    web_searches: u64,
    web_fetches: u64,
}

impl Transcript {
    /// An empty one.
    #[must_use]
    pub fn new(agent: Agent) -> Self {
        Self {
            agent,
            result_session: None,
            init_session: None,
            began: false,
            texts: VecDeque::new(),
            text_goes_on: false,
            said: Tail::default(),
            plain: Tail::default(),
            results: Results::default(),
            error_kind: None,
            last_retry: None,
            turns: Turns::default(),
            web_searches: 0,
            web_fetches: 0,
        }
    }

    /// Takes the next output of the run.
    pub fn push(&mut self, output: &Output) {
        match output {
            Output::Event(event) => self.push_event(event),
            Output::Plain(line) => self.plain.push(line),
        }
    }

    /// Takes the next event of the run.
    pub fn push_event(&mut self, event: &StreamEvent) {
        self.turns.push(event);
        match &event.kind {
            EventKind::System => self.system(event),
            EventKind::Assistant(message) => self.assistant(event, message),
            EventKind::User(_) => self.text_goes_on = false,
            EventKind::Result(result) => {
                self.text_goes_on = false;
                if event.session_id.is_some() {
                    self.result_session.clone_from(&event.session_id);
                }
                self.results.push(result, event.subtype.as_deref());
            }
            EventKind::Oversized | EventKind::Unknown(_) => {}
        }
    }

    /// The program.
    #[must_use]
    pub fn agent(&self) -> Agent {
        self.agent
    }

    /// The session, from the last result that names one, or else from the start of the session.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        self.result_session
            .as_deref()
            .or(self.init_session.as_deref())
    }

    /// The answer, or a sentence that says there is none.
    ///
    /// Several results are joined. Otherwise the last text counts, with what came shortly before
    /// if that was the substance and the last only a closing remark.
    #[must_use]
    pub fn response_text(&self) -> String {
        let joined = (self.results.count > 1).then(|| self.results.joined.clone());
        let texts: Vec<_> = self.texts.iter().map(String::as_str).collect();
        joined
            .filter(|text| !text.is_empty())
            .or_else(|| select_reply(&texts))
            .or_else(|| self.results.last.as_ref()?.text.clone())
            .filter(|text| !text.is_empty())
            .unwrap_or_else(|| self.agent.no_output().to_owned())
    }

    /// What the results of the run say together; none before the first.
    #[must_use]
    pub fn summary(&self) -> Option<ResultSummary> {
        let last = self.results.last.as_ref()?;
        let counted = match self.agent {
            Agent::Claude => self.results.num_turns,
            Agent::Codex | Agent::Gemini => self.turns.count(),
        };
        Some(ResultSummary {
            session_id: self.result_session.clone(),
            duration_ms: self.results.duration_ms,
            total_cost_usd: last.total_cost_usd.unwrap_or(0.0),
            num_turns: counted,
            is_error: last.is_error == Some(true),
            usage: last.usage.clone(),
            result_text: last.text.clone(),
        })
    }

    /// What to show of a run that failed: the last lines of its result, or of all it said.
    #[must_use]
    pub fn error_summary(&self) -> Option<String> {
        self.error_lines(ERROR_SUMMARY_LINES)
    }

    /// How many of the model's tool calls were web searches.
    #[must_use]
    pub fn web_searches(&self) -> u64 {
        self.web_searches
    }

    /// How many of the model's tool calls fetched a page.
    #[must_use]
    pub fn web_fetches(&self) -> u64 {
        self.web_fetches
    }

    pub(crate) fn error_lines(&self, max: usize) -> Option<String> {
        last_lines(&self.results.complaint, max).or_else(|| last_lines(&self.said.0, max))
    }

    /// The last result, and its subtype.
    pub(crate) fn last_result(&self) -> Option<(&RunResult, Option<&str>)> {
        let last = self.results.last.as_ref()?;
        Some((last, self.results.subtype.as_deref()))
    }

    /// The kind of failure that the last message of the main agent reports.
    pub(crate) fn error_kind(&self) -> Option<&str> {
        self.error_kind.as_deref()
    }

    pub(crate) fn last_retry(&self) -> Option<&ApiRetry> {
        self.last_retry.as_ref()
    }

    /// Whether the agent got as far as having a session.
    pub(crate) fn began(&self) -> bool {
        self.began
    }

    /// The end of what the program printed beside its events.
    pub(crate) fn plain(&self) -> &str {
        &self.plain.0
    }

    fn system(&mut self, event: &StreamEvent) {
        if event.is_init() {
            self.began = true;
            if event.session_id.is_some() {
                self.init_session.clone_from(&event.session_id);
            }
        }
        if let Some(retry) = event.api_retry() {
            self.last_retry = Some(retry);
        }
    }

    fn assistant(&mut self, event: &StreamEvent, message: &Message) {
        for block in &message.blocks {
            match block {
                ContentBlock::ToolUse { name, .. } if name == "WebSearch" => self.web_searches += 1,
                ContentBlock::ToolUse { name, .. } if name == "WebFetch" => self.web_fetches += 1,
                ContentBlock::ToolUse { .. }
                | ContentBlock::Text(_)
                | ContentBlock::ToolResult { .. } => {}
            }
        }
        if event.parent_tool_use_id.is_some() {
            return;
        }
        self.error_kind.clone_from(&message.error);
        let Some(text) = message.text() else {
            self.text_goes_on = false;
            return;
        };
        self.said.push_piece(&text, self.text_goes_on);
        if message.error.is_none() {
            self.speak(&text);
            self.text_goes_on = message.partial;
        }
    }

    fn speak(&mut self, text: &str) {
        match self.texts.back_mut() {
            Some(last) if self.text_goes_on => append(last, text, MAX_TEXT_BYTES),
            _ if text.is_empty() => {}
            _ => {
                if self.texts.len() == REPLY_WINDOW {
                    self.texts.pop_front();
                }
                self.texts.push_back(text.to_owned());
            }
        }
    }
}

/// The results of a run; most have one, background work makes more.
#[derive(Clone, Debug, Default)]
struct Results {
    count: u64,
    joined: String,
    complaint: String,
    last: Option<RunResult>,
    subtype: Option<String>,
    duration_ms: u64,
    num_turns: u64,
}

impl Results {
    fn push(&mut self, result: &RunResult, subtype: Option<&str>) {
        self.count += 1;
        self.duration_ms = self.duration_ms.saturating_add(result.duration_ms);
        self.num_turns = self.num_turns.saturating_add(result.num_turns);
        let text = result.text.as_deref().unwrap_or_default();
        if !text.is_empty() {
            if !self.joined.is_empty() {
                append(&mut self.joined, "\n\n", MAX_TEXT_BYTES);
            }
            append(&mut self.joined, text, MAX_TEXT_BYTES);
        }
        let complaint = if text.trim().is_empty() {
            result.errors.join("\n")
        } else {
            text.to_owned()
        };
        if !complaint.is_empty() {
            self.complaint = complaint;
        }
        self.last = Some(result.clone());
        self.subtype = subtype.map(str::to_owned);
    }
}

/// The last part of a text that may be endless.
#[derive(Clone, Debug, Default)]
struct Tail(String);

impl Tail {
    fn push(&mut self, line: &str) {
        self.push_piece(line, false);
    }

    /// Adds a text on its own line, or to the line that is there.
    fn push_piece(&mut self, text: &str, same_line: bool) {
        if !self.0.is_empty() && !same_line {
            self.0.push('\n');
        }
        self.0.push_str(text);
        if self.0.len() > 2 * TAIL_BYTES {
            let from = self.0.ceil_char_boundary(self.0.len() - TAIL_BYTES);
            self.0.drain(..from);
        }
    }
}

/// Appends as much as the limit leaves room for.
fn append(text: &mut String, more: &str, limit: usize) {
    let room = limit.saturating_sub(text.len());
    text.push_str(&more[..more.floor_char_boundary(room)]);
}

/// What an error summary shows; more does not fit a message to a person.
const ERROR_SUMMARY_LINES: usize = 10;

/// A reply may be put together from pieces; this is as long as one event could make it.
const MAX_TEXT_BYTES: usize = crate::MAX_LINE_BYTES;

/// Enough for the lines of a summary, and to find a phrase in.
const TAIL_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn piece(text: &str) -> StreamEvent {
        let line = json!({"type": "message", "role": "assistant", "content": text, "delta": true});
        StreamEvent::parse(Agent::Gemini, &line.to_string()).unwrap()
    }

    #[test]
    fn pieces_become_one_text_until_a_tool_comes_between() {
        let mut transcript = Transcript::new(Agent::Gemini);
        let tool = json!({"type": "tool_use", "tool_name": "ls", "tool_id": "1"});
        let tool = StreamEvent::parse(Agent::Gemini, &tool.to_string()).unwrap();
        for event in [
            piece("Let me "),
            piece("look."),
            tool,
            piece("It is "),
            piece("empty."),
        ] {
            transcript.push_event(&event);
        }
        assert_eq!(transcript.response_text(), "It is empty.");
        assert_eq!(
            transcript.error_summary().as_deref(),
            Some("Let me look.\nIt is empty.")
        );
    }

    #[test]
    fn its_size_does_not_depend_on_how_long_the_run_is() {
        let mut transcript = Transcript::new(Agent::Gemini);
        let long = "é".repeat(500_000);
        for _ in 0..40 {
            transcript.push_event(&piece(&long));
            transcript.push(&Output::Plain(long.clone()));
        }
        assert!(transcript.response_text().len() <= MAX_TEXT_BYTES);
        assert!(transcript.said.0.len() <= 2 * TAIL_BYTES);
        assert!(transcript.plain().len() <= 2 * TAIL_BYTES);
        assert!(transcript.error_summary().unwrap().len() <= TAIL_BYTES);

        let mut transcript = Transcript::new(Agent::Claude);
        for _ in 0..40 {
            let result = json!({"type": "result", "result": long}).to_string();
            transcript.push_event(&StreamEvent::parse(Agent::Claude, &result).unwrap());
        }
        assert!(transcript.response_text().len() <= MAX_TEXT_BYTES);
    }
}
