//! The proxy under test, as a sandbox runs it: an allowlist of the usual size and both logs.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket},
    path::Path,
    sync::Arc,
};

use anyhow::Result;
use cordon_policy::{Allowlist, HostPattern, NamePattern};
use cordon_proxy::{
    CertificateAuthority, LogTarget, Proxy, Settings, Sockets, Upstream, read_ca_bundle,
};
use cordon_secrets::{MaskedSecret, Secret, SecretReplacements, prepare_secrets};

use crate::{HOST, tell};

/// Writes its root to `cordon.pem`, tells its port and serves until stdin ends. One worker, as it has
/// one core.
/// With `secrets`, the host is in the scope of one, so that every response is scrubbed.
pub(crate) fn serve(directory: &Path, origin: u16, names: u16, secrets: bool) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let authority = Arc::new(CertificateAuthority::generate()?);
        let root = if secrets { "secrets.pem" } else { "cordon.pem" };
        fs::write(directory.join(root), authority.certificate_pem())?;
        let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let sockets = Sockets {
            http: bind()?,
            https: bind()?,
            dns_tcp: bind()?,
            dns_udp: UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?,
        };
        let port = sockets.https.local_addr()?.port();
        let mut settings = Settings::new(Ipv4Addr::LOCALHOST, allowlist(origin)?);
        let logs = directory.join(if secrets { "secrets" } else { "cordon" });
        fs::create_dir_all(&logs)?;
        settings.log = LogTarget::in_directory(&logs);
        if secrets {
            settings.replacements = replacements()?;
        }
        settings.upstream = Upstream {
            dns_servers: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, names))],
            extra_roots: read_ca_bundle(&directory.join("origin.pem"))?,
            ..Upstream::default()
        };
        let proxy = Proxy::start(sockets, settings, authority).await?;
        tell(&port);
        tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()))
            .await??;
        proxy.stop().await;
        Ok(())
    })
}

/// One token for the host that is asked for.
fn replacements() -> Result<SecretReplacements> {
    let token = MaskedSecret::new(
        "TOKEN",
        Secret::new("ghp_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R"),
        vec![HostPattern::parse(HOST)?],
        vec![NamePattern::new("Authorization")],
    );
    Ok(prepare_secrets(vec![token], Vec::new())?.replacements)
}

/// The host that is asked for stands behind twenty others.
fn allowlist(origin: u16) -> Result<Allowlist> {
    let mut yaml = "domains:\n".to_owned();
    for number in 0..20 {
        yaml += &format!("- '*.host{number}.example'\n");
    }
    yaml += &format!("- {{host: {HOST}, ports: [{origin}], private_addresses: true}}\n");
    Ok(Allowlist::from_yaml(&yaml)?)
}
