//! The world outside, at an address that every topology reaches.

use std::{
    net::Ipv4Addr,
    process::Command,
    sync::atomic::{AtomicU8, Ordering},
};

use origin::Origin;

/// The world outside as a container's network reaches it.
pub(crate) struct Outside {
    pub(crate) origin: Origin,
    _address: OutsideAddress,
}

/// An address of this machine that is not loopback, so that a container's network reaches it. It is
/// there as long as this is.
pub(crate) struct OutsideAddress(pub(crate) Ipv4Addr);

impl Outside {
    pub(crate) fn new(names: &[&str]) -> Self {
        let address = OutsideAddress::new();
        Self {
            origin: Origin::start_at(address.0, names),
            _address: address,
        }
    }
}

impl OutsideAddress {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU8 = AtomicU8::new(1);
        let [.., high, low] = std::process::id().to_be_bytes();
        // The range for benchmarks between networks; bit by bit from the process id.
        let address = Ipv4Addr::new(
            198,
            18 | (high & 1),
            low,
            NEXT.fetch_add(1, Ordering::SeqCst),
        );
        ip(&["addr", "add", &format!("{address}/32"), "dev", "lo"]);
        Self(address)
    }
}

impl Drop for OutsideAddress {
    fn drop(&mut self) {
        ip(&["addr", "del", &format!("{}/32", self.0), "dev", "lo"]);
    }
}

fn ip(arguments: &[&str]) {
    let status = Command::new("ip").args(arguments).status().unwrap();
    assert!(status.success(), "ip {arguments:?}");
}
