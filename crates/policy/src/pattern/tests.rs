use super::*;

fn host_matches(pattern: &str, host: &str) -> bool {
    let pattern = HostPattern::parse(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    pattern.matches(&Host::parse(host).unwrap())
}

#[test]
fn hosts_match_in_their_normal_spelling() {
    for (pattern, host, expected) in [
        ("api.example.com", "API.example.com.", true),
        ("API.Example.com.", "api.example.com", true),
        ("*.example.com", "a.b.example.com", true),
        ("*.example.com.", "a.example.com", true),
        ("*.example.com", "example.com", false),
        ("*.example.com", "aexample.com", false),
        ("*", "example.com", true),
        ("*", "10.0.0.1", true),
        ("api?.example.com", "api1.example.com", true),
        ("[a-c]pi.*", "bpi.test", true),
        ("bücher.example", "xn--bcher-kva.example", true),
        ("*.BÜCHER.example", "www.bücher.example", true),
        ("*.bücher.example", "www.xn--bcher-kva.example", true),
        ("[::1]", "0::1", true),
        ("::1", "[::1]", true),
        ("10.0.0.*", "10.0.0.7", true),
        ("10.0.0.*", "10.0.1.7", false),
    ] {
        assert_eq!(host_matches(pattern, host), expected, "{pattern} {host}");
    }
}

#[test]
fn a_host_pattern_that_could_never_match_is_an_error() {
    for (pattern, error) in [
        ("", InvalidPattern::Empty),
        ("https://example.com", InvalidPattern::Url),
        ("example.com/path", InvalidPattern::Path),
        ("example.com:8443", InvalidPattern::Port),
        ("*.example.com:8443", InvalidPattern::Port),
        ("[a-c]pi.test", InvalidPattern::Class),
        ("a[a-c]pi.test", InvalidPattern::Class),
        ("b*ü.example", InvalidPattern::InternationalWildcard),
        ("a b", InvalidPattern::Host(InvalidHost::Character)),
        ("* b", InvalidPattern::Host(InvalidHost::Character)),
        ("a@*", InvalidPattern::Host(InvalidHost::Character)),
        ("127.1", InvalidPattern::Host(InvalidHost::Address)),
        ("a..b", InvalidPattern::Host(InvalidHost::EmptyLabel)),
    ] {
        assert_eq!(HostPattern::parse(pattern), Err(error), "{pattern}");
        assert!(!error.hint().is_empty());
    }
}

#[test]
fn only_patterns_written_as_addresses_name_addresses() {
    let ten = Host::parse("10.0.0.7").unwrap();
    for (pattern, expected) in [
        ("10.0.0.7", true),
        ("10.0.0.*", true),
        ("10.*", true),
        ("10.0.0.[1-9]*", true),
        ("*", false),
        ("1*", false),
        ("*.0.0.7", false),
        ("10.0.0.*.example", false),
    ] {
        assert_eq!(
            HostPattern::parse(pattern).unwrap().names_address(&ten),
            expected,
            "{pattern}"
        );
    }
    let name = Host::parse("10.evil.example").unwrap();
    assert!(!HostPattern::parse("10.*").unwrap().names_address(&name));
}

fn path_matches(pattern: &str, target: &str) -> bool {
    let pattern = PathPattern::parse(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    pattern.matches(&Target::parse(target.as_bytes()).unwrap())
}

#[test]
fn paths_match_decoded_and_with_their_case() {
    for (pattern, target, expected) in [
        ("", "/any?thing", true),
        ("/graphql", "/graphql", true),
        ("/graphql", "/%67raphql", true),
        ("/graphql", "/graphql/", false),
        ("/graphql", "/Graphql", false),
        ("/v?/api", "/v2/api", true),
        ("/v?/api", "/v10/api", false),
        ("/repos/o/r*", "/repos/o/r/x", true),
        ("/repos/o/r*", "/repos/o/r2", true),
        ("*", "/any", true),
        ("/a b", "/a%20b", true),
        ("/100%", "/100%25", true),
        ("*/info", "/x/info", true),
    ] {
        assert_eq!(
            path_matches(pattern, target),
            expected,
            "{pattern} {target}"
        );
    }
}

#[test]
fn a_query_is_covered_only_by_a_pattern_that_reaches_it() {
    for (pattern, target, expected) in [
        ("/graphql", "/graphql?x=1", false),
        ("/graphql", "/graphql?", false),
        ("/graphql*", "/graphql?x=1", true),
        ("/search[?]q=*", "/search?q=a", true),
        ("/search[?]q=*", "/search?r=a", false),
        ("/search?q=*", "/search?q=a", true),
        ("/search?q=a", "/search?q=a", true),
        ("/search?q=a", "/search?q=ab", false),
        ("/a?b=?", "/a?b=c", true),
        ("/*?x=1", "/a/b?x=1", true),
        // A star inside the pattern stays inside the path.
        ("/api/*/data", "/api/x?y=/data", false),
        ("/files/*.txt", "/files/secret?.txt", false),
        ("/api/*/data*", "/api/x?y=/data", false),
        ("/api/*/data*", "/api/x/data?y", true),
        // An encoded question mark belongs to the path.
        ("/a[?]b", "/a%3Fb", true),
        ("/a", "/a%3Fb", false),
        ("/a[!x]b", "/a?b", false),
    ] {
        assert_eq!(
            path_matches(pattern, target),
            expected,
            "{pattern} {target}"
        );
    }
}

#[test]
fn a_single_dot_must_match_whether_it_is_dropped_or_not() {
    assert!(path_matches("/repos/o/r*", "/repos/o/r/./x"));
    assert!(!path_matches("/*/public", "/./public"));
    assert!(!path_matches("/public", "/./public"));
    assert!(path_matches("", "/./public"));
}

#[test]
fn a_path_pattern_that_could_never_match_is_an_error() {
    assert_eq!(
        PathPattern::parse("/a%2Fb"),
        Err(InvalidPattern::PercentEscape)
    );
    assert_eq!(
        PathPattern::parse("api/*"),
        Err(InvalidPattern::NoLeadingSlash)
    );
}
