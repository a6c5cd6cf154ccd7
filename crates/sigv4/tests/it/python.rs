//! Runs the scripts beside this file in an interpreter that has botocore and awscrt.

use std::{
    env,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use cordon_sigv4::{Credentials, Field, Head, Resigned, Resigning, SignedRequest};
use data_encoding::BASE64;
use serde_json::{Value, json};

pub(crate) const REAL: Credentials<'_> = Credentials {
    access_key_id: "AKIAREALREALREALREAL",
    secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
    session_token: Some("real//token+with/signs=="),
};

pub(crate) const SURROGATE: Credentials<'_> = Credentials {
    access_key_id: "AKIASURROGATESURROGA",
    secret_access_key: "surrogate-secret",
    session_token: Some("surrogate-token"),
};

/// The surrogates and the real credentials, with a session token or without.
pub(crate) fn pairs() -> [(Credentials<'static>, Credentials<'static>); 2] {
    let long_term = |credentials: Credentials<'static>| Credentials {
        session_token: None,
        ..credentials
    };
    [(SURROGATE, REAL), (long_term(SURROGATE), long_term(REAL))]
}

pub(crate) fn to_json(credentials: &Credentials<'_>) -> Value {
    json!({
        "access_key_id": credentials.access_key_id,
        "secret_access_key": credentials.secret_access_key,
        "session_token": credentials.session_token,
    })
}

/// A request as a Python signer sent it.
pub(crate) struct Captured {
    pub(crate) method: String,
    pub(crate) host: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Captured {
    pub(crate) fn new(value: &Value) -> Self {
        let text = |name: &str| value[name].as_str().unwrap().to_owned();
        let pair = |pair: &Value| {
            let part = |index: usize| pair[index].as_str().unwrap().to_owned();
            (part(0), part(1))
        };
        Self {
            method: text("method"),
            host: text("host"),
            target: text("target"),
            headers: value["headers"]
                .as_array()
                .unwrap()
                .iter()
                .map(pair)
                .collect(),
            body: BASE64.decode(text("body").as_bytes()).unwrap(),
        }
    }

    pub(crate) fn fields(&self) -> Vec<Field<'_>> {
        self.headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_bytes()))
            .collect()
    }

    pub(crate) fn head<'a>(&'a self, fields: &'a [Field<'a>]) -> Head<'a> {
        Head {
            method: &self.method,
            target: &self.target,
            authority: &self.host,
            headers: fields,
        }
    }

    /// The headers, sorted, in lower case.
    pub(crate) fn sorted(&self) -> Vec<(String, String)> {
        let mut headers: Vec<_> = self
            .headers
            .iter()
            .map(|(name, value)| (name.to_lowercase(), value.clone()))
            .collect();
        headers.sort();
        headers
    }

    /// The request signed again.
    pub(crate) fn resign(&self, credentials: &Credentials<'_>) -> Resigned {
        let fields = self.fields();
        let head = self.head(&fields);
        let signed = SignedRequest::parse(&head).unwrap().unwrap();
        match signed.resign(&head, credentials).unwrap() {
            Resigning::Ready(resigned) | Resigning::Chunked(resigned, _) => resigned,
            Resigning::Deferred(mut waiting) => {
                waiting.update(&self.body);
                waiting.finish()
            }
        }
    }

    /// What becomes of the request with all edits made.
    pub(crate) fn edited(mut self, resigned: &Resigned) -> Self {
        for edit in &resigned.headers {
            self.headers
                .retain(|(name, _)| !name.eq_ignore_ascii_case(edit.name));
            if let Some(value) = &edit.value {
                self.headers.push((edit.name.to_owned(), value.clone()));
            }
        }
        if let Some(target) = &resigned.target {
            self.target.clone_from(target);
        }
        self
    }
}

/// Runs a script with `input` on its stdin and reads JSON from its stdout.
#[expect(clippy::disallowed_methods, reason = "tests drive real programs")]
pub(crate) fn run(script: &str, variables: &[(&str, &str)], input: &Value) -> Value {
    let interpreter = env::var("CORDON_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let modules = Command::new(&interpreter)
        .args(["-c", "import awscrt, botocore"])
        .output()
        .unwrap_or_else(|error| panic!("cannot run {interpreter}: {error}"));
    assert!(
        modules.status.success(),
        "{interpreter} has no botocore or awscrt: install crates/sigv4/tests/it/requirements.txt \
         with pip, and name the interpreter in CORDON_TEST_PYTHON\n{}",
        String::from_utf8_lossy(&modules.stderr)
    );

    let mut child = Command::new(&interpreter)
        .arg(here.join(script))
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("AWS_CONFIG_FILE", "/dev/null")
        .env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.to_string().as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{script}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}
