//! What the program exits with.

use std::process::ExitCode;

/// How `cordon` ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Exit {
    /// The command's own code, as a shell gives it: 126 and 127 when it could not be started, 128+n
    /// when a signal ended it.
    Command(i32),
    /// 124: the command's time was up.
    TimedOut,
    /// 125: Cordon could not do its work. (2 is a mistake in the flags; clap exits with it.)
    Setup,
    /// 128+n: a signal ended Cordon, and Cordon the command.
    Signal(i32),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        let code = match exit {
            Exit::Command(code) => code,
            Exit::TimedOut => 124,
            Exit::Setup => 125,
            Exit::Signal(signal) => 128 + signal,
        };
        Self::from(u8::try_from(code).unwrap_or(u8::MAX))
    }
}
