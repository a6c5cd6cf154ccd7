//! What other programs pack is scrubbed, and what comes out of the scrubber they unpack.

use std::{
    io::Write,
    process::{Command, Stdio},
    thread,
};

use bytes::Bytes;
use cordon_policy::{Host, HostPattern, NamePattern};
use cordon_secrets::{MaskedSecret, PreparedSecrets, Secret, prepare_secrets};
use http::{HeaderMap, HeaderValue, StatusCode, header::CONTENT_ENCODING};

const TOKEN: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

#[test]
fn gzip_unpacks_what_was_scrubbed() {
    for level in ["-1", "-9"] {
        round_trip("gzip", &["gzip", "-c", level], &["gzip", "-dc"]);
    }
}

#[test]
fn zstd_unpacks_what_was_scrubbed() {
    for level in ["-1", "-19", "--check"] {
        round_trip("zstd", &["zstd", "-qc", level], &["zstd", "-qdc"]);
    }
}

#[test]
fn zlib_unpacks_what_was_scrubbed() {
    let python = |call: &str| {
        format!("import sys,zlib;sys.stdout.buffer.write(zlib.{call}(sys.stdin.buffer.read()))")
    };
    let (pack, unpack) = (python("compress"), python("decompress"));
    round_trip(
        "deflate",
        &["python3", "-c", &pack],
        &["python3", "-c", &unpack],
    );
}

#[test]
fn node_unpacks_the_brotli_that_was_scrubbed() {
    let node = |call: &str| {
        format!("process.stdout.write(require('zlib').{call}(require('fs').readFileSync(0)))")
    };
    let (pack, unpack) = (node("brotliCompressSync"), node("brotliDecompressSync"));
    round_trip("br", &["node", "-e", &pack], &["node", "-e", &unpack]);
}

/// Packs a text with one program, scrubs it, unpacks it with another.
fn round_trip(coding: &'static str, pack: &[&str], unpack: &[&str]) {
    let prepared = prepared();
    let surrogate = &prepared.env["GH_TOKEN"];
    let line = |token: &str| format!("{{\"authorization\":\"Bearer {token}\"}}\n");
    let text: String = (0..20_000)
        .map(|at| format!("{at} {}", line(TOKEN)))
        .collect();
    let expected: String = (0..20_000)
        .map(|at| format!("{at} {}", line(surrogate)))
        .collect();

    let packed = run(pack, text.into_bytes());
    let scrubbed = scrub(&prepared, coding, &packed);
    let unpacked = run(unpack, scrubbed);
    assert!(
        unpacked == expected.as_bytes(),
        "{coding} came back different"
    );
}

fn scrub(prepared: &PreparedSecrets, coding: &'static str, packed: &[u8]) -> Vec<u8> {
    let scrub = prepared
        .replacements
        .scrub(&Host::parse("api.github.com").unwrap())
        .unwrap();
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
    let mut body = scrub.body(StatusCode::OK, &mut headers).unwrap();
    let mut out = Vec::new();
    for piece in packed.chunks(1500) {
        body.feed(Bytes::copy_from_slice(piece));
        while let Some(piece) = body.take().unwrap() {
            out.extend_from_slice(&piece);
        }
    }
    body.end();
    while let Some(piece) = body.take().unwrap() {
        out.extend_from_slice(&piece);
    }
    assert_eq!(body.count(), 20_000);
    out
}

fn prepared() -> PreparedSecrets {
    let token = MaskedSecret::new(
        "GH_TOKEN",
        Secret::new(TOKEN),
        vec![HostPattern::parse("api.github.com").unwrap()],
        vec![NamePattern::new("Authorization")],
    );
    prepare_secrets(vec![token], Vec::new()).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "tests drive real programs")]
fn run(command: &[&str], input: Vec<u8>) -> Vec<u8> {
    let mut child = Command::new(command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{} does not start: {error}", command[0]));
    let mut stdin = child.stdin.take().unwrap();
    let writer = thread::spawn(move || stdin.write_all(&input).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success(), "{command:?} failed");
    output.stdout
}
