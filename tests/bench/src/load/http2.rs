//! Loads over HTTP/2.

use std::{
    convert::Infallible,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use bytes::Bytes;
use futures_util::{future::try_join_all, stream};
use http::Request;
use http_body_util::{BodyExt, Empty, StreamBody, combinators::BoxBody};
use hyper::{
    body::Frame,
    client::conn::http2::{Builder, SendRequest},
};
use hyper_util::rt::{TokioExecutor, TokioIo};

use super::{Place, Report, Times, bulk};

type Body = BoxBody<Bytes, Infallible>;

/// One request after the other on each of so many streams of so many connections.
pub(super) async fn keep_alive(
    place: &Place,
    connections: usize,
    streams: usize,
    time: Duration,
) -> Result<Report> {
    let mut clients = Vec::new();
    for _ in 0..connections {
        let mut client = Client::dial(place).await?;
        client.get("/").await?;
        clients.extend((0..streams).map(|_| client.clone()));
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

/// Receives one long body.
pub(super) async fn download(place: &Place, bytes: u64) -> Result<Report> {
    let mut client = Client::dial(place).await?;
    let start = Instant::now();
    let received = client.get(&format!("/bytes?{bytes}")).await?;
    ensure!(received == bytes, "{received} bytes came");
    Ok(bulk(bytes, start))
}

/// Sends one long body.
pub(super) async fn upload(place: &Place, bytes: u64) -> Result<Report> {
    let mut client = Client::dial(place).await?;
    let block = Bytes::from(vec![b'x'; 64 * 1024]);
    let frames = stream::unfold(bytes, move |left| {
        let now = block.slice(..block.len().min(usize::try_from(left).unwrap_or(usize::MAX)));
        let left = left - now.len() as u64;
        async move { (!now.is_empty()).then(|| (Ok(Frame::data(now)), left)) }
    });
    let start = Instant::now();
    client
        .send("POST", "/sink", BodyExt::boxed(StreamBody::new(frames)))
        .await?;
    Ok(bulk(bytes, start))
}

#[derive(Clone)]
struct Client {
    sender: SendRequest<Body>,
    authority: String,
}

impl Client {
    async fn dial(place: &Place) -> Result<Self> {
        let stream = place.dial(&place.tls_h2).await?;
        let (sender, connection) = Builder::new(TokioExecutor::new())
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .handshake(TokioIo::new(stream))
            .await?;
        // How it ends shows in the requests.
        tokio::spawn(async move { connection.await.ok() });
        Ok(Self {
            sender,
            authority: place.authority.clone(),
        })
    }

    async fn get(&mut self, target: &str) -> Result<u64> {
        self.send("GET", target, Empty::new().boxed()).await
    }

    /// Returns the length of the response.
    async fn send(&mut self, method: &str, target: &str, body: Body) -> Result<u64> {
        let uri = format!("https://{}{target}", self.authority);
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header("user-agent", "bench")
            .header("accept", "*/*")
            .body(body)?;
        let mut response = self.sender.send_request(request).await?;
        ensure!(
            response.status() == 200,
            "the answer was {}",
            response.status()
        );
        let mut length = 0;
        while let Some(frame) = response.body_mut().frame().await {
            length += frame?.data_ref().map_or(0, Bytes::len) as u64;
        }
        Ok(length)
    }
}

/// Room for downloads, so that it is not the client that slows them.
const WINDOW: u32 = 4 * 1024 * 1024;
