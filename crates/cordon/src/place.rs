//! The private directory of one run, and the files in it that its container sees.

use std::{
    fs::{self, DirBuilder},
    net::Ipv4Addr,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
};

use cordon_door::Door;
use cordon_proxy::CertificateAuthority;

use crate::{SandboxError, owner::Owner, trust};

/// A run's directory; it is removed when this is dropped.
///
/// Its name is the container's name and holds its owner, so that whoever finds it knows whether that
/// owner still lives.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    name: String,
}

impl Place {
    pub(crate) fn create(
        runtime: &Path,
        owner: &Owner,
        engine: &Path,
    ) -> Result<Self, SandboxError> {
        let mut bytes = [0; 4];
        getrandom::fill(&mut bytes).map_err(|_| SandboxError::Randomness)?;
        let name = format!("{PREFIX}{owner}-{:08x}", u32::from_be_bytes(bytes));
        let place = Self {
            path: runtime.join(&name),
            name,
        };
        DirBuilder::new()
            .mode(0o700)
            .create(&place.path)
            .map_err(|source| SandboxError::Write {
                path: place.path.clone(),
                source,
            })?;
        // Whoever cleans up after us must know which engine to ask.
        place.write(ENGINE, engine.as_os_str().as_encoded_bytes())?;
        Ok(place)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The name of the container that belongs to it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Says that a network and a proxy container belong to it, for whoever cleans up after us.
    pub(crate) fn mark_network(&self) -> Result<(), SandboxError> {
        self.write(NETWORK, b"")
    }

    /// Whether they do.
    pub(crate) fn has_network(&self) -> bool {
        self.path.join(NETWORK).exists()
    }

    /// Opens the door, and puts beside it what the container needs to find its proxy, if it has one, and
    /// to trust it.
    pub(crate) fn furnish(
        &self,
        authority: &CertificateAuthority,
        proxy: Option<Ipv4Addr>,
    ) -> Result<Door, SandboxError> {
        let door = Door::open(&self.path).map_err(|source| SandboxError::Door {
            source,
            engine: String::new(),
        })?;
        for (name, content) in files(authority, proxy) {
            match name {
                RESOLVER | HOSTS => self.write(name, &content)?,
                _ => self.write(&format!("door/{name}"), &content)?,
            }
        }
        Ok(door)
    }

    /// Puts beside the door what programs need that a build uses and that look elsewhere.
    pub(crate) fn furnish_build(&self) -> Result<(), SandboxError> {
        for (file, _, content) in trust::BUILD_SETTINGS {
            self.write(&format!("door/{file}"), content.as_bytes())?;
        }
        Ok(())
    }

    /// Writes a file that any user of the container may read; the directory keeps others away.
    fn write(&self, name: &str, content: &[u8]) -> Result<(), SandboxError> {
        let path = self.path.join(name);
        let written = fs::write(&path, content)
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o644)));
        written.map_err(|source| SandboxError::Write { path, source })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What cannot be removed now is found by the next start, which knows its owner is dead.
        drop(fs::remove_dir_all(&self.path));
    }
}

/// What a container needs to find its proxy, if it has one, and to trust it, by name.
pub(crate) fn files(
    authority: &CertificateAuthority,
    proxy: Option<Ipv4Addr>,
) -> [(&'static str, Vec<u8>); 4] {
    let resolver = proxy.map(|address| format!("nameserver {address}\n"));
    let certificate = authority.certificate_pem();
    let store = trust::key_store(authority.certificate_der());
    [
        (RESOLVER, resolver.unwrap_or_default().into_bytes()),
        (HOSTS, OWN_NAMES.into()),
        (trust::CERTIFICATE, certificate.as_bytes().to_vec()),
        (trust::KEY_STORE, store),
    ]
}

/// The name server, among the files of a run.
pub(crate) const RESOLVER: &str = "resolv.conf";

/// The names that need none, among the files of a run.
pub(crate) const HOSTS: &str = "hosts";

/// What every run's directory and container is called.
pub(crate) const PREFIX: &str = "cordon-";

/// Which engine has the container, among the files of a run.
pub(crate) const ENGINE: &str = "engine";

/// There when a network belongs to a run.
pub(crate) const NETWORK: &str = "network";

const OWN_NAMES: &str = "127.0.0.1 localhost\n::1 localhost\n127.0.0.1 cordon\n";
