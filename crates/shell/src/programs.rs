//! The list of programs that may run.

use std::path::Path;

use crate::{
    Reason, Refusal, Script,
    arguments::{self, Place},
    known, line,
    word::Word,
};

/// Which programs may run.
///
/// An entry is a bare name (`ls`), which is looked up on the search path, or a path (`./configure`), which
/// matches exactly as it is written. A `!` behind it (`make!`) lets the program also do what makes it run other
/// programs, or code that it is given.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Programs {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Entry {
    name: String,
    runs_code: bool,
}

/// An entry that lists no program.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidProgram {
    /// It is empty, or holds blanks or characters that no program's name has.
    #[error("`{0}` is not the name or path of a program")]
    Name(String),
    /// It is a command of the shell that cannot be judged.
    #[error("`{0}` is a command of the shell itself that can never be allowed")]
    Builtin(String),
}

impl Programs {
    /// Reads the entries of a list.
    ///
    /// # Errors
    ///
    /// When one of them cannot be the name of a program.
    pub fn parse<E: AsRef<str>>(
        entries: impl IntoIterator<Item = E>,
    ) -> Result<Self, InvalidProgram> {
        let entries = entries
            .into_iter()
            .map(|entry| Entry::parse(entry.as_ref()));
        Ok(Self {
            entries: entries.collect::<Result<_, _>>()?,
        })
    }

    /// Judges a line of shell that is to run in that workspace, and gives what is to be run in its place.
    ///
    /// # Errors
    ///
    /// When something in it is not on the list, or cannot be judged.
    pub fn judge_line(&self, line: &str, workspace: &Path) -> Result<Script, Refusal> {
        line::judge(self, line, workspace)
    }

    /// Judges a program and its arguments, which are to run without a shell.
    ///
    /// # Errors
    ///
    /// As [`Self::judge_line`].
    pub fn judge_argv<A: AsRef<str>>(&self, argv: &[A], workspace: &Path) -> Result<(), Refusal> {
        let mut words = argv.iter().map(|argument| Word::fixed(argument.as_ref()));
        let Some(program) = words.next() else {
            return Err(Refusal::new(Reason::Nothing, "", None));
        };
        let place = Place::Argv { workspace };
        self.judge_command(&program, &words.collect::<Vec<_>>(), place)
    }

    /// Judges one simple command.
    pub(crate) fn judge_command(
        &self,
        program: &Word,
        words: &[Word],
        place: Place<'_>,
    ) -> Result<(), Refusal> {
        let Some(name) = program.text() else {
            return Err(program.refuse(Reason::CommandWord));
        };
        if matches!(place, Place::Shell { .. }) && known::is_builtin(&name) {
            return Err(program.refuse(Reason::Builtin));
        }
        let Some(entry) = self.entries.iter().find(|entry| entry.name == name) else {
            let shown = if name.is_empty() { "''" } else { &name };
            return Err(Refusal {
                text: shown.to_owned(),
                ..program.refuse(Reason::NotListed)
            });
        };
        if entry.runs_code {
            return Ok(());
        }
        arguments::judge(program, &name, words, place)
    }
}

impl Entry {
    fn parse(written: &str) -> Result<Self, InvalidProgram> {
        let (name, runs_code) = match written.strip_suffix('!') {
            Some(name) => (name, true),
            None => (written, false),
        };
        let odd =
            |c: char| c.is_whitespace() || c.is_control() || "!'\"\\$`*?;&|<>(){}~#=".contains(c);
        if name.is_empty() || name.ends_with('/') || name.contains(odd) {
            return Err(InvalidProgram::Name(written.to_owned()));
        }
        if known::is_builtin(name) {
            return Err(InvalidProgram::Builtin(name.to_owned()));
        }
        Ok(Self {
            name: name.to_owned(),
            runs_code,
        })
    }
}
