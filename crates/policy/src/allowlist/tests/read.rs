use crate::{
    Allowlist, AllowlistError, Glob, Schemes, parse_allowlist_yaml, serialize_allowlist_json,
};

fn error(yaml: &str) -> AllowlistError {
    match Allowlist::from_yaml(yaml) {
        Ok(list) => panic!("{list:?}"),
        Err(error) => error,
    }
}

fn message(yaml: &str) -> String {
    error(yaml).in_file("allowlist.yaml")
}

#[test]
fn a_whole_file_is_read_and_written() {
    let yaml = "
# Everything optional is used once.
domains:
  - api.example.com
  - '*.example.org'
  - {host: registry.corp, ports: [5000], schemes: [http], private_addresses: true}
url_prefixes:
  - host: pkgs.example
    path: /simple*
    methods: [GET, HEAD]
  - host: api.example.net
    path: /graphql
    methods: [POST]
    schemes: [https, http]
    ports: [443, 8443]
    private_addresses: true
    graphql:
      queries: ['*']
      mutations: [createIssue]
  - host: files.example
";
    let list = parse_allowlist_yaml(yaml).unwrap();
    assert_eq!(list.domains[2].reach.ports, [5000]);
    assert_eq!(list.domains[0].reach.schemes, Schemes::BOTH);
    let graphql = list.url_prefixes[1].graphql.as_ref().unwrap();
    assert_eq!(graphql.mutations, [Glob::new("createIssue")]);
    assert_eq!(list.url_prefixes[2].reach.schemes, Schemes::HTTPS);

    let json = serialize_allowlist_json(&list);
    let expected = serde_json::json!({
        "domains": [
            "api.example.com",
            "*.example.org",
            {"host": "registry.corp", "ports": [5000], "schemes": ["http"], "private_addresses": true},
        ],
        "url_prefixes": [
            {"host": "pkgs.example", "path": "/simple*", "methods": ["GET", "HEAD"]},
            {
                "host": "api.example.net", "path": "/graphql", "methods": ["POST"],
                "schemes": ["https", "http"], "ports": [443, 8443], "private_addresses": true,
                "graphql": {"queries": ["*"], "mutations": ["createIssue"], "subscriptions": []},
            },
            {"host": "files.example", "path": "", "methods": []},
        ],
    });
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&json).unwrap(),
        expected
    );
    assert_eq!(Allowlist::from_json(&json).unwrap(), list);
}

#[test]
fn an_empty_file_allows_nothing() {
    for yaml in [
        "",
        "\n# nothing\n",
        "---\n",
        "null",
        "{}",
        "domains: []\nurl_prefixes: []\n",
    ] {
        assert_eq!(
            Allowlist::from_yaml(yaml),
            Ok(Allowlist::default()),
            "{yaml:?}"
        );
    }
}

#[test]
fn anchors_repeat_what_they_name() {
    let list = Allowlist::from_yaml(
        "url_prefixes:\n  - {host: a.test, methods: &reads [GET, HEAD]}\n  - {host: b.test, methods: *reads}\n",
    );
    assert_eq!(list.unwrap().url_prefixes[1].methods, ["GET", "HEAD"]);
}

#[test]
fn a_string_where_a_list_belongs_is_an_error() {
    assert_eq!(
        message("domains: '*.github.com'\n"),
        "allowlist.yaml:1:10: domains must be a list, not a string"
    );
    assert_eq!(
        message("url_prefixes:\n  - host: h.test\n    methods: GET\n"),
        "allowlist.yaml:3:14: url_prefixes[0].methods must be a list, not a string"
    );
    assert_eq!(
        error("domains: a").hint(),
        "put a `- ` before each item, or brackets around them"
    );
}

#[test]
fn mistakes_are_named_with_their_place() {
    for (yaml, expected) in MISTAKES {
        let error = error(yaml);
        let message = error.in_file("f");
        assert!(message.contains(expected), "{yaml:?}: {message}");
        assert!(error.line > 0 && error.column > 0, "{yaml:?}");
        assert!(!error.hint().is_empty());
    }
}

#[test]
fn a_close_miss_of_a_key_gets_its_name() {
    assert_eq!(
        error("url_prefixes: [{host: a, method: [GET]}]").hint(),
        "did you mean `methods`?"
    );
    assert_eq!(error("domain: [a]").hint(), "did you mean `domains`?");
    assert_eq!(error("x: 1").hint(), "the keys are domains, url_prefixes");
}

#[test]
fn a_short_text_cannot_become_an_endless_list() {
    let mut yaml = "domains:\n  - &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let items = vec![format!("*a{}", level - 1); 9].join(", ");
        yaml += &format!("  - &a{level} [{items}]\n");
    }
    assert!(message(&yaml).contains("the allowlist is too large"));
    assert!(message(&("[".repeat(100) + &"]".repeat(100))).contains("too large"));
    assert!(message("domains: &a [*a]").contains("this is not valid YAML"));
}

#[test]
fn json_is_read_as_strictly_as_yaml() {
    let read = |json: &str| Allowlist::from_json(json).map_err(|error| error.to_string());
    assert_eq!(read("null"), Ok(Allowlist::default()));
    for (json, expected) in [
        ("", "this is not valid JSON"),
        ("domains: [a]", "this is not valid JSON"),
        (
            r#"{"domains": "abc"}"#,
            "domains must be a list, not a string (line 1, column 13)",
        ),
        (
            r#"{"domains": ["a"], "domains": ["b"]}"#,
            "the key `domains` stands here twice",
        ),
        (
            r#"{"domains": ["a"], "dom\u0061ins": ["b"]}"#,
            "the key `domains` stands here twice",
        ),
        (r#"{"extra": 1}"#, "unknown key `extra`"),
    ] {
        let error = read(json).unwrap_err();
        assert!(error.contains(expected), "{json}: {error}");
    }
}

#[test]
fn a_long_list_survives_the_trip_through_json() {
    let mut list = Allowlist::default();
    for index in 0..5_000 {
        list.allow_host(&format!("host-{index}.example.com"))
            .unwrap();
    }
    assert_eq!(Allowlist::from_json(&list.to_json()), Ok(list));
}

/// A mistake, and what its message holds.
const MISTAKES: &[(&str, &str)] = &[
    ("hosts: [a]", "1:1: unknown key `hosts` in the allowlist"),
    (
        "domains:\n  - host: a\n    port: [1]",
        "3:5: unknown key `port` in domains[0]",
    ),
    (
        "url_prefixes:\n  - host: a\n    method: [GET]",
        "3:5: unknown key `method` in url_prefixes[0]",
    ),
    (
        "url_prefixes:\n  - path: /x",
        "2:5: url_prefixes[0] has no `host`",
    ),
    (
        "url_prefixes: [{host: '', path: /x}]",
        "1:23: url_prefixes[0].host cannot be ``: the host is empty",
    ),
    ("domains: null", "1:10: domains must be a list, not nothing"),
    ("domains:", "1:8: domains must be a list, not nothing"),
    (
        "domains: [1, true]",
        "1:11: domains[0] must be a string, not a number",
    ),
    (
        "domains: [1.5]",
        "1:11: domains[0] must be a string, not a number",
    ),
    (
        "domains: [true]",
        "1:11: domains[0] must be a string, not a boolean",
    ),
    (
        "domains: [[a]]",
        "1:11: domains[0] must be a string, not a list",
    ),
    (
        "- a",
        "1:1: the allowlist must be a map with `domains` and `url_prefixes`, not a list",
    ),
    (
        "just text",
        "1:1: the allowlist must be a map with `domains` and `url_prefixes`, not a string",
    ),
    (
        "domains: [a]\ndomains: [b]",
        "2:1: the key `domains` stands here twice",
    ),
    (
        "domains: [a]\n\"domains\": [b]",
        "2:1: the key `domains` stands here twice",
    ),
    ("1: [a]", "1:1: a key must be a word"),
    (
        "domains: [a]\n---\ndomains: [b]",
        "2:1: the allowlist is one document, and here begins another",
    ),
    (
        "domains: [!secret a]",
        "1:11: the tag `!secret` means nothing here",
    ),
    ("domains: !!str a", "the tag `"),
    ("!x {domains: [a]}", "the tag `!x` means nothing here"),
    ("!x domains: [a]", "the tag `!x` means nothing here"),
    (
        "domains: [a:80]",
        "1:11: domains[0] cannot be `a:80`: a host has no port",
    ),
    (
        "domains: ['https://a']",
        "1:11: domains[0] cannot be `https://a`: a host has no scheme",
    ),
    (
        "url_prefixes: [{host: a, path: null}]",
        "1:32: url_prefixes[0].path must be a string, not nothing",
    ),
    (
        "url_prefixes: [{host: a, path: api}]",
        "url_prefixes[0].path cannot be `api`: a path begins with a slash",
    ),
    (
        "url_prefixes: [{host: a, path: /a%20b}]",
        "paths are compared decoded, so a percent escape never matches",
    ),
    (
        "url_prefixes: [{host: a, methods: null}]",
        "url_prefixes[0].methods must be a list, not nothing",
    ),
    (
        "url_prefixes: [{host: a, methods: [GET, 'G T']}]",
        "url_prefixes[0].methods[1] cannot be `G T`",
    ),
    (
        "url_prefixes: [{host: a, ports: 80}]",
        "url_prefixes[0].ports must be a list, not a number",
    ),
    (
        "url_prefixes: [{host: a, ports: [0]}]",
        "url_prefixes[0].ports[0] cannot be `0`",
    ),
    (
        "url_prefixes: [{host: a, ports: [65536]}]",
        "it must be a port from 1 to 65535",
    ),
    (
        "url_prefixes: [{host: a, ports: ['80']}]",
        "url_prefixes[0].ports[0] must be a number, not a string",
    ),
    (
        "url_prefixes: [{host: a, ports: []}]",
        "it must be at least one port",
    ),
    (
        "url_prefixes: [{host: a, schemes: []}]",
        "it must be http, https or both",
    ),
    (
        "url_prefixes: [{host: a, schemes: [ftp]}]",
        "url_prefixes[0].schemes cannot be `ftp`",
    ),
    (
        "url_prefixes: [{host: a, private_addresses: yes}]",
        "must be true or false, not a string",
    ),
    (
        "url_prefixes: [{host: a, graphql: null}]",
        "url_prefixes[0].graphql must be a map, not nothing",
    ),
    (
        "url_prefixes: [{host: a, graphql: {query: []}}]",
        "unknown key `query` in url_prefixes[0].graphql",
    ),
    ("domains: [*.example.com]", "this is not valid YAML"),
    ("[invalid: yaml: {", "this is not valid YAML"),
    ("domains: [a\u{7}]", "this is not valid YAML"),
];
