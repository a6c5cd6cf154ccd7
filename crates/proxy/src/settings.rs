//! What a proxy is told before it starts.

mod http_proxy;

use std::{
    fmt, fs,
    net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket},
    path::Path,
    time::Duration,
};

use cordon_policy::Allowlist;
use cordon_secrets::SecretReplacements;
use rustls::pki_types::{CertificateDer, pem, pem::PemObject};

use crate::{Error, Limits, LogTarget, OnRecord};

pub use http_proxy::{Bypass, HttpProxy};

/// The listening sockets of one sandbox, bound and owned.
#[derive(Debug)]
pub struct Sockets {
    /// Requests in the clear; TLS is recognised here too.
    pub http: TcpListener,
    /// Requests over TLS; plain ones are recognised here too.
    pub https: TcpListener,
    /// DNS over TCP.
    pub dns_tcp: TcpListener,
    /// DNS over UDP.
    pub dns_udp: UdpSocket,
}

/// How a proxy serves.
pub struct Settings {
    /// The address that every name has inside the sandbox.
    pub address: Ipv4Addr,
    /// What may be reached; can be replaced later.
    pub allowlist: Allowlist,
    /// Which surrogates stand for which secrets; can be replaced later.
    pub replacements: SecretReplacements,
    /// How the outside is reached.
    pub upstream: Upstream,
    /// Bounds on everything the workload can send.
    pub limits: Limits,
    /// Where records are written.
    pub log: LogTarget,
    /// Called with every record.
    pub on_record: Option<OnRecord>,
}

impl Settings {
    /// Serves names at `address` under an allowlist, with the defaults for everything else.
    pub fn new(address: Ipv4Addr, allowlist: Allowlist) -> Self {
        Self {
            address,
            allowlist,
            replacements: SecretReplacements::default(),
            upstream: Upstream::default(),
            limits: Limits::default(),
            log: LogTarget::default(),
            on_record: None,
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("address", &self.address)
            .field("allowlist", &self.allowlist)
            .field("replacements", &self.replacements)
            .field("upstream", &self.upstream)
            .field("limits", &self.limits)
            .field("log", &self.log)
            .finish_non_exhaustive()
    }
}

/// How the proxy reaches the outside.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// DNS servers to ask; the host's own where this is empty.
    pub dns_servers: Vec<SocketAddr>,
    /// Whether the machine's own roots are trusted.
    pub host_roots: HostRoots,
    /// Roots to trust beside the host's own.
    pub extra_roots: Vec<CertificateDer<'static>>,
    /// A proxy that connections go through, but for the hosts that it bypasses.
    pub http_proxy: Option<HttpProxy>,
    /// For a name to resolve.
    pub resolve_time: Duration,
    /// For a connection to one of the addresses.
    pub connect_time: Duration,
    /// For a TLS handshake.
    pub tls_time: Duration,
    /// From the request to the head of the response. Models think for minutes.
    pub first_byte_time: Duration,
    /// Between two pieces of a response, and of a tunnel.
    pub idle_time: Duration,
    /// How long an unused connection is kept.
    pub keep_alive_time: Duration,
}

impl Default for Upstream {
    fn default() -> Self {
        Self {
            dns_servers: Vec::new(),
            host_roots: HostRoots::default(),
            extra_roots: Vec::new(),
            http_proxy: None,
            resolve_time: Duration::from_secs(10),
            connect_time: Duration::from_secs(10),
            tls_time: Duration::from_secs(10),
            first_byte_time: Duration::from_secs(600),
            idle_time: Duration::from_secs(600),
            keep_alive_time: Duration::from_secs(60),
        }
    }
}

/// Whether the roots of the machine that the proxy runs on are trusted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum HostRoots {
    /// They are, or Mozilla's where the machine has none.
    #[default]
    Trusted,
    /// Only those that are given.
    Ignored,
}

/// Reads the certificates of a PEM file, for [`Upstream::extra_roots`].
pub fn read_ca_bundle(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let text = fs::read(path).map_err(|source| Error::BundleUnreadable {
        path: path.to_owned(),
        source,
    })?;
    let certificates: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(&text).collect();
    let certificates = certificates.map_err(|source| Error::BundleNotPem {
        path: path.to_owned(),
        source,
    })?;
    if certificates.is_empty() {
        return Err(Error::BundleEmpty {
            path: path.to_owned(),
        });
    }
    Ok(certificates)
}
