//! Resolves names through the configured servers, or the host's own.

use std::{
    net::{IpAddr, SocketAddr},
    sync::OnceLock,
    time::Duration,
};

use cordon_policy::Host;
use hickory_resolver::{
    TokioResolver,
    config::{LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig},
    net::{DnsError, NetError, runtime::TokioRuntimeProvider},
    proto::{op::ResponseCode, rr::Name},
};
use tokio::time::timeout;

use super::Trouble;

/// Turns hosts into addresses.
#[derive(Debug)]
pub(super) struct Resolver {
    servers: Vec<SocketAddr>,
    time: Duration,
    /// Built at the first question: a sandbox that asks none needs no working DNS.
    resolver: OnceLock<TokioResolver>,
}

impl Resolver {
    pub(super) fn new(servers: Vec<SocketAddr>, time: Duration) -> Self {
        Self {
            servers,
            time,
            resolver: OnceLock::new(),
        }
    }

    /// All addresses of a host, IPv6 and IPv4 by turns.
    pub(super) async fn resolve(&self, host: &Host) -> Result<Vec<IpAddr>, Trouble> {
        if let Some(address) = host.ip() {
            return Ok(vec![address]);
        }
        let failed = |reason: String| Trouble::Resolve {
            host: host.to_string(),
            reason,
        };
        let mut name =
            Name::from_ascii(host.as_str()).map_err(|error| failed(error.to_string()))?;
        // A full name: the host's search list is not for names that were judged as they are.
        name.set_fqdn(true);
        let resolver = self.resolver()?;
        let addresses = match timeout(self.time, resolver.lookup_ip(name)).await {
            Ok(Ok(lookup)) => lookup.iter().collect(),
            Ok(Err(NetError::Dns(DnsError::NoRecordsFound(none)))) => match none.response_code {
                ResponseCode::NXDomain => {
                    return Err(Trouble::NoSuchName {
                        host: host.to_string(),
                    });
                }
                ResponseCode::NoError => Vec::new(),
                code => return Err(failed(code.to_str().to_owned())),
            },
            Ok(Err(NetError::Timeout)) | Err(_) => {
                return Err(Trouble::ResolveTimeout {
                    host: host.to_string(),
                });
            }
            Ok(Err(error)) => return Err(failed(error.to_string())),
        };
        if addresses.is_empty() {
            return Err(failed("it has no address".to_owned()));
        }
        Ok(by_turns(addresses))
    }

    fn resolver(&self) -> Result<&TokioResolver, Trouble> {
        if let Some(resolver) = self.resolver.get() {
            return Ok(resolver);
        }
        let built = self.build().map_err(|error| Trouble::Resolver {
            reason: error.to_string(),
        })?;
        Ok(self.resolver.get_or_init(|| built))
    }

    fn build(&self) -> Result<TokioResolver, NetError> {
        let mut builder = if self.servers.is_empty() {
            TokioResolver::builder_tokio()?
        } else {
            let servers = self.servers.iter().map(|server| {
                let mut config = NameServerConfig::udp_and_tcp(server.ip());
                for connection in &mut config.connections {
                    connection.port = server.port();
                }
                config
            });
            let config = ResolverConfig::from_parts(None, Vec::new(), servers.collect());
            let mut builder =
                TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
            builder.options_mut().use_hosts_file = ResolveHosts::Never;
            builder
        };
        let options = builder.options_mut();
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        options.positive_max_ttl = Some(MAX_TTL);
        options.negative_max_ttl = Some(MAX_NEGATIVE_TTL);
        builder.build()
    }
}

/// Sorts so that no broken address family delays the other by more than one attempt.
fn by_turns(addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    let (v6, v4): (Vec<_>, Vec<_>) = addresses.into_iter().partition(IpAddr::is_ipv6);
    let length = v6.len().max(v4.len());
    let (v6, v4) = (v6.into_iter().map(Some), v4.into_iter().map(Some));
    let pairs = v6
        .chain(std::iter::repeat(None))
        .zip(v4.chain(std::iter::repeat(None)));
    pairs
        .take(length)
        .flat_map(|(v6, v4)| [v6, v4])
        .flatten()
        .collect()
}

/// Hosts move; a long TTL must not keep a run on a dead address.
const MAX_TTL: Duration = Duration::from_secs(300);

/// A name that did not exist may soon.
const MAX_NEGATIVE_TTL: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_families_take_turns() {
        let parse = |list: &[&str]| Vec::from_iter(list.iter().map(|text| text.parse().unwrap()));
        let mixed: Vec<IpAddr> = parse(&["1.1.1.1", "1.1.1.2", "1.1.1.3", "::1"]);
        assert_eq!(
            by_turns(mixed),
            parse(&["::1", "1.1.1.1", "1.1.1.2", "1.1.1.3"])
        );
    }
}
