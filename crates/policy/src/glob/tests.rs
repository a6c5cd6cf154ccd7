use super::*;

#[test]
fn patterns_match_whole_texts() {
    for (pattern, text, expected) in [
        ("", "", true),
        ("", "a", false),
        ("abc", "abc", true),
        ("abc", "abcd", false),
        ("abc", "ABC", false),
        ("*", "", true),
        ("*", "a\nb/c.d", true),
        ("a*", "a", true),
        ("a*", "ba", false),
        ("*a", "ba", true),
        ("*a", "ab", false),
        ("a*c", "abcbc", true),
        ("a*c", "abcb", false),
        ("a**c", "ac", true),
        ("*a*b*", "xaxbx", true),
        ("*a*b*", "xbxax", false),
        ("?", "ü", true),
        ("?", "", false),
        ("a?c", "abc", true),
        ("a?c", "ac", false),
        ("*?", "", false),
        ("*?", "ab", true),
        ("[a-c]x*", "bx", true),
        ("[a-c]x*", "dx", false),
        ("[!a-c]x*", "dx", true),
        ("[!a-c]x*", "bx", false),
        ("[]x]*", "]", true),
        ("[!]x]*", "]", false),
        ("[a-]*", "-", true),
        ("[c-a]*", "b", false),
        ("[*", "[x", true),
        ("x[*", "x", false),
        ("[abc]", "a", false),
        ("[abc]", "[abc]", true),
        ("[?]", "?", true),
        ("[?]", "x", false),
        ("*[*]", "a*", true),
    ] {
        assert_eq!(
            Glob::new(pattern).matches(text),
            expected,
            "{pattern:?} {text:?}"
        );
    }
}

#[test]
fn names_match_in_any_case() {
    for (pattern, name, expected) in [
        ("Authorization", "authorization", true),
        ("X-*", "x-api-key", true),
        ("x-[A-C]*", "X-b", true),
        ("X-*", "Authorization", false),
        ("*-token", "PRIVATE-TOKEN", true),
        ("X-?-Key", "x-ab-key", false),
    ] {
        assert_eq!(
            NamePattern::new(pattern).matches(name),
            expected,
            "{pattern} {name}"
        );
    }
}

#[test]
fn many_stars_do_not_explode() {
    let pattern = "*a".repeat(50) + "b";
    let text = "a".repeat(10_000);
    assert!(!Glob::new(&pattern).matches(&text));
}
