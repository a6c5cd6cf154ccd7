//! What of a task's policy can be replaced while it runs.

use cordon_policy::Allowlist;
use cordon_secrets::Secret;
use tokio::sync::watch;

use crate::{Network, NetworkSandbox, SandboxError};

/// The policy of a task as it is now; executions follow it.
#[derive(Debug)]
pub(crate) struct Live(watch::Sender<NetworkSandbox>);

impl Live {
    pub(crate) fn new(network: &Network) -> Self {
        Self(watch::Sender::new(match network {
            Network::Sandboxed(network) => network.clone(),
            Network::None | Network::Unrestricted => NetworkSandbox::default(),
        }))
    }

    pub(crate) fn replace_allowlist(&self, allowlist: Allowlist) {
        self.0.send_modify(|network| network.allowlist = allowlist);
    }

    pub(crate) fn replace_secret(&self, env_var: &str, value: Secret) -> Result<(), SandboxError> {
        let mut replaced = Ok(());
        self.0.send_if_modified(|network| {
            match network.replacements.with_value(env_var, value) {
                Ok(replacements) => network.replacements = replacements,
                Err(error) => replaced = Err(error.into()),
            }
            replaced.is_ok()
        });
        replaced
    }

    /// The policy to begin an execution with, and how to follow it.
    pub(crate) fn follow(&self, network: &mut Network) -> Changes {
        let mut changes = self.0.subscribe();
        if let Network::Sandboxed(network) = network {
            *network = changes.borrow_and_update().clone();
        }
        Changes(changes)
    }
}

/// The changes of a policy since an execution began.
#[derive(Debug)]
pub(crate) struct Changes(watch::Receiver<NetworkSandbox>);

impl Changes {
    /// The next policy; waits for ever where there will be none.
    pub(crate) async fn next(&mut self) -> NetworkSandbox {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        self.0.borrow_and_update().clone()
    }
}
