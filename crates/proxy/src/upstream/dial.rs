//! Makes one connection: resolve, check each address, dial, and over TLS verify.

use std::{future::Future, io, net::SocketAddr, sync::Arc, time::Duration};

use cordon_policy::{Authority, Scheme};
use futures_util::{StreamExt, stream::FuturesUnordered};
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};
use tokio_rustls::TlsConnector;

use super::{Leg, Route, Trouble, resolve::Resolver, stream::Stream, trust::Trust};
use crate::{
    Error, HttpProxy, Upstream,
    ahead::{Buffers, ReadAhead, Records},
    through::Through,
};

/// Dials upstreams.
pub(super) struct Dialler {
    resolver: Resolver,
    trust: Trust,
    settings: Upstream,
    buffers: Buffers,
}

/// A connection that is ready for its first request.
pub(super) struct Dialled {
    pub(super) stream: Stream,
    /// The address that was checked and dialled. None behind a proxy, which dials by itself.
    pub(super) address: Option<SocketAddr>,
    pub(super) http2: bool,
}

impl Dialler {
    pub(super) fn new(settings: Upstream, buffers: Buffers) -> Result<Self, Error> {
        Ok(Self {
            resolver: Resolver::new(settings.dns_servers.clone(), settings.resolve_time),
            trust: Trust::new(settings.host_roots, &settings.extra_roots)?,
            settings,
            buffers,
        })
    }

    pub(super) async fn dial(&self, route: Route<'_>) -> Result<Dialled, Trouble> {
        let (stream, address) = match &self.settings.http_proxy {
            Some(proxy) if !proxy.bypass.covers(route.host, route.port) => {
                (self.through(proxy, route).await?, None)
            }
            Some(_) | None => {
                let (stream, address) = self.direct(route).await?;
                (stream, Some(address))
            }
        };
        match route.scheme {
            Scheme::Http => {
                let http2 = route.leg == Leg::Http2;
                Ok(Dialled {
                    stream: Stream::Plain(stream),
                    address,
                    http2,
                })
            }
            Scheme::Https => self.secure(route, stream, address).await,
        }
    }

    async fn direct(&self, route: Route<'_>) -> Result<(TcpStream, SocketAddr), Trouble> {
        let addresses = self.resolver.resolve(route.host).await?;
        let mut admitted = Vec::with_capacity(addresses.len());
        let mut refused = None;
        for ip in addresses {
            let address = SocketAddr::new(ip, route.port);
            match route.check(address) {
                Ok(()) => admitted.push(address),
                Err(trouble) => refused = refused.or(Some(trouble)),
            }
        }
        if let (true, Some(trouble)) = (admitted.is_empty(), refused) {
            return Err(trouble);
        }
        let connected = timeout(
            self.settings.connect_time,
            connect_any(admitted, TcpStream::connect),
        );
        self.connected(connected.await, route)
    }

    /// Asks the proxy for a tunnel. Names go to it as they are: it resolves them.
    async fn through(&self, proxy: &HttpProxy, route: Route<'_>) -> Result<TcpStream, Trouble> {
        if let Some(ip) = route.host.ip() {
            route.check(SocketAddr::new(ip, route.port))?;
        }
        let addresses = self.resolver.resolve(&proxy.authority.host).await?;
        let addresses = addresses
            .into_iter()
            .map(|ip| SocketAddr::new(ip, proxy.port()));
        let connected = timeout(
            self.settings.connect_time,
            connect_any(addresses.collect(), TcpStream::connect),
        );
        let (mut stream, _) = self.connected(connected.await, route)?;
        let asked = timeout(
            self.settings.connect_time,
            ask_for_tunnel(&mut stream, proxy, route),
        )
        .await;
        let refused = |reason: String| Trouble::Proxy {
            proxy: proxy.authority.to_string(),
            host: route.host.to_string(),
            reason,
        };
        match asked {
            Ok(Ok(200..=299)) => Ok(stream),
            Ok(Ok(status)) => Err(refused(format!("it answered {status}"))),
            Ok(Err(error)) => Err(refused(error.to_string())),
            Err(_) => Err(refused("it did not answer in time".to_owned())),
        }
    }

    fn connected<T>(
        &self,
        result: Result<io::Result<T>, tokio::time::error::Elapsed>,
        route: Route<'_>,
    ) -> Result<T, Trouble> {
        let (host, port) = (route.host.to_string(), route.port);
        match result {
            Ok(Ok(connected)) => Ok(connected),
            Ok(Err(source)) => Err(Trouble::Connect { host, port, source }),
            Err(_) => Err(Trouble::ConnectTimeout { host, port }),
        }
    }

    async fn secure(
        &self,
        route: Route<'_>,
        stream: TcpStream,
        address: Option<SocketAddr>,
    ) -> Result<Dialled, Trouble> {
        let host = || route.host.to_string();
        let failed = |reason: String| Trouble::Tls {
            host: host(),
            reason,
        };
        let configs = self
            .trust
            .configs()
            .await
            .map_err(|error| failed(error.to_string()))?;
        let config: &Arc<ClientConfig> = match route.leg {
            Leg::Auto | Leg::Http2 => &configs.any,
            Leg::Http1 => &configs.http1,
        };
        let name = match route.host.ip() {
            Some(ip) => ServerName::IpAddress(ip.into()),
            None => ServerName::try_from(route.host.as_str().to_owned())
                .map_err(|error| failed(error.to_string()))?,
        };
        let stream = Through::new(stream, ReadAhead::new(&self.buffers));
        let handshake = TlsConnector::from(Arc::clone(config)).connect(name, stream);
        match timeout(self.settings.tls_time, handshake).await {
            Ok(Ok(stream)) => {
                let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                let stream = Through::new(stream.into(), Records);
                Ok(Dialled {
                    stream: Stream::Tls(Box::new(stream)),
                    address,
                    http2,
                })
            }
            Ok(Err(error)) => Err(tls_trouble(host(), &error)),
            Err(_) => Err(Trouble::TlsTimeout { host: host() }),
        }
    }
}

fn tls_trouble(host: String, error: &io::Error) -> Trouble {
    let cause = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidCertificate(why)) => Trouble::Certificate {
            host,
            reason: why.to_string(),
        },
        Some(other) => Trouble::Tls {
            host,
            reason: other.to_string(),
        },
        None => Trouble::Tls {
            host,
            reason: error.to_string(),
        },
    }
}

/// Dials one address after the other, a quarter of a second apart, and takes the first that answers.
async fn connect_any<F>(
    addresses: Vec<SocketAddr>,
    connect: impl Fn(SocketAddr) -> F,
) -> io::Result<(TcpStream, SocketAddr)>
where
    F: Future<Output = io::Result<TcpStream>>,
{
    let mut waiting = addresses.into_iter().peekable();
    let mut attempts = FuturesUnordered::new();
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        if let Some(address) = waiting.next() {
            let attempt = connect(address);
            attempts.push(async move { (attempt.await, address) });
        }
        tokio::select! {
            done = attempts.next() => match done {
                Some((Ok(stream), address)) => {
                    // Requests are written whole; waiting to fill a packet only delays them.
                    stream.set_nodelay(true)?;
                    return Ok((stream, address));
                }
                Some((Err(error), _)) => failure = error,
                None => return Err(failure),
            },
            () = sleep(STAGGER), if waiting.peek().is_some() => {}
        }
    }
}

/// Returns the status of the proxy's answer.
async fn ask_for_tunnel(
    stream: &mut TcpStream,
    proxy: &HttpProxy,
    route: Route<'_>,
) -> io::Result<u16> {
    let place = Authority {
        host: route.host.clone(),
        port: Some(route.port),
    };
    let mut head = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n").into_bytes();
    if let Some(authorization) = &proxy.authorization {
        head.extend(b"Proxy-Authorization: ");
        head.extend(authorization.as_bytes());
        head.extend(b"\r\n");
    }
    head.extend(b"\r\n");
    stream.write_all(&head).await?;

    // Byte by byte: what follows the head belongs to the upstream.
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() == MAX_TUNNEL_HEAD {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "its answer is too long",
            ));
        }
        answer.push(stream.read_u8().await?);
    }
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    let parsed = response.parse(&answer);
    match (parsed, response.code) {
        (Ok(_), Some(code)) => Ok(code),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "its answer is not HTTP",
        )),
    }
}

/// Long enough for a working address to answer, short enough not to be noticed.
const STAGGER: Duration = Duration::from_millis(250);

/// A proxy's answer to CONNECT is a status line and a few fields.
const MAX_TUNNEL_HEAD: usize = 16 * 1024;
