use std::collections::HashSet;

use super::*;

#[test]
fn a_surrogate_keeps_length_prefix_and_kinds_of_characters() {
    for (value, prefix, charset) in [
        (
            "ghp_abcdefghijklmnopqrstuvwxyz12345",
            "ghp_",
            "abcdefghijklmnopqrstuvwxyz0123456789",
        ),
        (
            "glpat-ABCDEFGHIJ0123456789",
            "glpat-",
            "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
        ),
        (
            "ASIAIOSFODNN7EXAMPLE",
            "ASIA",
            "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
        ),
        ("correct horse battery", "", "abcdefghijklmnopqrstuvwxyz-_"),
        ("0123456789012345", "", "0123456789"),
    ] {
        let shape = Shape::of(value);
        assert_eq!(
            (shape.prefix(), shape.charset()),
            (prefix, charset),
            "{value}"
        );
        let surrogate = shape.draw().unwrap();
        assert_eq!(surrogate.as_str().len(), value.len());
        let rest = surrogate.as_str().strip_prefix(prefix).unwrap();
        assert!(rest.chars().all(|c| charset.contains(c)), "{surrogate}");
    }
}

#[test]
fn the_longest_known_prefix_is_kept() {
    assert_eq!(Shape::of("sk-ant-api03-abc").prefix(), "sk-ant-api03-");
    assert_eq!(Shape::of("sk-ant-zzz").prefix(), "sk-ant-");
    assert_eq!(Shape::of("sk-zzz").prefix(), "sk-");
    assert_eq!(Shape::of("xoxe.xoxb-1").prefix(), "xoxe.xoxb-");
}

#[test]
fn a_value_of_several_bytes_a_character_keeps_its_length_in_bytes() {
    let value = "pässwört-grün";
    assert_eq!(Shape::of(value).draw().unwrap().as_str().len(), value.len());
}

#[test]
fn a_bare_prefix_has_no_random_bits() {
    assert_eq!(Shape::of("ghp_").random_bits(), 0);
    assert_eq!(Shape::of("ghp_").draw().unwrap().as_str(), "ghp_");
    assert_eq!(Shape::of("abcdefgh").random_bits(), 37);
    assert_eq!(Shape::of("abcdefg1").random_bits(), 41);
}

#[test]
fn session_tokens_have_512_letters_and_digits() {
    let token = Shape::session_token().draw().unwrap();
    assert_eq!(token.as_str().len(), 512);
    assert!(
        token
            .as_str()
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric())
    );
}

#[test]
fn every_character_is_drawn_about_as_often_as_the_others() {
    let shape = Shape::of(&"a0".repeat(18_000));
    let text = shape.draw().unwrap();
    for c in shape.charset().chars() {
        let count = text.as_str().matches(c).count();
        // 1000 are expected, with a standard deviation of 31.
        assert!((800..1200).contains(&count), "{c} was drawn {count} times");
    }
}

#[test]
fn no_prefix_is_listed_twice() {
    let distinct: HashSet<_> = PREFIXES.iter().collect();
    assert_eq!(distinct.len(), PREFIXES.len());
}
