//! Upstream connections that wait for their next request.
//!
//! A connection serves one scheme, host, port and protocol. Before it is used again, its address is
//! checked against the grant of the request at hand: that another request was admitted to it means
//! nothing.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use cordon_policy::{Host, Scheme};
use hyper::client::conn::{http1, http2};
use tokio::{sync::Mutex, time::Instant};

use super::{Leg, send::Shared};
use crate::body::{RequestBody, Traffic};

/// The open connections of a proxy that no request has for itself.
pub(super) struct Pool {
    hosts: HashMap<Key, Entry>,
    /// How many there are, HTTP/1 and HTTP/2 together.
    count: usize,
    bounds: Bounds,
}

/// How many connections may wait, and how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) waiting: usize,
    pub(super) waiting_per_host: usize,
    pub(super) keep_alive: Duration,
}

/// What all requests over one connection have in common.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Key {
    pub(super) scheme: Scheme,
    pub(super) host: Host,
    pub(super) port: u16,
    pub(super) leg: Leg,
}

impl Pool {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            hosts: HashMap::new(),
            count: 0,
            bounds,
        }
    }

    /// Where requests wait for one another to dial; None where connections cannot be shared.
    pub(super) fn gate(&mut self, key: &Key) -> Option<Arc<Mutex<()>>> {
        match key.leg {
            Leg::Auto if key.scheme == Scheme::Http => None,
            Leg::Http1 => None,
            Leg::Auto | Leg::Http2 => self.entry(key).gate.clone(),
        }
    }

    pub(super) fn remove_gate(&mut self, key: &Key) {
        self.entry(key).gate = None;
    }

    /// Takes a connection whose address is admitted: an HTTP/2 one with a free stream, or the
    /// HTTP/1 one that was used last.
    pub(super) fn check_out(
        &mut self,
        key: &Key,
        admits: impl Fn(Option<SocketAddr>) -> bool,
    ) -> Option<Connection> {
        let entry = self.hosts.get_mut(key)?;
        let before = entry.len();
        entry.http2.retain(|open| !open.sender.is_closed());
        entry.idle.retain(|waiting| !waiting.sender.is_closed());
        self.count -= before - entry.len();
        let open = entry.http2.iter_mut().find(|open| {
            open.streams.load(Ordering::Relaxed) < MAX_STREAMS
                && open.sender.is_ready()
                && admits(open.address)
        });
        if let Some(open) = open {
            return Some(open.connection());
        }
        let at = entry
            .idle
            .iter()
            .rposition(|waiting| admits(waiting.address))?;
        let Waiting {
            sender, address, ..
        } = entry.idle.remove(at);
        self.count -= 1;
        Some(Connection::http1(sender, address))
    }

    /// Keeps an HTTP/2 connection for everybody. Returns the use of it for one request.
    pub(super) fn share(
        &mut self,
        key: &Key,
        sender: http2::SendRequest<RequestBody>,
        address: Option<SocketAddr>,
    ) -> Connection {
        self.make_room();
        let mut open = Multiplexed {
            sender,
            address,
            streams: Arc::default(),
            used: Instant::now(),
        };
        let connection = open.connection();
        self.entry(key).http2.push(open);
        self.count += 1;
        connection
    }

    fn check_in(&mut self, key: Key, waiting: Waiting) {
        self.make_room();
        let entry = self.hosts.entry(key).or_default();
        if entry.idle.len() < self.bounds.waiting_per_host {
            entry.idle.push(waiting);
            self.count += 1;
        }
    }

    /// Closes what has waited too long.
    pub(super) fn expire(&mut self) {
        let (now, keep_alive) = (Instant::now(), self.bounds.keep_alive);
        self.count = 0;
        self.hosts.retain(|_, entry| {
            entry.idle.retain(|waiting| {
                now.duration_since(waiting.since) < keep_alive && !waiting.sender.is_closed()
            });
            entry.http2.retain(|open| {
                let rested = now.duration_since(open.used) >= keep_alive;
                !open.sender.is_closed() && (open.is_used() || !rested)
            });
            self.count += entry.len();
            // A gate that somebody holds must be found again by the next request.
            let held = |gate| Arc::strong_count(gate) > 1;
            entry.len() > 0 || entry.gate.as_ref().is_some_and(held)
        });
    }

    fn entry(&mut self, key: &Key) -> &mut Entry {
        self.hosts.entry(key.clone()).or_default()
    }

    /// Drops the connection that was unused longest, where there are too many.
    fn make_room(&mut self) {
        if self.count < self.bounds.waiting {
            return;
        }
        let oldest = self
            .hosts
            .values_mut()
            .filter_map(|entry| Some((entry.oldest()?, entry)))
            .min_by_key(|(since, _)| *since);
        if let Some((since, entry)) = oldest {
            let before = entry.len();
            entry.idle.retain(|waiting| waiting.since != since);
            entry
                .http2
                .retain(|open| open.is_used() || open.used != since);
            self.count -= before - entry.len();
        }
    }
}

struct Entry {
    /// HTTP/1 connections, the last used at the end.
    idle: Vec<Waiting>,
    /// HTTP/2 connections; they stay here while they are used.
    http2: Vec<Multiplexed>,
    /// Lets one request dial while it is not known that connections cannot be shared.
    gate: Option<Arc<Mutex<()>>>,
}

impl Entry {
    fn len(&self) -> usize {
        self.idle.len() + self.http2.len()
    }

    /// Since when its longest unused connection was unused.
    fn oldest(&self) -> Option<Instant> {
        let unused = self.http2.iter().filter(|open| !open.is_used());
        let waiting = self.idle.iter().map(|waiting| waiting.since);
        waiting.chain(unused.map(|open| open.used)).min()
    }
}

impl Default for Entry {
    fn default() -> Self {
        Self {
            idle: Vec::new(),
            http2: Vec::new(),
            gate: Some(Arc::default()),
        }
    }
}

struct Waiting {
    sender: http1::SendRequest<RequestBody>,
    address: Option<SocketAddr>,
    since: Instant,
}

struct Multiplexed {
    sender: http2::SendRequest<RequestBody>,
    address: Option<SocketAddr>,
    streams: Arc<AtomicUsize>,
    used: Instant,
}

impl Multiplexed {
    fn is_used(&self) -> bool {
        self.streams.load(Ordering::Relaxed) > 0
    }

    fn connection(&mut self) -> Connection {
        self.used = Instant::now();
        Connection {
            sender: Sender::Http2 {
                sender: self.sender.clone(),
                stream: Stream::new(Arc::clone(&self.streams)),
            },
            address: self.address,
        }
    }
}

/// A connection, or one stream of it, for one request.
pub(super) struct Connection {
    pub(super) sender: Sender,
    /// The address that was checked when it was dialled; None behind a proxy.
    pub(super) address: Option<SocketAddr>,
}

pub(super) enum Sender {
    Http1(http1::SendRequest<RequestBody>),
    Http2 {
        sender: http2::SendRequest<RequestBody>,
        stream: Stream,
    },
}

impl Connection {
    pub(super) fn http1(
        sender: http1::SendRequest<RequestBody>,
        address: Option<SocketAddr>,
    ) -> Self {
        Self {
            sender: Sender::Http1(sender),
            address,
        }
    }

    pub(super) fn is_shareable(&self) -> bool {
        matches!(self.sender, Sender::Http2 { .. })
    }
}

/// One of the streams of an HTTP/2 connection.
pub(super) struct Stream(Arc<AtomicUsize>);

impl Stream {
    fn new(streams: Arc<AtomicUsize>) -> Self {
        streams.fetch_add(1, Ordering::Relaxed);
        Self(streams)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Holds a connection while a response is read from it.
pub(crate) struct Lease(Held);

enum Held {
    Http1(Option<Return>),
    Http2 { _stream: Stream },
}

struct Return {
    shared: Arc<Shared>,
    key: Key,
    waiting: Waiting,
    upload: Option<Arc<Traffic>>,
}

impl Lease {
    pub(super) fn http1(
        shared: &Arc<Shared>,
        key: &Key,
        sender: http1::SendRequest<RequestBody>,
        address: Option<SocketAddr>,
        upload: Option<Arc<Traffic>>,
    ) -> Self {
        Self(Held::Http1(Some(Return {
            shared: Arc::clone(shared),
            key: key.clone(),
            waiting: Waiting {
                sender,
                address,
                since: Instant::now(),
            },
            upload,
        })))
    }

    pub(super) fn http2(stream: Stream) -> Self {
        Self(Held::Http2 { _stream: stream })
    }

    /// The response has been read to its end: the connection may serve the next request.
    pub(crate) fn give_back(&mut self) {
        let Held::Http1(slot) = &mut self.0 else {
            return;
        };
        if let Some(returned) = slot.take() {
            returned.check_in();
        }
    }
}

impl Return {
    fn check_in(self) {
        let Self {
            shared,
            key,
            mut waiting,
            upload,
        } = self;
        if waiting.sender.is_closed() {
            return;
        }
        waiting.since = Instant::now();
        let uploaded = upload.is_none_or(|upload| upload.uploaded.load(Ordering::Acquire));
        if waiting.sender.is_ready() || uploaded {
            // If it is not ready yet, its own task is about to see the end.
            shared.lock().check_in(key, waiting);
            return;
        }
        // The upstream answered before it had read the whole request.
        let tasks = shared.tasks.clone();
        tasks.spawn(async move {
            if waiting.sender.ready().await.is_ok() {
                waiting.since = Instant::now();
                shared.lock().check_in(key, waiting);
            }
        });
    }
}

/// What servers usually admit on one HTTP/2 connection; the next request opens another.
const MAX_STREAMS: usize = 100;
