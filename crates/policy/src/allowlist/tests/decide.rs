use crate::{
    AddressKind, Allowlist, Decision, Denial, Host, MalformedTarget, RequestHead, RuleRef, Scheme,
    Target,
};

/// `GET https://host:port/path` against an allowlist: the entry that allows it, or the code of the denial.
fn verdict(allowlist: &Allowlist, request: &str) -> String {
    with_decision(allowlist, request, |decision| match decision {
        Decision::Allow(grant) => grant.rule.to_string(),
        Decision::Inspect(grant, _) => format!("{} if its body passes", grant.rule),
        Decision::Deny(denial) => denial.code().to_owned(),
    })
}

fn denial(allowlist: &Allowlist, request: &str) -> Denial {
    with_decision(allowlist, request, |decision| match decision {
        Decision::Allow(grant) | Decision::Inspect(grant, _) => {
            panic!("{request} is allowed by {}", grant.rule)
        }
        Decision::Deny(denial) => denial,
    })
}

fn with_decision<T>(
    allowlist: &Allowlist,
    request: &str,
    judge: impl FnOnce(Decision<'_>) -> T,
) -> T {
    let (method, url) = request.split_once(' ').unwrap();
    let (scheme, rest) = url.split_once("://").unwrap();
    let scheme = match scheme {
        "http" => Scheme::Http,
        _ => Scheme::Https,
    };
    let slash = rest.find(['/', '*']).unwrap_or(rest.len());
    let authority = crate::Authority::parse(&rest.as_bytes()[..slash]).unwrap();
    let target = Target::parse(&rest.as_bytes()[slash..]).unwrap();
    let head = RequestHead {
        scheme,
        host: &authority.host,
        port: authority.port.unwrap_or_else(|| scheme.default_port()),
        method,
        target: &target,
    };
    judge(allowlist.decide(&head))
}

fn allowlist(yaml: &str) -> Allowlist {
    Allowlist::from_yaml(yaml).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_empty_list_allows_nothing() {
    assert_eq!(
        verdict(&Allowlist::default(), "GET https://example.com/"),
        "host_not_listed"
    );
}

#[test]
fn a_domain_allows_every_path_and_method_of_its_host() {
    let list = allowlist("domains: [example.com, '*.example.org']");
    for (request, expected) in [
        ("GET https://example.com/", "domains[0]"),
        ("DELETE https://EXAMPLE.com./any?thing=1", "domains[0]"),
        ("GET http://example.com/", "domains[0]"),
        ("GET https://a.b.example.org/", "domains[1]"),
        ("GET https://example.org/", "host_not_listed"),
        ("GET https://www.example.com/", "host_not_listed"),
        ("OPTIONS https://example.com*", "domains[0]"),
        ("GET https://example.com*", "malformed_target"),
    ] {
        assert_eq!(verdict(&list, request), expected, "{request}");
    }
}

#[test]
fn a_later_entry_may_allow_what_an_earlier_one_does_not() {
    let list = allowlist(
        "
url_prefixes:
  - {host: h.test, path: /api*, methods: [GET]}
  - {host: h.test, path: /api/write, methods: [post]}
  - {host: '*', methods: [HEAD]}
",
    );
    for (request, expected) in [
        ("GET https://h.test/api/write", "url_prefixes[0]"),
        ("POST https://h.test/api/write", "url_prefixes[1]"),
        ("POST https://h.test/api/read", "method_not_listed"),
        ("HEAD https://other.test/", "url_prefixes[2]"),
        ("get https://h.test/api", "url_prefixes[0]"),
        ("GET https://h.test/", "method_not_listed"),
    ] {
        assert_eq!(verdict(&list, request), expected, "{request}");
    }
}

#[test]
fn the_denial_is_that_of_the_closest_entry() {
    let list = allowlist(
        "
domains: [{host: ports.test, ports: [8443]}]
url_prefixes:
  - {host: h.test, path: /a}
  - {host: h.test, path: /b, methods: [GET]}
",
    );
    for (request, expected) in [
        ("GET https://other.test/", "host_not_listed"),
        ("GET https://h.test/c", "path_not_listed"),
        ("GET https://h.test/a?q", "query_not_listed"),
        ("POST https://h.test/b", "method_not_listed"),
        ("GET http://h.test/a", "scheme_not_listed"),
        ("GET https://h.test:22/a", "port_not_listed"),
        ("GET https://ports.test/", "port_not_listed"),
        ("GET https://ports.test:8443/", "domains[0]"),
    ] {
        assert_eq!(verdict(&list, request), expected, "{request}");
    }
    let denied = denial(&list, "POST https://h.test/b");
    let expected = Denial::MethodNotListed {
        rule: RuleRef::UrlPrefix(1),
        host: "h.test".into(),
        path: "/b".into(),
        method: "POST".into(),
        listed: vec!["GET".into()],
    };
    assert_eq!(denied, expected);
    assert_eq!(
        denied.to_string(),
        "the method POST is not allowed for `/b` of `h.test` by url_prefixes[1]"
    );
    assert_eq!(denied.hint(), "add `POST` to `methods` of url_prefixes[1]");
}

#[test]
fn what_a_hint_says_to_write_allows_the_request() {
    let request = "GET https://h.test/a:b,{c}%22";
    let denied = denial(
        &allowlist("url_prefixes: [{host: h.test, path: /x}]"),
        request,
    );
    let hint = denied.hint();
    let entry = hint.split('`').nth(1).unwrap();
    let list = allowlist(&format!("url_prefixes: [{entry}]"));
    assert_eq!(verdict(&list, request), "url_prefixes[0]", "{hint}");
}

#[test]
fn an_allowed_host_is_reachable_on_its_own_ports_only() {
    let list = allowlist("domains: [h.test]");
    for (request, expected) in [
        ("GET https://h.test:443/", "domains[0]"),
        ("GET http://h.test:80/", "domains[0]"),
        ("GET https://h.test:22/", "port_not_listed"),
        ("GET https://h.test:80/", "port_not_listed"),
        ("GET http://h.test:443/", "port_not_listed"),
    ] {
        assert_eq!(verdict(&list, request), expected, "{request}");
    }
    let denied = denial(&list, "GET https://h.test:22/");
    assert_eq!(
        denied.hint(),
        "write `ports: [443, 80, 22]` into domains[0]"
    );
}

#[test]
fn plain_http_needs_an_entry_that_says_so() {
    let list = allowlist(
        "
domains: [{host: tls.test, schemes: [https]}]
url_prefixes:
  - {host: default.test}
  - {host: plain.test, schemes: [http]}
  - {host: both.test, schemes: [http, https]}
",
    );
    for (request, expected) in [
        ("GET http://tls.test/", "scheme_not_listed"),
        ("GET http://default.test/", "scheme_not_listed"),
        ("GET http://plain.test/", "url_prefixes[1]"),
        ("GET https://plain.test/", "scheme_not_listed"),
        ("GET http://both.test/", "url_prefixes[2]"),
        ("GET https://both.test/", "url_prefixes[2]"),
    ] {
        assert_eq!(verdict(&list, request), expected, "{request}");
    }
}

#[test]
fn a_pattern_that_reaches_every_host_does_not_reach_private_addresses() {
    let list = allowlist("domains: ['*']");
    assert_eq!(verdict(&list, "GET https://1.1.1.1/"), "domains[0]");
    for request in [
        "GET http://127.0.0.1/",
        "GET http://10.0.0.1/",
        "GET http://169.254.169.254/latest/meta-data",
        "GET http://[::1]/",
        "GET http://[::ffff:127.0.0.1]/",
        "GET http://0.0.0.0/",
    ] {
        assert_eq!(verdict(&list, request), "address_refused", "{request}");
    }
}

#[test]
fn an_entry_that_names_an_address_reaches_it() {
    let list = allowlist("domains: [10.0.0.*, 127.0.0.1, 169.254.169.254, '[::1]']");
    assert_eq!(verdict(&list, "GET http://10.0.0.7/"), "domains[0]");
    assert_eq!(verdict(&list, "GET http://127.0.0.1/"), "domains[1]");
    assert_eq!(verdict(&list, "GET http://169.254.169.254/"), "domains[2]");
    assert_eq!(verdict(&list, "GET http://[0::1]/"), "domains[3]");
    assert_eq!(verdict(&list, "GET http://10.0.1.7/"), "host_not_listed");
}

/// What `check_address` says about an address that the first host of a list resolves to.
fn dial(yaml: &str, host: &str, address: &str) -> Result<(), AddressKind> {
    let list = allowlist(yaml);
    let request = format!("GET https://{host}/");
    with_decision(&list, &request, |decision| {
        let Decision::Allow(grant) = decision else {
            panic!("{request} is denied");
        };
        let host = Host::parse(host).unwrap();
        match grant.check_address(&host, address.parse().unwrap()) {
            Ok(()) => Ok(()),
            Err(Denial::AddressRefused { kind, .. }) => Err(kind),
            Err(other) => panic!("{other}"),
        }
    })
}

#[test]
fn a_name_that_resolves_to_a_private_address_is_refused() {
    let plain = "domains: ['*.test', 10.0.0.*]";
    assert_eq!(dial(plain, "h.test", "1.1.1.1"), Ok(()));
    assert_eq!(
        dial(plain, "h.test", "127.0.0.1"),
        Err(AddressKind::Loopback)
    );
    assert_eq!(dial(plain, "h.test", "10.0.0.1"), Err(AddressKind::Private));
    assert_eq!(
        dial(plain, "h.test", "100.64.0.1"),
        Err(AddressKind::Shared)
    );
    assert_eq!(
        dial(plain, "h.test", "fe80::1"),
        Err(AddressKind::LinkLocal)
    );
    assert_eq!(
        dial(plain, "h.test", "::ffff:10.0.0.1"),
        Err(AddressKind::Private)
    );
}

#[test]
fn private_addresses_reach_everything_but_metadata() {
    let private = "domains: [{host: '*.test', private_addresses: true}]";
    for address in [
        "10.0.0.1",
        "127.0.0.1",
        "fe80::1",
        "100.64.0.1",
        "198.18.0.1",
        "fd00::1",
    ] {
        assert_eq!(dial(private, "h.test", address), Ok(()), "{address}");
    }
    for address in [
        "169.254.169.254",
        "fd00:ec2::254",
        "::ffff:169.254.169.254",
        "100.100.100.200",
    ] {
        assert_eq!(
            dial(private, "h.test", address),
            Err(AddressKind::Metadata),
            "{address}"
        );
    }
    assert_eq!(
        dial(private, "h.test", "224.0.0.1"),
        Err(AddressKind::Multicast)
    );
    assert_eq!(
        dial(private, "h.test", "0.0.0.0"),
        Err(AddressKind::Unspecified)
    );
}

#[test]
fn graphql_rules_ask_for_the_body() {
    let list = allowlist(
        "url_prefixes: [{host: h.test, path: /graphql, methods: [POST], graphql: {queries: ['*']}}]",
    );
    assert_eq!(
        verdict(&list, "POST https://h.test/graphql"),
        "url_prefixes[0] if its body passes"
    );
    assert_eq!(
        verdict(&list, "GET https://h.test/graphql"),
        "method_not_listed"
    );
}

#[test]
fn a_broader_entry_does_not_open_what_graphql_rules_close() {
    let list = allowlist(
        "
domains: [h.test]
url_prefixes:
  - {host: h.test, path: /*}
  - {host: '*.test', path: /graphql, methods: [POST], graphql: {queries: ['*']}}
",
    );
    assert_eq!(verdict(&list, "GET https://h.test/other"), "domains[0]");
    assert_eq!(
        verdict(&list, "POST https://h.test/graphql"),
        "url_prefixes[1] if its body passes"
    );
    for request in [
        "GET https://h.test/graphql?query={viewer}",
        "POST https://h.test/graphql?query={viewer}",
        "POST https://h.test/graphql/",
        "POST https://h.test//graphql",
        "POST https://h.test/./graphql",
        "POST https://h.test/GraphQL",
        "POST https://h.test/graphql;x=1",
        "GET https://h.test/graphql",
    ] {
        let verdict = verdict(&list, request);
        assert!(verdict.ends_with("_not_listed"), "{request}: {verdict}");
    }
}

#[test]
fn a_target_that_servers_resolve_is_refused_on_every_entry() {
    assert_eq!(Target::parse(b"/a/..;x"), Err(MalformedTarget::DotSegment));
    let denial = Denial::from(MalformedTarget::DotSegment);
    assert_eq!(denial.code(), "malformed_target");
    assert_eq!(denial.to_string(), "the target holds a dot segment");
}

#[test]
fn a_host_from_the_command_line_is_a_domain() {
    let mut list = Allowlist::default();
    list.allow_host("*.example.com").unwrap();
    assert_eq!(verdict(&list, "GET https://a.example.com/"), "domains[0]");
    assert!(list.allow_host("https://example.com").is_err());
}

#[test]
fn another_path_than_that_of_the_graphql_rules_is_refused() {
    let list = allowlist(
        "url_prefixes: [{host: api.example.com, path: /graphql, methods: [POST], graphql: {queries: ['*']}}]",
    );
    let judged = |path: &str| verdict(&list, &format!("POST https://api.example.com{path}"));
    assert!(judged("/graphql").ends_with("if its body passes"));
    assert!(judged("/%67raphql").ends_with("if its body passes"));
    for path in [
        "/graphql/",
        "/api/graphql",
        "//graphql",
        "/graphql/x",
        "/GraphQL",
        "/graphqls",
    ] {
        assert_eq!(judged(path), "path_not_listed", "{path}");
    }
}
