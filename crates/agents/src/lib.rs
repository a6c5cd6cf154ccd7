//! What Claude Code, Codex and Gemini CLI take and what they print.
//!
//! This crate knows the three programs: their arguments and environment, where they keep state,
//! the streams of JSON lines they write, and what those say about how a run went. It starts
//! nothing, reads no clock and opens no file; callers feed it bytes and ask.
//!
//! ```
//! use cordon_agents::{Agent, Ending, EventStream, Invocation, Outcome, Output, Transcript, classify};
//!
//! let agent = Agent::Claude;
//! let command = agent.command(&Invocation { model: Some("sonnet".parse()?), ..Invocation::default() })?;
//! assert!(command.args.contains(&"stream-json".to_owned()));
//!
//! // Bytes arrive in pieces of any size; events come out whole.
//! let mut stream = EventStream::new(agent);
//! let mut transcript = Transcript::new(agent);
//! let printed = br#"{"type":"result","session_id":"s-1","is_error":false,"result":"Done."}"#;
//! let mut outputs = stream.push(&printed[..20]);
//! outputs.extend(stream.push(&printed[20..]));
//! outputs.extend(stream.finish());
//! for output in &outputs {
//!     transcript.push(output);
//! }
//!
//! assert_eq!(classify(&Ending::exited(0), &transcript), Outcome::Success);
//! assert_eq!(transcript.response_text(), "Done.");
//! assert_eq!(transcript.session_id(), Some("s-1"));
//! # Ok::<(), cordon_agents::Error>(())
//! ```

mod agent;
mod budget;
mod command;
mod error;
mod event;
mod extract;
mod lines;
mod outcome;
mod stream;
mod transcript;
mod usage;

pub use agent::{Agent, Credential, StateFile};
pub use budget::{Budget, Exceeded, Rates, Spending};
pub use command::{AgentCommand, Effort, Invocation, Model, SessionId};
pub use error::Error;
pub use event::{ApiRetry, ContentBlock, EventKind, Message, RunResult, StreamEvent, parse_event};
pub use extract::{
    ResultSummary, extract_error_summary, extract_response_text, extract_result_summary,
    extract_session_id, select_reply,
};
pub use lines::{Line, LineSplitter, MAX_LINE_BYTES};
pub use outcome::{EndedBy, Ending, Outcome, classify};
pub use stream::{EventStream, Output};
pub use transcript::Transcript;
pub use usage::Usage;
