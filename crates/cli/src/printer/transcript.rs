//! Shows what an agent does: for people, or as JSON lines for programs.

use std::{
    borrow::Cow,
    io::{self, Write},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use cordon::{ContentBlock, ContextId, EventKind, ExecutionResult, Outcome, StreamEvent};
use serde_json::{Map, Value, json};

use super::{Printer, Verbosity};

/// A running account of one execution.
pub(crate) struct Transcript<'a> {
    printer: &'a Printer,
    form: Form,
    /// The last line on standard output is not ended yet: some agents write theirs in pieces.
    open: AtomicBool,
}

enum Form {
    Text,
    Json,
}

impl<'a> Transcript<'a> {
    /// Answers on standard output, everything else on standard error.
    pub(crate) fn text(printer: &'a Printer) -> Self {
        Self {
            printer,
            form: Form::Text,
            open: AtomicBool::new(false),
        }
    }

    /// Every event on standard output as the agent wrote it, and a line of ours at the end.
    pub(crate) fn json(printer: &'a Printer) -> Self {
        Self {
            printer,
            form: Form::Json,
            open: AtomicBool::new(false),
        }
    }

    pub(crate) fn event(&self, event: &StreamEvent) {
        match self.form {
            Form::Json => out(event.raw(), "\n"),
            Form::Text => self.show(event),
        }
    }

    fn show(&self, event: &StreamEvent) {
        let sub_agent = event.parent_tool_use_id.is_some();
        for block in event.blocks() {
            match (&event.kind, block) {
                (EventKind::Assistant(_), ContentBlock::Text(text)) if sub_agent => {
                    self.aside("  ", text)
                }
                (EventKind::Assistant(message), ContentBlock::Text(text))
                    if message.error.is_none() =>
                {
                    self.say(text, message.partial)
                }
                (_, ContentBlock::ToolUse { name, input, .. }) => {
                    self.aside("•", &format!("{name}{}", gist(input)))
                }
                (
                    _,
                    ContentBlock::ToolResult {
                        is_error: true,
                        content,
                        ..
                    },
                ) => self.aside("✗", &first_line(content)),
                _ => {}
            }
        }
        if let Some(retry) = event.api_retry() {
            let status = retry.status.map(|status| format!(" with {status}"));
            let status = status.unwrap_or_default();
            let what = format!(
                "the API answered{status}; attempt {} follows",
                retry.attempt + 1
            );
            self.aside("…", &what);
        }
    }

    pub(crate) fn result(&self, context: &ContextId, result: &ExecutionResult) {
        match self.form {
            Form::Json => out(&json_result(context, result).to_string(), "\n"),
            Form::Text => self.summary(context, result),
        }
    }

    fn summary(&self, context: &ContextId, result: &ExecutionResult) {
        self.end_line();
        if result.outcome != Outcome::Success {
            self.printer.failure(result.outcome, &reason(result));
        }
        let mut parts = vec![format!("{:.1} s", result.duration.as_secs_f64())];
        match result.num_turns {
            0 => {}
            1 => parts.push("1 turn".to_owned()),
            turns => parts.push(format!("{turns} turns")),
        }
        if result.total_cost_usd > 0.0 {
            parts.push(format!("${:.4}", result.total_cost_usd));
        }
        if let Some(network) = &result.network {
            parts.push(format!(
                "{} requests, {} refused",
                network.allowed, network.blocked
            ));
        }
        parts.push(format!("context {context}"));
        self.aside("—", &parts.join(" · "));
    }

    /// Prints what the agent says; the next piece goes on where a partial one ends.
    fn say(&self, text: &str, partial: bool) {
        out(&harmless(text), if partial { "" } else { "\n" });
        self.open.store(partial, Ordering::Relaxed);
    }

    fn end_line(&self) {
        if self.open.swap(false, Ordering::Relaxed) {
            out("", "\n");
        }
    }

    fn aside(&self, mark: &str, text: &str) {
        self.end_line();
        if self.printer.verbosity >= Verbosity::Normal {
            for line in harmless(text).lines() {
                self.printer.line(mark, line);
            }
        }
    }
}

fn json_result(context: &ContextId, result: &ExecutionResult) -> Value {
    json!({
        "type": "cordon_result",
        "context": context.as_str(),
        "outcome": result.outcome.name(),
        "retry_after_ms": retry_after(result.outcome).map(milliseconds),
        "session_id": result.session_id,
        "response_text": result.response_text,
        "error_summary": result.error_summary,
        "exit_code": result.exit_code,
        "duration_ms": milliseconds(result.duration),
        "total_cost_usd": result.total_cost_usd,
        "num_turns": result.num_turns,
        "usage": result.usage,
    })
}

/// Why it went wrong, in one line.
fn reason(result: &ExecutionResult) -> String {
    let why = result.error_summary.as_deref().unwrap_or_default();
    let why = harmless(why.lines().next().unwrap_or_default()).into_owned();
    match retry_after(result.outcome) {
        Some(wait) => format!("{why} (try again in {:.0} s)", wait.as_secs_f64().ceil()),
        None => why,
    }
}

fn retry_after(outcome: Outcome) -> Option<Duration> {
    match outcome {
        Outcome::RateLimited { retry_after } => retry_after,
        Outcome::Success
        | Outcome::Timeout
        | Outcome::PromptTooLong
        | Outcome::SessionCorrupted
        | Outcome::ContainerFailed
        | Outcome::Overloaded
        | Outcome::AuthFailed
        | Outcome::OutOfMemory
        | Outcome::Stopped
        | Outcome::BudgetExceeded => None,
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The text without what could steer a terminal: it was written in the container.
pub(super) fn harmless(text: &str) -> Cow<'_, str> {
    let steers = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if text.contains(steers) {
        Cow::Owned(text.replace(steers, "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// The argument of a tool call that a person wants to see.
fn gist(input: &Map<String, Value>) -> String {
    let telling = [
        "command",
        "file_path",
        "path",
        "pattern",
        "query",
        "url",
        "description",
    ];
    let found = telling
        .iter()
        .find_map(|name| input.get(*name))
        .and_then(Value::as_str);
    match found.and_then(|text| text.lines().next()) {
        Some(line) => format!(": {}", line.chars().take(120).collect::<String>()),
        None => String::new(),
    }
}

fn first_line(content: &Value) -> String {
    let text = match content {
        Value::String(text) => text.as_str(),
        Value::Array(parts) => parts
            .iter()
            .find_map(|part| part["text"].as_str())
            .unwrap_or_default(),
        _ => "",
    };
    text.lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(160)
        .collect()
}

fn out(text: &str, end: &str) {
    let mut stdout = io::stdout().lock();
    // There is nobody left to tell when standard output is closed.
    drop(write!(stdout, "{text}{end}").and_then(|()| stdout.flush()));
}
