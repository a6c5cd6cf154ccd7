//! PID 1 of every sandboxed container.
//!
//! It binds the four sockets of the door inside the container's own network namespace, hands them to
//! the host over a unix socket, waits for the word to go, and starts the workload. From then on it
//! reaps children, forwards signals, reports how the workload ended, and ends the container as soon
//! as the host's end of the connection closes. Where the host wants the container held instead, there
//! is no workload: commands are started as the host orders them, each with pipes of its own.
//!
//! Standard library only, because it runs statically linked in images that hold nothing else. It
//! knows no policy and reads no file of the image. The system calls below are declared by hand; each
//! `unsafe` block says why it is sound.
//!
//! ```text
//! cordon-init DOOR open|shut
//! cordon-init far ADDRESS TOKEN
//! cordon-init look NAME DIRECTORY
//! ```
//!
//! Where the container runs in another machine than the host, `far` reaches the host over TCP, through
//! whoever passes the connection on at that address and takes the content of the file TOKEN for proof.
//!
//! The command and its environment come over the connection, so that neither stands in an argument
//! list on the host or in what the engine keeps of the container.

#![expect(
    clippy::disallowed_methods,
    reason = "this is the one process that a container starts with"
)]

mod far;
mod hold;
mod look;
mod sys;

use std::{
    env,
    ffi::{OsString, c_int, c_long, c_ulong},
    fs,
    io::{self, Read, Write},
    iter, mem,
    net::{Ipv4Addr, TcpListener, UdpSocket},
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
        unix::{ffi::OsStringExt, fs::MetadataExt, net::UnixStream, process::CommandExt},
    },
    path::Path,
    process::{self, Command},
    ptr,
};

use hold::Hold;
use sys::{
    Control, ControlHead, IoVec, MSG_NOSIGNAL, MessageHead, POLLIN, PR_SET_DUMPABLE, PollEvent,
    SCM_RIGHTS, SFD_CLOEXEC, SIG_DFL, SIG_IGN, SIG_SETMASK, SIGCHLD, SIGKILL, SIGNAL_INFO_SIZE,
    SIGTTOU, SOL_SOCKET, SignalSet, WNOHANG, getpid, isatty, kill, poll, prctl, read, sendmsg,
    setpgid, sigemptyset, sigfillset, signal, signalfd, sigprocmask, tcsetpgrp, waitpid,
};

/// Where the door listens inside the container; 127.0.0.1 stays free for the workload's own servers.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 77, 0, 1);

/// What the host waits for before it takes anything else; a change of the protocol changes it.
const HELLO: u8 = 2;

/// What the host waits for before it orders commands.
const HOLDING: u8 = b'H';

/// The container's own exit status where the workload never ran; the host has the reason.
const NOT_STARTED: i32 = 125;

/// How long the host may take between the hand-over and the word to go.
const GO_LIMIT_MS: c_int = 60_000;

fn main() {
    let code = match run(env::args_os().skip(1).collect()) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(io::stderr(), "cordon-init: {error}");
            NOT_STARTED
        }
    };
    process::exit(code);
}

fn run(arguments: Vec<OsString>) -> io::Result<i32> {
    let connect = match arguments.as_slice() {
        [door, mode] => Connect::Door(door, mode == "open"),
        [verb, address, token] if verb == "far" => Connect::Far(address, token),
        [verb, name, directory] if verb == "look" => {
            return look::look(name, directory).map(|()| 0);
        }
        _ => return Err(io::Error::other("usage: cordon-init DOOR open|shut")),
    };
    refuse_tracing();
    let signals = Signals::block()?;
    let mut host = match connect {
        Connect::Door(door, open) => connect_door(door, open)?,
        Connect::Far(address, token) => far::connect(address, token)?,
    };
    let (purpose, workload) = wait_for_go(&mut host)?;

    let mut end = match workload.moved() {
        Some(index) => End::MountMoved(index),
        None => workload.run(&mut host, &signals)?,
    };
    if let (Purpose::Hold, End::Exited(0)) = (purpose, end) {
        report(&mut host, HOLDING, 0);
        end = Hold::new(workload).serve(&mut host, &signals)?;
    } else {
        let (kind, value) = end.letter();
        report(&mut host, kind, value);
    }
    Ok(match end {
        End::Exited(code) => code,
        End::Signalled(signal) => 128 + signal,
        End::NotStarted(_) | End::MountMoved(_) => NOT_STARTED,
    })
}

/// How the host is reached.
enum Connect<'a> {
    Door(&'a OsString, bool),
    Far(&'a OsString, &'a OsString),
}

/// The connection to the host. One over TCP is handled as if it were a unix stream: reading, writing and
/// polling are the same, and descriptors are sent over the door alone.
type Host = UnixStream;

/// How the workload ended, as it is told to the host.
#[derive(Clone, Copy)]
enum End {
    Exited(i32),
    Signalled(i32),
    NotStarted(i32),
    MountMoved(i32),
}

impl End {
    fn letter(self) -> (u8, i32) {
        match self {
            Self::Exited(code) => (b'E', code),
            Self::Signalled(signal) => (b'S', signal),
            Self::NotStarted(errno) => (b'N', errno),
            Self::MountMoved(index) => (b'M', index),
        }
    }

    fn of(status: c_int) -> Self {
        match status & 0x7f {
            0 => Self::Exited((status >> 8) & 0xff),
            signal => Self::Signalled(signal),
        }
    }
}

/// What the container is for.
#[derive(Clone, Copy)]
enum Purpose {
    /// One workload, and the container ends with it.
    Run,
    /// Whatever the host orders, until it lets go.
    Hold,
}

/// The workload runs as the same user; it must not get at this process's descriptors or memory.
fn refuse_tracing() {
    // SAFETY: PR_SET_DUMPABLE takes one integer and touches no memory of ours.
    unsafe {
        prctl(
            PR_SET_DUMPABLE,
            0 as c_ulong,
            0 as c_ulong,
            0 as c_ulong,
            0 as c_ulong,
        )
    };
}

fn explain(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

fn connect_door(door: &OsString, open: bool) -> io::Result<Host> {
    let host = UnixStream::connect(door).map_err(|e| explain("the door is closed", &e))?;
    if !open {
        send(&host, &mut [HELLO], &[])?;
        return Ok(host);
    }
    let tcp = |port| {
        TcpListener::bind((ADDRESS, port)).map_err(|e| explain(&format!("bind tcp {port}"), &e))
    };
    let (http, https, dns_tcp) = (tcp(80)?, tcp(443)?, tcp(53)?);
    let dns_udp = UdpSocket::bind((ADDRESS, 53)).map_err(|e| explain("bind udp 53", &e))?;
    let sockets = [
        http.as_raw_fd(),
        https.as_raw_fd(),
        dns_tcp.as_raw_fd(),
        dns_udp.as_raw_fd(),
    ];
    send(&host, &mut [HELLO], &sockets)?;
    Ok(host)
}

/// Sends bytes with descriptors attached; the copies here stay the caller's to close.
fn send(host: &Host, bytes: &mut [u8], descriptors: &[RawFd]) -> io::Result<()> {
    let mut part = IoVec {
        base: bytes.as_mut_ptr().cast(),
        length: bytes.len(),
    };
    let mut control = Control {
        length: mem::size_of::<ControlHead>() + mem::size_of_val(descriptors),
        level: SOL_SOCKET,
        kind: SCM_RIGHTS,
        descriptors: [0; 4],
    };
    control.descriptors[..descriptors.len()].copy_from_slice(descriptors);
    let (control_at, control_length) = if descriptors.is_empty() {
        (ptr::null_mut(), 0)
    } else {
        ((&raw mut control).cast(), mem::size_of::<Control>())
    };
    let message = MessageHead {
        name: ptr::null_mut(),
        name_length: 0,
        parts: &raw mut part,
        part_count: 1,
        control: control_at,
        control_length,
        flags: 0,
    };
    // SAFETY: `message` points at `part`, `bytes` and `control`, which outlive the call; the control
    // length covers exactly the head and room for four descriptors, laid out as the kernel expects.
    let sent = unsafe { sendmsg(host.as_raw_fd(), &raw const message, MSG_NOSIGNAL) };
    if usize::try_from(sent) == Ok(bytes.len()) {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn wait_for_go(host: &mut Host) -> io::Result<(Purpose, Workload)> {
    let mut events = [PollEvent::readable(host.as_raw_fd())];
    if poll_events(&mut events, GO_LIMIT_MS)? == 0 {
        return Err(io::Error::other("the host did not answer in time"));
    }
    let mut head = [0; 5];
    host.read_exact(&mut head)?;
    let (purpose, size) = match head {
        [b'G', size @ ..] => (Purpose::Run, size),
        [b'H', size @ ..] => (Purpose::Hold, size),
        _ => return Err(io::Error::other("the host sent no word to go")),
    };
    let workload = Workload::read(host, size)?;
    Ok((purpose, workload))
}

/// What to start, as the host sent it: parts of one tag byte, a length and that many bytes.
#[derive(Default)]
struct Workload {
    /// One after the other; the last one is the command, those before it make ready.
    steps: Vec<Step>,
    environment: Vec<(OsString, OsString)>,
    mounts: Vec<Mounted>,
    /// Where an ordered command starts; the container's own working directory if there is none.
    directory: Option<OsString>,
}

/// What must be at a path before anything starts.
struct Mounted {
    device: u64,
    inode: u64,
    path: OsString,
}

/// A command, and the file that must be there for it to be run; none means always.
struct Step {
    where_exists: OsString,
    command: Vec<OsString>,
}

impl Workload {
    fn read(host: &mut Host, size: [u8; 4]) -> io::Result<Self> {
        let mut parts = Vec::new();
        host.take(u64::from(u32::from_le_bytes(size)))
            .read_to_end(&mut parts)?;
        Self::parse(&parts).ok_or_else(|| io::Error::other("the host's order is cut short"))
    }

    fn parse(mut bytes: &[u8]) -> Option<Self> {
        let mut workload = Self::default();
        while let Some((tag, rest)) = bytes.split_first() {
            let (size, rest) = rest.split_first_chunk()?;
            let (part, rest) = rest.split_at_checked(u32::from_le_bytes(*size) as usize)?;
            bytes = rest;
            match tag {
                b's' => workload.steps.push(Step {
                    where_exists: text(part),
                    command: Vec::new(),
                }),
                b'a' => workload.steps.last_mut()?.command.push(text(part)),
                b'e' => {
                    let equals = part.iter().position(|byte| *byte == b'=')?;
                    let variable = (text(&part[..equals]), text(&part[equals + 1..]));
                    workload.environment.push(variable);
                }
                b'd' => workload.directory = Some(text(part)),
                b'm' => {
                    let (device, part) = part.split_first_chunk()?;
                    let (inode, path) = part.split_first_chunk()?;
                    workload.mounts.push(Mounted {
                        device: u64::from_le_bytes(*device),
                        inode: u64::from_le_bytes(*inode),
                        path: text(path),
                    });
                }
                _ => return None,
            }
        }
        Some(workload)
    }

    /// The first mount that is not what the host looked at. Engines mount by path, and a path may have
    /// come to lead elsewhere between the host's look and the engine's.
    fn moved(&self) -> Option<i32> {
        let moved = self.mounts.iter().position(|mounted| {
            !fs::symlink_metadata(&mounted.path)
                .is_ok_and(|found| (found.dev(), found.ino()) == (mounted.device, mounted.inode))
        });
        moved.map(|index| i32::try_from(index).unwrap_or(i32::MAX))
    }

    /// Runs the steps in turn; one that fails is the end of all.
    fn run(&self, host: &mut Host, signals: &Signals) -> io::Result<End> {
        let mut end = End::Exited(0);
        for step in &self.steps {
            if !step.where_exists.is_empty() && !Path::new(&step.where_exists).exists() {
                continue;
            }
            let child = match self.spawn(step) {
                Ok(child) => child,
                Err(error) => return Ok(End::NotStarted(error.raw_os_error().unwrap_or_default())),
            };
            end = supervise(host, signals, child)?;
            if !matches!(end, End::Exited(0)) {
                break;
            }
        }
        Ok(end)
    }

    /// Starts a step as the leader of its own process group, in the foreground of a terminal if
    /// there is one.
    fn spawn(&self, step: &Step) -> io::Result<c_int> {
        let mut command = step.command()?;
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        // SAFETY: between fork and exec the closure makes async-signal-safe system calls only.
        unsafe {
            command.pre_exec(|| {
                setpgid(0, 0);
                if isatty(0) == 1 {
                    signal(SIGTTOU, SIG_IGN);
                    tcsetpgrp(0, getpid());
                    signal(SIGTTOU, SIG_DFL);
                }
                Ok(())
            })
        };
        let child = command.spawn()?;
        c_int::try_from(child.id()).map_err(io::Error::other)
    }
}

impl Step {
    /// The command, to be started with no signal blocked.
    fn command(&self) -> io::Result<Command> {
        let (program, arguments) = self
            .command
            .split_first()
            .ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments);
        // SAFETY: between fork and exec the closure makes async-signal-safe system calls only, on a
        // signal set that lives on its own stack.
        unsafe {
            command.pre_exec(|| {
                let mut none: SignalSet = mem::zeroed();
                sigemptyset(&raw mut none);
                sigprocmask(SIG_SETMASK, &raw const none, ptr::null_mut());
                Ok(())
            })
        };
        Ok(command)
    }
}

fn text(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

/// Waits for the workload to end; signals, orphans and the host's orders are served meanwhile.
fn supervise(host: &mut Host, signals: &Signals, child: c_int) -> io::Result<End> {
    loop {
        let mut events = [
            PollEvent::readable(signals.descriptor.as_raw_fd()),
            PollEvent::readable(host.as_raw_fd()),
        ];
        poll_events(&mut events, -1)?;
        if events[0].returned != 0 {
            match signals.next()? {
                SIGCHLD => {
                    let mut ended = iter::from_fn(reap);
                    if let Some((_, end)) = ended.find(|(pid, _)| *pid == child) {
                        return Ok(end);
                    }
                }
                other => signal_group(child, other),
            }
        }
        if events[1].returned != 0 {
            match order(host) {
                Some(Order::Signal(number)) => signal_group(child, number),
                Some(Order::Kill) => signal_all(SIGKILL),
                // The keeper is gone. When PID 1 ends, the kernel kills every process of the
                // container, so there is nothing to do but to leave.
                None => process::exit(128 + SIGKILL),
            }
        }
    }
}

enum Order {
    Signal(c_int),
    Kill,
}

/// The host's next order; `None` when its end is closed or it says something unknown.
fn order(host: &mut Host) -> Option<Order> {
    let mut bytes = [0; 2];
    host.read_exact(&mut bytes).ok()?;
    match bytes[0] {
        b'S' => Some(Order::Signal(c_int::from(bytes[1]))),
        b'K' => Some(Order::Kill),
        _ => None,
    }
}

/// Collects a child that ended, if there is one.
fn reap() -> Option<(c_int, End)> {
    let mut status = 0;
    // SAFETY: `status` is a valid place for one integer.
    let pid = unsafe { waitpid(-1, &raw mut status, WNOHANG) };
    (pid > 0).then(|| (pid, End::of(status)))
}

fn report(host: &mut Host, kind: u8, value: i32) {
    let mut bytes = [0; 9];
    bytes[0] = kind;
    bytes[1..5].copy_from_slice(&value.to_le_bytes());
    bytes[5..].copy_from_slice(&out_of_memory_kills().to_le_bytes());
    // Nobody is left to tell if this fails, and the container ends either way.
    let _ = host.write_all(&bytes);
}

/// How often the kernel killed something here for want of memory, where the cgroup is visible.
fn out_of_memory_kills() -> u32 {
    let places = [
        "/sys/fs/cgroup/memory.events",
        "/sys/fs/cgroup/memory/memory.oom_control",
    ];
    places
        .iter()
        .filter_map(|place| fs::read_to_string(place).ok())
        .flat_map(|text| {
            text.lines()
                .filter_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
                .collect::<Vec<u32>>()
        })
        .max()
        .unwrap_or_default()
}

fn signal_group(child: c_int, number: c_int) {
    // SAFETY: kill takes two integers. The group may be gone already, which is no error here.
    unsafe { kill(-child, number) };
}

fn signal_one(pid: c_int, number: c_int) {
    // SAFETY: kill takes two integers. The process may be gone already, which is no error here.
    unsafe { kill(pid, number) };
}

fn signal_all(number: c_int) {
    // SAFETY: as PID 1, -1 names every other process of this container and none outside.
    unsafe { kill(-1, number) };
}

/// Every signal, blocked and read from a descriptor instead.
struct Signals {
    descriptor: OwnedFd,
}

impl Signals {
    fn block() -> io::Result<Self> {
        // SAFETY: the set is zeroed, then filled by libc; signalfd returns a descriptor that nobody
        // else owns.
        unsafe {
            let mut all: SignalSet = mem::zeroed();
            sigfillset(&raw mut all);
            if sigprocmask(SIG_SETMASK, &raw const all, ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
            let descriptor = signalfd(-1, &raw const all, SFD_CLOEXEC);
            if descriptor < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self {
                descriptor: OwnedFd::from_raw_fd(descriptor),
            })
        }
    }

    fn next(&self) -> io::Result<c_int> {
        let mut info = [0_u8; SIGNAL_INFO_SIZE];
        // SAFETY: `info` is a writable buffer of the size that is named.
        let size = unsafe {
            read(
                self.descriptor.as_raw_fd(),
                info.as_mut_ptr().cast(),
                info.len(),
            )
        };
        if size != SIGNAL_INFO_SIZE as c_long {
            return Err(io::Error::last_os_error());
        }
        Ok(c_int::from_ne_bytes([info[0], info[1], info[2], info[3]]))
    }
}

impl PollEvent {
    fn readable(descriptor: RawFd) -> Self {
        Self {
            descriptor,
            wanted: POLLIN,
            returned: 0,
        }
    }
}

fn poll_events(events: &mut [PollEvent], limit_ms: c_int) -> io::Result<c_int> {
    loop {
        // SAFETY: the pointer and the count describe the slice.
        let ready = unsafe { poll(events.as_mut_ptr(), events.len() as c_ulong, limit_ms) };
        if ready >= 0 {
            return Ok(ready);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}
