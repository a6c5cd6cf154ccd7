//! A client that sends bytes as they are and reads one answer.

use std::{net::SocketAddr, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName},
};
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    sync::Notify,
};
use tokio_rustls::TlsConnector;

use super::upstream::FIRST_EVENT;
use crate::Unreadable;

/// An answer.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Response {
    /// The body, where it is JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// All that a client learns.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) response: Option<Response>,
    pub(super) alpn: Option<String>,
}

/// One request and what it takes to send it.
pub(super) struct Client<'a> {
    /// What to send; nothing where only the handshake matters.
    pub(super) bytes: &'a [u8],
    /// The authority that the proxy's certificates come from.
    pub(super) root: &'a [u8],
    /// Tells the upstream that the first of its events has come.
    pub(super) events: &'a Notify,
}

impl Client<'_> {
    pub(super) async fn plain(&self, to: SocketAddr) -> Result<Answer, Unreadable> {
        self.talk(TcpStream::connect(to).await?).await
    }

    pub(super) async fn tls(
        &self,
        to: SocketAddr,
        name: Option<&str>,
    ) -> Result<Answer, Unreadable> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(self.root.to_vec()))?;
        let mut config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.enable_sni = name.is_some();
        if self.bytes.is_empty() {
            config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        }
        // Without a name the proxy shows the certificate of its own address.
        let name = name.map_or_else(|| to.ip().to_string(), str::to_owned);
        let name = ServerName::try_from(name).map_err(|_| Unreadable::Shape("host"))?;
        let stream = TcpStream::connect(to).await?;
        let stream = TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await?;
        if self.bytes.is_empty() {
            let alpn = stream.get_ref().1.alpn_protocol();
            let alpn = alpn.map(|name| String::from_utf8_lossy(name).into_owned());
            return Ok(Answer {
                response: None,
                alpn,
            });
        }
        self.talk(stream).await
    }

    async fn talk(
        &self,
        mut stream: impl AsyncRead + AsyncWrite + Unpin,
    ) -> Result<Answer, Unreadable> {
        stream.write_all(self.bytes).await?;
        let mut answer = Vec::new();
        let mut piece = [0; 4096];
        loop {
            if answer
                .windows(FIRST_EVENT.len())
                .any(|window| window == FIRST_EVENT)
            {
                self.events.notify_one();
            }
            if let Some(response) = whole(&answer) {
                let response = Some(response);
                return Ok(Answer {
                    response,
                    alpn: None,
                });
            }
            match stream.read(&mut piece).await {
                Ok(0) | Err(_) => return Ok(Answer::default()),
                Ok(length) => answer.extend_from_slice(&piece[..length]),
            }
        }
    }
}

/// The answer, once all of it is there: it tells its length, or ends with the last chunk.
fn whole(answer: &[u8]) -> Option<Response> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let body = if head.contains("transfer-encoding: chunked") {
        answer
            .ends_with(b"\r\n0\r\n\r\n")
            .then(|| answer[end..].to_vec())?
    } else {
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length:"));
        let length = length.map_or(Some(0), |length| length.trim().parse().ok())?;
        answer.get(end..end + length)?.to_vec()
    };
    Some(Response { status, body })
}
