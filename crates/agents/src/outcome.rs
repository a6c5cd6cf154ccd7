//! The one value that says how an execution ended, decided from structure.
//!
//! Exit status, result event and the fields with which the agents report a refused request
//! decide. Phrases count only in what the program itself wrote about its failure, never in what
//! the model or a tool said.

mod claude;
mod codex;
mod gemini;

use std::{fmt, time::Duration};

use crate::{Agent, Transcript};

/// How an execution ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// The agent answered.
    Success,
    /// Time was up. The session can go on.
    Timeout,
    /// The conversation no longer fits the model's context window. Start a fresh session.
    PromptTooLong,
    /// The API refuses this conversation, or it is gone. Start a fresh session.
    SessionCorrupted,
    /// The program or its container failed in another way.
    ContainerFailed,
    /// The API asks to slow down. The session can go on.
    RateLimited {
        /// How long it asked to wait, where it did.
        retry_after: Option<Duration>,
    },
    /// The API could not answer for reasons of its own, or broke off. The session can go on.
    Overloaded,
    /// The API refuses the key, or the account behind it.
    AuthFailed,
    /// The container's memory was used up.
    OutOfMemory,
    /// Somebody stopped it. The session can go on.
    Stopped,
    /// It cost more, or took more turns, than allowed. The session can go on.
    BudgetExceeded,
}

impl Outcome {
    /// The name in files and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Timeout => "timeout",
            Self::PromptTooLong => "prompt_too_long",
            Self::SessionCorrupted => "session_corrupted",
            Self::ContainerFailed => "container_failed",
            Self::RateLimited { .. } => "rate_limited",
            Self::Overloaded => "overloaded",
            Self::AuthFailed => "auth_failed",
            Self::OutOfMemory => "out_of_memory",
            Self::Stopped => "stopped",
            Self::BudgetExceeded => "budget_exceeded",
        }
    }

    /// Whether going on with the same session is bound to fail again.
    #[must_use]
    pub fn needs_fresh_session(self) -> bool {
        match self {
            Self::PromptTooLong | Self::SessionCorrupted => true,
            Self::Success
            | Self::Timeout
            | Self::ContainerFailed
            | Self::RateLimited { .. }
            | Self::Overloaded
            | Self::AuthFailed
            | Self::OutOfMemory
            | Self::Stopped
            | Self::BudgetExceeded => false,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How the process and its container ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ending<'a> {
    /// What made it end.
    pub by: EndedBy,
    /// The program's exit status; none if it never had one.
    pub exit_code: Option<i32>,
    /// Whether the engine reports that the container ran out of memory.
    pub oom_killed: bool,
    /// The last part of stderr.
    pub stderr: &'a str,
}

impl Ending<'_> {
    /// The program ended by itself, with this status.
    #[must_use]
    pub fn exited(code: i32) -> Self {
        Self {
            by: EndedBy::Itself,
            exit_code: Some(code),
            oom_killed: false,
            stderr: "",
        }
    }
}

/// What made an execution end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EndedBy {
    /// It ended by itself.
    Itself,
    /// Its time was up.
    Timeout,
    /// Somebody stopped it.
    Stop,
    /// It passed its budget and was stopped.
    Budget,
}

/// Decides how an execution ended.
#[must_use]
pub fn classify(ending: &Ending<'_>, transcript: &Transcript) -> Outcome {
    match ending.by {
        EndedBy::Timeout => return Outcome::Timeout,
        EndedBy::Stop => return Outcome::Stopped,
        EndedBy::Budget => return Outcome::BudgetExceeded,
        EndedBy::Itself => {}
    }
    let reports_error = transcript
        .last_result()
        .is_some_and(|(result, _)| result.is_error == Some(true));
    if ending.exit_code == Some(0) && !reports_error {
        return Outcome::Success;
    }
    // The engine's flag is also set when a tool was killed and the agent lived on.
    if ending.oom_killed && !reports_error {
        return Outcome::OutOfMemory;
    }
    let refused = match transcript.agent() {
        Agent::Claude => claude::refusal(transcript),
        Agent::Codex => codex::refusal(transcript),
        Agent::Gemini => gemini::refusal(ending, transcript),
    };
    refused
        .or_else(|| from_own_words(ending, transcript))
        .unwrap_or(Outcome::ContainerFailed)
}

/// Looks for known phrases in what the program itself wrote about its failure.
fn from_own_words(ending: &Ending<'_>, transcript: &Transcript) -> Option<Outcome> {
    let mut words = vec![ending.stderr, transcript.plain()];
    if let Some((result, _)) = transcript.last_result()
        && result.is_error != Some(false)
    {
        words.extend(result.text.as_deref());
        words.extend(result.errors.iter().map(String::as_str));
    }
    let says = |phrase: &str| words.iter().any(|text| text.contains(phrase));
    if !transcript.began() && LOST_SESSION.iter().any(|phrase| says(phrase)) {
        return Some(Outcome::SessionCorrupted);
    }
    if TOO_LONG.iter().any(|phrase| says(phrase)) {
        return Some(Outcome::PromptTooLong);
    }
    words.iter().find_map(|text| {
        let (_, after) = text.split_once("API Error: 4")?;
        let status = after.get(..2).and_then(|digits| digits.parse::<u16>().ok());
        // A code that is no status at all still says that the request was at fault.
        Some(status.map_or(Outcome::SessionCorrupted, |rest| {
            from_status(400 + rest, None).unwrap_or(Outcome::SessionCorrupted)
        }))
    })
}

/// What an HTTP status means, apart from requests that are too long.
fn from_status(status: u16, retry_after: Option<Duration>) -> Option<Outcome> {
    match status {
        400 => Some(Outcome::SessionCorrupted),
        401..=403 => Some(Outcome::AuthFailed),
        413 => Some(Outcome::PromptTooLong),
        429 => Some(Outcome::RateLimited { retry_after }),
        500..=599 => Some(Outcome::Overloaded),
        _ => None,
    }
}

/// Finds the time after a phrase: `retry after 7s`, `try again in 1.5 seconds`, `in 300ms`.
fn delay_after(text: &str, phrase: &str) -> Option<Duration> {
    let (_, rest) = text.split_once(phrase)?;
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let number: f64 = rest[..end].parse().ok()?;
    let unit = rest[end..].trim_start();
    let seconds = if unit.starts_with("ms") {
        number / 1000.0
    } else if unit.starts_with('s') {
        number
    } else if unit.starts_with('m') {
        number * 60.0
    } else {
        return None;
    };
    Duration::try_from_secs_f64(seconds).ok()
}

/// How the programs say that they do not have the session they were told to resume.
const LOST_SESSION: [&str; 4] = [
    "No conversation found with session ID",
    "--resume requires a valid session ID",
    "no rollout found for thread id",
    "Error resuming session",
];

/// How the programs say that the conversation has outgrown the model.
const TOO_LONG: [&str; 4] = [
    "Prompt is too long",
    "ran out of room in the model's context window",
    "exceeds the maximum number of tokens allowed",
    "input_too_large",
];

#[cfg(test)]
mod tests;
