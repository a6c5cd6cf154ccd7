use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD};
use proptest::{collection::vec, prelude::*};

use super::*;
use crate::fixture::{GITHUB, PASSWORD, SECRET_KEY};

/// Replaces one spelling, as a rewriter would.
fn replaced(forms: &[Form], text: &str) -> Option<String> {
    let longest = forms
        .iter()
        .filter(|form| find(text.as_bytes(), &form.pattern).is_some())
        .max_by_key(|form| form.pattern.len())?;
    let at = find(text.as_bytes(), &longest.pattern)?;
    let mut out = text.as_bytes().to_vec();
    out.splice(
        at..at + longest.pattern.len(),
        longest.replacement.iter().copied(),
    );
    Some(String::from_utf8(out).unwrap())
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

proptest! {
    #[test]
    fn a_replacement_has_the_length_of_what_it_replaces(
        real in "\\PC{1,40}",
        surrogate in "[A-Za-z0-9_-]{1,60}",
    ) {
        for form in forms(&real, &surrogate) {
            prop_assert_eq!(form.pattern.len(), form.replacement.len());
        }
    }

    #[test]
    fn base64_around_a_value_decodes_to_the_same_around_its_surrogate(
        before in vec(any::<u8>(), 0..7),
        after in vec(any::<u8>(), 0..7),
        real in "[!-~]{8,40}",
    ) {
        let surrogate = "x".repeat(real.len());
        let forms = forms(&real, &surrogate);
        let around = |value: &str| [&before, value.as_bytes(), &after].concat();
        for alphabet in [BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD] {
            let echoed = replaced(&forms, &alphabet.encode(&around(&real)));
            prop_assert_eq!(echoed, Some(alphabet.encode(&around(&surrogate))));
        }
    }
}

#[test]
fn the_percent_encoded_value_gives_the_percent_encoded_surrogate() {
    let forms = forms("p&ss/w rd", "abcdefghi");
    for (text, expected) in [
        ("k=p%26ss%2Fw%20rd", "k=a%62cd%65f%67hi"),
        ("k=p%26ss%2fw%20rd", "k=a%62cd%65f%67hi"),
        ("k=p%26ss%2Fw+rd", "k=a%62cd%65fghi"),
        ("/p&ss/w%20rd/", "/abcdef%67hi/"),
    ] {
        assert_eq!(replaced(&forms, text).as_deref(), Some(expected), "{text}");
    }
}

#[test]
fn the_value_in_json_gives_a_string_without_escapes() {
    let surrogate = "s".repeat(PASSWORD.len());
    let forms = forms(PASSWORD, &surrogate);
    for text in [
        r#"{"k":"Tr0ub4dor&3/\"zwölf\" Pferde"}"#,
        r#"{"k":"Tr0ub4dor&3\/\"zw\u00f6lf\" Pferde"}"#,
        r#"{"k":"Tr0ub4dor&3/\"zw\u00F6lf\" Pferde"}"#,
        r#"{"k":"Tr0ub4dor\u00263/\"zwölf\" Pferde"}"#,
    ] {
        let scrubbed = replaced(&forms, text).unwrap();
        let parsed: serde_json::Value = serde_json::from_str(&scrubbed).unwrap();
        let value = parsed["k"].as_str().unwrap();
        assert!(value.chars().all(|c| c == 's' || c == 'x'), "{value}");
        assert_eq!(scrubbed.len(), text.len());
    }
}

#[test]
fn a_surrogate_of_another_length_is_cut_or_repeated() {
    let form = &forms("0123456789", "abc")[0];
    assert_eq!(
        (&form.pattern[..], &form.replacement[..]),
        (&b"0123456789"[..], &b"abcabcabca"[..])
    );
}

#[test]
fn the_spellings_of_usual_values_are_few() {
    let surrogate = |value: &str| crate::Shape::of(value).draw().unwrap();
    for (value, most) in [(GITHUB, 50), (SECRET_KEY, 300), (PASSWORD, 600)] {
        let count = forms(value, surrogate(value).as_str()).len();
        assert!(count <= most, "{count} spellings of {value}");
    }
}
