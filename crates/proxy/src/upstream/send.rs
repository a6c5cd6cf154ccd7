//! Sends a request over a connection that waits, or over a new one, and waits for the answer to begin.

use std::{
    future::Future,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    time::Duration,
};

use http::{Request, Response, StatusCode, header};
use hyper::{
    body::Incoming,
    client::conn::{TrySendError, http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};

use super::{
    Route, Trouble,
    dial::{Dialled, Dialler},
    pool::{Bounds, Connection, Key, Lease, Pool, Sender},
};
use crate::{
    Error, Limits, Upstream,
    ahead::Buffers,
    body::{RequestBody, Traffic},
    forward,
    interim::Interim,
    tasks::Tasks,
};

/// Sends requests, over connections that are open where there are any.
#[derive(Clone)]
pub(crate) struct Upstreams {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    dialler: Dialler,
    pool: Mutex<Pool>,
    pub(super) tasks: Tasks,
    answer_time: Duration,
}

/// A response whose body is still to be read.
pub(crate) struct Sent {
    pub(crate) response: Response<Incoming>,
    pub(crate) lease: Lease,
    pub(crate) address: Option<SocketAddr>,
}

impl Upstreams {
    pub(crate) fn new(
        settings: Upstream,
        limits: &Limits,
        tasks: Tasks,
        buffers: Buffers,
    ) -> Result<Self, Error> {
        let bounds = Bounds {
            waiting: limits.idle_upstreams,
            waiting_per_host: limits.idle_upstreams_per_host,
            keep_alive: settings.keep_alive_time,
        };
        let shared = Shared {
            answer_time: settings.first_byte_time,
            dialler: Dialler::new(settings, buffers)?,
            pool: Mutex::new(Pool::new(bounds)),
            tasks,
        };
        let upstreams = Self {
            shared: Arc::new(shared),
        };
        upstreams.sweep(bounds.keep_alive);
        Ok(upstreams)
    }

    /// Sends a request in origin form, and waits for the head of the response. Tells of interim responses meanwhile.
    pub(crate) async fn send(
        &self,
        route: Route<'_>,
        mut request: Request<RequestBody>,
        interim: Option<Interim<'_>>,
    ) -> Result<Sent, Trouble> {
        let key = Key {
            scheme: route.scheme,
            host: route.host.clone(),
            port: route.port,
            leg: route.leg,
        };
        loop {
            let waiting = self.shared.check_out(&key, route);
            let fresh = waiting.is_none();
            let connection = match waiting {
                Some(connection) => connection,
                // Dialling is rare and its future large; requests that need not dial shall not carry it.
                None => Box::pin(self.open(&key, route)).await?,
            };
            match self.send_over(connection, &key, request, interim).await {
                Ok(sent) => return Ok(sent),
                // The upstream closed it while it waited; nothing was sent.
                Err(Unsent::Again(unsent)) if !fresh => request = *unsent,
                Err(Unsent::Again(_)) => return Err(broken(&key, "it closed the connection")),
                Err(Unsent::Trouble(trouble)) => return Err(trouble),
            }
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
        let shareable = connection.as_ref().is_ok_and(Connection::is_shareable);
        if !shareable && gate.is_some() {
            // Whoever waits shall not wait for one failure, or one HTTP/1 connection, after another.
            self.shared.lock().remove_gate(key);
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
            let (sender, connection) = http1::Builder::new()
                .max_buf_size(BUFFER)
                .handshake(io)
                .await
                .map_err(failed)?;
            self.shared.tasks.spawn(connection.with_upgrades());
            return Ok(Connection::http1(sender, address));
        }
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_frame_size(MAX_FRAME)
            .handshake(io)
            .await
            .map_err(failed)?;
        self.shared.tasks.spawn(connection);
        Ok(self.shared.lock().share(key, sender, address))
    }

    async fn send_over(
        &self,
        connection: Connection,
        key: &Key,
        mut request: Request<RequestBody>,
        interim: Option<Interim<'_>>,
    ) -> Result<Sent, Unsent> {
        let Connection { sender, address } = connection;
        let upload = request.body().traffic().cloned();
        match sender {
            Sender::Http1(mut sender) => {
                if sender.ready().await.is_err() {
                    return Err(Unsent::Again(Box::new(request)));
                }
                forward::for_http1(&mut request);
                listen(&mut request, upload.as_ref(), interim);
                let sending = sender.try_send_request(request);
                let response = self.shared.answer(key, upload.as_deref(), sending).await?;
                let lease = Lease::http1(&self.shared, key, sender, address, upload);
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
                    lease: Lease::http2(stream),
                    address,
                })
            }
        }
    }

    /// Closes what has waited too long.
    fn sweep(&self, keep_alive: Duration) {
        let shared = Arc::downgrade(&self.shared);
        let period = keep_alive.max(Duration::from_secs(1)) / 4;
        self.shared.tasks.spawn(async move {
            loop {
                tokio::time::sleep(period).await;
                let Some(shared) = shared.upgrade() else {
                    return;
                };
                shared.lock().expire();
            }
        });
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Pool> {
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

/// Hears what the upstream says before it answers. A client that waits to be asked for its body is asked when the
/// upstream asks.
fn listen(
    request: &mut Request<RequestBody>,
    upload: Option<&Arc<Traffic>>,
    interim: Option<Interim<'_>>,
) {
    let expects = request.headers().get(header::EXPECT);
    let expects =
        expects.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
    let asked = match upload {
        Some(upload) if expects => {
            upload.gate.shut();
            Some(Arc::clone(upload))
        }
        Some(upload) => {
            upload.gate.open();
            None
        }
        None => None,
    };
    let relay = interim.map(Interim::relay);
    if asked.is_none() && relay.is_none() {
        return;
    }
    hyper::ext::on_informational(request, move |response| match response.status() {
        StatusCode::CONTINUE => {
            let Some(upload) = &asked else {
                return;
            };
            if let Some(relay) = &relay {
                relay.pass_continue();
            }
            upload.gate.open();
        }
        status => {
            if let Some(relay) = &relay {
                relay.pass(status, response.headers());
            }
        }
    });
}

enum Unsent {
    Again(Box<Request<RequestBody>>),
    Trouble(Trouble),
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

/// Many servers never ask for a body; after this time it is sent all the same.
const CONTINUE_TIME: Duration = Duration::from_secs(1);

/// What is read ahead of an HTTP/1 response, its head included.
const BUFFER: usize = 128 * 1024;

/// Finds dead HTTP/2 connections before a request does.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Longest frame of a response: four times what everybody may send.
const MAX_FRAME: u32 = 64 * 1024;

/// How much an upstream may send ahead of a slow client, for one response and for all of a connection.
const STREAM_WINDOW: u32 = 1024 * 1024;
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;
