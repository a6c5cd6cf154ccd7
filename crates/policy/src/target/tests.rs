use super::*;

fn parsed(raw: &str) -> (String, Option<String>) {
    let target = Target::parse(raw.as_bytes()).unwrap_or_else(|error| panic!("{raw}: {error}"));
    assert_eq!(target.raw(), raw);
    (target.path().to_owned(), target.query().map(str::to_owned))
}

fn refused(raw: &[u8]) -> MalformedTarget {
    match Target::parse(raw) {
        Ok(target) => panic!("{target:?}"),
        Err(error) => error,
    }
}

#[test]
fn path_and_query_are_decoded_once() {
    for (raw, path, query) in [
        ("/", "/", None),
        ("/a/b", "/a/b", None),
        ("/a?", "/a", Some("")),
        ("/a?b?c", "/a", Some("b?c")),
        ("/%67raphql?q=%67", "/graphql", Some("q=g")),
        ("/a%3Fb?c", "/a?b", Some("c")),
        ("/a%23b", "/a#b", None),
        ("/a+b%20c", "/a+b c", None),
        ("/100%", "/100%", None),
        ("/a%zz%2", "/a%zz%2", None),
        ("/%25252541", "/%252541", None),
        ("/caf%C3%A9/ü", "/café/ü", None),
        ("/latin%E9", "/latin\u{fffd}", None),
        ("//a//b/", "//a//b/", None),
        ("/a/...", "/a/...", None),
        ("/..a/a../.a/a.", "/..a/a../.a/a.", None),
        ("/a?next=%252e%252e", "/a", Some("next=%2e%2e")),
        ("/a?x=..", "/a", Some("x=..")),
    ] {
        assert_eq!(
            parsed(raw),
            (path.to_owned(), query.map(str::to_owned)),
            "{raw}"
        );
    }
}

#[test]
fn the_empty_target_is_the_root() {
    let target = Target::parse(b"").unwrap();
    assert_eq!(
        (target.raw(), target.path(), target.query()),
        ("/", "/", None)
    );
}

#[test]
fn the_asterisk_is_a_target_of_its_own() {
    assert!(Target::parse(b"*").unwrap().is_asterisk());
    assert!(!Target::parse(b"/*").unwrap().is_asterisk());
    assert_eq!(refused(b"**"), MalformedTarget::NoLeadingSlash);
}

#[test]
fn dot_segments_are_refused_in_every_spelling() {
    for raw in [
        "/..",
        "/../",
        "/a/..",
        "/a/../b",
        "/a/..?x=1",
        "/a/%2e%2e",
        "/a/%2E./b",
        "/a/.%2e",
        "/a/%2e%2e%2fb",
        "/a%2f..%2fb",
        "/a/..;x",
        "/a/..;x=y/b",
        "/a/..%3bx/b",
        "/a/%2e%2e%3fx",
        "/a/..%23x",
        "/a/..%20/b",
        "/a/%252e%252e/b",
        "/a/..%252f",
        "/a/.%252e",
        "/a/%25252e%25252e/b",
        "/a/..%253bx",
        "/a/%255c..%255cb",
        "/a?x=/../b",
        "/a?x=/..",
        "/a?x=%2f..%2fb",
        "/.;x/a",
        "/%252e/a",
        "/.%20/a",
    ] {
        assert_eq!(
            refused(raw.as_bytes()),
            MalformedTarget::DotSegment,
            "{raw}"
        );
    }
}

#[test]
fn encodings_that_only_some_servers_know_are_refused() {
    for raw in [
        "/a/%c0%ae%c0%ae/b",
        "/a%c0%af..",
        "/%c1%9c",
        "/%e0%80%ae",
        "/%f0%80%80%ae",
        "/a?x=%c0%ae",
        "/%u002e%u002e/a",
        "/%25u002e%25u002e/a",
        "/%2525252525252541",
    ] {
        assert_eq!(refused(raw.as_bytes()), MalformedTarget::Encoding, "{raw}");
    }
}

#[test]
fn bytes_that_no_target_has_are_refused() {
    for (raw, error) in [
        (&b"/a%00"[..], MalformedTarget::Nul),
        (b"/a\0", MalformedTarget::Nul),
        (b"/a?x=%00", MalformedTarget::Nul),
        (b"/a\\b", MalformedTarget::Backslash),
        (b"/a%5Cb", MalformedTarget::Backslash),
        (b"/a?x=%5c", MalformedTarget::Backslash),
        (b"/a%0d%0aX: y", MalformedTarget::Control),
        (b"/a%0d%0aX:y", MalformedTarget::Control),
        (b"/a b", MalformedTarget::Control),
        (b"/a\tb", MalformedTarget::Control),
        (b"/a%7f", MalformedTarget::Control),
        (b"/a%C2%85", MalformedTarget::Control),
        (b"/a?x=%1b", MalformedTarget::Control),
        (b"/a#b", MalformedTarget::Fragment),
        (b"/a\xff", MalformedTarget::NotUtf8),
        (b"a", MalformedTarget::NoLeadingSlash),
        (b"../x", MalformedTarget::NoLeadingSlash),
        (b"?x", MalformedTarget::NoLeadingSlash),
        (b"%2fa", MalformedTarget::NoLeadingSlash),
        (b"http://h/a", MalformedTarget::NoLeadingSlash),
    ] {
        assert_eq!(refused(raw), error, "{}", raw.escape_ascii());
    }
}

#[test]
fn single_dots_are_known_in_both_readings() {
    for (raw, resolved) in [
        ("/a/./b", Some("/a/b")),
        ("/./a", Some("/a")),
        ("/a/.", Some("/a/")),
        ("/%2e/a?x", Some("/a")),
        ("/././", Some("/")),
        ("/.", Some("/")),
        ("/a/.b", None),
    ] {
        let target = Target::parse(raw.as_bytes()).unwrap();
        assert_eq!(target.resolved_path(), resolved, "{raw}");
    }
}
