use super::*;

#[test]
fn every_network_has_its_kind() {
    use AddressKind::*;
    for (address, kind) in [
        ("1.1.1.1", Public),
        ("172.15.0.1", Public),
        ("172.32.0.1", Public),
        ("100.63.0.1", Public),
        ("100.128.0.1", Public),
        ("192.0.0.9", Public),
        ("192.169.0.1", Public),
        ("223.255.255.255", Public),
        ("127.0.0.1", Loopback),
        ("127.255.255.254", Loopback),
        ("10.0.0.1", Private),
        ("172.16.0.1", Private),
        ("172.31.255.255", Private),
        ("192.168.0.1", Private),
        ("169.254.1.1", LinkLocal),
        ("100.64.0.1", Shared),
        ("100.127.255.255", Shared),
        ("169.254.169.254", Metadata),
        ("169.254.170.2", Metadata),
        ("168.63.129.16", Metadata),
        ("100.100.100.200", Metadata),
        ("224.0.0.1", Multicast),
        ("255.255.255.255", Multicast),
        ("0.0.0.0", Unspecified),
        ("0.1.2.3", Unspecified),
        ("192.0.0.1", Reserved),
        ("192.0.2.1", Reserved),
        ("192.88.99.1", Reserved),
        ("198.18.0.1", Reserved),
        ("198.51.100.1", Reserved),
        ("203.0.113.1", Reserved),
        ("240.0.0.1", Reserved),
        ("2606:4700::1111", Public),
        ("::1", Loopback),
        ("::", Unspecified),
        ("fc00::1", Private),
        ("fd12:3456::1", Private),
        ("fec0::1", Private),
        ("fe80::1", LinkLocal),
        ("ff02::1", Multicast),
        ("fd00:ec2::254", Metadata),
        ("2001:db8::1", Reserved),
        ("3fff::1", Reserved),
        ("100::1", Reserved),
        ("4000::1", Reserved),
    ] {
        assert_eq!(address_kind(address.parse().unwrap()), kind, "{address}");
    }
}

#[test]
fn an_ipv4_address_in_ipv6_clothes_is_what_it_carries() {
    for address in [
        "::ffff:127.0.0.1",
        "::127.0.0.1",
        "::ffff:0:127.0.0.1",
        "64:ff9b::127.0.0.1",
        "64:ff9b:1::127.0.0.1",
        "2002:7f00:1::",
        "2001:0:1:2:3:4:80ff:fffe",
        "2606:4700::5efe:127.0.0.1",
        "fe80::200:5efe:127.0.0.1",
    ] {
        assert_eq!(
            address_kind(address.parse().unwrap()),
            AddressKind::Loopback,
            "{address}"
        );
    }
    assert_eq!(
        address_kind("::ffff:169.254.169.254".parse().unwrap()),
        AddressKind::Metadata
    );
    assert_eq!(
        address_kind("64:ff9b::1.1.1.1".parse().unwrap()),
        AddressKind::Public
    );
}
