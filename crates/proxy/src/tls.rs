//! TLS towards the workload: a leaf for every name it asks for.

use std::{net::Ipv4Addr, sync::Arc};

use moka::sync::Cache;
use rustls::{
    ServerConfig,
    crypto::{CryptoProvider, aws_lc_rs},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

use crate::{CertificateAuthority, Error, ca::LeafName};

/// Accepts handshakes for any name. A client that names none gets a leaf for the proxy's address;
/// what it may reach is then for its Host header alone to say.
pub(crate) fn config(
    authority: Arc<CertificateAuthority>,
    address: Ipv4Addr,
    leaves: u64,
) -> Result<Arc<ServerConfig>, Error> {
    let resolver = Leaves {
        authority,
        address,
        cache: Cache::new(leaves),
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(local_provider()))
        .with_safe_default_protocol_versions()
        .map_err(Error::Tls)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(resolver));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    // One resumption is all that clients use, and each ticket is a write of its own.
    config.send_tls13_tickets = 1;
    Ok(Arc::new(config))
}

/// This leg never leaves the machine: the exchange that costs least comes first.
fn local_provider() -> CryptoProvider {
    CryptoProvider {
        kx_groups: vec![
            aws_lc_rs::kx_group::X25519,
            aws_lc_rs::kx_group::SECP256R1,
            aws_lc_rs::kx_group::SECP384R1,
            aws_lc_rs::kx_group::X25519MLKEM768,
        ],
        ..aws_lc_rs::default_provider()
    }
}

struct Leaves {
    authority: Arc<CertificateAuthority>,
    address: Ipv4Addr,
    cache: Cache<LeafName, Arc<CertifiedKey>>,
}

impl ResolvesServerCert for Leaves {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = match hello.server_name() {
            Some(name) => LeafName::Dns(name.to_owned()),
            None => LeafName::Address(self.address.into()),
        };
        let minted = self
            .cache
            .try_get_with_by_ref(&name, || self.authority.leaf(&name).map(Arc::new));
        match minted {
            Ok(leaf) => Some(leaf),
            Err(error) => {
                tracing::warn!(?name, %error, "cannot make a leaf certificate");
                None
            }
        }
    }
}

impl std::fmt::Debug for Leaves {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Leaves").finish_non_exhaustive()
    }
}
