use super::*;
use crate::fixture::{GITHUB, aws, github, masked, prepared};

fn error(masked: Vec<MaskedSecret>) -> SecretsError {
    prepare_secrets(masked, Vec::new()).unwrap_err()
}

#[test]
fn variables_carry_surrogates_and_never_the_value() {
    let prepared = prepare_secrets(vec![github()], vec![aws(Some(&"t".repeat(900)))]).unwrap();
    let names = Vec::from_iter(prepared.env.keys().map(String::as_str));
    assert_eq!(
        names,
        [
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "GH_TOKEN"
        ]
    );
    assert!(prepared.env["GH_TOKEN"].starts_with("ghp_"));
    assert_ne!(prepared.env["GH_TOKEN"], GITHUB);
    assert!(prepared.env["AWS_ACCESS_KEY_ID"].starts_with("AKIA"));
    assert_eq!(prepared.env["AWS_SECRET_ACCESS_KEY"].len(), 40);
    assert_eq!(prepared.env["AWS_SESSION_TOKEN"].len(), 512);
}

#[test]
fn an_empty_value_gives_no_variable() {
    let prepared = prepared(vec![masked(
        "OPTIONAL",
        "",
        &["example.com"],
        &["Authorization"],
    )]);
    assert!(prepared.env.is_empty());
    assert!(prepared.replacements.is_empty());
}

#[test]
fn a_value_too_short_to_be_masked_is_refused_and_not_quoted() {
    let error = error(vec![masked("PIN", "4711", &["example.com"], &["X-Pin"])]);
    let text = error.to_string();
    assert!(
        text.contains("PIN") && text.contains("too short") && text.contains("longer"),
        "{text}"
    );
    assert!(!text.contains("4711") && !format!("{error:?}").contains("4711"));
}

#[test]
fn surrogates_are_drawn_anew_for_every_run() {
    let draw = || prepared(vec![github()]).env["GH_TOKEN"].clone();
    assert_ne!(draw(), draw());
}

#[test]
fn surrogates_of_one_run_are_no_part_of_each_other_nor_of_a_value() {
    // Nine letters of one case: forty-two bits, the least there can be.
    let values = Vec::from_iter(
        (0..200).map(|at| format!("{:a>9}", at.to_string().replace(char::is_numeric, "b"))),
    );
    let secrets = values
        .iter()
        .enumerate()
        .map(|(at, value)| masked(&format!("V{at}"), value, &[], &[]));
    let prepared = prepared(secrets.collect());
    let surrogates = Vec::from_iter(prepared.env.values());
    for (at, surrogate) in surrogates.iter().enumerate() {
        assert!(values.iter().all(|value| !overlap(value, surrogate)));
        assert!(
            surrogates[..at]
                .iter()
                .all(|other| !overlap(other, surrogate))
        );
    }
}

#[test]
fn a_surrogate_that_cannot_keep_apart_is_refused() {
    // Nobody draws four thousand letters without an A among them.
    let drawing = Drawing {
        declared: vec![Declared {
            env_var: "OTHER".into(),
            real: Secret::new("A"),
            role: Role::Masked,
            scopes: Arc::new([]),
        }],
        variables: BTreeSet::new(),
    };
    let declared = Declared {
        env_var: "ONE".into(),
        real: Secret::new("A".repeat(4000)),
        role: Role::Masked,
        scopes: Arc::new([]),
    };
    let error = drawing.draw_one(&declared, &[]).unwrap_err();
    assert!(matches!(error, SecretsError::Collision { env_var } if env_var == "ONE"));
}

#[test]
fn two_credentials_for_one_variable_are_refused() {
    let error = error(vec![github(), github()]);
    assert!(matches!(error, SecretsError::DuplicateVariable { env_var } if env_var == "GH_TOKEN"));
}

#[test]
fn a_name_that_is_no_variable_is_refused() {
    for name in ["", "A=B", "A\0"] {
        let error = error(vec![masked(name, GITHUB, &[], &[])]);
        assert!(
            matches!(error, SecretsError::InvalidVariable { .. }),
            "{name:?}"
        );
    }
}

#[test]
fn a_value_with_a_line_break_is_refused_for_headers() {
    let error = error(vec![masked(
        "TOKEN",
        "abcdefghijkl\n",
        &[],
        &["Authorization"],
    )]);
    assert!(matches!(error, SecretsError::NotAHeaderValue { env_var } if env_var == "TOKEN"));
}

#[test]
fn a_value_that_a_body_would_escape_is_refused_for_bodies() {
    let for_body = |value: &str, content_type: &str| {
        let mut secret = masked("TOKEN", value, &[], &[]);
        secret.body = Some(crate::BodyRule {
            content_types: vec![content_type.into()],
        });
        prepare_secrets(vec![secret], Vec::new()).map(|_| ())
    };
    let (json, form) = ("application/json", "application/x-www-form-urlencoded");
    assert!(for_body("abcd+efgh/ijkl==", json).is_ok());
    assert!(for_body("abcdefgh-ijkl_m", form).is_ok());
    for (value, content_type) in [("abcd\"efghijkl", json), ("abcd+efgh/ijkl==", form)] {
        let error = for_body(value, content_type).unwrap_err();
        assert!(
            matches!(error, SecretsError::NotABodyValue { .. }),
            "{value}"
        );
    }
}

#[test]
fn signing_credentials_are_whole_or_refused() {
    let without_secret = SigningCredential {
        secret_access_key: Secret::new(""),
        ..aws(None)
    };
    let error = prepare_secrets(Vec::new(), vec![without_secret]).unwrap_err();
    assert!(matches!(error, SecretsError::IncompleteCredential { .. }));

    let without_variable = SigningCredential {
        session_token_env_var: None,
        ..aws(Some("token"))
    };
    let error = prepare_secrets(Vec::new(), vec![without_variable]).unwrap_err();
    assert!(matches!(error, SecretsError::NoSessionVariable { .. }));

    let absent = SigningCredential {
        access_key_id: Secret::new(""),
        secret_access_key: Secret::new(""),
        ..aws(None)
    };
    assert!(
        prepare_secrets(Vec::new(), vec![absent])
            .unwrap()
            .env
            .is_empty()
    );
}

#[test]
fn nothing_that_is_printed_shows_a_value() {
    let (secret, credential) = (github(), aws(Some("session-token-value")));
    let mut printed = format!("{secret:?} {credential:?}");
    let prepared = prepare_secrets(vec![secret], vec![credential]).unwrap();
    printed.push_str(&format!("{prepared:?}"));
    for value in [
        GITHUB,
        crate::fixture::KEY_ID,
        crate::fixture::SECRET_KEY,
        "session-token-value",
    ] {
        assert!(!printed.contains(value), "{printed}");
    }
}
