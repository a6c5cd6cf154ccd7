//! A container that is held: no workload, but commands that are started as the host orders them.

use std::{
    ffi::{OsString, c_int},
    fs,
    io::{self, Read},
    iter,
    os::{
        fd::{AsRawFd, OwnedFd, RawFd},
        unix::process::CommandExt,
    },
    process,
};

use crate::{
    End, Host, Signals, Workload, out_of_memory_kills, poll_events, reap, send, signal_all,
    signal_group, signal_one,
    sys::{EINVAL, PollEvent, SIGCHLD, SIGHUP, SIGINT, SIGKILL, SIGTERM, setsid},
};

/// A container without a workload, in which commands are run as the host orders them.
pub(crate) struct Hold {
    /// Of every command, below what it brings itself.
    environment: Vec<(OsString, OsString)>,
    running: Vec<Running>,
}

/// A command that was ordered; it leads a session and a process group of its own.
struct Running {
    id: u32,
    pid: c_int,
    kills_before: u32,
}

/// Why an ordered command did not start.
enum Refusal {
    Directory(io::Error),
    Command(io::Error),
}

impl Hold {
    pub(crate) fn new(workload: Workload) -> Self {
        Self {
            environment: workload.environment,
            running: Vec::new(),
        }
    }

    /// Goes on until somebody asks PID 1 itself to end.
    pub(crate) fn serve(mut self, host: &mut Host, signals: &Signals) -> io::Result<End> {
        loop {
            let mut events = [
                PollEvent::readable(signals.descriptor.as_raw_fd()),
                PollEvent::readable(host.as_raw_fd()),
            ];
            poll_events(&mut events, -1)?;
            if events[0].returned != 0 {
                match signals.next()? {
                    SIGCHLD => self.tell_ended(host),
                    number @ (SIGHUP | SIGINT | SIGTERM) => return Ok(End::Signalled(number)),
                    _ => {}
                }
            }
            if events[1].returned != 0 && self.obey(host).is_none() {
                // The keeper is gone; the kernel kills whatever still runs.
                process::exit(128 + SIGKILL);
            }
        }
    }

    /// Does what the host orders next; `None` when its end is closed or it says something unknown.
    fn obey(&mut self, host: &mut Host) -> Option<()> {
        let mut head = [0; 9];
        host.read_exact(&mut head).ok()?;
        let [kind, i0, i1, i2, i3, size @ ..] = head;
        let id = u32::from_le_bytes([i0, i1, i2, i3]);
        let running = self.running.iter().find(|running| running.id == id);
        match (kind, running) {
            (b'X', _) => {
                let order = Workload::read(host, size).ok()?;
                self.begin(host, id, &order);
            }
            // A signal's number stands where other orders have their size.
            (b'S', Some(running)) => signal_group(running.pid, c_int::from(size[0])),
            (b'K', Some(running)) => kill_tree(running.pid),
            (b'A', _) => signal_all(SIGKILL),
            // It has ended in the meantime.
            (b'S' | b'K', None) => {}
            _ => return None,
        }
        Some(())
    }

    fn begin(&mut self, host: &mut Host, id: u32, order: &Workload) {
        let kills_before = out_of_memory_kills();
        match self.spawn(order) {
            Ok((pid, pipes)) => {
                self.running.push(Running {
                    id,
                    pid,
                    kills_before,
                });
                let ends = pipes.each_ref().map(AsRawFd::as_raw_fd);
                tell(host, (b'P', 0), id, 0, &ends);
            }
            Err(Refusal::Directory(error)) => {
                let errno = error.raw_os_error().unwrap_or(EINVAL);
                tell(host, (b'D', errno), id, 0, &[]);
            }
            Err(Refusal::Command(error)) => {
                let errno = error.raw_os_error().unwrap_or(EINVAL);
                tell(host, (b'N', errno), id, 0, &[]);
            }
        }
    }

    /// Starts a command with three pipes that are made here, so that they belong to the container's
    /// user; the host's ends are returned.
    fn spawn(&self, order: &Workload) -> Result<(c_int, [OwnedFd; 3]), Refusal> {
        let step = order
            .steps
            .first()
            .ok_or_else(|| Refusal::Command(io::ErrorKind::InvalidInput.into()))?;
        let mut command = step.command().map_err(Refusal::Command)?;
        for (name, value) in self.environment.iter().chain(&order.environment) {
            command.env(name, value);
        }
        if let Some(directory) = &order.directory {
            // Looked at first, because a directory and a program that are missing are told alike.
            let found = fs::metadata(directory).map_err(Refusal::Directory)?;
            if !found.is_dir() {
                return Err(Refusal::Directory(io::Error::from_raw_os_error(ENOTDIR)));
            }
            command.current_dir(directory);
        }
        // SAFETY: setsid takes nothing and is async-signal-safe.
        unsafe {
            command.pre_exec(|| {
                setsid();
                Ok(())
            })
        };
        let pipe = || io::pipe().map_err(Refusal::Command);
        let ((stdin, to_stdin), (from_stdout, stdout), (from_stderr, stderr)) =
            (pipe()?, pipe()?, pipe()?);
        command.stdin(stdin).stdout(stdout).stderr(stderr);
        let child = command.spawn().map_err(Refusal::Command)?;
        let pid = c_int::try_from(child.id())
            .map_err(|error| Refusal::Command(io::Error::other(error)))?;
        Ok((
            pid,
            [to_stdin.into(), from_stdout.into(), from_stderr.into()],
        ))
    }

    /// Tells of every command that ended; what else ended was left behind by one, and is only reaped.
    fn tell_ended(&mut self, host: &mut Host) {
        for (pid, end) in iter::from_fn(reap) {
            let Some(at) = self.running.iter().position(|running| running.pid == pid) else {
                continue;
            };
            let ended = self.running.swap_remove(at);
            let kills = out_of_memory_kills().saturating_sub(ended.kills_before);
            tell(host, end.letter(), ended.id, kills, &[]);
        }
    }
}

/// Tells the host about one of its commands.
fn tell(host: &Host, (kind, value): (u8, i32), id: u32, kills: u32, pipes: &[RawFd]) {
    let mut bytes = [0; 13];
    bytes[0] = kind;
    bytes[1..5].copy_from_slice(&id.to_le_bytes());
    bytes[5..9].copy_from_slice(&value.to_le_bytes());
    bytes[9..].copy_from_slice(&kills.to_le_bytes());
    // A host that cannot be told is gone, which the next look at the connection shows.
    let _ = send(host, &mut bytes, pipes);
}

/// Kills a command with its group and all that descends from it. Everything is stopped before
/// anything is killed: what loses its parent on the way becomes a child of PID 1 and is found no more.
fn kill_tree(root: c_int) {
    let mut tree = vec![root];
    signal_one(root, SIGSTOP);
    for _ in 0..TREE_ROUNDS {
        let fresh: Vec<_> = parents()
            .into_iter()
            .filter(|(pid, parent)| tree.contains(parent) && !tree.contains(pid))
            .map(|(pid, _)| pid)
            .collect();
        if fresh.is_empty() {
            break;
        }
        fresh.iter().for_each(|pid| signal_one(*pid, SIGSTOP));
        tree.extend(fresh);
    }
    signal_group(root, SIGKILL);
    tree.into_iter().for_each(|pid| signal_one(pid, SIGKILL));
}

/// Every process of the container with its parent.
fn parents() -> Vec<(c_int, c_int)> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read(entry.path().join("stat")).ok()?;
            // The program's name stands in parentheses and may hold anything.
            let behind = stat.iter().rposition(|byte| *byte == b')')?;
            let rest = String::from_utf8_lossy(&stat[behind + 1..]).into_owned();
            let parent = rest.split_whitespace().nth(1)?.parse().ok()?;
            Some((pid, parent))
        })
        .collect()
}

/// How often to look for what a tree of processes has started meanwhile. What is stopped starts
/// nothing, so each round finds only children of the last one.
const TREE_ROUNDS: usize = 64;

const ENOTDIR: c_int = 20;
const SIGSTOP: c_int = 19;
