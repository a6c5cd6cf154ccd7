use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL_NOPAD};
use proptest::prelude::*;

use super::*;
use crate::{
    MaskedSecret, PreparedSecrets,
    fixture::{
        GITHUB, PASSWORD, SECRET_KEY, aws, github, header_map, host, masked, prepared, send,
    },
    prepare_secrets,
};

fn github_only() -> (PreparedSecrets, String) {
    let prepared = prepared(vec![github()]);
    let surrogate = prepared.env["GH_TOKEN"].clone();
    (prepared, surrogate)
}

#[test]
fn a_surrogate_in_a_listed_header_becomes_the_real_value() {
    let (prepared, surrogate) = github_only();
    let sent = send(
        &prepared,
        "api.github.com",
        &[("authorization", &format!("Bearer {surrogate}"))],
        "/",
    )
    .unwrap();
    assert_eq!(sent.lines("authorization"), [format!("Bearer {GITHUB}")]);
    assert_eq!(
        sent.applied,
        Applied {
            masked: 1,
            ..Applied::default()
        }
    );
    assert!(sent.headers["authorization"].is_sensitive());
}

#[test]
fn a_surrogate_in_another_header_stays() {
    let (prepared, surrogate) = github_only();
    let sent = send(&prepared, "api.github.com", &[("x-other", &surrogate)], "/").unwrap();
    assert_eq!(sent.lines("x-other"), [surrogate]);
    assert_eq!(sent.applied, Applied::default());
}

#[test]
fn a_surrogate_sent_to_an_unlisted_host_is_refused() {
    let (prepared, surrogate) = github_only();
    let encoded = BASE64.encode(format!("me:{surrogate}").as_bytes());
    let escaped: String = surrogate
        .bytes()
        .map(|byte| format!("%{byte:02x}"))
        .collect();
    let twice = escaped.replace('%', "%25");
    for (headers, target, place) in [
        (
            vec![("authorization", format!("Bearer {surrogate}"))],
            "/".to_owned(),
            "headers",
        ),
        (
            vec![("x-other", format!("a{surrogate}b"))],
            "/".into(),
            "headers",
        ),
        (
            vec![("x-other", surrogate.to_ascii_uppercase())],
            "/".into(),
            "headers",
        ),
        (
            vec![("authorization", format!("basic {encoded}"))],
            "/".into(),
            "headers",
        ),
        (vec![("x-other", encoded)], "/".into(), "headers"),
        (
            vec![("cookie", format!("a={escaped}"))],
            "/".into(),
            "headers",
        ),
        (
            vec![(surrogate.as_str(), "1".into())],
            "/".into(),
            "headers",
        ),
        (vec![], format!("/x/{surrogate}"), "path"),
        (vec![], format!("/x/{escaped}"), "path"),
        (vec![], format!("/?q={twice}"), "query"),
    ] {
        let headers = Vec::from_iter(headers.iter().map(|(name, value)| (*name, value.as_str())));
        let alarm = send(&prepared, "evil.test", &headers, &target).unwrap_err();
        assert_eq!(alarm.code(), "surrogate_out_of_scope");
        assert_eq!(
            (alarm.env_var.as_str(), alarm.place.to_string().as_str()),
            ("GH_TOKEN", place)
        );
        assert!(!alarm.to_string().contains(GITHUB));
    }
}

#[test]
fn a_surrogate_in_the_name_of_a_host_is_refused() {
    let (prepared, surrogate) = github_only();
    let alarm = send(&prepared, &format!("{surrogate}.evil.test"), &[], "/").unwrap_err();
    assert_eq!(alarm.place, Place::Host);
}

#[test]
fn a_surrogate_in_the_clear_is_refused_even_to_a_host_in_scope() {
    let (prepared, surrogate) = github_only();
    let mut headers = header_map(&[("authorization", &format!("Bearer {surrogate}"))]);
    let mut target = PathAndQuery::from_static("/");
    let alarm = prepared
        .replacements
        .apply(
            &host("api.github.com"),
            Channel::Unverified,
            &mut headers,
            &mut target,
        )
        .unwrap_err();
    assert_eq!(alarm.kind, AlarmKind::SurrogateOutOfScope);
    assert_eq!(headers["authorization"], format!("Bearer {surrogate}"));
}

#[test]
fn a_real_value_from_the_container_is_refused() {
    let (prepared, _) = github_only();
    let encoded = BASE64.encode(format!("x-access-token:{GITHUB}").as_bytes());
    for value in [
        GITHUB.to_owned(),
        format!("Bearer {GITHUB}"),
        format!("Basic {encoded}"),
    ] {
        for to in ["api.github.com", "evil.test"] {
            let alarm = send(&prepared, to, &[("authorization", &value)], "/").unwrap_err();
            assert_eq!(alarm.code(), "real_value_in_request");
        }
    }
}

#[test]
fn the_surrogates_of_signing_credentials_do_not_leave_their_scope() {
    let prepared = prepare_secrets(Vec::new(), vec![aws(Some(&"token".repeat(100)))]).unwrap();
    for (variable, surrogate) in &prepared.env {
        let headers = [("x-thing", surrogate.as_str())];
        assert!(
            send(&prepared, "s3.amazonaws.com", &headers, "/").is_ok(),
            "{variable}"
        );
        let alarm = send(&prepared, "evil.test", &headers, "/").unwrap_err();
        assert_eq!(&alarm.env_var, variable);
    }
    let alarm = send(&prepared, "s3.amazonaws.com", &[("x", SECRET_KEY)], "/").unwrap_err();
    assert_eq!(alarm.kind, AlarmKind::RealValue);
}

#[test]
fn a_foreign_credential_in_a_duplicate_header_does_not_ride_along() {
    let (prepared, surrogate) = github_only();
    let own = format!("Bearer {surrogate}");
    for lines in [
        ["Bearer evil", &own, "Bearer evil2"],
        [&own, "Bearer evil", "Bearer evil2"],
    ] {
        let headers = lines.map(|line| ("authorization", line));
        let sent = send(&prepared, "api.github.com", &headers, "/").unwrap();
        assert_eq!(sent.lines("authorization"), [format!("Bearer {GITHUB}")]);
        assert_eq!(
            (
                sent.applied.masked,
                sent.applied.dropped,
                sent.applied.collapsed
            ),
            (1, 0, 1)
        );
        assert_eq!(
            sent.applied.notes[0].line("GET", "https://api.github.com/"),
            "COLLAPSED 3 duplicate 'authorization' headers in GET https://api.github.com/ \
             (duplicate credential headers removed)"
        );
    }
}

#[test]
fn a_foreign_credential_in_a_named_header_is_stripped() {
    let (prepared, _) = github_only();
    let headers = [
        ("authorization", "Bearer evil"),
        ("authorization", "Bearer evil2"),
        ("accept", "*/*"),
    ];
    let sent = send(&prepared, "api.github.com", &headers, "/").unwrap();
    assert!(sent.lines("authorization").is_empty());
    assert_eq!(sent.lines("accept"), ["*/*"]);
    assert_eq!((sent.applied.masked, sent.applied.dropped), (0, 1));
    assert_eq!(
        sent.applied.notes[0].line("GET", "https://api.github.com/"),
        "STRIPPED header 'authorization' from GET https://api.github.com/ (foreign credential blocked)"
    );
    let sent = send(&prepared, "other.test", &headers, "/").unwrap();
    assert_eq!(sent.lines("authorization"), ["Bearer evil", "Bearer evil2"]);
}

#[test]
fn foreign_credentials_stay_where_they_are_allowed_or_only_a_wildcard_matches() {
    let allowed = MaskedSecret {
        allow_foreign_credentials: true,
        ..github()
    };
    let wildcard = masked(
        "GH_TOKEN",
        GITHUB,
        &["api.github.com"],
        &["*", "Auth?rization"],
    );
    for secret in [allowed, wildcard] {
        let sent = send(
            &prepared(vec![secret]),
            "api.github.com",
            &[("authorization", "Bearer evil")],
            "/",
        )
        .unwrap();
        assert_eq!(sent.lines("authorization"), ["Bearer evil"]);
    }
}

#[test]
fn a_surrogate_inside_a_longer_word_is_left_alone() {
    let secret = masked("GH_TOKEN", GITHUB, &["api.github.com"], &["*"]);
    let prepared = prepared(vec![secret]);
    let surrogate = &prepared.env["GH_TOKEN"];
    for glued in [
        format!("x{surrogate}"),
        format!("{surrogate}0"),
        format!("{surrogate}_"),
    ] {
        let sent = send(&prepared, "api.github.com", &[("x-a", &glued)], "/").unwrap();
        assert_eq!(
            (sent.lines("x-a"), sent.applied.masked),
            (vec![glued.as_str()], 0)
        );
    }
    for (before, after) in [("", ""), ("token=", ";"), ("pre-", "-post"), ("\"", "\"")] {
        let value = format!("{before}{surrogate}{after}");
        let sent = send(&prepared, "api.github.com", &[("x-a", &value)], "/").unwrap();
        assert_eq!(sent.lines("x-a"), [format!("{before}{GITHUB}{after}")]);
    }
}

#[test]
fn a_real_value_that_holds_another_surrogate_is_not_replaced_again() {
    // Such a pair is never drawn; it can only come from another process.
    let wire = serde_json::json!({"version": 1, "signing": [], "masked": [
        entry("A", "SURROGATE-A", "has SURROGATE-B inside"), entry("B", "SURROGATE-B", "b-real-value"),
    ]});
    let replacements = SecretReplacements::from_stdin_bytes(wire.to_string().as_bytes()).unwrap();
    let mut headers = header_map(&[("authorization", "SURROGATE-A SURROGATE-B")]);
    let mut target = PathAndQuery::from_static("/");
    let applied = replacements
        .apply(
            &host("x.test"),
            Channel::VerifiedTls,
            &mut headers,
            &mut target,
        )
        .unwrap();
    assert_eq!(
        headers["authorization"],
        "has SURROGATE-B inside b-real-value"
    );
    assert_eq!(applied.masked, 2);
}

fn entry(env_var: &str, surrogate: &str, real: &str) -> serde_json::Value {
    serde_json::json!({
        "value": {"env_var": env_var, "surrogate": surrogate, "real": real, "former": []},
        "scopes": ["x.test"], "headers": ["authorization"], "allow_foreign_credentials": false,
        "query": [], "path": false, "body_content_types": null,
    })
}

#[test]
fn basic_credentials_are_read_in_any_case_and_padding() {
    let secret = masked("PASSWORD", PASSWORD, &["git.test"], &["Authorization"]);
    let prepared = prepared(vec![secret]);
    let surrogate = &prepared.env["PASSWORD"];
    for user in ["", "m", "me", "you", "ü"] {
        let text = format!("{user}:{surrogate}");
        for (scheme, alphabet) in [
            ("Basic", BASE64),
            ("basic", BASE64_NOPAD),
            ("BASIC", BASE64URL_NOPAD),
            ("Basic  ", BASE64),
        ] {
            let value = format!("{scheme} {}", alphabet.encode(text.as_bytes()));
            let sent = send(&prepared, "git.test", &[("authorization", &value)], "/").unwrap();
            let real = BASE64.encode(format!("{user}:{PASSWORD}").as_bytes());
            assert_eq!(
                sent.lines("authorization"),
                [format!("Basic {real}")],
                "{value}"
            );
            assert_eq!(sent.applied.masked, 1);
        }
    }
}

#[test]
fn basic_credentials_carry_the_surrogate_as_user_or_password_or_both() {
    let (prepared, surrogate) = github_only();
    for (sent_as, received_as) in [
        (
            format!("{surrogate}:x-oauth-basic"),
            format!("{GITHUB}:x-oauth-basic"),
        ),
        (format!("me:a:{surrogate}"), format!("me:a:{GITHUB}")),
        (
            format!("{surrogate}:{surrogate}"),
            format!("{GITHUB}:{GITHUB}"),
        ),
    ] {
        let value = format!("Basic {}", BASE64.encode(sent_as.as_bytes()));
        let sent = send(
            &prepared,
            "api.github.com",
            &[("authorization", &value)],
            "/",
        )
        .unwrap();
        let received = format!("Basic {}", BASE64.encode(received_as.as_bytes()));
        assert_eq!(
            (sent.lines("authorization"), sent.applied.masked),
            (vec![received.as_str()], 1)
        );
    }
}

#[test]
fn what_is_not_basic_is_not_read_as_basic() {
    for value in [
        "",
        "Basic",
        "Basic ",
        "Basic x",
        "Basic ====",
        "Basic bm9jb2xvbg==",
        "Bearer dXNlcjpwYXNz",
        "Basic dTp4é",
        "Basicdtp4",
    ] {
        assert!(basic::decode(value.as_bytes()).is_none(), "{value}");
    }
    let credentials = basic::decode(b"Basic dTo=").unwrap();
    assert_eq!(
        (credentials.user(), credentials.password()),
        (&b"u"[..], &b""[..])
    );
}

#[test]
fn cookies_that_a_client_split_are_one_line() {
    let secret = masked("SESSION", GITHUB, &["app.test"], &["Cookie"]);
    let prepared = prepared(vec![secret]);
    let session = format!("session={}", prepared.env["SESSION"]);
    let sent = send(
        &prepared,
        "app.test",
        &[("cookie", "theme=dark"), ("cookie", &session)],
        "/",
    )
    .unwrap();
    assert_eq!(
        sent.lines("cookie"),
        [format!("theme=dark; session={GITHUB}")]
    );
    assert_eq!(sent.applied.collapsed, 0);
}

#[test]
fn a_request_signed_with_a_surrogate_key_keeps_its_signature() {
    let secret = masked("TOKEN", GITHUB, &["*.amazonaws.com"], &["Authorization"]);
    let prepared = prepare_secrets(vec![secret], vec![aws(None)]).unwrap();
    let signed = format!(
        "AWS4-HMAC-SHA256 Credential={}/20260101/us-east-1/s3/aws4_request",
        prepared.env["AWS_ACCESS_KEY_ID"]
    );
    let headers = [
        ("authorization", "Bearer evil"),
        ("authorization", signed.as_str()),
    ];
    let sent = send(&prepared, "s3.amazonaws.com", &headers, "/").unwrap();
    assert_eq!(sent.lines("authorization"), [signed.as_str()]);
    assert_eq!(
        (
            sent.applied.masked,
            sent.applied.dropped,
            sent.applied.collapsed
        ),
        (0, 0, 1)
    );
}

#[test]
fn queries_and_paths_are_left_alone_unless_the_secret_says_otherwise() {
    let (prepared, surrogate) = github_only();
    let target = format!("/{surrogate}?key={surrogate}");
    let sent = send(&prepared, "api.github.com", &[], &target).unwrap();
    assert_eq!(sent.target, target.as_str());
}

#[test]
fn a_named_parameter_gets_the_real_value_encoded() {
    let secret = MaskedSecret {
        query: vec!["api key".into()],
        ..masked("KEY", PASSWORD, &["maps.test"], &[])
    };
    let prepared = prepared(vec![secret]);
    let surrogate = &prepared.env["KEY"];
    let escaped = format!("%{:02X}{}", surrogate.as_bytes()[0], &surrogate[1..]);
    let real = "Tr0ub4dor%263%2F%22zw%C3%B6lf%22%20Pferde";
    for (query, expected) in [
        (
            format!("a=1+2&api%20key={surrogate}&b=%2b"),
            format!("a=1+2&api%20key={real}&b=%2b"),
        ),
        (format!("api+key={escaped}"), format!("api+key={real}")),
        (
            format!("api+key=evil&x&api+key={surrogate}"),
            format!("x&api+key={real}"),
        ),
        ("api+key=evil&x=1".into(), "x=1".into()),
        (format!("other={surrogate}"), format!("other={surrogate}")),
    ] {
        let sent = send(&prepared, "maps.test", &[], &format!("/p?{query}")).unwrap();
        assert_eq!(sent.target, format!("/p?{expected}").as_str(), "{query}");
    }
    let sent = send(&prepared, "maps.test", &[], "/p?api+key=evil").unwrap();
    assert_eq!((sent.target.as_str(), sent.applied.dropped), ("/p", 1));
    assert_eq!(
        sent.applied.notes[0].line("GET", "u"),
        "STRIPPED parameter 'api key' from GET u (foreign credential blocked)"
    );
}

#[test]
fn a_token_that_is_glued_to_the_path_is_replaced() {
    let secret = MaskedSecret {
        path: true,
        ..masked(
            "BOT",
            "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw",
            &["bots.test"],
            &[],
        )
    };
    let prepared = prepared(vec![secret]);
    let target = format!("/bot{}/getMe?x=1", prepared.env["BOT"]);
    let sent = send(&prepared, "bots.test", &[], &target).unwrap();
    assert_eq!(
        sent.target,
        "/bot110201543%3AAAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw/getMe?x=1"
    );
    assert_eq!(sent.applied.masked, 1);
}

#[test]
fn the_asterisk_target_survives() {
    let (prepared, _) = github_only();
    assert_eq!(
        send(&prepared, "api.github.com", &[], "*").unwrap().target,
        "*"
    );
}

fn in_bodies() -> (PreparedSecrets, String) {
    let rule = crate::BodyRule {
        content_types: vec!["application/json".into()],
    };
    let prepared = prepared(vec![MaskedSecret {
        body: Some(rule),
        ..github()
    }]);
    let surrogate = prepared.env["GH_TOKEN"].clone();
    (prepared, surrogate)
}

#[test]
fn bodies_are_left_alone_unless_the_secret_says_otherwise() {
    let replacer = |prepared: &PreparedSecrets, to: &str, channel, headers: &[(&str, &str)]| {
        let body = prepared
            .replacements
            .body(&host(to), channel, &header_map(headers));
        body.is_some()
    };
    let json = ("content-type", "Application/JSON; charset=utf-8");
    let (prepared, _) = in_bodies();
    assert!(replacer(
        &prepared,
        "api.github.com",
        Channel::VerifiedTls,
        &[json]
    ));
    assert!(!replacer(
        &prepared,
        "api.github.com",
        Channel::Unverified,
        &[json]
    ));
    assert!(!replacer(
        &prepared,
        "other.test",
        Channel::VerifiedTls,
        &[json]
    ));
    assert!(!replacer(
        &prepared,
        "api.github.com",
        Channel::VerifiedTls,
        &[("content-type", "text/plain")]
    ));
    assert!(!replacer(
        &prepared,
        "api.github.com",
        Channel::VerifiedTls,
        &[json, ("content-encoding", "gzip")]
    ));
    assert!(!replacer(
        &github_only().0,
        "api.github.com",
        Channel::VerifiedTls,
        &[json]
    ));
}

proptest! {
    #[test]
    fn a_body_is_replaced_the_same_at_any_split_and_keeps_its_length(
        text in "[ -~]{0,30}",
        cuts in proptest::collection::vec(0_usize..130, 0..6),
    ) {
        let (prepared, surrogate) = in_bodies();
        let headers = header_map(&[("content-type", "application/json")]);
        let mut body = prepared
            .replacements
            .body(&host("api.github.com"), Channel::VerifiedTls, &headers)
            .unwrap();
        let sent = format!("{{\"a\":\"{text}\\n{surrogate}\",\"b\":\"{surrogate}\"}}");
        let mut cuts = Vec::from_iter(cuts.into_iter().map(|cut| cut.min(sent.len())));
        cuts.extend([0, sent.len()]);
        cuts.sort_unstable();
        let mut received = Vec::new();
        for cut in cuts.windows(2) {
            received.extend_from_slice(&body.push(sent.as_bytes()[cut[0]..cut[1]].to_vec().into()));
        }
        received.extend_from_slice(&body.finish());
        prop_assert_eq!(received.len(), sent.len());
        prop_assert_eq!(String::from_utf8(received).unwrap(), sent.replace(&surrogate, GITHUB));
        prop_assert_eq!(body.count(), 2);
    }

    #[test]
    fn text_without_the_whole_surrogate_is_never_touched(
        cut in 1_usize..39,
        before in "[ -~]{0,10}",
        after in "[ -~]{0,10}",
    ) {
        let secret = masked("GH_TOKEN", GITHUB, &["api.github.com"], &["*"]);
        let prepared = prepared(vec![secret]);
        let surrogate = &prepared.env["GH_TOKEN"];
        for part in [&surrogate[..cut], &surrogate[cut..]] {
            let value = format!("{before}{part}{after}");
            let sent = send(&prepared, "api.github.com", &[("x-a", &value)], "/").unwrap();
            prop_assert_eq!(sent.headers["x-a"].as_bytes(), value.as_bytes());
            prop_assert_eq!(sent.applied.masked, 0);
        }
    }

    #[test]
    fn no_bytes_from_the_container_break_the_replacement(
        value in proptest::collection::vec(prop_oneof![Just(9_u8), 32_u8..127, 128_u8..], 0..60),
        target in "/[!-~&&[^#]]{0,40}",
    ) {
        let (prepared, _) = in_bodies();
        let mut headers = HeaderMap::new();
        headers.insert("authorization", http::HeaderValue::from_bytes(&value).unwrap());
        headers.insert("cookie", http::HeaderValue::from_bytes(&value).unwrap());
        if let Ok(mut target) = PathAndQuery::try_from(target) {
            let to = host("api.github.com");
            let applied = prepared.replacements.apply(&to, Channel::VerifiedTls, &mut headers, &mut target);
            prop_assert_eq!(applied.unwrap().masked, 0);
        }
    }
}
