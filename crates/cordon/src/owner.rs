//! Who a container or directory belongs to: a process, named so that no later one is mistaken for it.

use std::{fmt, fs, path::Path, str::FromStr};

use rustix::{
    io::Errno,
    process::{Pid, test_kill_process},
};

/// A process on this boot of this machine.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Owner {
    boot: String,
    pid: u32,
    started: u64,
}

impl Owner {
    /// This process.
    pub(crate) fn current() -> Self {
        let pid = std::process::id();
        Self {
            boot: boot(),
            pid,
            started: started(pid).unwrap_or_default(),
        }
    }

    /// Whether it belongs to this boot of this machine, so that it can be told whether it lives.
    pub(crate) fn is_of_this_boot(&self) -> bool {
        self.boot == boot()
    }

    /// Whether that very process still runs.
    pub(crate) fn is_alive(&self) -> bool {
        self.is_of_this_boot() && started(self.pid) == Some(self.started)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.boot, self.pid, self.started)
    }
}

/// Not the name of an owner.
#[derive(Debug)]
pub(crate) struct NotAnOwner;

impl FromStr for Owner {
    type Err = NotAnOwner;

    fn from_str(text: &str) -> Result<Self, NotAnOwner> {
        let mut parts = text.split('-');
        let (Some(boot), Some(pid), Some(started), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(NotAnOwner);
        };
        Ok(Self {
            boot: boot.to_owned(),
            pid: pid.parse().map_err(|_| NotAnOwner)?,
            started: started.parse().map_err(|_| NotAnOwner)?,
        })
    }
}

/// The first part of the kernel's own name for this boot.
fn boot() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.chars().take_while(char::is_ascii_hexdigit).collect()
}

/// When a process started, in clock ticks since boot; `None` when there is no such process.
///
/// Where the kernel does not show its processes as files, a process has no time of start, and one that has
/// inherited the number is taken for the one that is gone: what it left is kept, never removed too early.
fn started(pid: u32) -> Option<u64> {
    if !Path::new("/proc/self/stat").exists() {
        return exists(pid).then_some(0);
    }
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses and may hold anything, so count from the
    // last one; the start time is the 22nd field.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    if state == "Z" || state == "X" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// Whether there is a process of that number, whoever's it is.
fn exists(pid: u32) -> bool {
    let Some(pid) = pid.try_into().ok().and_then(Pid::from_raw) else {
        return false;
    };
    matches!(test_kill_process(pid), Ok(()) | Err(Errno::PERM))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_survives_being_written() {
        let owner = Owner::current();
        assert!(owner.is_alive());
        assert_eq!(owner.to_string().parse::<Owner>().unwrap(), owner);
    }

    #[test]
    fn a_process_of_the_same_number_is_not_the_owner() {
        let mut other = Owner::current();
        other.started += 1;
        assert!(!other.is_alive());
    }

    #[test]
    fn an_earlier_boot_is_dead() {
        let mut other = Owner::current();
        other.boot = "00000000".into();
        assert!(!other.is_alive());
    }

    #[test]
    fn a_process_is_found_by_its_number() {
        assert!(exists(std::process::id()));
        assert!(exists(1));
        assert!(!exists(u32::MAX) && !exists(0));
    }

    #[test]
    fn a_zombie_is_dead() {
        #[expect(clippy::disallowed_methods, reason = "a process to be left unreaped")]
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        while started(pid).is_some() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }
}
