use super::*;
use crate::{
    MaskedSecret, PreparedSecrets, Redactor,
    fixture::{GITHUB, KEY_ID, SECRET_KEY, aws, github, host, masked, prepared, send},
    prepare_secrets,
};

const RENEWED: &str = "ghp_renewedrenewedrenewed0123456789ABCDE";

fn renewed(
    prepared: &PreparedSecrets,
    env_var: &str,
    value: &str,
) -> Result<PreparedSecrets, SecretsError> {
    Ok(PreparedSecrets {
        env: prepared.env.clone(),
        replacements: prepared
            .replacements
            .with_value(env_var, Secret::new(value))?,
    })
}

#[test]
fn a_surrogate_key_opens_its_credentials_for_hosts_in_scope_only() {
    let token = "token".repeat(100);
    let prepared = prepare_secrets(Vec::new(), vec![aws(Some(&token))]).unwrap();
    let (replacements, surrogate) = (&prepared.replacements, &prepared.env["AWS_ACCESS_KEY_ID"]);
    let entry = replacements
        .signing(&host("s3.amazonaws.com"), surrogate)
        .unwrap();
    assert_eq!(entry.access_key_id.expose(), KEY_ID);
    assert_eq!(entry.secret_access_key.expose(), SECRET_KEY);
    let session = entry.session_token.unwrap();
    assert_eq!(session.real.expose(), token);
    assert_eq!(
        session.surrogate.as_str(),
        prepared.env["AWS_SESSION_TOKEN"]
    );
    assert!(
        replacements
            .signing(&host("evil.test"), surrogate)
            .is_none()
    );
    assert!(
        replacements
            .signing(&host("s3.amazonaws.com"), KEY_ID)
            .is_none()
    );
    assert!(
        replacements
            .signing(&host("s3.amazonaws.com"), "AKIAFOREIGNFOREIGN00")
            .is_none()
    );
}

#[test]
fn foreign_aws_keys_are_refused_on_hosts_in_a_signing_scope_unless_allowed() {
    let (inside, outside) = (host("s3.amazonaws.com"), host("api.github.com"));
    let strict = prepare_secrets(vec![github()], vec![aws(None)])
        .unwrap()
        .replacements;
    assert!(strict.is_signing_scope(&inside) && strict.refuses_foreign_signing(&inside));
    assert!(!strict.is_signing_scope(&outside) && !strict.refuses_foreign_signing(&outside));
    let lenient = crate::SigningCredential {
        allow_foreign_credentials: true,
        ..aws(None)
    };
    let lenient = prepare_secrets(Vec::new(), vec![lenient])
        .unwrap()
        .replacements;
    assert!(lenient.is_signing_scope(&inside) && !lenient.refuses_foreign_signing(&inside));
}

#[test]
fn calls_that_mint_credentials_are_off_unless_allowed() {
    for allowed in [false, true] {
        let credential = crate::SigningCredential {
            allow_credential_minting: allowed,
            ..aws(None)
        };
        let prepared = prepare_secrets(Vec::new(), vec![credential]).unwrap();
        let surrogate = &prepared.env["AWS_ACCESS_KEY_ID"];
        let entry = prepared
            .replacements
            .signing(&host("sts.amazonaws.com"), surrogate)
            .unwrap();
        assert_eq!(entry.allow_credential_minting, allowed);
    }
}

#[test]
fn another_process_gets_the_same_replacements_over_stdin() {
    let mut secret = github();
    secret.query = vec!["key".into()];
    secret.path = true;
    secret.body = Some(BodyRule {
        content_types: vec!["application/json".into()],
    });
    let prepared = prepare_secrets(vec![secret], vec![aws(Some("session-token"))]).unwrap();
    let prepared = renewed(&prepared, "GH_TOKEN", RENEWED).unwrap();
    let bytes = prepared.replacements.to_stdin_bytes().unwrap();
    assert_eq!(
        bytes.len(),
        bytes.capacity(),
        "a buffer that grew leaves copies behind"
    );
    let received = SecretReplacements::from_stdin_bytes(&bytes).unwrap();
    assert_eq!(*received.to_stdin_bytes().unwrap(), *bytes);

    let there = PreparedSecrets {
        env: prepared.env.clone(),
        replacements: received,
    };
    let header = format!("Bearer {}", prepared.env["GH_TOKEN"]);
    let sent = send(&there, "api.github.com", &[("authorization", &header)], "/").unwrap();
    assert_eq!(sent.lines("authorization"), [format!("Bearer {RENEWED}")]);
    let entry = there.replacements.signing(
        &host("s3.amazonaws.com"),
        &prepared.env["AWS_ACCESS_KEY_ID"],
    );
    assert_eq!(entry.unwrap().secret_access_key.expose(), SECRET_KEY);
    assert_eq!(
        Redactor::new(&there.replacements).redact(GITHUB),
        "[redacted]"
    );
}

#[test]
fn bytes_that_do_not_parse_are_refused_without_being_quoted() {
    let bytes = prepared(vec![github()])
        .replacements
        .to_stdin_bytes()
        .unwrap();
    let text = std::str::from_utf8(&bytes).unwrap();
    // The parser's own message would quote the string that it did not expect.
    let misplaced = text.replace("\"path\":false", &format!("\"path\":\"{GITHUB}\""));
    let error = SecretReplacements::from_stdin_bytes(misplaced.as_bytes()).unwrap_err();
    assert!(matches!(error, SecretsError::Handover { .. }));
    assert!(!format!("{error} {error:?}").contains(GITHUB));

    let newer = text.replace("\"version\":1", "\"version\":2");
    let error = SecretReplacements::from_stdin_bytes(newer.as_bytes()).unwrap_err();
    assert!(matches!(
        error,
        SecretsError::HandoverVersion { version: 2 }
    ));

    for cut in 0..bytes.len() {
        assert!(SecretReplacements::from_stdin_bytes(&bytes[..cut]).is_err());
    }
}

#[test]
fn a_renewed_value_keeps_its_surrogate_and_the_old_one_stays_hidden() {
    let before = prepared(vec![github()]);
    let after = renewed(&before, "GH_TOKEN", RENEWED).unwrap();
    let header = format!("Bearer {}", before.env["GH_TOKEN"]);
    let sent = send(&after, "api.github.com", &[("authorization", &header)], "/").unwrap();
    assert_eq!(sent.lines("authorization"), [format!("Bearer {RENEWED}")]);
    let redactor = Redactor::new(&after.replacements);
    assert_eq!(
        redactor.redact(&format!("{GITHUB} {RENEWED}")),
        "[redacted] [redacted]"
    );
    assert!(send(&after, "api.github.com", &[("x", GITHUB)], "/").is_err());
}

#[test]
fn a_renewed_value_obeys_the_rules_of_the_first() {
    let rule = BodyRule {
        content_types: vec!["application/json".into()],
    };
    let prepared = prepared(vec![MaskedSecret {
        body: Some(rule),
        ..github()
    }]);
    let surrogate = prepared.env["GH_TOKEN"].clone();
    let refused = |env_var: &str, value: &str| renewed(&prepared, env_var, value).unwrap_err();
    assert!(matches!(
        refused("OTHER", RENEWED),
        SecretsError::UnknownVariable { .. }
    ));
    assert!(matches!(
        refused("GH_TOKEN", ""),
        SecretsError::EmptyValue { .. }
    ));
    assert!(matches!(
        refused("GH_TOKEN", "line\n"),
        SecretsError::NotAHeaderValue { .. }
    ));
    assert!(matches!(
        refused("GH_TOKEN", "of another length"),
        SecretsError::LengthChanged { .. }
    ));
    assert!(matches!(
        refused("GH_TOKEN", &surrogate),
        SecretsError::Collision { .. }
    ));
}

#[test]
fn only_the_last_few_former_values_are_remembered() {
    let mut prepared = prepared(vec![masked("TOKEN", "value-number-0000", &[], &[])]);
    for number in 1..=9 {
        prepared = renewed(&prepared, "TOKEN", &format!("value-number-000{number}")).unwrap();
    }
    let redactor = Redactor::new(&prepared.replacements);
    let hidden = |number: u8| redactor.redact(&format!("value-number-000{number}")) == "[redacted]";
    assert_eq!(
        Vec::from_iter((0..=9).filter(|&number| hidden(number))),
        [5, 6, 7, 8, 9]
    );
}

#[test]
fn replacements_are_shared_and_not_copied() {
    let replacements = prepared(vec![github()]).replacements;
    assert!(Arc::ptr_eq(&replacements.0, &replacements.clone().0));
}

#[test]
fn everything_that_a_connection_holds_can_move_between_threads() {
    fn assert_send<T: Send>() {}
    fn assert_shared<T: Send + Sync>() {}
    assert_shared::<SecretReplacements>();
    assert_shared::<Redactor>();
    assert_shared::<crate::Scrub>();
    assert_send::<crate::BodyScrubber>();
    assert_send::<crate::FrameScrubber>();
    assert_send::<crate::BodyReplacer>();
}

#[test]
fn without_secrets_nothing_happens() {
    let none = PreparedSecrets {
        env: Default::default(),
        replacements: SecretReplacements::default(),
    };
    let sent = send(
        &none,
        "api.github.com",
        &[("authorization", GITHUB)],
        "/?a=b",
    )
    .unwrap();
    assert_eq!(sent.lines("authorization"), [GITHUB]);
    assert!(none.replacements.scrub(&host("api.github.com")).is_none());
}
