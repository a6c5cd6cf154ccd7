//! How a run came to its end, and what its caller is told of it.

use std::{io, process::ExitStatus, time::Instant};

use cordon_door::{Ended, Report};
use cordon_engine::shell_code;

use crate::{CommandResult, streams::Tails};

/// Why a run came to its end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Cause {
    Ended,
    Stopped,
    TimedOut,
    ProxyLost,
}

/// How a run came to its end.
pub(super) struct Finish {
    pub(super) cause: Cause,
    pub(super) report: Option<Report>,
    pub(super) status: Option<ExitStatus>,
    pub(super) tails: Tails,
}

impl Finish {
    /// The end of a run whose command never started, because somebody or the clock said so.
    pub(super) fn cancelled(cause: Cause) -> Self {
        Self {
            cause,
            report: None,
            status: None,
            tails: Tails::default(),
        }
    }

    pub(super) fn result(self, begun: Instant) -> CommandResult {
        let Self {
            cause,
            report,
            status,
            tails,
        } = self;
        let ended = report.map(|report| report.ended);
        let exit_code = match (ended, status) {
            (Some(Ended::Status(status)), _) => shell_code(status),
            (Some(Ended::NotStarted { errno }), _) if errno == NO_SUCH_FILE => NOT_FOUND,
            (Some(Ended::NotStarted { .. } | Ended::MountMoved { .. }), _) => NOT_EXECUTABLE,
            (None, Some(status)) if cause == Cause::Ended => shell_code(status),
            (None, _) => KILLED,
        };
        CommandResult {
            exit_code,
            timed_out: cause == Cause::TimedOut,
            stopped: cause == Cause::Stopped,
            out_of_memory: report.is_some_and(|report| report.out_of_memory_kills > 0),
            not_started: match ended {
                Some(Ended::NotStarted { errno }) => Some(io::Error::from_raw_os_error(errno)),
                Some(Ended::Status(_) | Ended::MountMoved { .. }) | None => None,
            },
            duration: begun.elapsed(),
            stdout: tails.stdout,
            stderr: tails.stderr,
            network: None,
        }
    }
}

const NO_SUCH_FILE: i32 = 2;
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;
const KILLED: i32 = 137;
