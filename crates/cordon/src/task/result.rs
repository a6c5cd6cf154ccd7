//! What an execution of an agent came to.

use std::time::Duration;

use cordon_agents::{Outcome, StreamEvent, Usage};
use cordon_proxy::Summary;

/// The one typed result of an execution, whatever happened.
#[derive(Debug)]
pub struct ExecutionResult {
    /// How it ended; match on this.
    pub outcome: Outcome,
    /// The session to resume, if the agent got as far as naming one.
    pub session_id: Option<String>,
    /// The agent's answer; empty unless the outcome is a success.
    pub response_text: String,
    /// What went wrong, in the agent's own words, where it said so.
    pub error_summary: Option<String>,
    /// The last events; the journal has all of them.
    pub events: Vec<StreamEvent>,
    /// From the start of the container to its end.
    pub duration: Duration,
    /// What it cost, in US dollars, where the agent says so.
    pub total_cost_usd: f64,
    /// Answers of the model.
    pub num_turns: u64,
    /// Tokens used.
    pub usage: Usage,
    /// The end of the agent's standard output.
    pub stdout: String,
    /// The end of the agent's standard error.
    pub stderr: String,
    /// The agent's exit code, as a shell gives it.
    pub exit_code: i32,
    /// What went through the door.
    pub network: Option<Summary>,
}
