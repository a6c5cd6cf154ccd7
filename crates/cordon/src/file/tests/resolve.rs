use std::{ffi::OsString, os::unix::ffi::OsStringExt, path::PathBuf, time::Duration};

use cordon_policy::{Host, HostPattern};

use super::{
    super::{FileErrorKind, HostEnv},
    GITHUB, KEY_ID, SECRET_KEY, SandboxFile, env, notices, pairs, parse, refused, resolve,
};
use crate::{BuildMode, Level, ResourceLimits};

/// Uses every key once.
const WHOLE: &str = "
env:
  CI: true
  RETRIES: 3
  RATIO: 1.50
  GREETING: \"hello world\"
  LANG: !env LANG
  NPM_TOKEN: !secret NPM_TOKEN
  SENTRY_DSN: !secret? SENTRY_DSN
pass_env: [TERM, EDITOR]
masked_secrets:
  GH_TOKEN:
    value: !secret GH_TOKEN
    scopes: [api.github.com, '*.githubusercontent.com']
    headers: [Authorization, X-*-Token]
    allow_foreign_credentials: true
    query: [access_token]
    path: true
    body: {content_types: [application/json]}
  HOOK:
    value: !secret? HOOK
    scopes: [hooks.example]
    path: true
signing_credentials:
  storage:
    type: aws-sigv4
    access_key_id: !env STORAGE_KEY_ID
    secret_access_key: !secret STORAGE_SECRET
    session_token: !secret? STORAGE_TOKEN
    scopes: ['*.amazonaws.com']
    allow_credential_minting: true
    allow_foreign_credentials: true
network_sandbox:
  enabled: true
  allowlist: rules/allowlist.yaml
resource_limits: {timeout: 300, memory: 4g, cpus: 0.5, pids: 256}
secrets:
  environment: true
";

const HOST: &[(&str, &str)] = &[
    ("LANG", "C.UTF-8"),
    ("TERM", "xterm"),
    ("NPM_TOKEN", "npm_real-value-of-the-token"),
    ("GH_TOKEN", GITHUB),
    ("STORAGE_KEY_ID", KEY_ID),
    ("STORAGE_SECRET", SECRET_KEY),
];

#[tokio::test]
async fn a_whole_file_is_resolved() {
    let file = SandboxFile::parse(WHOLE, "project/.cordon/sandbox.yaml").unwrap();
    let resolved = file.resolve(&env(HOST)).await.unwrap();
    assert_eq!(
        pairs(&resolved.env),
        [
            ("CI", "true"),
            ("GREETING", "hello world"),
            ("LANG", "C.UTF-8"),
            ("NPM_TOKEN", "npm_real-value-of-the-token"),
            ("RATIO", "1.50"),
            ("RETRIES", "3"),
            ("TERM", "xterm"),
        ]
    );
    assert_eq!(
        resolved.limits,
        ResourceLimits {
            timeout: Some(Duration::from_secs(300)),
            memory: Some("4g".parse().unwrap()),
            cpus: Some("0.5".parse().unwrap()),
            pids: Some("256".parse().unwrap()),
        }
    );
    let allowlist = PathBuf::from("project/.cordon/rules/allowlist.yaml");
    assert_eq!(resolved.allowlist, Some(allowlist));
    assert!(resolved.network);
    assert_eq!(
        notices(&resolved),
        [
            "the container gets the secret `NPM_TOKEN` as it is, in NPM_TOKEN; `masked_secrets` would keep it outside",
            "there is no secret `SENTRY_DSN`, so that the entry of env.SENTRY_DSN is left out",
            "EDITOR is not set here, so that the container does not get it",
            "there is no secret `HOOK`, so that the entry of masked_secrets.HOOK.value is left out",
            "there is no secret `STORAGE_TOKEN`, so that the entry of signing_credentials.storage.session_token is left out",
        ]
    );

    let [masked] = resolved.masked.as_slice() else {
        panic!("{resolved:?}")
    };
    assert_eq!(
        (masked.env_var.as_str(), masked.value.expose()),
        ("GH_TOKEN", GITHUB)
    );
    assert_eq!(
        masked.scopes[0],
        HostPattern::parse("api.github.com").unwrap()
    );
    assert!(masked.scopes[1].matches(&Host::parse("raw.githubusercontent.com").unwrap()));
    assert!(masked.headers[1].matches("x-vault-token"));
    assert_eq!(masked.query, ["access_token"]);
    assert!(masked.allow_foreign_credentials && masked.path);
    assert_eq!(
        masked.body.as_ref().unwrap().content_types,
        ["application/json"]
    );

    let [signing] = resolved.signing.as_slice() else {
        panic!("{resolved:?}")
    };
    assert_eq!(signing.access_key_id_env_var, "STORAGE_KEY_ID");
    assert_eq!(signing.access_key_id.expose(), KEY_ID);
    assert_eq!(signing.secret_access_key_env_var, "STORAGE_SECRET");
    assert_eq!(signing.secret_access_key.expose(), SECRET_KEY);
    assert!(signing.session_token.is_none());
    assert!(signing.allow_credential_minting && signing.allow_foreign_credentials);
}

#[tokio::test]
async fn what_is_not_said_is_the_stricter_choice() {
    let resolved = resolve(
        "masked_secrets: {T: {value: !env T, scopes: [a.test], headers: [Authorization]}}\n\
         signing_credentials: {s: {type: aws-sigv4, access_key_id: !env A, secret_access_key: !env B, scopes: [a.test]}}\n",
        &[("T", GITHUB), ("A", KEY_ID), ("B", SECRET_KEY)],
    )
    .await;
    let (masked, signing) = (&resolved.masked[0], &resolved.signing[0]);
    assert!(!masked.allow_foreign_credentials && !masked.path && masked.query.is_empty());
    assert!(masked.body.is_none());
    assert!(!signing.allow_credential_minting && !signing.allow_foreign_credentials);
    assert!(resolved.network);
    assert_eq!(resolved.limits, ResourceLimits::default());
}

#[tokio::test]
async fn a_body_that_is_true_means_the_usual_types() {
    let resolved = resolve(
        "masked_secrets: {T: {value: !env T, scopes: [a.test], body: true}}",
        &[("T", GITHUB)],
    )
    .await;
    assert_eq!(
        resolved.masked[0].body.as_ref().unwrap().content_types,
        ["application/json", "application/x-www-form-urlencoded"]
    );
}

#[tokio::test]
async fn keys_that_stand_in_the_file_get_the_usual_variables() {
    let text = format!(
        "signing_credentials:\n  s3:\n    type: aws-sigv4\n    access_key_id: {KEY_ID}\n    \
         secret_access_key: {SECRET_KEY}\n    session_token: token-of-the-session\n    scopes: ['*.amazonaws.com']\n"
    );
    let resolved = resolve(&text, &[]).await;
    let signing = &resolved.signing[0];
    assert_eq!(signing.access_key_id_env_var, "AWS_ACCESS_KEY_ID");
    assert_eq!(signing.secret_access_key_env_var, "AWS_SECRET_ACCESS_KEY");
    assert_eq!(
        signing.session_token_env_var.as_deref(),
        Some("AWS_SESSION_TOKEN")
    );
    assert_eq!(
        notices(&resolved)[0],
        "signing_credentials.s3.access_key_id stands in sandbox.yaml as it is, for everybody who can read that file; \
         use `!secret NAME` instead"
    );
    assert!(
        resolved
            .notices
            .iter()
            .all(|notice| notice.level() == Level::Warning)
    );
}

#[tokio::test]
async fn a_passed_variable_wins_over_a_given_one_and_a_surrogate_over_both() {
    let text = "
env: {A: env, B: env, GH_TOKEN: env}
pass_env: [B, GH_TOKEN]
masked_secrets:
  GH_TOKEN: {value: !env GH_TOKEN, scopes: [a.test], headers: [Authorization]}
";
    let host = [("B", "host"), ("GH_TOKEN", GITHUB)];
    let resolved = resolve(text, &host).await;
    assert_eq!(pairs(&resolved.env), [("A", "env"), ("B", "host")]);
    let prepared = resolved.prepare().unwrap();
    let [("A", "env"), ("B", "host"), ("GH_TOKEN", surrogate)] = pairs(&prepared.env)[..] else {
        panic!("{prepared:?}")
    };
    assert!(surrogate.starts_with("ghp_") && surrogate.len() == GITHUB.len());
    assert_ne!(surrogate, GITHUB);
}

#[tokio::test]
async fn a_surrogate_that_is_left_out_wins_over_nothing() {
    let text = "
env: {GH_TOKEN: none}
masked_secrets:
  GH_TOKEN: {value: !secret? GH_TOKEN, scopes: [a.test], headers: [Authorization]}
";
    for host in [&[][..], &[("GH_TOKEN", "")]] {
        let resolved = resolve(text, host).await;
        assert!(resolved.masked.is_empty());
        assert_eq!(pairs(&resolved.env), [("GH_TOKEN", "none")]);
    }
}

#[tokio::test]
async fn a_credential_without_one_of_its_keys_is_left_out() {
    let text = "
signing_credentials:
  s3: {type: aws-sigv4, access_key_id: !secret? A, secret_access_key: !secret? B, scopes: [a.test]}
";
    for host in [&[][..], &[("A", KEY_ID)], &[("B", SECRET_KEY)]] {
        assert!(resolve(text, host).await.signing.is_empty());
    }
    let both = resolve(text, &[("A", KEY_ID), ("B", SECRET_KEY)]).await;
    assert_eq!(both.signing.len(), 1);
}

#[tokio::test]
async fn missing_values_are_named_with_their_place() {
    for (text, message, hint) in [
        (
            "env:\n  A: !env NOT_SET\n",
            "sandbox.yaml:2:6: env.A: the variable `NOT_SET` is not set",
            "set it: `export NOT_SET=…`",
        ),
        (
            "env:\n  A: !secret NOT_SET\n",
            "sandbox.yaml:2:6: env.A: there is no secret `NOT_SET` in the environment",
            "add it there, or write `!secret? NOT_SET` if it may be missing",
        ),
        (
            "env:\n  A: !secret EMPTY\n",
            "sandbox.yaml:2:6: env.A: there is no secret `EMPTY` in the environment",
            "add it there, or write `!secret? EMPTY` if it may be missing",
        ),
        (
            "masked_secrets:\n  T: {value: !secret X, scopes: [a.test], path: true}\n",
            "sandbox.yaml:2:14: masked_secrets.T.value: there is no secret `X` in the environment",
            "add it there, or write `!secret? X` if it may be missing",
        ),
        (
            "env:\n  A: \"b\\0c\"\n",
            "sandbox.yaml:2:6: env.A holds a NUL character, which no variable can",
            "",
        ),
    ] {
        let error = refused(text, &[("EMPTY", "")]).await;
        assert_eq!(error.to_string(), message);
        assert_eq!(error.hint().unwrap_or_default(), hint);
    }
}

#[tokio::test]
async fn a_variable_that_is_no_text_is_an_error() {
    let host = HostEnv::from_iter([("A", OsString::from_vec(vec![b'x', 0xff]))]);
    for (text, message) in [
        (
            "env:\n  B: !env A\n",
            "sandbox.yaml:2:6: env.B: the value of the variable `A` is not UTF-8",
        ),
        (
            "env:\n  B: !secret A\n",
            "sandbox.yaml:2:6: env.B: the value of the variable `A` is not UTF-8",
        ),
        (
            "pass_env: [A]\n",
            "sandbox.yaml:1:12: pass_env[0]: the value of the variable `A` is not UTF-8",
        ),
    ] {
        let error = parse(text).resolve(&host).await.unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}

#[tokio::test]
async fn a_masked_value_is_in_no_other_variable_of_the_container() {
    let masked = "masked_secrets:\n  GH_TOKEN: {value: !env GH_TOKEN, scopes: [a.test], headers: [Authorization]}\n";
    let remote = format!("https://x:{GITHUB}@github.com/");
    for (entry, message) in [
        (
            "env: {COPY: !secret GH_TOKEN}\n",
            "sandbox.yaml:3:13: env.COPY holds the real value of GH_TOKEN, which is masked",
        ),
        (
            "pass_env: [REMOTE]\n",
            "sandbox.yaml:3:12: pass_env[0] holds the real value of GH_TOKEN, which is masked",
        ),
    ] {
        let text = format!("{masked}{entry}");
        let error = refused(&text, &[("GH_TOKEN", GITHUB), ("REMOTE", &remote)]).await;
        assert_eq!(error.to_string(), message);
    }
}

#[tokio::test]
async fn a_network_sandbox_that_is_off_leaves_surrogates_and_says_so() {
    let text = "
network_sandbox: false
masked_secrets:
  GH_TOKEN: {value: !env GH_TOKEN, scopes: [a.test], headers: [Authorization]}
  NONE: {value: !secret? NONE, scopes: [a.test], headers: [Authorization]}
signing_credentials:
  s3: {type: aws-sigv4, access_key_id: !env A, secret_access_key: !env B, scopes: [a.test]}
";
    let host = [("GH_TOKEN", GITHUB), ("A", KEY_ID), ("B", SECRET_KEY)];
    let resolved = resolve(text, &host).await;
    assert!(!resolved.network);
    assert_eq!(
        notices(&resolved).last().unwrap(),
        "the network sandbox is off, so that nothing replaces the surrogates in GH_TOKEN, A, B"
    );
    let prepared = resolved.prepare().unwrap();
    assert_eq!(prepared.env.len(), 3);
    assert!(
        prepared
            .env
            .iter()
            .all(|(_, value)| ![GITHUB, KEY_ID, SECRET_KEY].contains(&value.as_str()))
    );
    assert!(notices(&resolve("network_sandbox: false", &[]).await).is_empty());
}

#[tokio::test]
async fn what_cannot_be_masked_is_named_with_its_place() {
    let text =
        "\nmasked_secrets:\n  PIN: {value: !env PIN, scopes: [a.test], headers: [Authorization]}\n";
    let error = resolve(text, &[("PIN", "1234")])
        .await
        .prepare()
        .unwrap_err();
    assert!(matches!(error.kind(), FileErrorKind::Secrets(_)));
    let message = error.to_string();
    assert!(
        message.starts_with("sandbox.yaml:3:3: the value of PIN is too short to be masked: "),
        "{message}"
    );

    let text = "
masked_secrets:
  A: {value: !env A, scopes: [a.test], headers: [Authorization]}
signing_credentials:
  s3: {type: aws-sigv4, access_key_id: !env A, secret_access_key: !env B, scopes: [a.test]}
";
    let resolved = resolve(text, &[("A", KEY_ID), ("B", SECRET_KEY)]).await;
    assert_eq!(
        resolved.prepare().unwrap_err().to_string(),
        "sandbox.yaml:5:3: A is set by more than one credential"
    );
}

#[tokio::test]
async fn an_empty_value_gives_no_surrogate() {
    let text =
        "masked_secrets:\n  T: {value: !env T, scopes: [a.test], headers: [Authorization]}\n";
    let prepared = resolve(text, &[("T", "")]).await.prepare().unwrap();
    assert!(prepared.env.is_empty());
}

#[tokio::test]
async fn the_redactor_knows_masked_and_unmasked_secrets() {
    let prepared = resolve(WHOLE, HOST).await.prepare().unwrap();
    let log = format!("{GITHUB} {SECRET_KEY} npm_real-value-of-the-token C.UTF-8");
    let redacted = prepared.redactor.redact(&log);
    for secret in [GITHUB, SECRET_KEY, "npm_real-value-of-the-token"] {
        assert!(!redacted.contains(secret), "{redacted}");
    }
    assert!(redacted.contains("C.UTF-8"));
}

#[tokio::test]
async fn no_error_notice_or_debug_output_shows_a_value() {
    const VALUE: &str = "hunter2-hunter2-hunter2";
    let whole = format!(
        "env: {{A: {VALUE}, B: !secret S}}\npass_env: [P]\n\
         masked_secrets: {{T: {{value: \"other {VALUE}\", scopes: [a.test], headers: [Authorization]}}}}\n\
         signing_credentials: {{s: {{type: aws-sigv4, access_key_id: x{VALUE}, secret_access_key: y{VALUE}, scopes: [a.test]}}}}\n"
    );
    let host = env(&[("S", VALUE), ("P", VALUE)]);
    let file = parse(&whole);
    let resolved = file.resolve(&host).await.unwrap();
    let mut shown = format!(
        "{file:?} {host:?} {resolved:?} {:?} {:?}",
        notices(&resolved),
        resolved.notices
    );
    shown += &format!("{:?}", resolved.prepare().unwrap());

    for text in [
        format!("env: {{A: [{VALUE}]}}"),
        format!("env: {{A: {{{VALUE}: x}}}}"),
        format!("env: {{A: !{VALUE} x}}"),
        format!("env: {{A: *{VALUE}}}"),
        format!("masked_secrets: {{T: {VALUE}}}"),
        format!("masked_secrets: {{T: {{value: [{VALUE}]}}}}"),
        format!("masked_secrets: {{T: {{value: !{VALUE} x}}}}"),
        format!("signing_credentials: {{s: {{session_token: !{VALUE} x}}}}"),
        VALUE.to_owned(),
        format!("- {VALUE}"),
        format!("env: {{A: '{VALUE}"),
    ] {
        let error = SandboxFile::parse(&text, "sandbox.yaml").unwrap_err();
        shown += &format!("{error} {error:?} {:?}", error.hint());
    }
    for text in [
        format!("env: {{A: \"{VALUE}\\0\"}}"),
        format!(
            "env: {{A: '{VALUE}'}}\nmasked_secrets: {{T: {{value: '{VALUE}', scopes: [a.test], path: true}}}}"
        ),
    ] {
        let error = refused(&text, &[]).await;
        shown += &format!("{error} {error:?} {:?}", error.hint());
    }
    let error = resolve(
        "masked_secrets: {T: {value: hunter2, scopes: [a.test], headers: [A]}}",
        &[],
    )
    .await
    .prepare()
    .unwrap_err();
    shown += &format!("{error} {error:?} {:?}", error.hint());
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[tokio::test]
async fn a_secret_that_expires_is_looked_up_again() {
    let text = "masked_secrets:\n  T: {value: !secret T, scopes: [a.example], headers: [X], expires_after: 60}\n";
    let file = parse(text);
    let expiring: Vec<_> = file.expiring().collect();
    assert_eq!(expiring, [("T", Duration::from_secs(60))]);
    let renewed = file
        .look_up("T", &env(&[("T", GITHUB)]))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(renewed.expose(), GITHUB);
    assert!(file.look_up("OTHER", &env(&[])).await.unwrap().is_none());
    assert!(file.look_up("T", &env(&[])).await.is_err());
}

#[test]
fn what_a_build_may_reach_is_read() {
    let written =
        |text: &str| SandboxFile::parse(text, "sandbox.yaml").map(|file| file.build_network());
    assert_eq!(written("").unwrap(), None);
    for (word, mode) in [
        ("host", BuildMode::Host),
        ("none", BuildMode::None),
        ("sandboxed", BuildMode::Sandboxed),
    ] {
        let text = format!("build_network: {word}");
        assert_eq!(written(&text).unwrap(), Some(mode));
    }
    let mistake = written("build_network: open").unwrap_err().to_string();
    assert!(mistake.contains("build_network"), "{mistake}");
}
