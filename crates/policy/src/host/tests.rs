use super::*;

fn host(raw: &str) -> Result<String, InvalidHost> {
    Host::parse(raw).map(|host| host.to_string())
}

#[test]
fn one_spelling_for_every_spelling() {
    for (raw, normal) in [
        ("api.example.com", "api.example.com"),
        ("API.Example.COM", "api.example.com"),
        ("api.example.com.", "api.example.com"),
        ("localhost", "localhost"),
        ("my_bucket.example.com", "my_bucket.example.com"),
        ("r3---sn.example.com", "r3---sn.example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example。", "xn--bcher-kva.example"),
        ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
        ("ｅｘａｍｐｌｅ．com", "example.com"),
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1.", "127.0.0.1"),
        ("１２７.0.0.1", "127.0.0.1"),
        ("[::1]", "::1"),
        ("::1", "::1"),
        ("[2001:DB8:0:0::0001]", "2001:db8::1"),
        ("[::ffff:10.0.0.1]", "::ffff:10.0.0.1"),
        ("1.2.3.4.example", "1.2.3.4.example"),
    ] {
        assert_eq!(host(raw).as_deref(), Ok(normal), "{raw}");
    }
}

#[test]
fn what_resolvers_take_for_an_address_is_one_or_nothing() {
    for raw in [
        "127.1",
        "1",
        "2130706433",
        "0x7f.1",
        "0x7f000001",
        "0X7F.0.0.1",
        "0177.0.0.1",
        "127.0.0.01",
        "127.0.0.256",
        "1.2.3.4.5",
        "a.1",
        "a.0x",
        "[::1",
        "[::1%eth0]",
        "fe80::1%1",
        "[127.0.0.1]",
        "[v1.x]",
        "[]",
        "::1::",
    ] {
        assert_eq!(host(raw), Err(InvalidHost::Address), "{raw}");
    }
}

#[test]
fn what_is_no_host_is_refused() {
    for (raw, error) in [
        ("", InvalidHost::Empty),
        (".", InvalidHost::Empty),
        (".example.com", InvalidHost::EmptyLabel),
        ("a..example.com", InvalidHost::EmptyLabel),
        ("example.com:443", InvalidHost::Port),
        ("example.com:", InvalidHost::Port),
        ("exa mple.com", InvalidHost::Character),
        ("example.com\n", InvalidHost::Character),
        ("a\0b", InvalidHost::Character),
        ("%65xample.com", InvalidHost::Character),
        ("example.com/path", InvalidHost::Character),
        ("*.example.com", InvalidHost::Character),
        ("xn--a", InvalidHost::Character),
        ("\u{202e}example.com", InvalidHost::Character),
    ] {
        assert_eq!(host(raw), Err(error), "{raw:?}");
    }
    assert_eq!(host(&"a".repeat(64)), Err(InvalidHost::TooLong));
    assert_eq!(
        host(&"a.".repeat(127)),
        Ok("a.".repeat(127).trim_end_matches('.').to_owned())
    );
    assert_eq!(host(&"a.".repeat(128)), Err(InvalidHost::TooLong));
}

#[test]
fn addresses_know_that_they_are() {
    assert_eq!(
        Host::parse("10.0.0.1").unwrap().ip(),
        Some("10.0.0.1".parse().unwrap())
    );
    assert_eq!(
        Host::parse("[0::1]").unwrap().ip(),
        Some("::1".parse().unwrap())
    );
    assert_eq!(Host::parse("example.com").unwrap().ip(), None);
}

#[test]
fn an_authority_is_a_host_and_perhaps_a_port() {
    for (raw, shown, port) in [
        ("Example.com", "example.com", None),
        ("example.com.:8443", "example.com:8443", Some(8443)),
        ("[::1]", "[::1]", None),
        ("[0:0::1]:80", "[::1]:80", Some(80)),
        ("10.0.0.1:65535", "10.0.0.1:65535", Some(65535)),
    ] {
        let authority = Authority::parse(raw.as_bytes()).unwrap();
        assert_eq!(
            (authority.to_string().as_str(), authority.port),
            (shown, port),
            "{raw}"
        );
    }
}

#[test]
fn an_authority_that_can_be_read_two_ways_is_refused() {
    for (raw, error) in [
        (&b"user@example.com"[..], InvalidHost::UserInfo),
        (b"allowed.example:80@evil.example", InvalidHost::UserInfo),
        (b"example.com:", InvalidHost::Port),
        (b"example.com:0", InvalidHost::Port),
        (b"example.com:080", InvalidHost::Port),
        (b"example.com:+80", InvalidHost::Port),
        (b"example.com:65536", InvalidHost::Port),
        (b"example.com:80:80", InvalidHost::Address),
        (b"::1", InvalidHost::Address),
        (b"[::1]80", InvalidHost::Address),
        (b"[::1]:", InvalidHost::Port),
        (b"[::1]x:80", InvalidHost::Address),
        (b"", InvalidHost::Empty),
        (b":80", InvalidHost::Empty),
        (b"example.com, evil.example", InvalidHost::Character),
        (b"ex\xffmple.com", InvalidHost::Character),
    ] {
        assert_eq!(Authority::parse(raw), Err(error), "{}", raw.escape_ascii());
    }
}
