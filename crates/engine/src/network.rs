//! Networks of an engine, for the topology in which a proxy container stands beside the workload.

use std::net::Ipv4Addr;

use crate::{Container, Engine, Error, Kind};

/// A network, described.
#[derive(Clone, Debug)]
pub struct NetworkSpec {
    /// Its name.
    pub name: String,
    /// Labels, by which it is found again.
    pub labels: Vec<(String, String)>,
    /// What its containers reach.
    pub reach: Reach,
    /// Its addresses, in the form `10.1.2.0/24`; the engine's choice if `None`.
    pub subnet: Option<String>,
}

/// What the containers of a network reach.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reach {
    /// Each other and nothing else: there is no way out, the host has no address on it, and the engine
    /// answers no names.
    Sealed,
    /// The world, and not each other where the engine can keep them apart.
    World,
}

impl NetworkSpec {
    /// The arguments behind `network create`.
    fn arguments(&self, engine: &Engine) -> Vec<String> {
        let mut arguments: Vec<String> = Vec::new();
        let mut add = |words: &[&str]| arguments.extend(words.iter().map(|word| (*word).into()));
        if self.reach == Reach::Sealed {
            add(&["--internal"]);
        }
        match (engine.kind(), self.reach) {
            // With names answered, podman gives the bridge an address, and its name server asks the
            // host's. Without, containers of a network that leads out use the host's directly.
            (Kind::Podman, Reach::Sealed | Reach::World) => add(&["--disable-dns"]),
            (Kind::Docker, Reach::Sealed) if engine.facts().major() >= ISOLATED_GATEWAYS => {
                add(&[
                    "--opt",
                    "com.docker.network.bridge.gateway_mode_ipv4=isolated",
                ]);
            }
            (Kind::Docker, Reach::Sealed) => {
                add(&["--opt", "com.docker.network.bridge.inhibit_ipv4=true"]);
            }
            (Kind::Docker, Reach::World) => {
                add(&["--opt", "com.docker.network.bridge.enable_icc=false"]);
            }
        }
        if let Some(subnet) = &self.subnet {
            add(&["--subnet", subnet]);
        }
        for (name, value) in &self.labels {
            add(&["--label", &format!("{name}={value}")]);
        }
        add(&[&self.name]);
        arguments
    }
}

impl Engine {
    /// Creates a network.
    ///
    /// # Errors
    ///
    /// [`Error::NetworkTaken`] when the engine knows one of that name, or has its addresses in use;
    /// else when it refuses.
    pub async fn create_network(&self, spec: &NetworkSpec) -> Result<(), Error> {
        let mut tries = CREATE_TRIES;
        loop {
            let call = self.call(&["network", "create"]).args(spec.arguments(self));
            match call.success(b"").await {
                Err(Error::Rejected { stderr, .. }) if is_taken(&stderr) => {
                    return Err(Error::NetworkTaken {
                        name: spec.name.clone(),
                        stderr,
                    });
                }
                Err(Error::Rejected { stderr, .. }) if tries > 0 && met_a_change(&stderr) => {
                    tries -= 1;
                }
                other => return other.map(drop),
            }
        }
    }

    /// Removes a network. One that is gone already is no error.
    ///
    /// # Errors
    ///
    /// When the engine refuses, for one because a container is on it.
    pub async fn remove_network(&self, name: &str) -> Result<(), Error> {
        let call = self.call(&["network", "rm"]).args([name]);
        match call.success(b"").await {
            Err(Error::Rejected { stderr, .. }) if is_gone(&stderr) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Whether there is a network of that name.
    ///
    /// # Errors
    ///
    /// When the engine refuses.
    pub async fn has_network(&self, name: &str) -> Result<bool, Error> {
        let call = self.call(&["network", "inspect"]).args([name]);
        match call.success(b"").await {
            Ok(_) => Ok(true),
            Err(Error::Rejected { stderr, .. }) if is_gone(&stderr) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The names of the networks that have the label.
    ///
    /// # Errors
    ///
    /// When the engine refuses.
    pub async fn networks(&self, label: &str) -> Result<Vec<String>, Error> {
        let filter = format!("label={label}");
        let options = ["--filter", &filter, "--format", "{{.Name}}"];
        self.listing(&["network", "ls"], &options).await
    }

    /// Connects a container to one more network, at that address.
    ///
    /// # Errors
    ///
    /// When the engine refuses.
    pub async fn connect_network(
        &self,
        network: &str,
        container: &Container,
        address: Ipv4Addr,
    ) -> Result<(), Error> {
        self.call(&["network", "connect"])
            .args(["--ip", &address.to_string(), network, &container.0])
            .success(b"")
            .await?;
        Ok(())
    }
}

/// Signs in what engines say that a network cannot be made because of another one.
fn is_taken(stderr: &str) -> bool {
    let lower = stderr.to_lowercase();
    [
        "already used",
        "already exists",
        "pool overlaps",
        "conflicts with network",
    ]
    .iter()
    .any(|sign| lower.contains(sign))
}

/// Podman looks at every interface of the machine to find free addresses, and fails where one goes
/// meanwhile: with each container that ends, one does.
fn met_a_change(stderr: &str) -> bool {
    stderr.contains("no such network interface")
}

fn is_gone(stderr: &str) -> bool {
    let lower = stderr.to_lowercase();
    lower.contains("not found") || lower.contains("no such network")
}

/// How often a network is tried again that met a change.
const CREATE_TRIES: usize = 10;

/// The first docker whose networks can do without an address of the host; older ones ignore the option
/// in silence, and have one of their own.
const ISOLATED_GATEWAYS: u32 = 28;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Facts;

    fn arguments(kind: Kind, version: &str, reach: Reach) -> String {
        let mut facts = Facts::assumed();
        facts.version = version.into();
        let spec = NetworkSpec {
            name: "net".into(),
            labels: vec![("owner".into(), "me".into())],
            reach,
            subnet: Some("10.1.2.0/28".into()),
        };
        spec.arguments(&Engine::assumed(kind, facts)).join(" ")
    }

    #[test]
    fn podmans_sealed_networks_have_no_name_server_and_no_address_of_the_host() {
        for version in ["4.3.1", "5.2.0"] {
            assert_eq!(
                arguments(Kind::Podman, version, Reach::Sealed),
                "--internal --disable-dns --subnet 10.1.2.0/28 --label owner=me net"
            );
        }
    }

    #[test]
    fn dockers_sealed_networks_have_no_address_of_the_host_in_any_version() {
        assert!(
            arguments(Kind::Docker, "20.10.24+dfsg1", Reach::Sealed)
                .starts_with("--internal --opt com.docker.network.bridge.inhibit_ipv4=true ")
        );
        // Docker Desktop of today among them.
        assert!(
            arguments(Kind::Docker, "28.2.2", Reach::Sealed).starts_with(
                "--internal --opt com.docker.network.bridge.gateway_mode_ipv4=isolated "
            )
        );
    }

    #[test]
    fn networks_that_lead_out_keep_their_containers_apart_where_that_can_be() {
        assert!(
            arguments(Kind::Docker, "28.2.2", Reach::World)
                .starts_with("--opt com.docker.network.bridge.enable_icc=false ")
        );
        assert!(arguments(Kind::Podman, "5.2.0", Reach::World).starts_with("--disable-dns "));
    }

    #[test]
    fn what_engines_say_is_understood() {
        for taken in [
            "Error response from daemon: Pool overlaps with other one on this address space",
            "Error: subnet 10.88.0.0/28 is already used on the host or by another config",
            "Error: network name podman already used: network already exists",
            "Error response from daemon: network with name net already exists",
        ] {
            assert!(is_taken(taken), "{taken}");
        }
        for gone in [
            "Error: unable to find network with name or ID net: network not found",
            "Error response from daemon: network net not found",
            "Error: No such network: net",
        ] {
            assert!(is_gone(gone), "{gone}");
        }
    }
}
