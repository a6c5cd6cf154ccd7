//! Networks of an engine, for the topology in which a proxy container stands beside the workload.

use crate::{Engine, Error};

/// A network, described.
#[derive(Clone, Debug, Default)]
pub struct NetworkSpec {
    /// Its name.
    pub name: String,
    /// Labels, by which it is found again.
    pub labels: Vec<(String, String)>,
    /// It has no way out.
    pub internal: bool,
    /// Its addresses, in the form `10.1.2.0/24`.
    pub subnet: Option<String>,
    /// The engine answers names on it; podman only, docker always does.
    pub dns: bool,
    /// Options of the driver.
    pub options: Vec<(String, String)>,
}

impl Engine {
    /// Creates a network.
    ///
    /// # Errors
    ///
    /// When the engine refuses, for one because its addresses are taken.
    pub async fn create_network(&self, spec: &NetworkSpec) -> Result<(), Error> {
        let mut call = self.call(&["network", "create"]);
        if spec.internal {
            call = call.args(["--internal"]);
        }
        if let (crate::Kind::Podman, false) = (self.kind(), spec.dns) {
            call = call.args(["--disable-dns"]);
        }
        if let Some(subnet) = &spec.subnet {
            call = call.args(["--subnet", subnet]);
        }
        for (name, value) in &spec.labels {
            call = call.args(["--label", &format!("{name}={value}")]);
        }
        for (name, value) in &spec.options {
            call = call.args(["--opt", &format!("{name}={value}")]);
        }
        call.args([&spec.name]).success(b"").await?;
        Ok(())
    }

    /// Removes a network. One that is gone already is no error.
    ///
    /// # Errors
    ///
    /// When the engine refuses, for one because a container is on it.
    pub async fn remove_network(&self, name: &str) -> Result<(), Error> {
        match self
            .call(&["network", "rm"])
            .args([name])
            .success(b"")
            .await
        {
            Err(Error::Rejected { stderr, .. }) if stderr.to_lowercase().contains("not found") => {
                Ok(())
            }
            other => other.map(drop),
        }
    }

    /// The names of the networks that have the label.
    ///
    /// # Errors
    ///
    /// When the engine refuses.
    pub async fn networks(&self, label: &str) -> Result<Vec<String>, Error> {
        let filter = format!("label={label}");
        let output = self
            .call(&["network", "ls"])
            .args(["--filter", &filter, "--format", "{{.Name}}"])
            .success(b"")
            .await?;
        Ok(String::from_utf8_lossy(&output.stdout)
            .lines()
            .map(str::to_owned)
            .collect())
    }

    /// Connects a container to one more network.
    ///
    /// # Errors
    ///
    /// When the engine refuses.
    pub async fn connect_network(
        &self,
        network: &str,
        container: &crate::Container,
    ) -> Result<(), Error> {
        self.call(&["network", "connect"])
            .args([network, &container.0])
            .success(b"")
            .await?;
        Ok(())
    }
}
