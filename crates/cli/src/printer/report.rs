//! What a check-up found and what a clean-up removed: one line each, with what to type below it.
//!
//! This is what was asked for, so it goes to standard output.

use std::{
    env,
    io::{self, IsTerminal, Write},
};

use cordon::{
    Cleaned,
    doctor::{BootstrapReport, Finding, Severity},
};
use serde_json::Value;

use super::{CYAN, GREEN, Printer, RED, YELLOW, transcript::harmless};

impl Printer {
    /// A document for programs.
    pub(crate) fn json(&self, document: &Value) {
        // There is nobody left to tell when standard output is closed.
        drop(writeln!(io::stdout().lock(), "{document:#}"));
    }

    /// What was found, the machine first and then each agent.
    pub(crate) fn report(&self, report: &BootstrapReport) {
        let page = Page::new();
        let mut agent = None;
        for finding in &report.findings {
            if finding.agent != agent {
                agent.clone_from(&finding.agent);
                page.line(&format!("\n{}", agent.as_deref().unwrap_or_default()));
            }
            page.finding(finding);
        }
        if !report.actions.is_empty() {
            page.line("\ndone");
            for action in &report.actions {
                page.line(&format!("  {}", action.message));
            }
        }
        let count = |severity| {
            let all = report.findings.iter();
            all.filter(|finding| finding.severity == severity).count()
        };
        page.line(&format!(
            "\n{} ok, {} to know, {} to look at, {} wrong",
            count(Severity::Ok),
            count(Severity::Info),
            count(Severity::Warning),
            count(Severity::Error)
        ));
    }

    /// What a clean-up came to.
    pub(crate) fn cleaned(&self, cleaned: &Cleaned) {
        let page = Page::new();
        for gone in &cleaned.removed {
            let engine = gone.engine.map(|engine| format!(" ({engine})"));
            let line = format!("removed the {} {}", gone.kind.word(), gone.name);
            page.line(&(line + &engine.unwrap_or_default()));
        }
        if cleaned.removed.is_empty() && cleaned.kept.is_empty() {
            page.line("nothing was left");
        }
        for silent in &cleaned.unanswered {
            self.info(format_args!(
                "{} was not looked at: {}",
                silent.what,
                silent.reason()
            ));
        }
        for kept in &cleaned.kept {
            self.warning(format_args!(
                "cannot clean {}: {}",
                kept.what,
                kept.reason()
            ));
            if let Some(hint) = kept.why.hint() {
                self.hint(hint);
            }
        }
    }
}

/// What was said in several lines, in one; and nothing that could steer a terminal.
fn one_line(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    harmless(&words.join(" ")).into_owned()
}

/// Standard output, as somebody looks at it.
struct Page {
    /// A terminal, which shows signs and may show colours.
    terminal: bool,
    colour: bool,
}

impl Page {
    fn new() -> Self {
        let terminal = io::stdout().is_terminal();
        let plain = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            terminal: terminal && !plain,
            colour: terminal && !plain,
        }
    }

    fn finding(&self, finding: &Finding) {
        let (sign, word, colour) = match finding.severity {
            Severity::Ok => ("✓", "ok     ", GREEN),
            Severity::Info => ("·", "info   ", CYAN),
            Severity::Warning => ("!", "warning", YELLOW),
            Severity::Error => ("✗", "error  ", RED),
        };
        let head = if self.terminal { sign } else { word };
        let head = if self.colour {
            format!("\x1b[1;{colour}m{head}\x1b[0m")
        } else {
            head.to_owned()
        };
        self.line(&format!("  {head} {}", one_line(&finding.message)));
        for hint in &finding.hints {
            let arrow = if self.terminal { "→" } else { "try:" };
            self.line(&format!("      {arrow} {}", one_line(hint)));
        }
    }

    fn line(&self, text: &str) {
        drop(writeln!(io::stdout().lock(), "{text}"));
    }
}
