//! Addresses for a run's own network, away from everything that this machine knows.

use std::{fmt, fs, net::Ipv4Addr};

use crate::SandboxError;

/// A small network: room for the proxy and the workload.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Subnet(Ipv4Addr);

impl Subnet {
    /// One at random that no route of this machine touches.
    pub(super) fn random() -> Result<Self, SandboxError> {
        // A machine without the file has other ways to say what is taken: the engine refuses.
        let routes = fs::read_to_string("/proc/net/route").unwrap_or_default();
        let routes = routes_of(&routes);
        let mut candidate = Self(Ipv4Addr::UNSPECIFIED);
        for (base, prefix) in RANGES {
            for _ in 0..TRIES {
                let mut bytes = [0; 4];
                getrandom::fill(&mut bytes).map_err(|_| SandboxError::Randomness)?;
                candidate = Self::within(*base, *prefix, u32::from_be_bytes(bytes));
                if !routes.iter().any(|route| route.touches(candidate)) {
                    return Ok(candidate);
                }
            }
        }
        // Every private address is routed somewhere, by a VPN for one. The network has no way out, so
        // all that is lost is the proxy's own way to sixteen addresses.
        Ok(candidate)
    }

    fn within(base: Ipv4Addr, prefix: u32, random: u32) -> Self {
        let host = u32::MAX >> prefix;
        let bits = u32::from(base) | (random & host & !(SIZE - 1));
        Self(bits.into())
    }

    /// Where the proxy is: behind the address that engines keep for a gateway.
    pub(super) fn proxy(self) -> Ipv4Addr {
        (u32::from(self.0) + 2).into()
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.0, 32 - SIZE.ilog2())
    }
}

struct Route {
    destination: u32,
    mask: u32,
}

impl Route {
    fn touches(&self, subnet: Subnet) -> bool {
        let mask = self.mask & !(SIZE - 1);
        u32::from(subnet.0) & mask == self.destination & mask
    }
}

/// The routes of `/proc/net/route` but for those to everywhere.
fn routes_of(table: &str) -> Vec<Route> {
    let number = |text: &str| u32::from_str_radix(text, 16).ok().map(u32::swap_bytes);
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let fields: Vec<_> = line.split_whitespace().collect();
            let route = Route {
                destination: number(fields.get(1)?)?,
                mask: number(fields.get(7)?)?,
            };
            // A VPN routes everywhere by two halves.
            (route.mask > 0x8000_0000).then_some(route)
        })
        .collect()
}

/// What is for private use, the largest first.
const RANGES: &[(Ipv4Addr, u32)] = &[
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
];

/// Addresses in one: a power of two.
const SIZE: u32 = 16;

/// In each range; half of it may be taken, and all tries would still miss once in a million million.
const TRIES: u32 = 40;

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
tun0\t0000000A\t010200C0\t0003\t0\t0\t0\t000000FF\t0\t0\t0
docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
";

    #[test]
    fn routes_are_read_and_the_default_one_touches_nothing() {
        let routes = routes_of(TABLE);
        let touched = |address: [u8; 4]| {
            routes
                .iter()
                .any(|route| route.touches(Subnet(address.into())))
        };
        assert!(touched([10, 200, 1, 16]) && touched([172, 17, 255, 240]));
        assert!(!touched([172, 18, 0, 0]) && !touched([192, 168, 3, 0]));
    }

    #[test]
    fn a_host_route_touches_the_network_around_it() {
        let route = Route {
            destination: u32::from(Ipv4Addr::new(10, 1, 2, 5)),
            mask: u32::MAX,
        };
        assert!(route.touches(Subnet([10, 1, 2, 0].into())));
        assert!(!route.touches(Subnet([10, 1, 2, 16].into())));
    }

    #[test]
    fn candidates_are_aligned_and_stay_in_their_range() {
        for random in [0, 1, 0x1234_5678, u32::MAX] {
            let subnet = Subnet::within(Ipv4Addr::new(172, 16, 0, 0), 12, random);
            assert_eq!(u32::from(subnet.0) % SIZE, 0);
            assert_eq!(subnet.0.octets()[0], 172);
            assert!((16..32).contains(&subnet.0.octets()[1]));
        }
        assert_eq!(Subnet([10, 0, 0, 16].into()).to_string(), "10.0.0.16/28");
        assert_eq!(
            Subnet([10, 0, 0, 16].into()).proxy(),
            Ipv4Addr::new(10, 0, 0, 18)
        );
    }
}
