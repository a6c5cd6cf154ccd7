//! Shows what an agent does: for people, or as JSON lines for programs.

use std::io::{self, Write};

use cordon::{ContentBlock, ContextId, EventKind, ExecutionResult, Outcome, StreamEvent};
use serde_json::{Map, Value, json};

use super::{Printer, Verbosity};

/// A running account of one execution.
pub(crate) struct Transcript<'a> {
    printer: &'a Printer,
    form: Form,
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
        }
    }

    /// Every event on standard output as the agent wrote it, and a line of ours at the end.
    pub(crate) fn json(printer: &'a Printer) -> Self {
        Self {
            printer,
            form: Form::Json,
        }
    }

    pub(crate) fn event(&self, event: &StreamEvent) {
        match self.form {
            Form::Json => out(event.raw()),
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
                    out(text)
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
            Form::Json => out(&json_result(context, result).to_string()),
            Form::Text => self.summary(context, result),
        }
    }

    fn summary(&self, context: &ContextId, result: &ExecutionResult) {
        if result.outcome != Outcome::Success {
            let why = result.error_summary.as_deref().unwrap_or_default();
            self.printer
                .failure(result.outcome, why.lines().next().unwrap_or_default());
        }
        let mut parts = vec![format!("{:.1} s", result.duration.as_secs_f64())];
        if result.num_turns > 0 {
            parts.push(format!("{} turns", result.num_turns));
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

    fn aside(&self, mark: &str, text: &str) {
        if self.printer.verbosity >= Verbosity::Normal {
            for line in text.lines() {
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
        "session_id": result.session_id,
        "response_text": result.response_text,
        "error_summary": result.error_summary,
        "exit_code": result.exit_code,
        "duration_ms": u64::try_from(result.duration.as_millis()).unwrap_or(u64::MAX),
        "total_cost_usd": result.total_cost_usd,
        "num_turns": result.num_turns,
        "usage": result.usage,
    })
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

fn out(text: &str) {
    // There is nobody left to tell when standard output is closed.
    drop(writeln!(io::stdout().lock(), "{text}"));
}
