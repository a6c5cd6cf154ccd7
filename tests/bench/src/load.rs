//! The client: one kind of load, one line of JSON about how it went.

mod http1;
mod http2;

use std::{
    fs,
    net::Ipv4Addr,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustls::{
    ClientConfig, RootCertStore,
    client::Resumption,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::{HOST, tell};

/// What a load was like.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Report {
    /// Requests, connections or bytes.
    pub(crate) count: u64,
    pub(crate) seconds: f64,
    /// Of one of them, in microseconds, where they were timed.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

/// Arguments: what to do, the port to connect to, the port that the request names, the root to trust,
/// and the amount (seconds, bytes or connections).
pub(crate) async fn load(arguments: &[&str]) -> Result<()> {
    let [kind, port, origin, root, amount] = arguments else {
        bail!("five arguments, please")
    };
    let place = Place::new(port.parse()?, origin.parse()?, Path::new(root))?;
    let amount: u64 = amount.parse()?;
    let time = Duration::from_secs(amount);
    let report = match *kind {
        "h1" => http1::keep_alive(&place, 32, time).await?,
        "h2" => http2::keep_alive(&place, 4, 8, time).await?,
        "alone" => http1::keep_alive(&place, 1, time).await?,
        "connect" => http1::connect(&place, 8, time).await?,
        "down-h1" => http1::download(&place, amount).await?,
        "down-h2" => http2::download(&place, amount).await?,
        "up-h1" => http1::upload(&place, amount).await?,
        "up-h2" => http2::upload(&place, amount).await?,
        "event" => http1::events(&place, amount).await?,
        "hold" => return http1::hold(&place, amount).await,
        other => bail!("no load is called {other}"),
    };
    tell(&serde_json::to_string(&report)?);
    Ok(())
}

/// Where requests go and what they name.
struct Place {
    port: u16,
    authority: String,
    tls: TlsConnector,
    tls_h2: TlsConnector,
}

impl Place {
    fn new(port: u16, origin: u16, root: &Path) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        let pem = fs::read(root).with_context(|| root.display().to_string())?;
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            roots.add(certificate?)?;
        }
        let connector = |protocol: &str| {
            let mut config = ClientConfig::builder()
                .with_root_certificates(roots.clone())
                .with_no_client_auth();
            config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
            // Each connection is to be a whole new one.
            config.resumption = Resumption::disabled();
            TlsConnector::from(Arc::new(config))
        };
        Ok(Self {
            port,
            authority: format!("{HOST}:{origin}"),
            tls: connector("http/1.1"),
            tls_h2: connector("h2"),
        })
    }

    async fn dial(&self, tls: &TlsConnector) -> Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await?;
        stream.set_nodelay(true)?;
        Ok(tls.connect(ServerName::try_from(HOST)?, stream).await?)
    }
}

/// How long each took, in microseconds.
#[derive(Debug, Default)]
struct Times(Vec<f64>);

impl Times {
    fn add(&mut self, time: Duration) {
        self.0.push(time.as_secs_f64() * 1e6);
    }

    fn report(mut self, since: Instant) -> Report {
        self.0.sort_by(f64::total_cmp);
        let at = |part: usize| {
            self.0
                .get(self.0.len() * part / 100)
                .copied()
                .unwrap_or(f64::NAN)
        };
        Report {
            count: self.0.len() as u64,
            seconds: since.elapsed().as_secs_f64(),
            p50: at(50),
            p99: at(99),
        }
    }
}

fn bulk(count: u64, since: Instant) -> Report {
    Report {
        count,
        seconds: since.elapsed().as_secs_f64(),
        ..Report::default()
    }
}
