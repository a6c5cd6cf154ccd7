//! The stand-in for the three APIs, at their own names.

use std::{
    fs,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use origin::{Post, Program};
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    outside::OutsideAddress,
    setup::{eventually, root},
};

/// Running stand-ins for the APIs of Claude Code, Codex and Gemini CLI.
pub(crate) struct Api {
    program: Program,
    scratch: TempDir,
    _address: Option<OutsideAddress>,
}

impl Api {
    pub(crate) fn start() -> Self {
        Self::serve(None)
    }

    /// One that proxy containers reach.
    pub(crate) fn start_outside() -> Self {
        Self::serve(Some(OutsideAddress::new()))
    }

    fn serve(address: Option<OutsideAddress>) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let script = root().join("crates/agents/tests/standin/standin.py");
        let command = |post: &Post<'_>| {
            let mut command = Command::new("python3");
            command.arg(script).args(["--port", "443"]);
            command.args(["--address", &post.address.to_string()]);
            command.arg("--cert").arg(post.certificate);
            command.arg("--key").arg(post.key);
            command.arg("--log").arg(scratch.path().join(LOG));
            command
        };
        let program = match &address {
            Some(address) => Program::start_at(address.0, &HOSTS, command),
            None => Program::start(&HOSTS, command),
        };
        Self {
            program,
            scratch,
            _address: address,
        }
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
