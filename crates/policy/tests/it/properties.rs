use std::net::IpAddr;

use cordon_policy::{
    AddressKind, Allowlist, Authority, Decision, Glob, GraphqlRules, Host, HostPattern,
    NamePattern, PathPattern, RequestHead, Scheme, Target, address_kind,
};
use proptest::{collection::vec, prelude::*, sample::select};

proptest! {
    #[test]
    fn normalising_a_host_twice_changes_nothing(raw in host_like()) {
        if let Ok(host) = Host::parse(&raw) {
            prop_assert_eq!(&Host::parse(host.as_str()).unwrap(), &host);
            prop_assert_eq!(host.ip(), host.as_str().parse().ok());
            prop_assert!(host.as_str().bytes().all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase()));
            prop_assert!(!host.as_str().ends_with('.'));
        }
    }

    #[test]
    fn an_authority_survives_its_own_spelling(raw in authority_like()) {
        if let Ok(authority) = Authority::parse(raw.as_bytes()) {
            prop_assert_eq!(Authority::parse(authority.to_string().as_bytes()), Ok(authority));
        }
    }

    #[test]
    fn bytes_never_make_a_parser_panic(bytes in vec(any::<u8>(), 0..200)) {
        let text = String::from_utf8_lossy(&bytes);
        let _ = (Host::parse(&text), Authority::parse(&bytes), Target::parse(&bytes));
        let _ = (HostPattern::parse(&text), PathPattern::parse(&text));
        let _ = (Allowlist::from_yaml(&text), Allowlist::from_json(&text));
        let target = Target::parse(b"/").unwrap();
        let _ = GraphqlRules::default().check(&target, &bytes);
    }

    #[test]
    fn yaml_never_makes_the_parser_panic(text in yaml_like()) {
        if let Ok(list) = Allowlist::from_yaml(&text) {
            prop_assert_eq!(Allowlist::from_json(&list.to_json()), Ok(list));
        }
    }

    #[test]
    fn a_parsed_target_holds_nothing_that_a_server_resolves(raw in target_like()) {
        let Ok(target) = Target::parse(raw.as_bytes()) else { return Ok(()) };
        prop_assert_eq!(target.raw(), if raw.is_empty() { "/" } else { &raw });
        if target.is_asterisk() {
            return Ok(());
        }
        let mut path = target.path().to_owned();
        for _ in 0..8 {
            prop_assert!(path.starts_with('/'));
            for segment in path.split(['/', '\\']) {
                let stem = segment.split([';', '?', '#']).next().unwrap().trim_end();
                prop_assert_ne!(stem, "..", "{} in {}", segment, raw);
            }
            path = percent_decode(&path);
        }
        let decoded = [target.path(), target.query().unwrap_or_default()].concat();
        prop_assert!(!decoded.contains(|character: char| character.is_control() || character == '\\'));
    }

    #[test]
    fn decide_never_panics_and_never_allows_a_dot_segment(
        list in allowlist(), host in host_like(), port: u16, method in "[A-Za-z]{0,7}", target in target_like(),
    ) {
        let (Ok(host), Ok(parsed)) = (Host::parse(&host), Target::parse(target.as_bytes())) else { return Ok(()) };
        for scheme in [Scheme::Http, Scheme::Https] {
            let head = RequestHead { scheme, host: &host, port, method: &method, target: &parsed };
            match list.decide(&head) {
                Decision::Allow(_) | Decision::Inspect(..) => {
                    let resolved = percent_decode(&percent_decode(&target));
                    let resolved = resolved.split('?').next().unwrap();
                    prop_assert!(resolved.split('/').all(|segment| segment != ".."), "{}", target);
                }
                Decision::Deny(denial) => {
                    prop_assert!(!denial.code().is_empty() && !denial.to_string().is_empty());
                    prop_assert!(!denial.hint().is_empty());
                }
            }
        }
    }

    #[test]
    fn a_denied_host_stays_denied_in_every_spelling(list in allowlist(), host in name(), case in vec(any::<bool>(), 64)) {
        let plain = Host::parse(&host).unwrap();
        let spelled: String = host
            .chars()
            .zip(case.into_iter().cycle())
            .map(|(character, upper)| if upper { character.to_ascii_uppercase() } else { character })
            .collect();
        for other in [spelled.clone(), format!("{spelled}."), format!("{spelled}:443")] {
            let Ok(authority) = Authority::parse(other.as_bytes()) else { continue };
            prop_assert_eq!(allows(&list, &plain), allows(&list, &authority.host), "{}", other);
        }
        let with_port = spelled + ":443";
        prop_assert!(Host::parse(&with_port).is_err());
    }

    #[test]
    fn an_allowed_address_is_public_or_named(list in allowlist(), ip in address()) {
        let host = Host::from(ip);
        if allows(&list, &host) && address_kind(ip) != AddressKind::Public {
            let domains = list.domains.iter().map(|entry| (&entry.host, &entry.reach));
            let prefixes = list.url_prefixes.iter().map(|entry| (&entry.host, &entry.reach));
            let named = domains.chain(prefixes).any(|(pattern, reach)| {
                let numeric = pattern.as_str().starts_with(|first: char| first.is_ascii_digit());
                pattern.matches(&host) && (reach.private_addresses || numeric)
            });
            prop_assert!(named, "{}", ip);
        }
    }

    #[test]
    fn globs_agree_with_a_slow_and_simple_matcher(pattern in "[ab*?]{0,8}", text in "[ab?]{0,10}") {
        let characters = |text: &str| Vec::from_iter(text.chars());
        let expected = simple(&characters(&pattern), &characters(&text));
        prop_assert_eq!(Glob::new(&pattern).matches(&text), expected);
        prop_assert_eq!(NamePattern::new(&pattern).matches(&text.to_uppercase()), expected);
    }

    #[test]
    fn a_path_pattern_never_allows_more_than_the_same_glob_over_the_whole_target(
        pattern in "/[ab*?]{0,8}", target in "/[ab?]{0,10}",
    ) {
        let parsed = Target::parse(target.as_bytes()).unwrap();
        if PathPattern::parse(&pattern).unwrap().matches(&parsed) {
            prop_assert!(Glob::new(&pattern).matches(&target), "{} {}", pattern, target);
        }
    }
}

fn allows(list: &Allowlist, host: &Host) -> bool {
    let target = Target::parse(b"/").unwrap();
    let head = RequestHead {
        scheme: Scheme::Https,
        host,
        port: 443,
        method: "GET",
        target: &target,
    };
    matches!(
        list.decide(&head),
        Decision::Allow(_) | Decision::Inspect(..)
    )
}

/// A matcher too simple to be wrong.
fn simple(pattern: &[char], text: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['*', rest @ ..] => (0..=text.len()).any(|skipped| simple(rest, &text[skipped..])),
        ['?', rest @ ..] => !text.is_empty() && simple(rest, &text[1..]),
        [first, rest @ ..] => text.first() == Some(first) && simple(rest, &text[1..]),
    }
}

fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let digits = (first == b'%').then(|| tail.get(..2)).flatten();
        let decoded = digits
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).ok());
        bytes.push(decoded.unwrap_or(first));
        rest = if decoded.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn name() -> impl Strategy<Value = String> {
    vec("[a-z][a-z0-9]{0,2}-?[a-z0-9]{1,3}", 1..4).prop_map(|labels| labels.join("."))
}

fn host_like() -> impl Strategy<Value = String> {
    let part = select(vec![
        "a",
        "example",
        "EXAMPLE",
        "com",
        ".",
        "..",
        "-",
        "_",
        "ü",
        "ß",
        "xn--",
        "bcher-kva",
        "。",
        "１",
        "127",
        "0x7f",
        "0",
        "1",
        "[",
        "]",
        ":",
        "::",
        "ffff",
        "%",
        "@",
        " ",
        "\0",
        "\u{200d}",
    ]);
    prop_oneof![
        name(),
        vec(part, 0..8).prop_map(|parts| parts.concat()),
        any::<String>()
    ]
}

fn address() -> impl Strategy<Value = IpAddr> {
    let special = select(vec![
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "::1",
        "::ffff:10.0.0.1",
        "fd00:ec2::254",
    ]);
    prop_oneof![
        any::<IpAddr>(),
        special.prop_map(|text| text.parse().unwrap())
    ]
}

fn authority_like() -> impl Strategy<Value = String> {
    (host_like(), prop_oneof![Just(String::new()), ":[0-9]{0,6}"])
        .prop_map(|(host, port)| host + &port)
}

fn target_like() -> impl Strategy<Value = String> {
    let part = select(vec![
        "/", "a", "b", ".", "..", ";", "?", "#", "%", "25", "2e", "2E", "2f", "5c", "%2e", "%2f",
        "%252e", "%252f", "\\", "%00", "%0a", "%c0%ae", "%u002e", " ", "%20", "x=1", "ü", "*",
    ]);
    prop_oneof![
        vec(part, 0..10).prop_map(|parts| "/".to_owned() + &parts.concat()),
        any::<String>(),
    ]
}

fn allowlist() -> impl Strategy<Value = Allowlist> {
    let host = prop_oneof![
        name(),
        name().prop_map(|name| format!("*.{name}")),
        name().prop_map(|name| name.replace(['a', 'e', 'i'], "?")),
        select(vec!["*", "10.*", "127.0.0.1", "a*", "*.com"]).prop_map(str::to_owned),
    ];
    let path = select(vec!["", "/", "/a*", "/*/a", "/a/?/b", "*", "/a[?]x=*"]);
    let graphql = select(vec!["", ", graphql: {queries: ['*']}"]);
    let private = any::<bool>();
    let domains = vec((host.clone(), private), 0..4);
    let prefixes = vec((host, path, graphql), 0..4);
    (domains, prefixes).prop_map(|(domains, prefixes)| {
        let mut yaml = "domains:\n  - unused.test\n".to_owned();
        for (host, private) in domains {
            yaml += &format!("  - {{host: '{host}', private_addresses: {private}}}\n");
        }
        yaml += "url_prefixes:\n  - {host: unused.test}\n";
        for (host, path, graphql) in prefixes {
            yaml += &format!("  - {{host: '{host}', path: '{path}'{graphql}}}\n");
        }
        Allowlist::from_yaml(&yaml).unwrap_or_else(|error| panic!("{error}\n{yaml}"))
    })
}

fn yaml_like() -> impl Strategy<Value = String> {
    let part = select(vec![
        "domains",
        "url_prefixes",
        "host",
        "path",
        "methods",
        "graphql",
        "ports",
        ": ",
        ":",
        "\n",
        "  ",
        "- ",
        "[",
        "]",
        "{",
        "}",
        ", ",
        "'*'",
        "\"a.test\"",
        "a.test",
        "&a ",
        "*a",
        "!t ",
        "!!str ",
        "null",
        "true",
        "443",
        "|\n",
        ">",
        "? ",
        "---\n",
        "...\n",
        "# c\n",
        "<<",
        "\t",
        "%TAG",
    ]);
    let shaped =
        vec((name(), "(/[a-z*?]{0,6})?", vec("[A-Z]{1,6}", 0..3)), 0..4).prop_map(|entries| {
            let mut yaml = "url_prefixes:\n  - {host: unused.test}\n".to_owned();
            for (host, path, methods) in entries {
                yaml +=
                    &format!("  - host: '{host}'\n    path: '{path}'\n    methods: {methods:?}\n");
            }
            yaml
        });
    prop_oneof![vec(part, 0..30).prop_map(|parts| parts.concat()), shaped]
}
