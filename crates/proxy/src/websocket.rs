//! WebSocket: an HTTP/1 upgrade or an HTTP/2 stream on the workload's side, an HTTP/1 upgrade on the
//! upstream's. Frames pass as they are, but for secrets that a host in their scope sends back.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use cordon_policy::Grant;
use cordon_secrets::{FrameScrubber, Scrub};
use data_encoding::BASE64;
use http::{HeaderValue, Request, Response, StatusCode, header, request::Parts};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use sha1::{Digest, Sha1};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, copy_bidirectional};

use crate::{
    body::{RequestBody, ResponseBody, Traffic},
    credentials::{Refused, ScrubbedFrames},
    exchange::Exchange,
    forward,
    head::{Head, Kind},
    log::Broken,
    refusal::Refusal,
    serve::Client,
    through::{Reads, Through},
    upstream::{Leg, Route, Sent, Trouble},
};

/// An upstream that answered a request for a WebSocket.
pub(crate) struct Opened {
    client: OnUpgrade,
    kind: Kind,
    sent: Sent,
    scrub: Option<Scrub>,
}

/// Asks the upstream for a WebSocket.
pub(crate) async fn open(
    client: &Client,
    exchange: &mut Exchange,
    parts: Parts,
    head: &Head,
    grant: &Grant<'_>,
) -> Result<Opened, Refusal> {
    let route = client.route(head, Leg::Http1, grant);
    let version = parts.version;
    let mut request = Request::from_parts(parts, ());
    let upgrade = hyper::upgrade::on(&mut request);
    let (parts, ()) = request.into_parts();
    let mut request = forward::request(parts, head, RequestBody::Empty);
    let key = match head.kind {
        Kind::ExtendedConnect => {
            let key = random_key().map_err(|_| broken(route, "no randomness available"))?;
            request
                .headers_mut()
                .insert(header::SEC_WEBSOCKET_KEY, key.clone());
            Some(key)
        }
        Kind::Upgrade | Kind::Plain => None,
    };
    let (request, scrub) = client
        .shared
        .credentials
        .apply(route.scheme, route.host, request, exchange)
        .await?;
    let interim = client.interim(version, scrub.as_ref(), exchange);
    let upstreams = &client.shared.upstreams;
    let sent = upstreams.send(route, request, interim).await?;
    let switching = sent.response.status() == StatusCode::SWITCHING_PROTOCOLS;
    if let (true, Some(key)) = (switching, key)
        && sent.response.headers().get(header::SEC_WEBSOCKET_ACCEPT) != Some(&accept(&key))
    {
        return Err(broken(route, "its WebSocket handshake does not match ours").into());
    }
    if switching && scrub.is_some() {
        FrameScrubber::check_handshake(sent.response.headers()).map_err(Refused::Unscrubbable)?;
    }
    Ok(Opened {
        client: upgrade,
        kind: head.kind,
        sent,
        scrub,
    })
}

impl Opened {
    /// Answers the workload and, if the upstream agreed, passes bytes until one side ends.
    pub(crate) fn begin(self, client: &Client, mut exchange: Exchange) -> Response<ResponseBody> {
        let Self {
            client: client_side,
            kind,
            mut sent,
            scrub,
        } = self;
        if sent.response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return client.pass_on(sent, scrub, exchange);
        }
        let upstream_side = hyper::upgrade::on(&mut sent.response);
        exchange.answered(StatusCode::SWITCHING_PROTOCOLS, sent.address);
        let (mut parts, _) = forward::response(sent.response);
        if let Some(scrub) = &scrub {
            exchange
                .traffic()
                .scrubbed
                .fetch_add(scrub.headers(&mut parts.headers), Ordering::Relaxed);
        }
        match kind {
            Kind::ExtendedConnect => {
                parts.status = StatusCode::OK;
                parts.headers.remove(header::SEC_WEBSOCKET_ACCEPT);
            }
            Kind::Upgrade | Kind::Plain => {
                parts
                    .headers
                    .insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
                parts
                    .headers
                    .insert(header::UPGRADE, HeaderValue::from_static("websocket"));
                client.heads.upgrade();
            }
        }
        let idle = client.shared.upstream.idle_time;
        client.shared.tasks.spawn(async move {
            match tunnel(client_side, upstream_side, scrub, exchange.traffic(), idle).await {
                Ok(()) => exchange.finish(),
                Err(error) => exchange.break_off(Broken::Upstream(error.to_string())),
            }
        });
        Response::from_parts(parts, ResponseBody::own(Vec::new()))
    }
}

async fn tunnel(
    client: OnUpgrade,
    upstream: OnUpgrade,
    scrub: Option<Scrub>,
    traffic: &Arc<Traffic>,
    idle: Duration,
) -> io::Result<()> {
    let (client, upstream) = tokio::try_join!(client, upstream).map_err(io::Error::other)?;
    let client = Through::new(TokioIo::new(client), Counted(&traffic.up));
    let upstream = Through::new(TokioIo::new(upstream), Counted(&traffic.down));
    match scrub {
        Some(scrub) => {
            let upstream = Through::new(upstream, ScrubbedFrames::new(&scrub, traffic));
            join(client, upstream, traffic, idle).await
        }
        None => join(client, upstream, traffic, idle).await,
    }
}

async fn join(
    mut client: impl AsyncRead + AsyncWrite + Unpin,
    mut upstream: impl AsyncRead + AsyncWrite + Unpin,
    traffic: &Traffic,
    idle: Duration,
) -> io::Result<()> {
    tokio::select! {
        done = copy_bidirectional(&mut client, &mut upstream) => done.map(drop),
        () = quiet(traffic, idle) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Returns once nothing has moved for a while.
async fn quiet(traffic: &Traffic, idle: Duration) {
    let moved = || traffic.up.load(Ordering::Relaxed) + traffic.down.load(Ordering::Relaxed);
    let mut seen = moved();
    loop {
        tokio::time::sleep(idle).await;
        if moved() == seen {
            return;
        }
        seen = moved();
    }
}

/// Counts what is read.
struct Counted<'a>(&'a AtomicU64);

impl<S: AsyncRead + Unpin> Reads<S> for Counted<'_> {
    fn poll_read(
        &mut self,
        below: &mut S,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(below).poll_read(cx, buf))?;
        let read = buf.filled().len() - before;
        self.0.fetch_add(read as u64, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

fn random_key() -> Result<HeaderValue, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    let key = BASE64.encode(&bytes);
    // Base64 is visible ASCII.
    Ok(HeaderValue::try_from(key).unwrap_or(HeaderValue::from_static("")))
}

/// What a server that understood the key answers with.
fn accept(key: &HeaderValue) -> HeaderValue {
    let digest = Sha1::new()
        .chain_update(key.as_bytes())
        .chain_update(ACCEPT_SALT)
        .finalize();
    HeaderValue::try_from(BASE64.encode(&digest)).unwrap_or(HeaderValue::from_static(""))
}

fn broken(route: Route<'_>, reason: &str) -> Trouble {
    Trouble::Broken {
        host: route.host.to_string(),
        reason: reason.to_owned(),
    }
}

/// Fixed by the WebSocket protocol.
const ACCEPT_SALT: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
