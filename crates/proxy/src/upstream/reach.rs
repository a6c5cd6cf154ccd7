//! Whether the outside could be reached, found out before somebody needs it.
//!
//! Only the name servers are asked, for a name that nobody has; no host is dialled.

use cordon_policy::Host;

use super::{Trouble, resolve::Resolver, trust::Trust};
use crate::{Error, Upstream};

/// Whom a proxy of those settings believes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Roots {
    /// How many certificates the machine itself has.
    pub of_the_machine: usize,
    /// How many were added.
    pub added: usize,
}

impl Upstream {
    /// Whether a name server answers. That there is no such name is an answer; with a proxy behind this
    /// one, nobody is asked.
    ///
    /// # Errors
    ///
    /// When none answers in time, or the machine's settings cannot be used.
    pub async fn name_server_answers(&self) -> Result<(), Error> {
        if self.http_proxy.is_some() {
            return Ok(());
        }
        let resolver = Resolver::new(self.dns_servers.clone(), self.resolve_time);
        let Ok(nobody) = Host::parse(NOBODY) else {
            return Ok(());
        };
        match resolver.resolve(&nobody).await {
            Ok(_) | Err(Trouble::NoSuchName { .. }) => Ok(()),
            Err(trouble) => Err(Error::NoNameServer {
                reason: trouble.to_string(),
            }),
        }
    }

    /// Whom the proxy believes, with every certificate read.
    ///
    /// # Errors
    ///
    /// When one that was added cannot be used.
    pub fn roots(&self) -> Result<Roots, Error> {
        Trust::new(self.host_roots, &self.extra_roots)?;
        Ok(Roots {
            of_the_machine: rustls_native_certs::load_native_certs().certs.len(),
            added: self.extra_roots.len(),
        })
    }
}

/// A name under a domain that is reserved for tests, so that nobody has it.
const NOBODY: &str = "cordon-doctor.test";
