//! The real programs against the stand-in, started as this crate says they should be.
//!
//! `scripts/setup test` installs them. With `CORDON_AGENTS_RECORD` set to a directory, every run's output
//! is written there.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use cordon_agents::{
    Agent, Budget, ContentBlock, EndedBy, Ending, EventStream, Invocation, Outcome, Output,
    StreamEvent, Transcript, classify,
};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::standin::Standin;

#[test]
fn claude_as_it_is() {
    whole(Agent::Claude, Some(Duration::from_secs(1)));
    let bench = Bench::new(Agent::Claude);
    let prompt = "scenario: tool+tool+tool+say\nrun: echo hi";
    for (name, budget) in [
        (
            "turns",
            Budget {
                max_cost_usd: None,
                max_turns: Some(2),
            },
        ),
        (
            "cost",
            Budget {
                max_cost_usd: Some(0.00015),
                max_turns: None,
            },
        ),
    ] {
        let invocation = Invocation {
            budget,
            ..bench.invocation()
        };
        assert_eq!(
            bench.run(name, prompt, &invocation).outcome,
            Outcome::BudgetExceeded
        );
    }
    let run = bench.run(
        "subagent",
        "scenario: subagent\nsub: I am below.",
        &bench.invocation(),
    );
    assert_eq!(run.outcome, Outcome::Success);
    assert!(
        run.events
            .iter()
            .any(|event| event.parent_tool_use_id.is_some())
    );
}

#[test]
fn codex_as_it_is() {
    whole(Agent::Codex, None);
}

#[test]
fn gemini_as_it_is() {
    whole(Agent::Gemini, Some(Duration::from_secs(1)));
}

/// What must hold of every agent.
fn whole(agent: Agent, retry_after: Option<Duration>) {
    let bench = Bench::new(agent);
    let fresh = bench.invocation();

    let run = bench.run(
        "say",
        "scenario: say\nsay: All good.\nremember: walrus",
        &fresh,
    );
    assert_eq!(run.outcome, Outcome::Success);
    assert_eq!(run.transcript.response_text(), "All good.");
    let summary = run.transcript.summary().unwrap();
    assert!(summary.usage.input_tokens > 0 && summary.usage.output_tokens > 0);
    assert_eq!(summary.num_turns, 1);
    let session = run.transcript.session_id().unwrap().to_owned();

    let resumed = Invocation {
        resume: Some(session.parse().unwrap()),
        ..bench.invocation()
    };
    let run = bench.run("resume", "scenario: recall", &resumed);
    assert_eq!(run.transcript.response_text(), "I recall: walrus");
    assert_eq!(run.transcript.session_id(), Some(session.as_str()));

    let run = bench.run(
        "tool",
        "scenario: tool\nrun: echo hello | tee note.txt",
        &fresh,
    );
    assert_eq!(run.outcome, Outcome::Success);
    assert_eq!(
        fs::read_to_string(bench.work.join("note.txt")).unwrap(),
        "hello\n"
    );
    let blocks: Vec<_> = run.events.iter().flat_map(StreamEvent::blocks).collect();
    assert!(
        blocks
            .iter()
            .any(|block| matches!(block, ContentBlock::ToolUse { .. }))
    );
    assert!(blocks.iter().any(|block| matches!(block,
        ContentBlock::ToolResult { content, is_error: false, .. } if content.to_string().contains("hello"))));

    let lost = "11111111-2222-4333-8444-555555555555".parse().unwrap();
    let lost = Invocation {
        resume: Some(lost),
        ..bench.invocation()
    };
    let run = bench.run("lost", "scenario: say", &lost);
    assert_eq!(run.outcome, Outcome::SessionCorrupted);

    for (scenario, expected) in [
        ("400", Outcome::SessionCorrupted),
        ("too-long", Outcome::PromptTooLong),
        ("bad-key", Outcome::AuthFailed),
        ("403", Outcome::AuthFailed),
        ("429", Outcome::RateLimited { retry_after }),
        ("500", Outcome::Overloaded),
        ("529", Outcome::Overloaded),
        ("cut", Outcome::Overloaded),
        ("flaky", Outcome::Success),
    ] {
        let run = bench.run(scenario, &format!("scenario: {scenario}"), &fresh);
        assert_eq!(run.outcome, expected, "{agent} {scenario}");
        assert!(run.transcript.session_id().is_some(), "{agent} {scenario}");
        assert!(expected == Outcome::Success || run.transcript.error_summary().is_some());
    }

    let run = bench.run(
        "hang",
        &format!(
            "scenario: tool+hang\nrun: printf '%s-%s' {}",
            HALF_WAY.replace('-', " ")
        ),
        &fresh,
    );
    assert_eq!(run.outcome, Outcome::Timeout);
    assert!(run.events.len() > 2 && run.transcript.session_id().is_some());
}

/// A home, a place to work and an API for one agent.
struct Bench {
    agent: Agent,
    standin: Standin,
    scratch: tempfile::TempDir,
    work: PathBuf,
}

struct Run {
    outcome: Outcome,
    events: Vec<StreamEvent>,
    transcript: Transcript,
}

impl Bench {
    fn new(agent: Agent) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let work = scratch.path().join("workspace");
        fs::create_dir(&work).unwrap();
        let state = PathBuf::from(agent.state_dir(scratch.path().to_str().unwrap()));
        fs::create_dir(&state).unwrap();
        for file in agent.state_files() {
            let fewer = r#""general": { "maxAttempts": 2,"#;
            fs::write(
                state.join(file.name),
                file.text.replace(r#""general": {"#, fewer),
            )
            .unwrap();
        }
        Self {
            agent,
            standin: Standin::start(),
            scratch,
            work,
        }
    }

    fn invocation(&self) -> Invocation {
        let url = self.standin.url();
        let fewer = |name: &str| ["-c".to_owned(), format!("model_providers.cordon.{name}=1")];
        Invocation {
            home: self.scratch.path().to_str().unwrap().to_owned(),
            model: match self.agent {
                Agent::Claude => Some("sonnet".parse().unwrap()),
                Agent::Codex => None,
                // It would ask another model first which one to take.
                Agent::Gemini => Some("gemini-2.5-pro".parse().unwrap()),
            },
            base_url: Some(match self.agent {
                Agent::Claude | Agent::Gemini => url,
                Agent::Codex => format!("{url}/v1"),
            }),
            extra_args: match self.agent {
                Agent::Claude | Agent::Gemini => Vec::new(),
                Agent::Codex => {
                    [fewer("request_max_retries"), fewer("stream_max_retries")].concat()
                }
            },
            ..Invocation::default()
        }
    }

    fn run(&self, name: &str, prompt: &str, invocation: &Invocation) -> Run {
        self.agent.check_prompt(prompt).unwrap();
        let command = self.agent.command(invocation).unwrap();
        let mut child = program(self.agent)
            .args(&command.args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.scratch.path())
            .env("CLAUDE_CODE_MAX_RETRIES", "1")
            .env(self.agent.credentials()[0].variable, "sk-standin")
            .envs(command.default_env)
            .envs(command.forced_env)
            .current_dir(&self.work)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(prompt.as_bytes())
            .unwrap();
        let group = Pid::from_child(&child);
        let (done, timer) = mpsc::channel::<()>();
        let watch = thread::spawn(move || {
            if timer.recv_timeout(LIMIT).is_err() {
                kill_process_group(group, Signal::KILL).unwrap();
            }
        });
        let mut stderr = child.stderr.take().unwrap();
        let errors = thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).unwrap();
            text
        });
        let mut by = EndedBy::Itself;
        let mut stdout = Vec::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        while lines.read_until(b'\n', &mut stdout).unwrap() > 0 {
            // The tool has answered, and the API will not any more.
            if name == "hang" && by == EndedBy::Itself && holds(&stdout, HALF_WAY) {
                kill_process_group(group, Signal::KILL).unwrap();
                by = EndedBy::Timeout;
            }
        }
        let status = child.wait().unwrap();
        done.send(()).ok();
        watch.join().unwrap();
        let stderr = errors.join().unwrap();
        self.record(name, &stdout, &stderr, status.code());
        self.judge(
            &stdout,
            &Ending {
                by,
                exit_code: status.code(),
                oom_killed: false,
                stderr: &stderr,
            },
        )
    }

    fn judge(&self, stdout: &[u8], ending: &Ending<'_>) -> Run {
        let mut stream = EventStream::new(self.agent);
        let mut transcript = Transcript::new(self.agent);
        let mut outputs = stream.push(stdout);
        outputs.extend(stream.finish());
        for output in &outputs {
            transcript.push(output);
        }
        let events = outputs.into_iter().filter_map(|output| match output {
            Output::Event(event) => Some(*event),
            Output::Plain(_) => None,
        });
        Run {
            outcome: classify(ending, &transcript),
            events: events.collect(),
            transcript,
        }
    }

    fn record(&self, name: &str, stdout: &[u8], stderr: &str, code: Option<i32>) {
        let Some(dir) = std::env::var_os("CORDON_AGENTS_RECORD") else {
            return;
        };
        let base = Path::new(&dir).join(format!("{}-{name}", self.agent.name()));
        let home = self.scratch.path().to_str().unwrap();
        let text = String::from_utf8_lossy(stdout).replace(home, "/root");
        fs::write(base.with_added_extension("jsonl"), text).unwrap();
        let ending = format!("exit {code:?}\n{}", stderr.replace(home, "/root"));
        fs::write(base.with_added_extension("ending"), ending).unwrap();
    }
}

/// An agent's program, as its package has it.
#[expect(clippy::disallowed_methods, reason = "tests drive real programs")]
fn program(agent: Agent) -> Command {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.unwrap_or_else(|| std::env::home_dir().unwrap().join(".cache"));
    let packages = cache.join("cordon-test/agents/node_modules");
    let native = if cfg!(target_arch = "aarch64") {
        "linux-arm64"
    } else {
        "linux-x64"
    };
    let path = match agent {
        Agent::Claude => packages.join(format!("@anthropic-ai/claude-code-{native}/claude")),
        Agent::Codex => {
            let vendor = packages.join(format!("@openai/codex-{native}/vendor"));
            let mut found =
                fs::read_dir(&vendor).expect("`scripts/setup test` installs the agents");
            found.next().unwrap().unwrap().path().join("bin/codex")
        }
        Agent::Gemini => {
            let mut node = Command::new(packages.join(format!("node-{native}/bin/node")));
            node.arg(packages.join("@google/gemini-cli/bundle/gemini.js"));
            return node;
        }
    };
    assert!(path.exists(), "`scripts/setup test` installs the agents");
    Command::new(path)
}

fn holds(bytes: &[u8], text: &str) -> bool {
    String::from_utf8_lossy(bytes).contains(text)
}

/// What a tool says, and nobody before it does.
const HALF_WAY: &str = "half-way";

/// These programs try again for seconds, and the machine may be busy.
const LIMIT: Duration = Duration::from_secs(300);
