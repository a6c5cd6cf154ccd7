//! Every bound on what a workload or an upstream can make the proxy hold, wait for or write.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The bounds of one proxy. Each has a default that real clients do not meet.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Bytes of one request head, request line and fields together. More is a 431.
    pub header_bytes: usize,
    /// Fields of one request head. More is a 431.
    pub header_count: usize,
    /// HTTP connections from the workload at one time; further ones wait in the kernel's queue.
    pub connections: usize,
    /// HTTP/2 streams on one connection at one time.
    pub streams: u32,
    /// Time from the first byte of a connection to a finished TLS handshake.
    pub handshake_time: Duration,
    /// Time from the first byte of a request head to its last. Longer is a 408.
    pub header_time: Duration,
    /// Time that a connection may rest between requests, and before its first byte.
    pub idle_time: Duration,
    /// Request bodies kept in memory at one time to judge them, where an entry asks for that; each is
    /// at most 1 MiB.
    pub inspected_bodies: usize,
    /// Time for such a body to arrive, and for one that is kept to be signed.
    pub inspection_time: Duration,
    /// Bytes of request bodies kept in memory at one time because a signature needs their hash first; a
    /// longer body is a 413.
    pub signed_bytes: usize,
    /// DNS questions answered in a second, with a burst of as many. More get no answer.
    pub dns_per_second: u32,
    /// DNS connections over TCP at one time.
    pub dns_tcp_connections: usize,
    /// Time between two questions on a DNS connection over TCP.
    pub dns_tcp_idle: Duration,
    /// Requests under way, or done and not yet written to the log, at one time; further ones wait.
    pub requests: usize,
    /// Bytes of a log file before it is renamed to `….1` and begun anew.
    pub log_bytes: u64,
    /// Leaf certificates kept for reuse.
    pub leaves: u64,
    /// Idle upstream connections kept for reuse, over all hosts.
    pub idle_upstreams: usize,
    /// Idle upstream connections kept for reuse, for one host.
    pub idle_upstreams_per_host: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_bytes: 64 * 1024,
            header_count: 100,
            connections: 1024,
            streams: 128,
            handshake_time: Duration::from_secs(10),
            header_time: Duration::from_secs(30),
            idle_time: Duration::from_secs(300),
            inspected_bodies: 16,
            inspection_time: Duration::from_secs(60),
            // The largest request of a service that signs so, a call to a model with images, has 25 MB.
            signed_bytes: 32 * 1024 * 1024,
            dns_per_second: 1000,
            dns_tcp_connections: 64,
            dns_tcp_idle: Duration::from_secs(10),
            requests: 2048,
            log_bytes: 64 * 1024 * 1024,
            leaves: 4096,
            idle_upstreams: 256,
            idle_upstreams_per_host: 64,
        }
    }
}
