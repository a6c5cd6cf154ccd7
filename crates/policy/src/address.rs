//! What kind of network an IP address belongs to.
//!
//! Decides nothing: a grant says which kinds it admits. IPv6 forms that carry an IPv4 address are judged by what they carry.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// The network behind an address, as far as its number tells.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum AddressKind {
    /// Reachable over the internet.
    Public,
    /// The machine itself.
    Loopback,
    /// A private or unique local network.
    Private,
    /// The local link only.
    LinkLocal,
    /// A cloud provider's service that hands out credentials.
    Metadata,
    /// Carrier-grade NAT.
    Shared,
    /// A group of machines, or all of them.
    Multicast,
    /// No address at all; connecting to it reaches the machine itself.
    Unspecified,
    /// Documentation, benchmarks, and whatever is not assigned.
    Reserved,
}

impl AddressKind {
    /// A stable name for logs and responses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::LinkLocal => "link-local",
            Self::Metadata => "metadata",
            Self::Shared => "shared",
            Self::Multicast => "multicast",
            Self::Unspecified => "unspecified",
            Self::Reserved => "reserved",
        }
    }
}

impl fmt::Display for AddressKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Tells which network an address belongs to.
pub fn address_kind(ip: IpAddr) -> AddressKind {
    match ip {
        IpAddr::V4(ip) => v4_kind(ip),
        IpAddr::V6(ip) => v6_kind(ip),
    }
}

fn v4_kind(ip: Ipv4Addr) -> AddressKind {
    if METADATA_V4.contains(&ip) {
        return AddressKind::Metadata;
    }
    match ip.octets() {
        [0, ..] => AddressKind::Unspecified,
        [127, ..] => AddressKind::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => AddressKind::Private,
        [169, 254, ..] => AddressKind::LinkLocal,
        [100, 64..=127, ..] => AddressKind::Shared,
        [224..=239, ..] | [255, 255, 255, 255] => AddressKind::Multicast,
        // 192.0.0.9 and .10 are anycast on the internet; the rest of their block is not.
        [192, 0, 0, 9 | 10] => AddressKind::Public,
        [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [240..=255, ..] => AddressKind::Reserved,
        _ => AddressKind::Public,
    }
}

fn v6_kind(ip: Ipv6Addr) -> AddressKind {
    if METADATA_V6.contains(&ip) {
        return AddressKind::Metadata;
    }
    if ip.is_unspecified() {
        return AddressKind::Unspecified;
    }
    if ip.is_loopback() {
        return AddressKind::Loopback;
    }
    if let Some(carried) = carried_v4(ip) {
        return v4_kind(carried);
    }
    match ip.segments() {
        [0xfe80..=0xfebf, ..] => AddressKind::LinkLocal,
        // fec0::/10 was site-local and is still routed inside some sites.
        [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] => AddressKind::Private,
        [0xff00..=0xffff, ..] => AddressKind::Multicast,
        [0x2001, 0xdb8, ..] | [0x2001, 0x2, 0, ..] | [0x2001, 0x10..=0x3f, ..] => {
            AddressKind::Reserved
        }
        [0x3fff, 0..=0x0fff, ..] => AddressKind::Reserved,
        [0x2000..=0x3fff, ..] => AddressKind::Public,
        _ => AddressKind::Reserved,
    }
}

/// The IPv4 address that packets to an IPv6 address end up at, where the form says so.
fn carried_v4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let v4 = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        Some(Ipv4Addr::new(a, b, c, d))
    };
    match ip.segments() {
        // Mapped, translated (SIIT) and the old compatible form.
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0, 0, 0, 0, 0, 0, high, low] => v4(high, low),
        // NAT64: the well-known prefix and the one for local use.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x64, 0xff9b, 1, _, _, _, high, low] => {
            v4(high, low)
        }
        // 6to4.
        [0x2002, high, low, ..] => v4(high, low),
        // Teredo keeps the client's address inverted.
        [0x2001, 0, _, _, _, _, high, low] => v4(!high, !low),
        // ISATAP.
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => v4(high, low),
        _ => None,
    }
}

/// AWS, Google Cloud, Azure and most others; Amazon's containers and pods; Azure's host; Alibaba; Oracle.
const METADATA_V4: [Ipv4Addr; 6] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(169, 254, 170, 23),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
];

/// AWS, Amazon's pods, and Google Cloud.
const METADATA_V6: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

#[cfg(test)]
mod tests;
