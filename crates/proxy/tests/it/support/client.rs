//! A client over TLS that keeps its connection and tells the pieces of a response apart.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tokio::{net::TcpStream, time::Instant};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::Bench;

pub(crate) enum Client {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// A whole response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// When each piece of the body came.
    pub(crate) times: Vec<Duration>,
    pub(crate) trailers: HeaderMap,
    /// Whether the body broke off.
    pub(crate) broken: bool,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The refusal's word for what is wrong.
    pub(crate) fn code(&self) -> String {
        let body: serde_json::Value = serde_json::from_slice(&self.body).unwrap();
        body["code"].as_str().unwrap().to_owned()
    }
}

impl Client {
    pub(crate) async fn connect(bench: &Bench, host: &str, http2: bool) -> Self {
        let stream =
            TokioIo::new(secured(bench, host, if http2 { b"h2" } else { b"http/1.1" }).await);
        if http2 {
            let (sender, connection) = http2::Builder::new(TokioExecutor::new())
                .handshake(stream)
                .await
                .unwrap();
            tokio::spawn(connection);
            return Self::Http2(sender);
        }
        let (sender, connection) = http1::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        Self::Http1(sender)
    }

    /// Sends a request to an absolute URL.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        url: &str,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut request = Request::builder().method(method);
        for &(name, value) in fields {
            request = request.header(name, value);
        }
        let mut request = request
            .uri(url)
            .body(Full::new(Bytes::copy_from_slice(body)))
            .unwrap();
        let begun = Instant::now();
        let response = match self {
            Self::Http1(sender) => {
                let host = request.uri().authority().unwrap().as_str().parse().unwrap();
                request.headers_mut().insert(header::HOST, host);
                *request.uri_mut() = request.uri().path_and_query().unwrap().clone().into();
                sender.ready().await.unwrap();
                sender.send_request(request).await.unwrap()
            }
            Self::Http2(sender) => sender.send_request(request).await.unwrap(),
        };
        let (head, mut incoming) = response.into_parts();
        let mut answer = Answer {
            status: head.status,
            headers: head.headers,
            body: Vec::new(),
            times: Vec::new(),
            trailers: HeaderMap::new(),
            broken: false,
        };
        while let Some(frame) = incoming.frame().await {
            match frame.map(hyper::body::Frame::into_data) {
                Ok(Ok(data)) if data.is_empty() => {}
                Ok(Ok(data)) => {
                    answer.times.push(begun.elapsed());
                    answer.body.extend_from_slice(&data);
                }
                Ok(Err(frame)) => answer.trailers = frame.into_trailers().unwrap(),
                Err(_) => {
                    answer.broken = true;
                    break;
                }
            }
        }
        answer
    }
}

/// A TLS connection to the proxy that believes in its authority.
pub(crate) async fn secured(bench: &Bench, host: &str, protocol: &[u8]) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(bench.ca()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = TcpStream::connect(bench.https).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let name = ServerName::try_from(host.to_owned()).unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .unwrap()
}
