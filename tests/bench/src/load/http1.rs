//! Loads over HTTP/1.1, with a client that does as little as it can.

use std::{
    io::Read,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, bail, ensure};
use bytes::{Buf, BytesMut};
use futures_util::future::try_join_all;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::client::TlsStream;

use super::{Place, Report, Times, bulk};
use crate::tell;

/// One request after the other on each of so many connections.
pub(super) async fn keep_alive(
    place: &Place,
    connections: usize,
    time: Duration,
) -> Result<Report> {
    let mut clients = Vec::new();
    for _ in 0..connections {
        let mut client = Client::dial(place).await?;
        client.get("/").await?;
        clients.push(client);
    }
    let start = Instant::now();
    let loads = clients.into_iter().map(|mut client| async move {
        let mut times = Times::default();
        while start.elapsed() < time {
            let sent = Instant::now();
            client.get("/").await?;
            times.add(sent.elapsed());
        }
        anyhow::Ok(times)
    });
    let times = try_join_all(loads).await?;
    Ok(Times(times.into_iter().flat_map(|times| times.0).collect()).report(start))
}

/// A new connection for each request, so many at a time.
pub(super) async fn connect(place: &Place, lanes: usize, time: Duration) -> Result<Report> {
    let start = Instant::now();
    let loads = (0..lanes).map(|_| async move {
        let mut times = Times::default();
        while start.elapsed() < time {
            let begun = Instant::now();
            Client::dial(place).await?.get("/").await?;
            times.add(begun.elapsed());
        }
        anyhow::Ok(times)
    });
    let times = try_join_all(loads).await?;
    Ok(Times(times.into_iter().flat_map(|times| times.0).collect()).report(start))
}

/// Receives one long body.
pub(super) async fn download(place: &Place, bytes: u64) -> Result<Report> {
    let mut client = Client::dial(place).await?;
    let start = Instant::now();
    client.ask("GET", &format!("/bytes?{bytes}"), "").await?;
    client.receive().await?;
    Ok(bulk(bytes, start))
}

/// Sends one long body.
pub(super) async fn upload(place: &Place, bytes: u64) -> Result<Report> {
    let mut client = Client::dial(place).await?;
    let block = vec![b'x'; 64 * 1024];
    let start = Instant::now();
    client
        .ask("POST", "/sink", &format!("content-length: {bytes}\r\n"))
        .await?;
    let mut left = bytes;
    while left > 0 {
        let now = block.len().min(usize::try_from(left)?);
        client.stream.write_all(&block[..now]).await?;
        left -= now as u64;
    }
    client.stream.flush().await?;
    client.receive().await?;
    Ok(bulk(bytes, start))
}

/// So many events, one after the other, and how old each was when it arrived.
pub(super) async fn events(place: &Place, count: u64) -> Result<Report> {
    let mut client = Client::dial(place).await?;
    let (start, mut times) = (Instant::now(), Times::default());
    for _ in 0..count {
        client.ask("GET", "/event", "").await?;
        times.add(client.event_age().await?);
    }
    Ok(times.report(start))
}

/// Opens connections, uses each once, tells that it has them, and keeps them until stdin ends.
pub(super) async fn hold(place: &Place, connections: u64) -> Result<()> {
    let mut clients = Vec::new();
    for _ in 0..connections {
        let mut client = Client::dial(place).await?;
        client.get("/").await?;
        clients.push(client);
    }
    tell(&connections);
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

struct Client {
    stream: TlsStream<TcpStream>,
    authority: String,
    buffer: BytesMut,
}

impl Client {
    async fn dial(place: &Place) -> Result<Self> {
        let stream = place.dial(&place.tls).await?;
        let buffer = BytesMut::with_capacity(256 * 1024);
        Ok(Self {
            stream,
            authority: place.authority.clone(),
            buffer,
        })
    }

    async fn get(&mut self, target: &str) -> Result<()> {
        self.ask("GET", target, "").await?;
        self.receive().await
    }

    async fn ask(&mut self, method: &str, target: &str, fields: &str) -> Result<()> {
        let authority = &self.authority;
        let head = format!(
            "{method} {target} HTTP/1.1\r\nhost: {authority}\r\nuser-agent: bench\r\naccept: */*\r\n{fields}\r\n"
        );
        self.stream.write_all(head.as_bytes()).await?;
        Ok(self.stream.flush().await?)
    }

    /// Takes a whole response with a length.
    async fn receive(&mut self) -> Result<()> {
        let mut left = self.head().await?.context("a response without a length")?;
        loop {
            let now = self.buffer.len().min(usize::try_from(left)?);
            self.buffer.advance(now);
            left -= now as u64;
            if left == 0 {
                return Ok(());
            }
            self.more().await?;
        }
    }

    /// Takes a chunked response with one event; returns how old the event was when it came.
    async fn event_age(&mut self) -> Result<Duration> {
        ensure!(
            self.head().await?.is_none(),
            "an event stream with a length"
        );
        let sent = loop {
            match event_time(&self.buffer) {
                Some(sent) => break sent,
                None => self.more().await?,
            }
        };
        let age = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)?
            .saturating_sub(sent);
        while !self.buffer.ends_with(b"\r\n0\r\n\r\n") {
            self.more().await?;
        }
        self.buffer.clear();
        Ok(age)
    }

    /// Takes the head of a response; returns the length of the body if it says so.
    async fn head(&mut self) -> Result<Option<u64>> {
        loop {
            let mut fields = [httparse::EMPTY_HEADER; 32];
            let mut response = httparse::Response::new(&mut fields);
            if let httparse::Status::Complete(length) = response.parse(&self.buffer)? {
                ensure!(
                    response.code == Some(200),
                    "the answer was {:?}",
                    response.code
                );
                let field = response
                    .headers
                    .iter()
                    .find(|field| field.name.eq_ignore_ascii_case("content-length"));
                let body = field.map(|field| {
                    str::from_utf8(field.value)?
                        .parse::<u64>()
                        .context("a length")
                });
                let body = body.transpose()?;
                self.buffer.advance(length);
                return Ok(body);
            }
            self.more().await?;
        }
    }

    async fn more(&mut self) -> Result<()> {
        self.buffer.reserve(64 * 1024);
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            bail!("the connection ended in the middle");
        }
        Ok(())
    }
}

fn event_time(bytes: &[u8]) -> Option<Duration> {
    let text = str::from_utf8(bytes).ok()?;
    let (_, rest) = text.split_once("data: ")?;
    let (number, _) = rest.split_once("\n\n")?;
    Some(Duration::from_nanos(number.parse().ok()?))
}
