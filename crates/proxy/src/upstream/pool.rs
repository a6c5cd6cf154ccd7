//! Upstream connections that wait for their next request.
//!
//! A connection serves one scheme, host, port and protocol. Before it is used again, its address is
//! checked against the grant of the request at hand: that another request was admitted to it means
//! nothing.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use cordon_policy::{Host, Scheme};
use http::{Request, Response, StatusCode, header};
use hyper::{
    body::Incoming,
    client::conn::{TrySendError, http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::time::Instant;

use super::{
    Leg, Route, Trouble,
    dial::{Dialled, Dialler},
};
use crate::{
    Error, Limits, Upstream,
    body::{RequestBody, Traffic},
    forward,
    tasks::Tasks,
};

/// Sends requests, over connections that are open where there are any.
#[derive(Clone)]
pub(crate) struct Upstreams {
    shared: Arc<Shared>,
}

struct Shared {
    dialler: Dialler,
    pool: Mutex<Pool>,
    tasks: Tasks,
    answer_time: Duration,
    keep_alive: Duration,
    max_idle: usize,
    max_idle_per_host: usize,
}

/// A response whose body is still to be read.
pub(crate) struct Sent {
    pub(crate) response: Response<Incoming>,
    pub(crate) lease: Lease,
    pub(crate) address: Option<SocketAddr>,
}

impl Upstreams {
    pub(crate) fn new(settings: Upstream, limits: &Limits, tasks: Tasks) -> Result<Self, Error> {
        let shared = Shared {
            answer_time: settings.first_byte_time,
            keep_alive: settings.keep_alive_time,
            dialler: Dialler::new(settings)?,
            pool: Mutex::default(),
            tasks,
            max_idle: limits.idle_upstreams,
            max_idle_per_host: limits.idle_upstreams_per_host,
        };
        let upstreams = Self {
            shared: Arc::new(shared),
        };
        upstreams.sweep();
        Ok(upstreams)
    }

    /// Sends a request in origin form, and waits for the head of the response.
    pub(crate) async fn send(
        &self,
        route: Route<'_>,
        mut request: Request<RequestBody>,
    ) -> Result<Sent, Trouble> {
        let key = Key {
            scheme: route.scheme,
            host: route.host.clone(),
            port: route.port,
            leg: route.leg,
        };
        while let Some(connection) = self.shared.check_out(&key, route) {
            match self.send_over(connection, &key, request).await {
                Ok(sent) => return Ok(sent),
                // The upstream closed it while it waited; nothing was sent.
                Err(Unsent::Again(unsent)) => request = *unsent,
                Err(Unsent::Trouble(trouble)) => return Err(trouble),
            }
        }
        let connection = self.open(&key, route).await?;
        match self.send_over(connection, &key, request).await {
            Ok(sent) => Ok(sent),
            Err(Unsent::Again(_)) => Err(broken(&key, "it closed the connection")),
            Err(Unsent::Trouble(trouble)) => Err(trouble),
        }
    }

    /// Opens a connection, or takes the one that somebody else opened meanwhile. Requests to a host
    /// that may speak HTTP/2 wait for one another, since one connection then serves them all.
    async fn open(&self, key: &Key, route: Route<'_>) -> Result<Connection, Trouble> {
        let gate = self.shared.lock().gate(key);
        let _turn = match &gate {
            Some(gate) => {
                let turn = gate.lock().await;
                if let Some(connection) = self.shared.check_out(key, route) {
                    return Ok(connection);
                }
                Some(turn)
            }
            None => None,
        };
        let connection = match self.shared.dialler.dial(route).await {
            Ok(dialled) => self.handshake(key, dialled).await,
            Err(trouble) => Err(trouble),
        };
        let http2 = matches!(
            connection,
            Ok(Connection {
                sender: Sender::Http2 { .. },
                ..
            })
        );
        if !http2 && gate.is_some() {
            // Whoever waits shall not wait for one failure, or one HTTP/1 connection, after another.
            self.shared.lock().entry(key).gate = None;
        }
        connection
    }

    async fn handshake(&self, key: &Key, dialled: Dialled) -> Result<Connection, Trouble> {
        let Dialled {
            stream,
            address,
            http2,
        } = dialled;
        let io = TokioIo::new(stream);
        let failed = |error: hyper::Error| broken(key, &describe(&error));
        if !http2 {
            let (sender, connection) = http1::Builder::new().handshake(io).await.map_err(failed)?;
            self.shared.tasks.spawn(connection.with_upgrades());
            return Ok(Connection {
                sender: Sender::Http1(sender),
                address,
            });
        }
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .handshake(io)
            .await
            .map_err(failed)?;
        self.shared.tasks.spawn(connection);
        let streams = Arc::new(AtomicUsize::new(0));
        let waiting = Multiplexed {
            sender: sender.clone(),
            address,
            streams: Arc::clone(&streams),
            used: Instant::now(),
        };
        self.shared.lock().entry(key).http2.push(waiting);
        Ok(Connection {
            sender: Sender::Http2 {
                sender,
                stream: Stream::new(streams),
            },
            address,
        })
    }

    async fn send_over(
        &self,
        connection: Connection,
        key: &Key,
        mut request: Request<RequestBody>,
    ) -> Result<Sent, Unsent> {
        let Connection { sender, address } = connection;
        let upload = request.body().traffic().cloned();
        match sender {
            Sender::Http1(mut sender) => {
                if sender.ready().await.is_err() {
                    return Err(Unsent::Again(Box::new(request)));
                }
                forward::for_http1(&mut request);
                if let Some(upload) = &upload {
                    wait_for_continue(&mut request, upload);
                }
                let sending = sender.try_send_request(request);
                let response = self.shared.answer(key, upload.as_deref(), sending).await?;
                let waiting = Waiting {
                    sender,
                    address,
                    since: Instant::now(),
                };
                let lease = Lease::Http1(Some(Return {
                    shared: Arc::clone(&self.shared),
                    key: key.clone(),
                    waiting,
                    upload,
                }));
                Ok(Sent {
                    response,
                    lease,
                    address,
                })
            }
            Sender::Http2 { mut sender, stream } => {
                forward::for_http2(&mut request, key.scheme);
                if let Some(upload) = &upload {
                    upload.gate.open();
                }
                let sending = sender.try_send_request(request);
                let response = self.shared.answer(key, upload.as_deref(), sending).await?;
                Ok(Sent {
                    response,
                    lease: Lease::Http2 { _stream: stream },
                    address,
                })
            }
        }
    }

    /// Closes what has waited too long.
    fn sweep(&self) {
        let shared = Arc::downgrade(&self.shared);
        let period = self.shared.keep_alive.max(Duration::from_secs(1)) / 4;
        self.shared.tasks.spawn(async move {
            loop {
                tokio::time::sleep(period).await;
                let Some(shared) = shared.upgrade() else {
                    return;
                };
                shared.lock().expire(shared.keep_alive);
            }
        });
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Pool> {
        // No code panics while it holds the lock, and a list of connections is never half-made.
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_out(&self, key: &Key, route: Route<'_>) -> Option<Connection> {
        self.lock().check_out(key, |address| {
            address.is_none_or(|address| route.check(address).is_ok())
        })
    }

    /// Waits for the head of a response, for as long as the upload makes progress.
    async fn answer(
        &self,
        key: &Key,
        upload: Option<&Traffic>,
        sending: impl Future<Output = Attempt>,
    ) -> Result<Response<Incoming>, Unsent> {
        let mut sending = std::pin::pin!(sending);
        let progress = || upload.map_or(0, |upload| upload.up.load(Ordering::Relaxed));
        let mut seen = progress();
        if let Some(upload) = upload
            && upload.gate.is_shut()
        {
            match tokio::time::timeout(CONTINUE_TIME, &mut sending).await {
                Ok(result) => return settled(key, result),
                Err(_) => upload.gate.open(),
            }
        }
        loop {
            match tokio::time::timeout(self.answer_time, &mut sending).await {
                Ok(result) => return settled(key, result),
                Err(_) if progress() > seen => seen = progress(),
                Err(_) => {
                    let host = key.host.to_string();
                    return Err(Unsent::Trouble(Trouble::AnswerTimeout { host }));
                }
            }
        }
    }
}

type Attempt = Result<Response<Incoming>, TrySendError<Request<RequestBody>>>;

fn settled(key: &Key, attempt: Attempt) -> Result<Response<Incoming>, Unsent> {
    attempt.map_err(|mut error| match error.take_message() {
        Some(request) => Unsent::Again(Box::new(request)),
        // The body is the client's, so is its failure.
        None if error.error().is_user() => Unsent::Trouble(Trouble::ClientGone),
        None => Unsent::Trouble(broken(key, &describe(error.error()))),
    })
}

/// A client that waits to be asked for its body is asked when the upstream asks.
fn wait_for_continue(request: &mut Request<RequestBody>, upload: &Arc<Traffic>) {
    let expects = request.headers().get(header::EXPECT);
    if !expects.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue")) {
        upload.gate.open();
        return;
    }
    upload.gate.shut();
    let upload = Arc::clone(upload);
    hyper::ext::on_informational(request, move |response| {
        if response.status() == StatusCode::CONTINUE {
            upload.gate.open();
        }
    });
}

enum Unsent {
    Again(Box<Request<RequestBody>>),
    Trouble(Trouble),
}

/// Holds a connection while a response is read from it.
pub(crate) enum Lease {
    Http1(Option<Return>),
    Http2 { _stream: Stream },
}

impl Lease {
    /// The response has been read to its end: the connection may serve the next request.
    pub(crate) fn give_back(&mut self) {
        let Self::Http1(slot) = self else { return };
        let Some(Return {
            shared,
            key,
            mut waiting,
            upload,
        }) = slot.take()
        else {
            return;
        };
        if waiting.sender.is_closed() {
            return;
        }
        let uploaded = upload.is_none_or(|upload| upload.uploaded.load(Ordering::Acquire));
        if waiting.sender.is_ready() || uploaded {
            // If it is not ready yet, its own task is about to see the end.
            shared
                .lock()
                .check_in(key, waiting, shared.max_idle, shared.max_idle_per_host);
        } else {
            // The upstream answered before it had read the whole request.
            let tasks = shared.tasks.clone();
            tasks.spawn(async move {
                if waiting.sender.ready().await.is_ok() {
                    waiting.since = Instant::now();
                    shared
                        .lock()
                        .check_in(key, waiting, shared.max_idle, shared.max_idle_per_host);
                }
            });
        }
    }
}

pub(crate) struct Return {
    shared: Arc<Shared>,
    key: Key,
    waiting: Waiting,
    upload: Option<Arc<Traffic>>,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Key {
    scheme: Scheme,
    host: Host,
    port: u16,
    leg: Leg,
}

#[derive(Default)]
struct Pool {
    hosts: HashMap<Key, Entry>,
    idle: usize,
}

struct Entry {
    /// HTTP/1 connections, the last used at the end.
    idle: Vec<Waiting>,
    /// HTTP/2 connections; they stay here while they are used.
    http2: Vec<Multiplexed>,
    /// Lets one request dial while it is not known that connections cannot be shared.
    gate: Option<Arc<tokio::sync::Mutex<()>>>,
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

struct Connection {
    sender: Sender,
    address: Option<SocketAddr>,
}

enum Sender {
    Http1(http1::SendRequest<RequestBody>),
    Http2 {
        sender: http2::SendRequest<RequestBody>,
        stream: Stream,
    },
}

/// One of the streams of an HTTP/2 connection.
pub(crate) struct Stream(Arc<AtomicUsize>);

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

impl Pool {
    fn entry(&mut self, key: &Key) -> &mut Entry {
        self.hosts.entry(key.clone()).or_default()
    }

    fn gate(&mut self, key: &Key) -> Option<Arc<tokio::sync::Mutex<()>>> {
        match key.leg {
            Leg::Auto if key.scheme == Scheme::Http => None,
            Leg::Http1 => None,
            Leg::Auto | Leg::Http2 => self.entry(key).gate.clone(),
        }
    }

    fn check_out(
        &mut self,
        key: &Key,
        admits: impl Fn(Option<SocketAddr>) -> bool,
    ) -> Option<Connection> {
        let entry = self.hosts.get_mut(key)?;
        entry.http2.retain(|open| !open.sender.is_closed());
        for open in &mut entry.http2 {
            let free = open.streams.load(Ordering::Relaxed) < MAX_STREAMS;
            if free && open.sender.is_ready() && admits(open.address) {
                open.used = Instant::now();
                let (sender, stream) =
                    (open.sender.clone(), Stream::new(Arc::clone(&open.streams)));
                return Some(Connection {
                    sender: Sender::Http2 { sender, stream },
                    address: open.address,
                });
            }
        }
        let mut at = entry.idle.len();
        while at > 0 {
            at -= 1;
            if entry.idle[at].sender.is_closed() {
                entry.idle.swap_remove(at);
                self.idle -= 1;
            } else if admits(entry.idle[at].address) {
                let Waiting {
                    sender, address, ..
                } = entry.idle.remove(at);
                self.idle -= 1;
                return Some(Connection {
                    sender: Sender::Http1(sender),
                    address,
                });
            }
        }
        None
    }

    fn check_in(&mut self, key: Key, waiting: Waiting, max: usize, max_per_host: usize) {
        if self.idle >= max {
            self.evict();
        }
        let entry = self.hosts.entry(key).or_default();
        if entry.idle.len() < max_per_host {
            entry.idle.push(waiting);
            self.idle += 1;
        }
    }

    /// Drops the connection that has waited longest.
    fn evict(&mut self) {
        let oldest = self
            .hosts
            .values_mut()
            .filter(|entry| !entry.idle.is_empty());
        let oldest = oldest.min_by_key(|entry| entry.idle[0].since);
        if let Some(entry) = oldest {
            entry.idle.remove(0);
            self.idle -= 1;
        }
    }

    fn expire(&mut self, keep_alive: Duration) {
        let now = Instant::now();
        let mut left = 0;
        self.hosts.retain(|_, entry| {
            entry.idle.retain(|waiting| {
                now.duration_since(waiting.since) < keep_alive && !waiting.sender.is_closed()
            });
            entry.http2.retain(|open| {
                let used = open.streams.load(Ordering::Relaxed) > 0;
                !open.sender.is_closed() && (used || now.duration_since(open.used) < keep_alive)
            });
            left += entry.idle.len();
            // A gate that somebody holds must be found again by the next request.
            let waited_for = entry
                .gate
                .as_ref()
                .is_some_and(|gate| Arc::strong_count(gate) > 1);
            !entry.idle.is_empty() || !entry.http2.is_empty() || waited_for
        });
        self.idle = left;
    }
}

fn broken(key: &Key, reason: &str) -> Trouble {
    Trouble::Broken {
        host: key.host.to_string(),
        reason: reason.to_owned(),
    }
}

/// The library keeps the telling part of an error in its cause.
pub(crate) fn describe(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// What servers usually admit on one HTTP/2 connection; the next request opens another.
const MAX_STREAMS: usize = 100;

/// Many servers never ask for a body; after this time it is sent all the same.
const CONTINUE_TIME: Duration = Duration::from_secs(1);

/// Finds dead HTTP/2 connections before a request does.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// How much an upstream may send ahead of a slow client, for one response and for all of a connection.
const STREAM_WINDOW: u32 = 1024 * 1024;
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;
