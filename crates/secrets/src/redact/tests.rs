use std::{borrow::Cow, sync::LazyLock};

use data_encoding::{BASE64, BASE64URL_NOPAD};
use proptest::prelude::*;

use super::*;
use crate::fixture::{GITHUB, PASSWORD, SECRET_KEY, aws, github};
use crate::prepare_secrets;

static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| {
    let prepared = prepare_secrets(vec![github()], vec![aws(Some(&"session".repeat(80)))]).unwrap();
    Redactor::new(&prepared.replacements).and([PASSWORD])
});

#[test]
fn real_values_are_redacted_in_plain_base64_url_encoded_and_json() {
    for text in [
        GITHUB.to_owned(),
        format!("Authorization: Bearer {GITHUB}\r\n"),
        format!("url=https://x:{GITHUB}@github.com/"),
        BASE64.encode(format!("user:{GITHUB}").as_bytes()),
        BASE64URL_NOPAD.encode(format!("{{\"token\":\"{GITHUB}\"}}").as_bytes()),
        "wJalrXUtnFEMI%2FK7MDENG%2FbPxRfiCYEXAMPLEKEY".to_owned(),
        "Tr0ub4dor%263%2F%22zw%C3%B6lf%22%20Pferde".to_owned(),
        serde_json::to_string(PASSWORD).unwrap(),
        "session".repeat(80),
    ] {
        let redacted = REDACTOR.redact(&text);
        assert!(redacted.contains("[redacted]"), "{redacted}");
        assert!(
            ![GITHUB, PASSWORD, SECRET_KEY]
                .iter()
                .any(|value| redacted.contains(value))
        );
    }
}

#[test]
fn what_holds_no_value_is_passed_on_uncopied() {
    assert!(matches!(
        REDACTOR.redact("ghp_ is a prefix"),
        Cow::Borrowed("ghp_ is a prefix")
    ));
}

#[test]
fn surrogates_are_shown() {
    let prepared = crate::fixture::prepared(vec![github()]);
    let surrogate = &prepared.env["GH_TOKEN"];
    assert_eq!(
        Redactor::new(&prepared.replacements).redact(surrogate),
        *surrogate
    );
}

#[test]
fn values_that_overlap_go_whole() {
    let redactor = Redactor::new(&SecretReplacements::default());
    let redactor = redactor.and(["one-two-three"]).and(["three-four-five"]);
    assert_eq!(redactor.redact("<one-two-three-four-five>"), "<[redacted]>");
}

#[test]
fn values_of_less_than_four_bytes_are_not_looked_for() {
    let redactor = Redactor::new(&SecretReplacements::default()).and(["", "1", "yes"]);
    assert_eq!(redactor.redact("1 yes"), "1 yes");
}

proptest! {
    #[test]
    fn text_around_a_value_stays(before in "\\PC{0,20}", after in "\\PC{0,20}") {
        let redacted = REDACTOR.redact(&format!("{before}{GITHUB}{after}")).into_owned();
        prop_assert_eq!(redacted, format!("{before}[redacted]{after}"));
    }
}
