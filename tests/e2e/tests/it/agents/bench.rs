//! `cordon agent` on one set-up, in one context, against the stand-in.

use std::{
    fs,
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::Value;
use tempfile::TempDir;

use super::api::Api;
use crate::setup::{Ended, Run, Running, Setup};

/// An agent, its workspace and its context.
pub(crate) struct Bench {
    pub(crate) setup: Setup,
    pub(crate) api: Api,
    context: String,
    state: TempDir,
    run: Run,
}

/// What `cordon agent --json` came to.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) ended: Ended,
    /// What the agent printed.
    pub(crate) events: Vec<Value>,
    /// The last line, which is Cordon's.
    pub(crate) result: Value,
}

impl Bench {
    pub(crate) fn new(setup: Setup, agent: &str) -> Self {
        Self::with(setup, agent, Api::start())
    }

    /// One whose proxy is in a container of its own.
    pub(crate) fn beside_a_proxy_container(setup: Setup, agent: &str) -> Self {
        let mut bench = Self::with(setup, agent, Api::start_outside());
        bench.run = bench.run().flags(["--topology", "proxy-container"]);
        bench
    }

    fn with(setup: Setup, agent: &str, api: Api) -> Self {
        let context = unique();
        let state = tempfile::tempdir().unwrap();
        let run = Run::agent(setup, agent);
        let allowlist = run.path("allowlist.yaml");
        fs::write(&allowlist, Api::allowlist()).unwrap();
        let (variable, key) = key_of(agent);
        let run = run
            .upstream(api.address(), &api.authority())
            .flags(["--allowlist".as_ref(), allowlist.as_os_str()])
            .flags(["--context", &context, "--env", "CLAUDE_CODE_MAX_RETRIES=1"])
            .env(variable, key)
            .env("XDG_STATE_HOME", state.path().to_str().unwrap());
        // Left to itself, Gemini CLI asks another model first which one to take.
        let run = match agent {
            "gemini" => run.flags(["--model", "gemini-2.5-pro"]),
            _ => run,
        };
        Self {
            setup,
            api,
            context,
            state,
            run,
        }
    }

    /// A run that has everything but its prompt.
    pub(crate) fn run(&self) -> Run {
        self.run.clone()
    }

    /// Asks in a fresh session.
    pub(crate) fn ask(&self, prompt: &str) -> Answer {
        Answer::of(self.start(&[], prompt).end())
    }

    /// Asks in a fresh session, with further flags.
    pub(crate) fn ask_with(&self, flags: &[&str], prompt: &str) -> Answer {
        Answer::of(self.start(flags, prompt).end())
    }

    /// Goes on with the context's last session.
    pub(crate) fn resume(&self, prompt: &str) -> Answer {
        Answer::of(self.start(&["--continue"], prompt).end())
    }

    pub(crate) fn start(&self, flags: &[&str], prompt: &str) -> Running {
        let run = self.run().flags(["--json"]).flags(flags);
        run.input(prompt).start()
    }

    /// Where the context is kept.
    pub(crate) fn context_dir(&self) -> PathBuf {
        let home = match self.setup {
            Setup::Podman | Setup::Docker => self.state.path().to_owned(),
            Setup::Rootless => {
                let output = self.setup.command("printenv").arg("HOME").output().unwrap();
                let home = String::from_utf8(output.stdout).unwrap();
                PathBuf::from(home.trim()).join(".local/state")
            }
        };
        home.join("cordon/contexts").join(&self.context)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // The ordinary user's contexts are in a home that outlives the test.
        drop(fs::remove_dir_all(self.context_dir()));
    }
}

impl Answer {
    pub(crate) fn of(ended: Ended) -> Self {
        let lines = ended.stdout.lines();
        let mut events: Vec<Value> = lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let result = events.pop().unwrap_or_default();
        assert_eq!(result["type"], "cordon_result", "{ended:?}");
        Self {
            ended,
            events,
            result,
        }
    }

    /// The answer of a run that must have gone well.
    pub(crate) fn text(&self) -> &str {
        assert_eq!(self.outcome(), "success", "{self:?}");
        assert_eq!(self.ended.code, 0, "{self:?}");
        self.result["response_text"].as_str().unwrap()
    }

    pub(crate) fn outcome(&self) -> &str {
        self.result["outcome"].as_str().unwrap()
    }

    pub(crate) fn session(&self) -> &str {
        self.result["session_id"].as_str().unwrap()
    }

    /// Whether some event holds the text, in whatever form.
    pub(crate) fn has_event(&self, text: &str) -> bool {
        self.events
            .iter()
            .any(|event| event.to_string().contains(text))
    }
}

/// A context's name that no other test uses.
pub(crate) fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let number = NEXT.fetch_add(1, Ordering::SeqCst);
    format!("e2e-{}-{number}", std::process::id())
}

/// The variable of an agent's key, and a key that is nobody's.
pub(crate) fn key_of(agent: &str) -> (&'static str, &'static str) {
    match agent {
        "codex" => ("CODEX_API_KEY", CODEX_KEY),
        "gemini" => ("GEMINI_API_KEY", GEMINI_KEY),
        _ => ("ANTHROPIC_API_KEY", CLAUDE_KEY),
    }
}

pub(crate) const CLAUDE_KEY: &str = "sk-ant-api03-R3alR3alR3alR3alR3alR3alR3alR3alR3alR3al";
const CODEX_KEY: &str = "sk-proj-R3alR3alR3alR3alR3alR3alR3alR3alR3alR3al";
const GEMINI_KEY: &str = "AIzaSyR3alR3alR3alR3alR3alR3alR3alR3alR";
