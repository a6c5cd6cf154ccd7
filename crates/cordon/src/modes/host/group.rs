//! A process group, and its end.

use std::{fs, io, time::Duration};

use cordon_engine::process::{self, Call, Streams};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::{
    process::Child,
    time::{Instant, sleep},
};

use crate::SandboxError;

/// The process group of a command. What is left of it is killed when this is dropped.
pub(super) struct Group {
    started: process::Group,
    leader: Option<Pid>,
}

impl Group {
    /// Starts a call as the leader of a new group.
    pub(super) fn start(call: Call, streams: Streams) -> Result<Self, SandboxError> {
        let mut started = call.spawn_group(streams)?;
        let id = started.child().id().and_then(|id| i32::try_from(id).ok());
        Ok(Self {
            started,
            leader: id.and_then(Pid::from_raw),
        })
    }

    /// The process that was started.
    pub(super) fn child(&mut self) -> &mut Child {
        self.started.child()
    }

    /// Asks every process of the group to end, kills those that do not, and sees that none is left.
    pub(super) async fn end(&mut self) -> Result<(), SandboxError> {
        let Some(leader) = self.leader else {
            return Ok(());
        };
        for (signal, patience) in [(Signal::TERM, GRACE), (Signal::KILL, CERTAIN)] {
            let until = Instant::now() + patience;
            if self.is_alive(leader) {
                send(leader, signal);
            }
            while self.is_alive(leader) && Instant::now() < until {
                sleep(POLL).await;
                if signal == Signal::KILL {
                    // What was being started when the first one was sent.
                    send(leader, signal);
                }
            }
        }
        if self.is_alive(leader) {
            return Err(SandboxError::StillRunning {
                group: leader.as_raw_nonzero().get(),
            });
        }
        self.leader = None;
        Ok(())
    }

    /// Whether any process of the group still runs. One that ended and was not waited for by its parent does not.
    fn is_alive(&mut self, leader: Pid) -> bool {
        // Takes the leader out of the process table, if it has ended.
        let _ = self.child().try_wait();
        match members(leader) {
            Ok(count) => count > 0,
            Err(_) => test_kill_process_group(leader).is_ok(),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.leader {
            send(leader, Signal::KILL);
        }
    }
}

fn send(leader: Pid, signal: Signal) {
    // A group that is gone needs no signal.
    let _ = kill_process_group(leader, signal);
}

fn members(leader: Pid) -> io::Result<usize> {
    let group = leader.as_raw_nonzero().get();
    let processes = fs::read_dir("/proc")?.filter_map(|entry| {
        let name = entry.ok()?.file_name();
        let id: u32 = name.to_str()?.parse().ok()?;
        fs::read_to_string(format!("/proc/{id}/stat")).ok()
    });
    Ok(processes.filter(|stat| runs_in(stat, group)).count())
}

/// Reads a line of `/proc/PID/stat`: number, name in parentheses, state, parent, group.
fn runs_in(stat: &str, group: i32) -> bool {
    let Some((_, behind_name)) = stat.rsplit_once(')') else {
        return false;
    };
    let mut fields = behind_name.split_ascii_whitespace();
    let (state, of_group) = (fields.next(), fields.nth(1));
    !matches!(state, Some("Z" | "X"))
        && of_group.and_then(|field| field.parse().ok()) == Some(group)
}

/// How long a command has to end by itself once it was asked to.
const GRACE: Duration = Duration::from_secs(5);

/// How long the kernel may take to end what was killed. What waits for a dead disk takes longer.
const CERTAIN: Duration = Duration::from_secs(10);

const POLL: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_is_read_whatever_the_program_is_called() {
        assert!(runs_in("12 (sh) S 1 12 12 0", 12));
        assert!(runs_in("13 (a) Z 1 9 (b) S 1 12 12 0", 12));
        assert!(!runs_in("12 (sh) Z 1 12 12 0", 12));
        assert!(!runs_in("12 (sh) S 1 13 12 0", 12));
        assert!(!runs_in("", 12));
    }
}
