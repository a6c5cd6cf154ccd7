//! From a connection to requests: accept, tell TLS from plain text, shake hands, choose a protocol.

use std::{io, pin::pin, sync::Arc, time::Duration};

use bytes::BytesMut;
use cordon_policy::{Host, Scheme};
use hyper::{
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::{ServerConfig, server::Acceptor};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{sleep, timeout},
};
use tokio_rustls::{LazyConfigAcceptor, TlsStream, server};

use crate::{
    Limits,
    ahead::{ReadAhead, Records, Socket},
    exchange::Exchange,
    frames::{Streams, Tap},
    front::{Front, Heads},
    head::Arrival,
    log::{Event, Location, Place},
    refusal::{MalformedHead, Refusal},
    serve::{Client, Shared},
    through::Through,
};

/// Serves a listener until the task is dropped.
pub(crate) async fn serve(
    listener: TcpListener,
    shared: Arc<Shared>,
    tls: Arc<ServerConfig>,
    places: Arc<Semaphore>,
) {
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(ERROR_PAUSE).await;
                continue;
            }
        };
        let connection = Connection {
            shared: Arc::clone(&shared),
            tls: Arc::clone(&tls),
        };
        shared.tasks.spawn(async move {
            // A connection that fails has told so to its client or lost it.
            let _ = connection.serve(stream).await;
            drop(place);
        });
    }
}

struct Connection {
    shared: Arc<Shared>,
    tls: Arc<ServerConfig>,
}

impl Connection {
    async fn serve(self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let limits = &self.shared.limits;
        let mut first = [0];
        if timeout(limits.idle_time, stream.peek(&mut first)).await?? == 0 {
            return Ok(());
        }
        if first[0] == TLS_HANDSHAKE {
            return self.serve_tls(stream).await;
        }
        let arrival = Arrival {
            scheme: Scheme::Http,
            sni: None,
        };
        let (stream, read, http2) = tell_http2(stream, limits).await?;
        if http2 {
            self.serve_http2(stream, read, arrival).await
        } else {
            self.serve_http1(stream, read, arrival).await
        }
    }

    async fn serve_tls(self, stream: TcpStream) -> io::Result<()> {
        let mut name = None;
        let handshake = self.shake_hands(stream, &mut name);
        let error = match timeout(self.shared.limits.handshake_time, handshake).await {
            // TLS has checked that the name is one; what is left to refuse are addresses in disguise.
            Ok(Ok(stream)) => match name.as_deref().map(Host::parse).transpose() {
                Ok(sni) => return self.serve_secured(stream, sni).await,
                Err(invalid) => io::Error::new(io::ErrorKind::InvalidData, invalid),
            },
            Ok(Err(error)) => error,
            Err(_) => io::Error::new(io::ErrorKind::TimedOut, "the client took too long"),
        };
        if let Some(slot) = self.shared.log.reserve().await {
            slot.fill(Event::Handshake {
                server_name: name,
                error: error.to_string(),
            });
        }
        Err(error)
    }

    async fn shake_hands(
        &self,
        stream: TcpStream,
        name: &mut Option<String>,
    ) -> io::Result<server::TlsStream<Socket>> {
        let stream = Through::new(stream, ReadAhead::new(&self.shared.buffers));
        let hello = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        *name = hello.client_hello().server_name().map(str::to_owned);
        hello.into_stream(Arc::clone(&self.tls)).await
    }

    async fn serve_secured(
        self,
        stream: server::TlsStream<Socket>,
        sni: Option<Host>,
    ) -> io::Result<()> {
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let stream = Through::new(TlsStream::from(stream), Records);
        let arrival = Arrival {
            scheme: Scheme::Https,
            sni,
        };
        if http2 {
            self.serve_http2(stream, BytesMut::new(), arrival).await
        } else {
            self.serve_http1(stream, BytesMut::new(), arrival).await
        }
    }

    async fn serve_http1<S>(self, stream: S, read: BytesMut, arrival: Arrival) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let heads = Arc::<Heads>::default();
        let front = Front::new(stream, read, Arc::clone(&heads), &self.shared.limits);
        let mut builder = http1::Builder::new();
        builder
            .auto_date_header(false)
            .max_buf_size(self.shared.limits.header_bytes.max(BUFFER));
        if self.shared.limits.header_count > USUAL_FIELDS {
            builder.max_headers(self.shared.limits.header_count);
        }
        let client = Arc::new(Client {
            shared: self.shared,
            arrival,
            heads,
        });
        let service = service_fn(move |request| Arc::clone(&client).serve(request));
        let connection = builder.serve_connection(TokioIo::new(front), service);
        connection.with_upgrades().await.map_err(io::Error::other)
    }

    async fn serve_http2<S>(self, stream: S, read: BytesMut, arrival: Arrival) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let limits = &self.shared.limits;
        let streams = Arc::<Streams>::default();
        let tap = Through::new(stream, Tap::new(read, Arc::clone(&streams)));
        let mut builder = http2::Builder::new(self.shared.tasks.clone());
        builder
            .timer(TokioTimer::new())
            .auto_date_header(false)
            .enable_connect_protocol()
            .max_concurrent_streams(limits.streams)
            .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
            .max_send_buf_size(BUFFER)
            .max_frame_size(MAX_FRAME)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .keep_alive_interval(limits.idle_time)
            .keep_alive_timeout(PING_TIMEOUT);
        let shared = Arc::clone(&self.shared);
        let heads = Arc::<Heads>::default();
        let client = Arc::new(Client {
            shared,
            arrival: arrival.clone(),
            heads: Arc::clone(&heads),
        });
        let served = Arc::clone(&streams);
        let service = service_fn(move |request| {
            served.serve();
            // Each stream becomes a task, and tasks are moved about a few times while they are small.
            Box::pin(Arc::clone(&client).serve(request))
        });
        let mut connection = pin!(builder.serve_connection(TokioIo::new(tap), service));
        let mut before = 0;
        let mut closing = false;
        let ended = loop {
            tokio::select! {
                ended = connection.as_mut() => break ended,
                () = sleep(limits.idle_time) => {
                    let rested = streams.served() == before && !heads.is_busy();
                    // A client that was asked to leave and does not is left.
                    match (rested, closing) {
                        (true, true) => break Ok(()),
                        (true, false) => connection.as_mut().graceful_shutdown(),
                        (false, _) => before = streams.served(),
                    }
                    closing = rested;
                }
            }
        };
        for _ in 0..streams.unserved() {
            self.record_malformed(&arrival).await;
        }
        ended.map_err(io::Error::other)
    }

    /// A stream that the HTTP/2 library turned away without asking us.
    async fn record_malformed(&self, arrival: &Arrival) {
        let Some(slot) = self.shared.log.reserve().await else {
            return;
        };
        let place = match &arrival.sni {
            Some(host) => Place::Known {
                host: host.clone(),
                port: None,
            },
            None => Place::Raw(bytes::Bytes::new()),
        };
        let location = Location::Url {
            scheme: arrival.scheme,
            place,
            target: bytes::Bytes::new(),
        };
        let exchange = Exchange::new(slot, bytes::Bytes::from_static(b"?"), location, None);
        exchange.refuse(&Refusal::Malformed(MalformedHead::Http2));
    }
}

/// Reads until the first bytes tell whether the client speaks HTTP/2 without asking first.
async fn tell_http2<S>(mut stream: S, limits: &Limits) -> io::Result<(S, BytesMut, bool)>
where
    S: AsyncRead + Unpin,
{
    let mut read = BytesMut::new();
    loop {
        let length = read.len().min(PREFACE.len());
        if read[..length] != PREFACE[..length] {
            return Ok((stream, read, false));
        }
        if length == PREFACE.len() {
            return Ok((stream, read, true));
        }
        if timeout(limits.header_time, stream.read_buf(&mut read)).await?? == 0 {
            return Ok((stream, read, false));
        }
    }
}

/// First byte of a TLS connection.
const TLS_HANDSHAKE: u8 = 0x16;

/// First bytes of an HTTP/2 connection.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Fields that the HTTP library parses without a heap allocation.
const USUAL_FIELDS: usize = 100;

/// What one direction of one exchange may hold.
const BUFFER: usize = 64 * 1024;

/// Longest frame of an upload: four times what everybody may send.
const MAX_FRAME: u32 = 64 * 1024;

/// How much a workload may upload ahead of a slow upstream, on one stream and on one connection.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// A silent HTTP/2 client is asked whether it lives, and has this long to say so.
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// A listener that fails at once, for want of file descriptors, must not spin.
const ERROR_PAUSE: Duration = Duration::from_millis(100);
