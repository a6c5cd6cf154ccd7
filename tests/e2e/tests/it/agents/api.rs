//! The stand-in for the three APIs, at their own names.

use std::{
    fs,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use origin::Program;
use serde_json::Value;
use tempfile::TempDir;

use crate::setup::{eventually, root};

/// Running stand-ins for the APIs of Claude Code, Codex and Gemini CLI.
pub(crate) struct Api {
    program: Program,
    scratch: TempDir,
}

impl Api {
    pub(crate) fn start() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let script = root().join("crates/agents/tests/standin/standin.py");
        let program = Program::start(&HOSTS, |post| {
            let mut command = Command::new("python3");
            command.arg(script).args(["--port", "443"]);
            command.args(["--address", &post.address.to_string()]);
            command.arg("--cert").arg(post.certificate);
            command.arg("--key").arg(post.key);
            command.arg("--log").arg(scratch.path().join(LOG));
            command
        });
        Self { program, scratch }
    }

    /// Where it is; its name server is at port 53.
    pub(crate) fn address(&self) -> Ipv4Addr {
        self.program.address()
    }

    pub(crate) fn authority(&self) -> PathBuf {
        self.program.authority()
    }

    /// An allowlist of the three APIs.
    pub(crate) fn allowlist() -> String {
        let rules = HOSTS.map(|host| format!("  - {{ host: {host}, private_addresses: true }}\n"));
        format!("domains:\n{}", rules.concat())
    }

    /// Every request that came: its host, path, credential, scenario, step and status.
    pub(crate) fn requests(&self) -> Vec<Value> {
        let path: &Path = self.scratch.path();
        let log = fs::read_to_string(path.join(LOG)).unwrap_or_default();
        log.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The credentials of all requests that got an answer of the model's.
    pub(crate) fn credentials(&self) -> Vec<String> {
        let answered = |request: &Value| request["status"] == 200;
        let requests = self.requests().into_iter().filter(answered);
        requests
            .map(|request| {
                request["credential"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned()
            })
            .collect()
    }

    /// Whether a request has come to that step of its scenario.
    pub(crate) fn has_reached(&self, step: &str) -> bool {
        self.requests()
            .iter()
            .any(|request| request["step"] == step)
    }

    /// Waits until a request has come to that step of its scenario.
    pub(crate) fn wait_for(&self, step: &str) {
        eventually(step, Duration::from_secs(60), || self.has_reached(step));
    }
}

const HOSTS: [&str; 3] = [
    "api.anthropic.com",
    "api.openai.com",
    "generativelanguage.googleapis.com",
];

const LOG: &str = "requests.jsonl";
