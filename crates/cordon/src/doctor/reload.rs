//! The agents file of a sandbox: taken whole or not at all, and checked whenever it is.

use std::{path::Path, sync::Arc, sync::PoisonError};

use super::{BootstrapReport, Fix};
use crate::{
    Notice, Sandbox, SandboxError,
    modes::{AgentSandbox, AgentsFile, ModeNotice},
};

impl Sandbox {
    /// Takes an agents file at the start, and checks the agents that ask for it.
    ///
    /// # Errors
    ///
    /// When the file cannot be used.
    pub async fn load(&self, path: &Path) -> Result<BootstrapReport, SandboxError> {
        let file = self.take(path)?;
        let asking: Vec<AgentSandbox> = file
            .agents()
            .iter()
            .filter(|agent| agent.bootstrap_on_start)
            .cloned()
            .collect();
        if asking.is_empty() {
            return Ok(BootstrapReport::new(0).finish());
        }
        Ok(self.bootstrap(&asking, Fix::No).await)
    }

    /// Takes an agents file that has changed, and checks every agent in it. Whoever asks for an agent
    /// meanwhile gets it from the file before or from this one, and never from a half of each.
    ///
    /// # Errors
    ///
    /// When the file cannot be used; the one before then still holds, and a notice says so.
    pub async fn reload(&self, path: &Path) -> Result<BootstrapReport, SandboxError> {
        let file = match self.take(path) {
            Ok(file) => file,
            Err(error) => {
                let what = error.to_string();
                let notice = ModeNotice::AgentsKept { what };
                self.shared().notice(&Notice::Mode(notice));
                return Err(error);
            }
        };
        if file.agents().is_empty() {
            return Ok(BootstrapReport::new(0).finish());
        }
        Ok(self.bootstrap(file.agents(), Fix::No).await)
    }

    /// The agents file that holds now; an empty one until one was taken.
    #[must_use]
    pub fn agents(&self) -> Arc<AgentsFile> {
        let agents = self.shared().agents.read();
        Arc::clone(&agents.unwrap_or_else(PoisonError::into_inner))
    }

    fn take(&self, path: &Path) -> Result<Arc<AgentsFile>, SandboxError> {
        let file = Arc::new(AgentsFile::read(path)?);
        let agents = self.shared().agents.write();
        *agents.unwrap_or_else(PoisonError::into_inner) = Arc::clone(&file);
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        sync::{Arc, Mutex},
    };

    use super::*;
    use crate::SandboxConfig;

    #[tokio::test]
    async fn a_bad_file_keeps_the_one_before_and_says_so() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("agents.yaml");
        let said = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&said);
        let sandbox = Sandbox::new(SandboxConfig {
            on_notice: Some(Arc::new(move |notice| {
                heard.lock().unwrap().push(notice.to_string());
            })),
            ..SandboxConfig::default()
        });
        assert!(sandbox.agents().agents().is_empty());
        fs::write(&file, "agents: { coder: { workspace: /srv } }").unwrap();
        let report = sandbox.load(&file).await.unwrap();
        assert_eq!((report.ok, report.attempted), (true, 0));
        fs::write(&file, "agents: { coder: { workspace: /srv, mode: of } }").unwrap();
        sandbox.reload(&file).await.unwrap_err();
        assert!(sandbox.agents().agent("coder").is_some());
        let said = said.lock().unwrap();
        assert!(
            said[0].starts_with("the agents are still those before: "),
            "{said:?}"
        );
        assert!(said[0].contains("agents.yaml:1:43"), "{said:?}");
    }
}
