//! Whom the proxy believes: the host's roots and those that the caller adds.

use std::sync::{Arc, LazyLock};

use rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs, pki_types::CertificateDer};
use tokio::sync::OnceCell;

use crate::{Error, HostRoots};

/// Client configurations, made when the first upstream asks for TLS.
pub(super) struct Trust {
    host: HostRoots,
    extra: RootCertStore,
    configs: OnceCell<Configs>,
}

/// One configuration for each set of protocols to offer.
pub(super) struct Configs {
    pub(super) any: Arc<ClientConfig>,
    pub(super) http1: Arc<ClientConfig>,
}

impl Trust {
    pub(super) fn new(host: HostRoots, extra: &[CertificateDer<'static>]) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        for (index, certificate) in extra.iter().enumerate() {
            roots
                .add(certificate.clone())
                .map_err(|source| Error::BadRoot { index, source })?;
        }
        Ok(Self {
            host,
            extra: roots,
            configs: OnceCell::new(),
        })
    }

    pub(super) async fn configs(&self) -> Result<&Configs, rustls::Error> {
        self.configs
            .get_or_try_init(|| async {
                // Reading the host's roots takes milliseconds of disk and parsing.
                let mut roots = match self.host {
                    HostRoots::Trusted => tokio::task::spawn_blocking(|| HOST_ROOTS.clone())
                        .await
                        .map_err(|error| rustls::Error::General(error.to_string()))?,
                    HostRoots::Ignored => RootCertStore::empty(),
                };
                roots.roots.extend(self.extra.roots.iter().cloned());
                Configs::new(roots)
            })
            .await
    }
}

impl Configs {
    fn new(roots: RootCertStore) -> Result<Self, rustls::Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut any = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut http1 = any.clone();
        any.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        http1.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            any: Arc::new(any),
            http1: Arc::new(http1),
        })
    }
}

/// The roots of the machine, or Mozilla's where it has none, as in an image from scratch.
static HOST_ROOTS: LazyLock<RootCertStore> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    roots
});
