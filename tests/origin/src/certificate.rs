//! The stand-in's own certificate authority.

use std::{fs, path::Path, sync::Arc};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tokio_rustls::rustls::{ServerConfig, pki_types::PrivatePkcs8KeyDer};

/// A certificate with its key, and the authority it comes from.
pub(crate) struct Issued {
    authority: rcgen::Certificate,
    leaf: rcgen::Certificate,
    key: KeyPair,
}

/// Issues a certificate for the names.
pub(crate) fn issue(names: &[&str]) -> Issued {
    let authority_key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
        .distinguished_name
        .push(DnType::CommonName, "the world outside");
    let authority = params.self_signed(&authority_key).unwrap();
    let issuer = Issuer::new(params, authority_key);

    let key = KeyPair::generate().unwrap();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let leaf = CertificateParams::new(names)
        .unwrap()
        .signed_by(&key, &issuer)
        .unwrap();
    Issued {
        authority,
        leaf,
        key,
    }
}

impl Issued {
    /// Writes all three as PEM.
    pub(crate) fn write(&self, authority: &Path, leaf: &Path, key: &Path) {
        fs::write(authority, self.authority.pem()).unwrap();
        fs::write(leaf, self.leaf.pem()).unwrap();
        fs::write(key, self.key.serialize_pem()).unwrap();
    }

    pub(crate) fn server_config(&self) -> Arc<ServerConfig> {
        let mut config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(
                vec![self.leaf.der().clone()],
                PrivatePkcs8KeyDer::from(self.key.serialize_der()).into(),
            )
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Arc::new(config)
    }
}
