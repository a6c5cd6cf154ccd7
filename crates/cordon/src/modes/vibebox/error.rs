//! What can go wrong between us and `vibebox`, with everything that helps to mend it.

use std::{error, fmt, io, path::PathBuf, process::ExitStatus, time::Duration};

use crate::modes::Provider;

/// `vibebox` was not used, or did not do what it was asked.
#[derive(Debug)]
#[non_exhaustive]
pub struct BridgeError {
    /// What it was asked to do.
    pub stage: Stage,
    /// The command line, with values of variables left out and long texts cut; empty where nothing was
    /// started.
    pub command: String,
    /// How the program ended, if it did.
    pub status: Option<ExitStatus>,
    /// The end of what it wrote.
    pub stdout: String,
    /// The end of what it wrote to standard error.
    pub stderr: String,
    /// What to type or change next.
    pub hints: Vec<String>,
    /// What is wrong.
    pub kind: BridgeErrorKind,
}

/// What `vibebox` was asked to do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stage {
    /// To run a command.
    Exec,
    /// To say whether it can be used.
    Probe,
    /// To set up its configuration.
    Init,
}

/// What is wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BridgeErrorKind {
    /// There is no such program.
    #[error("{} is not installed", program.display())]
    Missing {
        /// The program.
        program: PathBuf,
    },
    /// The program may not be run.
    #[error("{} cannot be executed", program.display())]
    NotExecutable {
        /// The program.
        program: PathBuf,
        /// Why not.
        source: cordon_engine::Error,
    },
    /// The program is there, and does not start.
    #[error("it does not start")]
    Start {
        /// Why not.
        source: cordon_engine::Error,
    },
    /// The operating system does not say how it ended.
    #[error("it was lost")]
    Lost {
        /// Why.
        source: io::Error,
    },
    /// It took too long, and was killed with everything it had started on the host.
    #[error("it did not answer within {} s", limit.as_secs())]
    TimedOut {
        /// How long it had.
        limit: Duration,
    },
    /// It wrote more than an answer can hold, and was killed.
    #[error("it answered more than {limit} bytes")]
    TooMuch {
        /// How many an answer may have.
        limit: usize,
    },
    /// A signal ended it.
    #[error("signal {signal} ended it")]
    Killed {
        /// Which one.
        signal: i32,
    },
    /// It answered nothing.
    #[error("it answered nothing")]
    Empty,
    /// It answered something that is no JSON.
    #[error("it answered something that is no JSON")]
    NotJson {
        /// What was found.
        source: serde_json::Error,
    },
    /// It answered JSON of another form.
    #[error("it answered JSON of another form")]
    Shape {
        /// What was found.
        source: serde_json::Error,
    },
    /// Its answer lacks something that it must have.
    #[error("its answer has no `{field}`")]
    Incomplete {
        /// What is missing.
        field: &'static str,
    },
    /// It says no.
    #[error("it refused{}", reason(said.as_deref()))]
    Refused {
        /// Its own words.
        said: Option<String>,
    },
    /// Its answer says that the command came to an end, and its own end says that it did not.
    #[error(
        "it answered that all is well with the command's exit code {exit_code}, and failed itself"
    )]
    Contradiction {
        /// The command's exit code, by its answer.
        exit_code: i32,
    },
    /// The command ran on another backend than the one that was asked for.
    #[error("it was to use {}, and used {selected}", asked.word())]
    OtherBackend {
        /// What was asked for.
        asked: Provider,
        /// What it used.
        selected: String,
    },
    /// None of its backends can be used.
    #[error("it cannot be used: {said}")]
    Unusable {
        /// What was found.
        said: String,
    },
    /// Something is configured that the program cannot be told of.
    #[error("the agent has {what}, which vibebox cannot be held to")]
    Unheld {
        /// What.
        what: &'static str,
    },
    /// The backend is the host itself.
    #[error("its backend `off` runs commands on the host, with nothing isolated: {why}")]
    HostRefused {
        /// Why it may not.
        why: &'static str,
    },
    /// A command was to read something.
    #[error("commands cannot be given anything to read")]
    Input,
    /// A command is no text.
    #[error("the command is not text that a shell can be given")]
    NotText,
}

impl BridgeError {
    /// Something that is known before the program was started.
    pub(super) fn early(stage: Stage, kind: BridgeErrorKind) -> Box<Self> {
        Box::new(Self {
            stage,
            command: String::new(),
            status: None,
            stdout: String::new(),
            stderr: String::new(),
            hints: kind.hint().into_iter().collect(),
            kind,
        })
    }

    /// What to type or change next, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        (!self.hints.is_empty()).then(|| self.hints.join("; "))
    }
}

impl BridgeErrorKind {
    /// What can be advised by what is wrong alone.
    pub(super) fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Missing { program } => {
                return Some(format!(
                    "install vibebox, or say where it is instead of {}",
                    program.display()
                ));
            }
            Self::NotExecutable { program, .. } => {
                return Some(format!(
                    "make it a program with `chmod +x {}`",
                    program.display()
                ));
            }
            Self::Start { .. } => "run it by hand with `--help` and mend what it says",
            Self::TimedOut { .. } => {
                "see what it is waiting for by running it by hand; what it started in its machine may still run"
            }
            Self::TooMuch { .. } => "send the command's output to a file",
            Self::NotJson { .. }
            | Self::Shape { .. }
            | Self::Empty
            | Self::Incomplete { .. }
            | Self::Contradiction { .. } => {
                "see whether the program is vibebox, of a version that knows `--json`"
            }
            Self::HostRefused { .. } => {
                "choose another provider, or mode `off` with CORDON_ALLOW_HOST_EXEC=1"
            }
            Self::OtherBackend { .. } => "name the provider in the configuration that can be used",
            Self::Unheld { .. } => "leave it out, or choose another mode",
            Self::Input => "put what it is to read into a file of the workspace",
            Self::NotText => "call it by a script in the workspace",
            Self::Lost { .. }
            | Self::Killed { .. }
            | Self::Refused { .. }
            | Self::Unusable { .. } => {
                return None;
            }
        };
        Some(hint.to_owned())
    }
}

fn reason(said: Option<&str>) -> String {
    match said {
        Some(said) => format!(": {said}"),
        None => " and does not say why".to_owned(),
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exec => "exec",
            Self::Probe => "probe",
            Self::Init => "init",
        })
    }
}

impl fmt::Display for BridgeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "vibebox {}: {}", self.stage, self.kind)?;
        if !self.command.is_empty() {
            write!(f, "; it was called as `{}`", self.command)?;
        }
        if let Some(status) = self.status {
            write!(f, "; {status}")?;
        }
        for (name, text) in [("stderr", &self.stderr), ("stdout", &self.stdout)] {
            if !text.is_empty() {
                write!(f, "; {name}: {text}")?;
            }
        }
        Ok(())
    }
}

impl error::Error for BridgeError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        // The kind itself stands in the message.
        error::Error::source(&self.kind)
    }
}
