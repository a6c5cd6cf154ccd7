//! Allowlists, hosts and targets.

use cordon_policy::{Allowlist, Authority, Decision, Host, RequestHead, Scheme, Target};

/// An allowlist that is read survives its own JSON, and decides.
pub fn allowlist(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let Ok(allowlist) = Allowlist::from_yaml(text) else {
        return;
    };
    let again = Allowlist::from_json(&allowlist.to_json()).expect("its own JSON is an allowlist");
    assert_eq!(again, allowlist);
    let host = Host::parse("api.example.com").expect("a host");
    let target = Target::parse(b"/v1/x?y=z").expect("a target");
    let decide = |allowlist: &Allowlist| {
        let head = RequestHead {
            scheme: Scheme::Https,
            host: &host,
            port: 443,
            method: "GET",
            target: &target,
        };
        matches!(allowlist.decide(&head), Decision::Allow(_))
    };
    assert_eq!(decide(&allowlist), decide(&again));
    if text.trim().is_empty() {
        assert!(!decide(&allowlist), "nothing allows nothing");
    }
}

/// A host has one spelling: reading it again gives the same.
pub fn host(data: &[u8]) {
    if let Ok(text) = str::from_utf8(data)
        && let Ok(host) = Host::parse(text)
    {
        check_spelling(&host);
    }
    if let Ok(authority) = Authority::parse(data) {
        check_spelling(&authority.host);
        let again = Authority::parse(authority.to_string().as_bytes());
        assert_eq!(again, Ok(authority));
    }
}

fn check_spelling(host: &Host) {
    let text = host.as_str();
    assert_eq!(Host::parse(text).as_ref(), Ok(host));
    assert!(
        text.bytes()
            .all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase())
    );
    assert!(!text.is_empty() && !text.ends_with('.'));
    assert!(!text.contains(['/', '\\', '@', '?', '#', '%']), "{text}");
}

/// A target that is accepted leads nowhere but where it says.
pub fn target(data: &[u8]) {
    let Ok(target) = Target::parse(data) else {
        return;
    };
    assert_eq!(Target::parse(target.raw().as_bytes()).as_ref(), Ok(&target));
    assert!(target.raw().bytes().all(|byte| byte > b' ' && byte != 0x7f));
    if target.is_asterisk() {
        return;
    }
    let path = target.path();
    assert!(path.starts_with('/'));
    assert!(!path.contains(['\0', '\\', '\r', '\n']), "{path:?}");
    let climbs = |segment: &str| segment.split(';').next() == Some("..");
    assert!(!path.split('/').any(climbs), "{path:?}");
}

pub(crate) const ALLOWLISTS: &[&[u8]] = &[
    b"domains: [api.example.com, '*.example.org']\n",
    b"domains:\n- host: a.example\n  ports: [8443]\n  schemes: [https, http]\n  private_addresses: true\n",
    b"url_prefixes:\n- host: api.example.com\n  path: /v1/*\n  methods: [GET, HEAD]\n",
    b"url_prefixes:\n- host: api.example.com\n  path: /graphql\n  methods: [POST]\n  graphql:\n    queries: ['*']\n",
    b"{\"domains\": [\"a.example\"], \"url_prefixes\": []}",
    b"domains: &x [a.example]\nurl_prefixes: *x\n",
    b"a: b\n? c\n- |\n  text\n",
];

pub(crate) const HOSTS: &[&[u8]] = &[
    b"api.example.com",
    b"API.example.COM.:443",
    "BÜCHER.example".as_bytes(),
    b"xn--bcher-kva.example",
    b"[::ffff:10.0.0.1]:80",
    b"127.0.0.1",
    b"0x7f.1",
    b"user@host.example",
];

pub(crate) const TARGETS: &[&[u8]] = &[
    b"/v1/models?x=1",
    b"/a/%2e%2e/b",
    b"/a/..;x/b",
    b"/%252e%252e/",
    b"/a\\b",
    b"*",
    b"//host/./x",
    b"/%67raphql?query=%7Bviewer%7D",
];
