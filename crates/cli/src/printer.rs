//! The only place that prints.
//!
//! Everything of ours goes to standard error: standard output is the command's or the agent's, or an answer that was asked
//! for. Readable without colour, and
//! without it where standard error is no terminal or `NO_COLOR` is set.

mod refusals;
mod report;
mod transcript;

use std::{
    env,
    fmt::Display,
    io::{self, IsTerminal, Write},
    sync::Arc,
};

use cordon::{Event, FileNotice, Level, Notice, Outcome, Progress, Record, SandboxError, Verdict};

pub(crate) use refusals::Refusals;
pub(crate) use transcript::Transcript;

/// How much is said.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Verbosity {
    /// Errors only.
    Quiet,
    /// Errors and warnings.
    Normal,
    /// Also what was adapted and cleaned up.
    Verbose,
    /// Also what the library traces.
    Debug,
}

/// Says things to a person.
#[derive(Clone, Debug)]
pub(crate) struct Printer {
    verbosity: Verbosity,
    colour: bool,
}

impl Printer {
    pub(crate) fn new(verbosity: Verbosity) -> Self {
        let colour = io::stderr().is_terminal()
            && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        if verbosity == Verbosity::Debug {
            tracing_subscriber::fmt()
                .with_writer(io::stderr)
                .with_ansi(colour)
                .with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG)
                .init();
        }
        Self { verbosity, colour }
    }

    /// Says where a panic came from and not what it said: its words may hold anything.
    pub(crate) fn answer_for_panics(&self) {
        let printer = self.clone();
        std::panic::set_hook(Box::new(move |panic| {
            let place = panic
                .location()
                .map(ToString::to_string)
                .unwrap_or_default();
            printer.line(
                &printer.paint(RED, "error:"),
                format_args!("a fault of Cordon's own, at {place}"),
            );
            printer.hint("please report it, with what you ran");
        }));
    }

    /// An error with its causes, and what to do about it where that is known.
    pub(crate) fn error(&self, error: &anyhow::Error) {
        self.line(&self.paint(RED, "error:"), error);
        let mut said = error.to_string();
        for cause in error.chain().skip(1) {
            let cause = cause.to_string();
            // A transparent error repeats its cause's words.
            if !said.contains(&cause) {
                self.line("  cause:", &cause);
            }
            said = cause;
        }
        let hint = error
            .chain()
            .find_map(|cause| match cause.downcast_ref::<SandboxError>() {
                Some(error) => error.hint(),
                None => cause
                    .downcast_ref::<Hinted>()
                    .map(|hinted| hinted.hint.clone()),
            });
        if let Some(hint) = hint {
            self.hint(&hint);
        }
    }

    /// A line of standard output that somebody waits for; that nobody does is an error.
    pub(crate) fn hand_over(&self, text: impl Display) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{text}")?;
        stdout.flush()
    }

    pub(crate) fn hint(&self, hint: impl Display) {
        self.line(&self.paint(CYAN, "hint:"), hint);
    }

    pub(crate) fn warning(&self, warning: impl Display) {
        if self.verbosity >= Verbosity::Normal {
            self.line(&self.paint(YELLOW, "warning:"), warning);
        }
    }

    /// An agent that did not succeed.
    fn failure(&self, outcome: Outcome, why: &str) {
        let colon = if why.is_empty() { "" } else { ":" };
        let head = self.paint(RED, &format!("{}{colon}", outcome.name()));
        self.line(&head, why);
    }

    pub(crate) fn info(&self, info: impl Display) {
        if self.verbosity >= Verbosity::Verbose {
            self.line("cordon:", info);
        }
    }

    /// What the library has to say.
    pub(crate) fn notices(&self) -> Arc<dyn Fn(&Notice) + Send + Sync> {
        let printer = self.clone();
        Arc::new(move |notice| match notice.level() {
            Level::Warning => printer.warning(notice),
            Level::Info => printer.info(notice),
        })
    }

    /// What there is to know of the configuration file.
    pub(crate) fn file_notice(&self, notice: &FileNotice) {
        match notice.level() {
            Level::Warning => self.warning(notice),
            Level::Info => self.info(notice),
        }
    }

    /// What a build has to say.
    pub(crate) fn build(&self, progress: Progress<'_>) {
        match progress {
            Progress::Waiting { tag } => {
                self.say(format_args!("waiting for somebody else's build of {tag}"))
            }
            Progress::Building { tag, .. } => self.say(format_args!("building {tag}")),
            Progress::Line(line) => self.info(line),
        }
    }

    /// What a person should know in any case, although nothing is wrong.
    pub(crate) fn say(&self, text: impl Display) {
        if self.verbosity >= Verbosity::Normal {
            self.line("cordon:", text);
        }
    }

    /// What was asked for by subcommands that run nothing: the only thing of ours on standard output.
    pub(crate) fn answer(&self, line: impl Display) {
        // There is nobody left to tell when standard output is closed.
        drop(writeln!(io::stdout().lock(), "{line}"));
    }

    /// The network log, as it is written.
    pub(crate) fn network(&self) -> Arc<dyn Fn(&Record) + Send + Sync> {
        let printer = self.clone();
        Arc::new(move |record| printer.line("[net]", record.line()))
    }

    /// What the network log says of requests that did not go through, as it is written.
    pub(crate) fn refusals(&self) -> Arc<dyn Fn(&Record) + Send + Sync> {
        let printer = self.clone();
        Arc::new(move |record| {
            if printer.verbosity >= Verbosity::Normal && is_refusal(record) {
                printer.line("[net]", record.line());
            }
        })
    }

    fn line(&self, head: &str, text: impl Display) {
        // There is nobody left to tell when standard error is closed.
        drop(writeln!(io::stderr().lock(), "{head} {text}"));
    }

    fn paint(&self, colour: &str, text: &str) -> String {
        if self.colour {
            format!("\x1b[1;{colour}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Whether a record is of a request that was not let through.
fn is_refusal(record: &Record) -> bool {
    match &record.event {
        Event::Request(request) => match request.verdict {
            Verdict::Allowed { .. } => false,
            Verdict::Blocked { .. } | Verdict::Alarm { .. } | Verdict::Failed { .. } => true,
        },
        Event::Start | Event::Dns(_) | Event::Lost { .. } => false,
        Event::DnsDropped { .. } | Event::Handshake { .. } => true,
    }
}

/// An error of the command line itself that knows what to do next.
#[derive(Debug)]
pub(crate) struct Hinted {
    message: String,
    hint: String,
}

impl Hinted {
    pub(crate) fn new(message: impl Display, hint: impl Display) -> Self {
        Self {
            message: message.to_string(),
            hint: hint.to_string(),
        }
    }
}

impl Display for Hinted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Hinted {}

const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const CYAN: &str = "36";
