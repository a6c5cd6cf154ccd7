//! Why a line is refused, in words for the person who wrote it.

use std::fmt;

/// A line, or an argument list, that is not run.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// What of the line it is about.
    pub text: String,
    /// Where that begins, as the number of characters before it, if that is known.
    pub at: Option<usize>,
}

/// Why something is refused.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// The line is longer than anybody judges.
    TooLong,
    /// The line has too many commands, or commands in commands.
    TooDeep,
    /// A character that is invisible or that shells treat differently: NUL, a carriage return, a mark that turns text around.
    Character,
    /// The grammar cannot read it.
    Syntax,
    /// There is no command in it.
    Nothing,
    /// `$(…)` or backquotes.
    Substitution,
    /// `$((…))`, `$[…]` or `((…))`.
    Arithmetic,
    /// `<(…)` or `>(…)`.
    ProcessSubstitution,
    /// An expansion other than `$NAME` and `${NAME}`.
    Expansion,
    /// `~`.
    Home,
    /// Something that shells read differently, or only some know.
    Differs,
    /// The name of the program is not fixed text.
    CommandWord,
    /// The program is not on the list.
    NotListed,
    /// The program runs other programs, or code that it is given, and is not listed as one that may.
    RunsCode,
    /// An argument makes the program run others, or do more than its name says.
    Argument,
    /// An argument is not fixed text, and could become an option that matters.
    UnclearArgument,
    /// A command of the shell itself that changes what later commands mean.
    Builtin,
    /// A function is defined.
    Function,
    /// A variable is set that changes which code programs run.
    Variable,
    /// A redirection leads out of the workspace, or may.
    Redirection,
    /// A redirection writes where rules and hooks are kept.
    Protected,
    /// A here-document that is expanded, or whose end cannot be told.
    HereDocument,
}

impl Refusal {
    pub(crate) fn new(reason: Reason, text: impl Into<String>, at: Option<usize>) -> Self {
        let mut text = text.into();
        if let Some((cut, _)) = text.char_indices().nth(SHOWN) {
            text.truncate(cut);
            text.push('…');
        }
        Self { reason, text, at }
    }

    /// What to type instead.
    #[must_use]
    pub fn hint(&self) -> String {
        let text = &self.text;
        match self.reason {
            Reason::TooLong | Reason::TooDeep => "split it into several lines".into(),
            Reason::Character => "remove the character, or write it into a file".into(),
            Reason::Syntax | Reason::Nothing => "write one complete line of shell".into(),
            Reason::Substitution | Reason::Arithmetic | Reason::ProcessSubstitution => {
                "run the inner command first, and use what it printed".into()
            }
            Reason::Expansion | Reason::Home => "write the text itself, or a plain `$NAME`".into(),
            Reason::Differs => {
                "use what every POSIX shell knows, or quote it if it is meant as text".into()
            }
            Reason::CommandWord => "write the program's name itself".into(),
            Reason::NotListed => format!("add `{text}` to the agent's `commands`"),
            Reason::RunsCode => {
                format!("add `{text}!` to the agent's `commands`, if it may run any code")
            }
            Reason::Argument => {
                "leave that argument out, or list the program with a `!` behind its name".into()
            }
            Reason::UnclearArgument => {
                "write the argument as fixed text, or begin it with `./`".into()
            }
            Reason::Builtin | Reason::Function => "write the commands themselves".into(),
            Reason::Variable => format!("leave `{text}` as it is"),
            Reason::Redirection => {
                "name a file of the workspace, without `..` and without expansions".into()
            }
            Reason::Protected => "write somewhere else".into(),
            Reason::HereDocument => "quote the delimiter, as in `<<'EOF'`, and end with it".into(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.text;
        match self.reason {
            Reason::TooLong => write!(f, "the line is too long: {text}"),
            Reason::TooDeep => write!(f, "the line is too deep: {text}"),
            Reason::Character => write!(f, "{text} cannot stand in a line"),
            Reason::Syntax => write!(f, "the line cannot be read: {text}"),
            Reason::Nothing => f.write_str("there is no command in the line"),
            Reason::Substitution => write!(f, "`{text}` would run commands inside a word"),
            Reason::Arithmetic => write!(f, "`{text}` is shell arithmetic, which can run commands"),
            Reason::ProcessSubstitution => {
                write!(f, "`{text}` would run commands in place of a file")
            }
            Reason::Expansion => write!(f, "`{text}` is an expansion that cannot be judged"),
            Reason::Home => write!(f, "`{text}` leads to somebody's home directory"),
            Reason::Differs => write!(f, "`{text}` does not mean the same in every shell"),
            Reason::CommandWord => write!(f, "`{text}` does not say which program it is"),
            Reason::NotListed => write!(f, "`{text}` is not an allowed program"),
            Reason::RunsCode => write!(f, "`{text}` runs other programs or code that it is given"),
            Reason::Argument => write!(f, "`{text}` makes the program do more than its name says"),
            Reason::UnclearArgument => write!(f, "`{text}` could become an option of the program"),
            Reason::Builtin => write!(
                f,
                "`{text}` changes what the shell does with later commands"
            ),
            Reason::Function => write!(f, "`{text}` is a function, and functions are not judged"),
            Reason::Variable => write!(f, "the variable `{text}` changes which code programs run"),
            Reason::Redirection => write!(
                f,
                "the redirection `{text}` leads out of the workspace, or may"
            ),
            Reason::Protected => write!(f, "`{text}` is where rules and hooks are kept"),
            Reason::HereDocument => write!(
                f,
                "the here-document `{text}` is expanded, or its end cannot be told"
            ),
        }?;
        match self.at {
            Some(at) => write!(f, " (at character {})", at + 1),
            None => Ok(()),
        }
    }
}

/// As much of a line as is shown of it.
const SHOWN: usize = 60;
