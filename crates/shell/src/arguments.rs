//! What a listed program may be given.
//!
//! A program that is not known by its name is taken at its word: its arguments are data. Those that run others
//! are refused, and those that do so for some options only have those options refused.

mod builtins;
mod git;
mod options;
mod sed;

use std::path::Path;

use crate::{Reason, Refusal, known, word::Word};

/// Where a command is to run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'a> {
    /// In a shell, in that workspace.
    Shell { workspace: &'a Path },
    /// By itself, in that workspace.
    Argv { workspace: &'a Path },
}

impl<'a> Place<'a> {
    pub(crate) fn workspace(self) -> &'a Path {
        match self {
            Self::Shell { workspace } | Self::Argv { workspace } => workspace,
        }
    }
}

/// Judges the arguments of a program that is listed without a `!`.
pub(crate) fn judge(
    program: &Word,
    name: &str,
    words: &[Word],
    place: Place<'_>,
) -> Result<(), Refusal> {
    if matches!(place, Place::Shell { .. }) {
        builtins::judge(name, words, place.workspace())?;
    }
    if known::runs_code(name) {
        return Err(program.refuse(Reason::RunsCode));
    }
    if known::is_one_of(name, &["git"]) {
        return git::judge(words, place.workspace());
    }
    if known::is_one_of(name, &["sed"]) {
        return sed::judge(words);
    }
    options::judge(name, words)
}

/// Refuses arguments that the shell may turn into options.
fn all_clear(words: &[Word]) -> Result<(), Refusal> {
    match words.iter().find(|word| word.may_be_option()) {
        Some(word) => Err(word.refuse(Reason::UnclearArgument)),
        None => Ok(()),
    }
}
