//! Requests to AWS: signed again, or not sent at all.

mod body;

use cordon_proxy::Verdict;
use cordon_secrets::{PreparedSecrets, SigningCredential, prepare_secrets};
use jiff::{Timestamp, ToSpan as _};

use crate::support::{
    client::{Answer, Client},
    echo::Echo,
    secrets::{KEY_ID, SESSION_TOKEN, TOKEN, assert_absent, aws, masked},
};

fn prepared(credential: SigningCredential) -> PreparedSecrets {
    prepare_secrets(Vec::new(), vec![credential]).unwrap()
}

fn now() -> String {
    format!("{}", Timestamp::now().strftime("%Y%m%dT%H%M%SZ"))
}

/// A signature that looks right; nobody checks those of surrogates.
fn authorization(key_id: &str, service: &str, headers: &str) -> String {
    let date = &now()[..8];
    format!(
        "AWS4-HMAC-SHA256 Credential={key_id}/{date}/eu-west-1/{service}/aws4_request, \
         SignedHeaders={headers}, Signature={}",
        "0".repeat(64)
    )
}

/// Sends a request that is signed with a key of that name.
async fn send(
    client: &mut Client,
    url: &str,
    key_id: &str,
    service: &str,
    more: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let (date, value) = (now(), authorization(key_id, service, "host;x-amz-date"));
    let mut fields = vec![("x-amz-date", date.as_str()), ("authorization", &value)];
    fields.extend_from_slice(more);
    client.send("POST", url, &fields, body).await
}

fn line<'a>(echoed: &'a str, name: &str) -> &'a str {
    let prefix = format!("{name}: ");
    echoed
        .lines()
        .find_map(|line| line.strip_prefix(&prefix))
        .unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_signed_with_surrogates_is_signed_again() {
    let (echo, prepared) = (Echo::start().await, prepared(aws(Some(SESSION_TOKEN))));
    let bench = echo.plan(&prepared.replacements).start().await;
    let (key_id, token) = (
        &prepared.env["AWS_ACCESS_KEY_ID"],
        &prepared.env["AWS_SESSION_TOKEN"],
    );
    for http2 in [false, true] {
        let mut client = Client::connect(&bench, "s3.api.test", http2).await;
        let url = echo.url("s3.api.test", "/bucket/key%20with/odd?x=1&x=2");
        let fields = [
            ("x-amz-security-token", token.as_str()),
            ("x-amz-content-sha256", "UNSIGNED-PAYLOAD"),
        ];
        let answer = send(&mut client, &url, key_id, "s3", &fields, b"data").await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let seen = echo.seen().pop().unwrap();
        assert!(
            seen.starts_with("POST /bucket/key%20with/odd?x=1&x=2\n") && seen.ends_with("\n\ndata"),
            "{seen}"
        );
        assert!(
            line(&seen, "authorization")
                .starts_with(&format!("AWS4-HMAC-SHA256 Credential={KEY_ID}/")),
            "{seen}"
        );
        assert_eq!(line(&seen, "x-amz-security-token"), SESSION_TOKEN);
        assert!(
            !seen.contains(key_id.as_str()) && !seen.contains(token.as_str()),
            "{seen}"
        );
        assert_absent(SESSION_TOKEN, &answer.text());
        assert!(answer.text().contains(&token[..40]), "{}", answer.text());
    }
    bench.requests(2).await;
    let expected = "-> 200 [masked: 1] [region: eu-west-1] [scrubbed: ";
    assert!(bench.lines()[1].contains(expected), "{:?}", bench.lines());
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicate_authorization_does_not_ride_along_with_a_signature() {
    let (echo, prepared) = (Echo::start().await, prepared(aws(None)));
    let bench = echo.plan(&prepared.replacements).start().await;
    let mut client = Client::connect(&bench, "s3.api.test", false).await;
    let key_id = &prepared.env["AWS_ACCESS_KEY_ID"];
    let fields = [("authorization", "Bearer attacker")];
    let answer = send(
        &mut client,
        &echo.url("s3.api.test", "/k"),
        key_id,
        "s3",
        &fields,
        b"",
    )
    .await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let seen = echo.seen().pop().unwrap();
    assert!(
        !seen.contains("attacker") && line(&seen, "authorization").contains(KEY_ID),
        "{seen}"
    );
    bench.requests(1).await;
    assert!(
        bench.records().last().unwrap().lines()[0]
            .starts_with("COLLAPSED 2 duplicate 'authorization' headers")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_aws_keys_and_presigned_urls_are_refused_on_hosts_in_scope() {
    let (echo, prepared) = (Echo::start().await, prepared(aws(Some(SESSION_TOKEN))));
    let bench = echo.plan(&prepared.replacements).start().await;
    let mut client = Client::connect(&bench, "s3.api.test", true).await;
    let (url, foreign) = (echo.url("s3.api.test", "/k"), "AKIAATTACKERATTACKER");
    let answer = send(&mut client, &url, foreign, "s3", &[], b"").await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (403, "foreign_aws_credentials")
    );

    let query = |key: &str| {
        format!(
            "?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={key}%2F{}%2Feu-west-1%2Fs3%2Faws4_request\
             &X-Amz-Date={}&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Signature={}",
            &now()[..8],
            now(),
            "0".repeat(64)
        )
    };
    let presigned = echo.url("s3.api.test", &format!("/k{}", query(foreign)));
    let answer = client.send("GET", &presigned, &[], b"").await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (403, "foreign_aws_credentials")
    );

    // Our key with somebody else's session.
    let key_id = &prepared.env["AWS_ACCESS_KEY_ID"];
    let answer = send(
        &mut client,
        &url,
        key_id,
        "s3",
        &[("x-amz-security-token", "theirs")],
        b"",
    )
    .await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (403, "foreign_aws_credentials")
    );

    // What cannot be read is not sent either.
    for value in [
        "AWS AKIAATTACKERATTACKER:c2ln",
        "AWS4-HMAC-SHA256 Credential=nonsense",
    ] {
        let answer = client
            .send("GET", &url, &[("authorization", value)], b"")
            .await;
        assert_eq!(
            (answer.status.as_u16(), answer.code().as_str()),
            (400, "signing_failed"),
            "{value}"
        );
    }
    assert_eq!(echo.connections(), 0);

    // Other schemes are stripped.
    let answer = client
        .send("GET", &url, &[("authorization", "Bearer theirs")], b"")
        .await;
    assert_eq!(answer.status, 200);
    assert_eq!(line(&echo.seen().pop().unwrap(), "authorization"), "");
    let requests = bench.requests(6).await;
    assert!(matches!(
        requests[0].verdict,
        Verdict::Blocked {
            code: "foreign_aws_credentials",
            ..
        }
    ));
    let line = format!(
        "BLOCKED POST {url} -> 403 (the request is signed with AWS credentials that are not the sandbox's)"
    );
    assert_eq!(bench.lines()[1], line);
    assert!(
        bench.lines()[6].ends_with("-> 200 [dropped: 1]"),
        "{:?}",
        bench.lines()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_aws_keys_pass_where_they_are_allowed() {
    let echo = Echo::start().await;
    let prepared = prepared(SigningCredential {
        allow_foreign_credentials: true,
        ..aws(None)
    });
    let bench = echo.plan(&prepared.replacements).start().await;
    let mut client = Client::connect(&bench, "s3.api.test", false).await;
    let value = authorization(
        "AKIATHEIRSTHEIRSTHEI",
        "s3",
        "accept-encoding;host;x-amz-date",
    );
    let date = now();
    let fields = [
        ("authorization", value.as_str()),
        ("x-amz-date", &date),
        ("accept-encoding", "gzip"),
    ];
    let answer = client
        .send("GET", &echo.url("s3.api.test", "/k"), &fields, b"")
        .await;
    assert_eq!(answer.status, 200);
    let seen = echo.seen().pop().unwrap();
    assert_eq!(
        (line(&seen, "authorization"), line(&seen, "accept-encoding")),
        (value.as_str(), "gzip")
    );
    bench.requests(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn credential_minting_calls_are_refused_unless_allowed() {
    let long = format!("Action=GetCallerIdentity&Padding={}", "x".repeat(200_000));
    let mut minting = MINTING.to_vec();
    minting.push(("sts", "/", FORM, &long));
    for allowed in [false, true] {
        let echo = Echo::start().await;
        let prepared = prepared(SigningCredential {
            allow_credential_minting: allowed,
            ..aws(None)
        });
        let bench = echo.plan(&prepared.replacements).start().await;
        let key_id = &prepared.env["AWS_ACCESS_KEY_ID"];
        let call = async |service: &str, target: &str, field, body: &str| {
            let host = format!("{service}.api.test");
            let mut client = Client::connect(&bench, &host, true).await;
            let url = echo.url(&host, target);
            send(
                &mut client,
                &url,
                key_id,
                service,
                &[field],
                body.as_bytes(),
            )
            .await
        };
        for &(service, target, field, body) in &minting {
            let answer = call(service, target, field, body).await;
            match allowed {
                true => assert_eq!(answer.status, 200, "{}", answer.text()),
                false => assert_eq!(answer.code(), "credential_minting", "{body:.60}"),
            }
        }
        assert_eq!(echo.seen().len(), if allowed { minting.len() } else { 0 });
        let harmless = "Action=GetCallerIdentity&Version=2011-06-15";
        let answer = call("sts", "/", FORM, harmless).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(echo.seen().pop().unwrap().ends_with(harmless));
        let requests = bench.requests(minting.len() + 1).await;
        let status = if allowed { 200 } else { 403 };
        assert_eq!(requests[0].status, Some(status));
    }
}

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

/// Service, target, header and body of calls whose answers would carry credentials, or might.
const MINTING: [(&str, &str, (&str, &str), &str); 6] = [
    ("sts", "/", FORM, "Action=AssumeRole&RoleArn=arn"),
    (
        "sts",
        "/",
        FORM,
        "Version=2011-06-15&Action=GetSessionToken",
    ),
    ("sts", "/?Action=GetFederationToken", FORM, ""),
    ("iam", "/", FORM, "Action=CreateAccessKey&UserName=me"),
    (
        "ecr",
        "/",
        (
            "x-amz-target",
            "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken",
        ),
        "{}",
    ),
    ("sts", "/", ("content-encoding", "gzip"), "whatever"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_presigned_url_keeps_its_duplicate_parameters() {
    let (echo, prepared) = (Echo::start().await, prepared(aws(Some(SESSION_TOKEN))));
    let bench = echo.plan(&prepared.replacements).start().await;
    let (key_id, token) = (
        &prepared.env["AWS_ACCESS_KEY_ID"],
        &prepared.env["AWS_SESSION_TOKEN"],
    );
    let query = format!(
        "tag=a&tag=b&tag=a&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={key_id}%2F{}%2Feu-west-1%2Fs3%2Faws4_request\
         &X-Amz-Date={}&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Security-Token={token}&X-Amz-Signature={}",
        &now()[..8],
        now(),
        "0".repeat(64)
    );
    let mut client = Client::connect(&bench, "s3.api.test", false).await;
    let url = echo.url("s3.api.test", &format!("/k?{query}"));
    let answer = client.send("GET", &url, &[], b"").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let seen = echo.seen().pop().unwrap();
    assert!(seen.starts_with("GET /k?tag=a&tag=b&tag=a&"), "{seen}");
    assert!(
        seen.contains(&format!("X-Amz-Credential={KEY_ID}%2F")),
        "{seen}"
    );
    assert!(
        !seen.contains(key_id.as_str()) && !seen.contains(token.as_str()),
        "{seen}"
    );
    assert_absent(SESSION_TOKEN, &answer.text());
    // The record shows the URL as the workload knows it.
    bench.requests(1).await;
    assert!(bench.lines()[1].starts_with(&format!(
        "ALLOWED GET {url} -> 200 [masked: 1] [region: eu-west-1]"
    )));
}

#[tokio::test(flavor = "multi_thread")]
async fn clock_skew_is_named_in_the_record() {
    let (echo, prepared) = (Echo::start().await, prepared(aws(None)));
    let bench = echo.plan(&prepared.replacements).start().await;
    let mut client = Client::connect(&bench, "s3.api.test", false).await;
    let old = Timestamp::now().checked_sub(1.hours()).unwrap();
    let date = old.strftime("%Y%m%dT%H%M%SZ").to_string();
    let value = authorization(&prepared.env["AWS_ACCESS_KEY_ID"], "s3", "host;x-amz-date");
    let fields = [("authorization", value.as_str()), ("x-amz-date", &date)];
    assert_eq!(
        client
            .send("GET", &echo.url("s3.api.test", "/"), &fields, b"")
            .await
            .status,
        200
    );
    bench.requests(1).await;
    assert!(
        bench.lines()[1].contains(" [clock skew: signed 360"),
        "{:?}",
        bench.lines()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn surrogates_of_signing_keys_are_alarms_elsewhere() {
    let (echo, prepared) = (Echo::start().await, prepared(aws(Some(SESSION_TOKEN))));
    let bench = echo.plan(&prepared.replacements).start().await;
    let mut client = Client::connect(&bench, "api.test", true).await;
    let url = echo.url("api.test", "/");
    let answer = send(
        &mut client,
        &url,
        &prepared.env["AWS_ACCESS_KEY_ID"],
        "s3",
        &[],
        b"",
    )
    .await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (403, "surrogate_out_of_scope")
    );
    for name in ["AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"] {
        let answer = client
            .send("GET", &url, &[("x-value", &prepared.env[name])], b"")
            .await;
        assert_eq!(answer.code(), "surrogate_out_of_scope", "{name}");
    }
    assert_eq!(echo.connections(), 0);
    bench.requests(3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn masked_and_signing_credentials_share_a_host() {
    let echo = Echo::start().await;
    let token = masked("BEDROCK_KEY", TOKEN, &["*.api.test"], &["Authorization"]);
    let prepared = prepare_secrets(vec![token], vec![aws(None)]).unwrap();
    let bench = echo.plan(&prepared.replacements).start().await;
    let mut client = Client::connect(&bench, "bedrock.api.test", false).await;
    let url = echo.url("bedrock.api.test", "/");
    let bearer = format!("Bearer {}", prepared.env["BEDROCK_KEY"]);
    client
        .send("GET", &url, &[("authorization", &bearer)], b"")
        .await;
    assert_eq!(
        line(&echo.seen()[0], "authorization"),
        format!("Bearer {TOKEN}")
    );
    send(
        &mut client,
        &url,
        &prepared.env["AWS_ACCESS_KEY_ID"],
        "bedrock",
        &[],
        b"",
    )
    .await;
    assert!(line(&echo.seen()[1], "authorization").contains(KEY_ID));
    client
        .send("GET", &url, &[("authorization", "Bearer theirs")], b"")
        .await;
    assert_eq!(line(&echo.seen()[2], "authorization"), "");
    bench.requests(3).await;
}
