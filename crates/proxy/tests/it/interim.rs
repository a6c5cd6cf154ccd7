//! Responses before the response, from node, which sends them over both protocols.

mod raw;

use std::process::Stdio;

use cordon_secrets::SecretReplacements;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::CertificateDer;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Child,
};

use crate::support::Plan;

/// Answers every request with interim responses first, and counts its requests in the last one.
const SERVER: &str = r#"
const { createSecureServer } = require("http2"), { createServer } = require("https");
const [protocol, cert, key] = process.argv.slice(1);
let count = 0;
const answer = (request, response) => {
  const text = `answer ${++count} to ${request.method} ${request.url}`;
  for (let round = 0; round < 3; round++) {
    if (protocol === "h1") response.writeProcessing();
    else response.stream.additionalHeaders({ ":status": 102 });
    response.writeEarlyHints({ link: "</style.css>; rel=preload; as=style", "content-length": "3" });
  }
  request.resume().on("end", () => setTimeout(() => {
    response.setHeader("content-length", text.length);
    response.end(request.method === "HEAD" ? undefined : text);
  }, 20));
};
const server = protocol === "h1" ? createServer({ cert, key }, answer) : createSecureServer({ cert, key }, answer);
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
"#;

#[tokio::test(flavor = "multi_thread")]
async fn interim_responses_pass_between_http1_peers_and_disturb_no_response() {
    for protocol in ["h1", "h2"] {
        let (_node, port, root) = serve(protocol).await;
        let bench = Plan::reaching(port, &root, &SecretReplacements::default())
            .start()
            .await;
        let url = |path: &str| format!("https://api.test:{port}{path}");
        for (version, requests) in [("--http1.1", 4), ("--http2", 8)] {
            let answers = bench
                .curl(&[
                    version,
                    "--include",
                    &url("/a"),
                    &url("/b"),
                    "--next",
                    "--silent",
                    version,
                    "--cacert",
                    &bench.ca().display().to_string(),
                    "--connect-to",
                    &format!("::{}", bench.https),
                    "--data",
                    "body",
                    &url("/c"),
                ])
                .await;
            for (path, method) in [("/a", "GET"), ("/b", "GET"), ("/c", "POST")] {
                let answer = format!(" to {method} {path}");
                assert_eq!(
                    answers.matches(&answer).count(),
                    1,
                    "{protocol} {version}: {answers}"
                );
            }
            // Three of each for the two requests that curl shows the heads of.
            let passed = (protocol, version) == ("h1", "--http1.1");
            let expected = if passed { [6, 6, 12] } else { [0, 0, 0] };
            assert_eq!(
                interim(&answers),
                expected,
                "{protocol} {version}: {answers}"
            );
            let head = bench.curl(&[version, "--head", &url("/d")]).await;
            assert!(head.contains("200"), "{protocol} {version}: {head}");
            assert_eq!(head.contains(" 103"), passed, "{head}");
            bench.requests(requests).await;
        }
        bench.stop().await;
    }
}

/// How often the interim responses are in a text as they should be, and how often there are any.
fn interim(text: &str) -> [usize; 3] {
    [
        "HTTP/1.1 102 Processing\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload; as=style\r\n\r\n",
        " 10",
    ]
    .map(|part| text.matches(part).count())
}

#[expect(clippy::disallowed_methods, reason = "tests drive real programs")]
async fn serve(protocol: &str) -> (Child, u16, CertificateDer<'static>) {
    let (root, certificate, key) = certificate();
    let mut node = tokio::process::Command::new("node")
        .args(["-e", SERVER, protocol, &certificate, &key])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(node.stdout.take().unwrap()).lines();
    let port = lines.next_line().await.unwrap().unwrap().parse().unwrap();
    (node, port, root)
}

/// A root, and a certificate of it for `api.test` with its key.
fn certificate() -> (CertificateDer<'static>, String, String) {
    let root_key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = params.self_signed(&root_key).unwrap().der().clone();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(["api.test".to_owned()])
        .unwrap()
        .signed_by(&key, &Issuer::new(params, root_key))
        .unwrap();
    (root, leaf.pem(), key.serialize_pem())
}
