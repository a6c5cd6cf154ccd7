//! What libc declares and the standard library does not, for 64-bit Linux.

use std::ffi::{c_int, c_long, c_uint, c_ulong, c_void};

#[repr(C)]
pub(crate) struct PollEvent {
    pub(crate) descriptor: c_int,
    pub(crate) wanted: i16,
    pub(crate) returned: i16,
}

#[repr(C)]
pub(crate) struct IoVec {
    pub(crate) base: *mut c_void,
    pub(crate) length: usize,
}

#[repr(C)]
pub(crate) struct MessageHead {
    pub(crate) name: *mut c_void,
    pub(crate) name_length: c_uint,
    pub(crate) parts: *mut IoVec,
    pub(crate) part_count: usize,
    pub(crate) control: *mut c_void,
    pub(crate) control_length: usize,
    pub(crate) flags: c_int,
}

#[repr(C)]
pub(crate) struct ControlHead {
    pub(crate) length: usize,
    pub(crate) level: c_int,
    pub(crate) kind: c_int,
}

/// A control message head with room for four descriptors right behind it.
#[repr(C)]
pub(crate) struct Control {
    pub(crate) length: usize,
    pub(crate) level: c_int,
    pub(crate) kind: c_int,
    pub(crate) descriptors: [c_int; 4],
}

/// 1,024 bits, as in libc.
#[repr(C)]
pub(crate) struct SignalSet([c_ulong; 16]);

pub(crate) const SIGNAL_INFO_SIZE: usize = 128;
pub(crate) const SOL_SOCKET: c_int = 1;
pub(crate) const SO_KEEPALIVE: c_int = 9;
pub(crate) const IPPROTO_TCP: c_int = 6;
pub(crate) const TCP_KEEPIDLE: c_int = 4;
pub(crate) const TCP_KEEPINTVL: c_int = 5;
pub(crate) const TCP_KEEPCNT: c_int = 6;
pub(crate) const SCM_RIGHTS: c_int = 1;
pub(crate) const MSG_NOSIGNAL: c_int = 0x4000;
pub(crate) const PR_SET_DUMPABLE: c_int = 4;
pub(crate) const SIG_SETMASK: c_int = 2;
pub(crate) const SIG_DFL: usize = 0;
pub(crate) const SIG_IGN: usize = 1;
pub(crate) const SFD_CLOEXEC: c_int = 0o2_000_000;
pub(crate) const POLLIN: i16 = 1;
pub(crate) const WNOHANG: c_int = 1;
pub(crate) const EINVAL: c_int = 22;
pub(crate) const SIGHUP: c_int = 1;
pub(crate) const SIGINT: c_int = 2;
pub(crate) const SIGKILL: c_int = 9;
pub(crate) const SIGTERM: c_int = 15;
pub(crate) const SIGCHLD: c_int = 17;
pub(crate) const SIGTTOU: c_int = 22;

unsafe extern "C" {
    pub(crate) fn getpid() -> c_int;
    pub(crate) fn isatty(descriptor: c_int) -> c_int;
    pub(crate) fn kill(pid: c_int, signal: c_int) -> c_int;
    pub(crate) fn poll(events: *mut PollEvent, count: c_ulong, limit_ms: c_int) -> c_int;
    pub(crate) fn prctl(option: c_int, ...) -> c_int;
    pub(crate) fn read(descriptor: c_int, buffer: *mut c_void, size: usize) -> c_long;
    pub(crate) fn sendmsg(socket: c_int, message: *const MessageHead, flags: c_int) -> c_long;
    pub(crate) fn setpgid(pid: c_int, group: c_int) -> c_int;
    pub(crate) fn setsid() -> c_int;
    pub(crate) fn setsockopt(
        socket: c_int,
        level: c_int,
        name: c_int,
        value: *const c_void,
        size: c_uint,
    ) -> c_int;
    pub(crate) fn sigemptyset(set: *mut SignalSet) -> c_int;
    pub(crate) fn sigfillset(set: *mut SignalSet) -> c_int;
    pub(crate) fn signal(number: c_int, action: usize) -> usize;
    pub(crate) fn signalfd(descriptor: c_int, set: *const SignalSet, flags: c_int) -> c_int;
    pub(crate) fn sigprocmask(how: c_int, set: *const SignalSet, old: *mut SignalSet) -> c_int;
    pub(crate) fn tcsetpgrp(descriptor: c_int, group: c_int) -> c_int;
    pub(crate) fn waitpid(pid: c_int, status: *mut c_int, options: c_int) -> c_int;
}
