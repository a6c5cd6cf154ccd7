//! How a container is connected to its proxy: by the door, or by a network that it shares with a proxy
//! container.
//!
//! A run asks here and nowhere else what its container's network is like, whether there is something to
//! serve, and what is to be taken down at the end.

mod egress;
mod far;
mod image;
mod proxy_container;
mod subnet;
mod tar;

use std::{ffi::OsString, fmt, net::Ipv4Addr, str::FromStr, sync::Arc};

use cordon_door::{Access, Door, Far};
use cordon_engine::{Engine, Network as EngineNetwork, Resolver, Volume};
use cordon_proxy::{LogTarget, Proxy, Settings, Sockets, Summary};

use crate::{
    CommandSpec, EngineKind, Network, NetworkSandbox, Notice, SandboxConfig, SandboxError,
    place::Place, sandbox::Shared, trust,
};
pub(crate) use far::{INIT, TOKEN, remove as remove_files};
use proxy_container::ProxyContainer;
pub(crate) use proxy_container::{Surroundings, container_of, network_of};

/// How containers are to be connected to their proxy.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Topology {
    /// The door where the engine runs its containers on this machine, else the proxy container.
    #[default]
    Auto,
    /// The container has no network at all; the proxy serves its sockets from this process.
    Door,
    /// The proxy runs in a container of its own, on a network that it shares with the workload alone.
    ProxyContainer,
}

/// How containers are connected to their proxy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Wiring {
    /// By the door.
    Door,
    /// By a network that they share with a proxy container.
    ProxyContainer,
}

impl Topology {
    /// What is taken with that engine, and what to say about it. A stricter one that was asked for by
    /// name is never replaced.
    pub(crate) fn resolve(
        self,
        kind: EngineKind,
        local: bool,
    ) -> Result<(Wiring, Option<Notice>), SandboxError> {
        let taken = |wiring| {
            let notice = Notice::TopologyTaken {
                wiring,
                engine: kind,
            };
            (wiring, Some(notice))
        };
        match (self, local) {
            (Self::Auto, true) => Ok(taken(Wiring::Door)),
            (Self::Auto, false) => Ok(taken(Wiring::ProxyContainer)),
            (Self::Door, true) => Ok((Wiring::Door, None)),
            (Self::Door, false) => Err(SandboxError::NotLocal { engine: kind }),
            (Self::ProxyContainer, _) => Ok((Wiring::ProxyContainer, None)),
        }
    }
}

/// A name that is no topology's.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a topology; say door, proxy-container or auto")]
pub struct UnknownTopology(String);

impl FromStr for Topology {
    type Err = UnknownTopology;

    fn from_str(name: &str) -> Result<Self, UnknownTopology> {
        match name {
            "auto" => Ok(Self::Auto),
            "door" => Ok(Self::Door),
            "proxy-container" => Ok(Self::ProxyContainer),
            other => Err(UnknownTopology(other.to_owned())),
        }
    }
}

impl fmt::Display for Wiring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Door => "door",
            Self::ProxyContainer => "proxy-container",
        })
    }
}

/// The connection of one run's container, from before its start to after its end.
#[derive(Debug)]
pub(crate) enum Connection {
    /// There is nothing to serve: no network, or the engine's own.
    Unserved(EngineNetwork),
    /// By the door; the proxy comes with the container's sockets.
    Door(Option<Proxy>),
    /// By a network of its own.
    ProxyContainer(Box<ProxyContainer>),
}

impl Connection {
    /// Makes whatever must be there before the container.
    pub(crate) async fn prepare(
        shared: &Shared,
        engine: &Engine,
        spec: &CommandSpec,
        place: &Place,
    ) -> Result<Self, SandboxError> {
        match (&spec.network, shared.wiring()?) {
            // There, a container is kept by a connection over its network.
            (Network::Unrestricted, _) if !engine.facts().local => Err(SandboxError::NotKept {
                engine: engine.kind(),
            }),
            (Network::None, _) if !engine.facts().local => {
                shared.notice(&Notice::KeptByNetwork);
                let started = ProxyContainer::start(shared, engine, spec, place).await?;
                Ok(Self::ProxyContainer(Box::new(started)))
            }
            (Network::None, _) => Ok(Self::Unserved(EngineNetwork::None)),
            (Network::Unrestricted, _) => Ok(Self::Unserved(EngineNetwork::Default)),
            (Network::Sandboxed(_), Wiring::Door) => Ok(Self::Door(None)),
            (Network::Sandboxed(_), Wiring::ProxyContainer) => {
                let started = ProxyContainer::start(shared, engine, spec, place).await?;
                Ok(Self::ProxyContainer(Box::new(started)))
            }
        }
    }

    /// Takes down what is there of a connection that was not made in time.
    pub(crate) async fn abandon(engine: &Engine, place: &Place) -> Result<(), SandboxError> {
        if place.has_network() {
            proxy_container::remove_all(engine, place).await?;
        }
        Ok(())
    }

    /// Whether the container hands over sockets.
    pub(crate) fn access(&self) -> Access {
        match self {
            Self::Door(_) => Access::Open,
            Self::Unserved(_) | Self::ProxyContainer(_) => Access::Shut,
        }
    }

    /// What `cordon-init` is called with.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let far = match self {
            Self::ProxyContainer(proxy) => proxy.relay_address(),
            Self::Unserved(_) | Self::Door(_) => None,
        };
        match far {
            Some(address) => Far::arguments(address, &far::token_path())
                .map(Into::into)
                .into(),
            None => Door::arguments(trust::BOX, self.access())
                .map(Into::into)
                .into(),
        }
    }

    /// Where the container's files are, where the engine does not see those of this machine.
    pub(crate) fn volume(&self) -> Option<&Volume> {
        match self {
            Self::Unserved(_) | Self::Door(_) => None,
            Self::ProxyContainer(proxy) => proxy.volume(),
        }
    }

    /// The end at which the container is heard where it cannot come to a door. There is one.
    pub(crate) fn far(&mut self) -> Option<Far> {
        match self {
            Self::Unserved(_) | Self::Door(_) => None,
            Self::ProxyContainer(proxy) => proxy.far(),
        }
    }

    /// Where the container finds its proxy; `None` when there is none.
    pub(crate) fn address(&self) -> Option<Ipv4Addr> {
        match self {
            Self::Unserved(_) => None,
            Self::Door(_) => Some(cordon_door::ADDRESS),
            Self::ProxyContainer(proxy) => proxy.address(),
        }
    }

    /// The container's network, as the engine is told.
    pub(crate) fn network(&self) -> EngineNetwork {
        match self {
            Self::Unserved(network) => network.clone(),
            Self::Door(_) => EngineNetwork::None,
            Self::ProxyContainer(proxy) => EngineNetwork::Named {
                name: proxy.network().to_owned(),
                address: None,
            },
        }
    }

    /// Whether the engine's own name server is silenced in the container.
    pub(crate) fn resolver(&self) -> Resolver {
        match self {
            Self::Unserved(_) | Self::Door(_) => Resolver::Default,
            Self::ProxyContainer(_) => Resolver::Mute,
        }
    }

    /// Kernel settings of the container's network.
    pub(crate) fn sysctls(&self, engine: &Engine) -> Vec<(String, String)> {
        match self {
            Self::Unserved(_) => Vec::new(),
            Self::Door(_) => vec![setting("net.ipv4.ip_unprivileged_port_start", "0")],
            Self::ProxyContainer(_) => without_ipv6(engine),
        }
    }

    /// Serves the sockets that the container handed over.
    pub(crate) async fn serve(
        &mut self,
        shared: &Shared,
        spec: &CommandSpec,
        sockets: Option<cordon_door::Sockets>,
    ) -> Result<(), SandboxError> {
        let (Self::Door(proxy), Some(sockets)) = (self, sockets) else {
            return Ok(());
        };
        let Some(settings) = settings(&shared.config, spec, cordon_door::ADDRESS) else {
            return Ok(());
        };
        let sockets = Sockets {
            http: sockets.http,
            https: sockets.https,
            dns_tcp: sockets.dns_tcp,
            dns_udp: sockets.dns_udp,
        };
        *proxy = Some(Proxy::start(sockets, settings, shared.authority()?).await?);
        Ok(())
    }

    /// Judges by another policy from now on.
    pub(crate) async fn replace(&mut self, network: &NetworkSandbox) -> Result<(), SandboxError> {
        match self {
            Self::Unserved(_) | Self::Door(None) => Ok(()),
            Self::Door(Some(proxy)) => {
                proxy.replace_allowlist(network.allowlist.clone());
                proxy.replace_secrets(network.replacements.clone());
                Ok(())
            }
            Self::ProxyContainer(proxy) => proxy.replace(network).await,
        }
    }

    /// Returns once the proxy is gone, which none in this process ever is.
    pub(crate) async fn lost(&mut self) {
        match self {
            Self::Unserved(_) | Self::Door(_) => std::future::pending().await,
            Self::ProxyContainer(proxy) => proxy.lost().await,
        }
    }

    /// Ends the proxy, waits for the last record, and takes down what was made for the container, which
    /// has ended.
    pub(crate) async fn release(self) -> Result<Option<Summary>, SandboxError> {
        match self {
            Self::Unserved(_) | Self::Door(None) => Ok(None),
            Self::Door(Some(proxy)) => Ok(Some(proxy.stop().await)),
            Self::ProxyContainer(proxy) => proxy.release().await,
        }
    }
}

/// What a proxy at that address is told; `None` where the run has none.
fn settings(config: &SandboxConfig, spec: &CommandSpec, address: Ipv4Addr) -> Option<Settings> {
    let Network::Sandboxed(network) = &spec.network else {
        return None;
    };
    Some(Settings {
        replacements: network.replacements.clone(),
        upstream: config.upstream.clone(),
        limits: config.proxy_limits.clone(),
        log: match &spec.network_log {
            Some(path) => LogTarget {
                text: Some(path.clone()),
                json: Some(path.with_extension("jsonl")),
            },
            None => LogTarget::default(),
        },
        on_record: spec.on_network.as_ref().map(Arc::clone),
        ..Settings::new(address, network.allowlist.clone())
    })
}

/// Turns IPv6 off: a bridge has a link-local address of the host's on it. Where the kernel of the host
/// has no IPv6 there is nothing to set, and trying would keep the container from starting.
fn without_ipv6(engine: &Engine) -> Vec<(String, String)> {
    if engine.facts().local && !std::path::Path::new("/proc/sys/net/ipv6").exists() {
        return Vec::new();
    }
    ["all", "default"]
        .map(|which| setting(&format!("net.ipv6.conf.{which}.disable_ipv6"), "1"))
        .into()
}

fn setting(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_takes_the_door_where_the_engine_is_local_and_says_so_either_way() {
        for (local, expected) in [(true, Wiring::Door), (false, Wiring::ProxyContainer)] {
            let (wiring, notice) = Topology::Auto.resolve(EngineKind::Docker, local).unwrap();
            assert_eq!(wiring, expected);
            assert!(
                matches!(notice, Some(Notice::TopologyTaken { wiring, .. }) if wiring == expected)
            );
        }
    }

    #[test]
    fn a_door_that_was_asked_for_is_never_replaced() {
        let refused = Topology::Door.resolve(EngineKind::Docker, false);
        assert!(matches!(refused, Err(SandboxError::NotLocal { .. })));
    }

    #[test]
    fn names_are_read() {
        assert_eq!("auto".parse::<Topology>().unwrap(), Topology::Auto);
        assert_eq!("door".parse::<Topology>().unwrap(), Topology::Door);
        assert_eq!(
            "proxy-container".parse::<Topology>().unwrap(),
            Topology::ProxyContainer
        );
        assert!("bridge".parse::<Topology>().is_err());
    }
}
