//! Certificates as OpenSSL and others see them.

use std::sync::Arc;

use cordon_proxy::{AuthorityParts, CertificateAuthority, Event};

use crate::support::{Bench, DOOR, Origin, run, stdout};

/// Shakes hands with openssl, which closes at once.
async fn s_client(bench: &Bench, arguments: &[&str]) -> String {
    let address = bench.https.to_string();
    let ca = bench.ca().display().to_string();
    let mut all = vec![
        "s_client",
        "-connect",
        &address,
        "-CAfile",
        &ca,
        "-verify_return_error",
    ];
    all.extend(arguments);
    let output = run("openssl", &all).await;
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[tokio::test(flavor = "multi_thread")]
async fn openssl_believes_a_leaf_for_any_name() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    for version in ["-tls1_2", "-tls1_3"] {
        for name in [
            "api.test",
            "www.a-very-long-label-for-a-host.example.com",
            "under_score.example",
        ] {
            let strict = [
                "-x509_strict",
                version,
                "-servername",
                name,
                "-verify_hostname",
                name,
            ];
            let said = s_client(&bench, &strict).await;
            assert!(
                said.contains("Verify return code: 0 (ok)"),
                "{name}: {said}"
            );
            assert!(said.contains("issuer=CN = Cordon sandbox CA"), "{said}");
        }
    }
    let said = s_client(
        &bench,
        &["-servername", "api.test", "-verify_hostname", "other.test"],
    )
    .await;
    assert!(said.to_lowercase().contains("hostname mismatch"), "{said}");
    let said = s_client(&bench, &["-servername", "api.test", "-alpn", "h2,http/1.1"]).await;
    assert!(said.contains("ALPN protocol: h2"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_a_server_name_gets_a_leaf_for_the_address() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    let address = DOOR.to_string();
    let said = s_client(&bench, &["-noservername", "-verify_ip", &address]).await;
    assert!(said.contains("Verify return code: 0 (ok)"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn python_believes_it_with_strict_checks() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    let script = format!(
        "import http.client, socket, ssl\n\
         context = ssl.create_default_context(cafile='{}')\n\
         context.verify_flags |= ssl.VERIFY_X509_STRICT\n\
         plain = socket.create_connection(('127.0.0.1', {}))\n\
         secure = context.wrap_socket(plain, server_hostname='api.test')\n\
         secure.sendall(b'GET /x HTTP/1.1\\r\\nHost: api.test:{}\\r\\nConnection: close\\r\\n\\r\\n')\n\
         response = http.client.HTTPResponse(secure); response.begin()\n\
         print(response.status, response.read().decode())",
        bench.ca().display(),
        bench.https.port(),
        origin.https.port(),
    );
    assert_eq!(
        stdout("python3", &["-c", &script]).await,
        "200 hello from /x\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_and_plain_text_are_told_apart_on_both_ports() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    let swapped = format!("::{}", bench.http);
    let answer = bench
        .curl(&["--connect-to", &swapped, &origin.https_url("/a")])
        .await;
    assert_eq!(answer, "hello from /a\n200 2");
    let swapped = format!("::{}", bench.https);
    let answer = bench
        .curl(&["--connect-to", &swapped, &origin.http_url("/b")])
        .await;
    assert_eq!(answer, "hello from /b\n200 1.1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_trust_the_authority_is_recorded() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    let url = origin.https_url("/");
    let connect = format!("::{}", bench.https);
    let output = run("curl", &["-sS", "--connect-to", &connect, &url]).await;
    assert!(!output.status.success());
    for _ in 0..100 {
        if bench.records().len() > 1 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let records = bench.records();
    assert!(
        matches!(&records[1].event, Event::Handshake { server_name: Some(name), .. } if name == "api.test"),
        "{records:?}"
    );
    assert!(
        bench.lines()[1].starts_with("ERROR TLS api.test -> "),
        "{:?}",
        bench.lines()
    );
}

#[test]
fn an_authority_can_travel_and_its_key_is_not_shown() {
    let authority = CertificateAuthority::generate().unwrap();
    let parts = authority.to_parts();
    let shown = format!("{authority:?} {parts:?}");
    assert!(
        !shown.contains("PRIVATE") && !shown.contains(&parts.key_pem[30..60]),
        "{shown}"
    );
    let copy = CertificateAuthority::from_parts(&parts).unwrap();
    assert_eq!(copy.certificate_der(), authority.certificate_der());
    assert_eq!(*copy.to_parts().key_pem, *parts.key_pem);
    assert!(copy.not_after() > std::time::SystemTime::now());

    let broken = AuthorityParts {
        certificate_pem: "no PEM".to_owned(),
        ..parts
    };
    assert!(CertificateAuthority::from_parts(&broken).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn leaves_of_a_travelled_authority_are_believed() {
    let origin = Origin::start().await;
    let authority = CertificateAuthority::generate().unwrap();
    let copy = CertificateAuthority::from_parts(&authority.to_parts()).unwrap();
    let bench = crate::support::Plan::new(&origin)
        .start_with(Arc::new(copy))
        .await;
    std::fs::write(bench.ca(), authority.certificate_pem()).unwrap();
    assert_eq!(
        bench.curl(&[&origin.https_url("/")]).await,
        "hello from /\n200 2"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_name_that_is_an_address_in_disguise_is_refused_and_recorded() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    // Resolvers of C libraries take this for 127.0.0.1.
    s_client(&bench, &["-servername", "0x7f.1"]).await;
    for _ in 0..100 {
        if bench.records().len() > 1 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(
        matches!(bench.records()[1].event, Event::Handshake { .. }),
        "{:?}",
        bench.lines()
    );
}
