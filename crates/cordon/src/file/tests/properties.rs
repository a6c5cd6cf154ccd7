use proptest::{collection::vec, prelude::*, sample::select};

use super::{SandboxFile, env};

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC*", pieces in vec(select(PIECES), 0..60)) {
        for text in [text, pieces.concat()] {
            if let Err(error) = SandboxFile::parse(&text, "f") {
                let at = error.position().unwrap();
                prop_assert!(at.line > 0 && at.column > 0);
                let place = format!("f:{}:{}: ", at.line, at.column);
                prop_assert!(error.to_string().starts_with(&place));
            }
        }
    }

    #[test]
    fn no_file_makes_resolving_panic(entries in vec(select(ENTRIES), 0..8)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let Ok(file) = SandboxFile::parse(&entries.concat(), "f") else { return Ok(()) };
        let host = env(&[("A", "value-of-variable-a"), ("B", ""), ("C", "a")]);
        if let Ok(resolved) = runtime.block_on(file.resolve(&host)) {
            let masked = resolved.masked.iter().any(|secret| secret.value.expose() == "value-of-variable-a");
            let shown = resolved.env.iter().any(|(_, value)| value.contains("value-of-variable-a"));
            prop_assert!(!(masked && shown));
            let _ = resolved.prepare();
        }
    }
}

const PIECES: &[&str] = &[
    "env",
    "pass_env",
    "masked_secrets",
    "signing_credentials",
    "network_sandbox",
    "resource_limits",
    "secrets",
    "value",
    "scopes",
    "headers",
    "query",
    "path",
    "body",
    "content_types",
    "type",
    "aws-sigv4",
    "access_key_id",
    "timeout",
    "memory",
    "environment",
    "command",
    ": ",
    ":\n",
    "\n",
    "\n  ",
    "\n    ",
    "- ",
    "[",
    "]",
    "{",
    "}",
    ", ",
    "!env ",
    "!secret ",
    "!secret? ",
    "!x ",
    "&a ",
    "*a",
    "true",
    "1",
    "0.5",
    "4g",
    "a.test",
    "'",
    "\"",
    "~",
    "|\n",
    "---\n",
    "{name}",
    "\\0",
];

/// Whole entries, of which any subset is a file unless a key comes twice.
const ENTRIES: &[&str] = &[
    "env: {A: 1, B: !env A, D: !secret? D}\n",
    "env: {A: !secret B}\n",
    "env: {D: !secret C, 'x/y:z': \"\"}\n",
    "pass_env: [A, B, C, D]\n",
    "pass_env: []\n",
    "masked_secrets: {A: {value: !env A, scopes: ['*'], headers: ['*']}}\n",
    "masked_secrets: {D: {value: !secret? A, scopes: [a.test], body: true}}\n",
    "masked_secrets: {A: {value: !env B, scopes: [a.test], path: true}, C: {value: !env C, scopes: [x], query: [q]}}\n",
    "signing_credentials: {s: {type: aws-sigv4, access_key_id: !env A, secret_access_key: !env B, scopes: [a.test]}}\n",
    "signing_credentials: {s: {type: aws-sigv4, access_key_id: !env C, secret_access_key: !env A, session_token: !secret? D, scopes: [a.test]}}\n",
    "network_sandbox: false\n",
    "network_sandbox: {enabled: true, allowlist: x}\n",
    "resource_limits: {timeout: 1, memory: 8m, cpus: 1, pids: 1}\n",
    "secrets: {environment: [A]}\n",
    "secrets: {}\n",
];
