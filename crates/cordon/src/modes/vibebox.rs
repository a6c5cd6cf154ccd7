//! Commands through the `vibebox` program, which chooses and keeps the machine that they run in.
//!
//! It is asked by its command line and answers in JSON. Nothing is believed that has not the form of the
//! contract, and the program is not trusted with the choice between a machine and the host.

mod answer;
mod bridge;
mod error;

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsStr,
    fmt, fs,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, Once, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::{OnceCell, watch};

pub use self::error::{BridgeError, BridgeErrorKind, Stage};
use self::{
    answer::{Answer, Finding},
    bridge::Question,
};
use super::{
    AgentSandbox, Cut, ExecCommand, ExecOutput, ExecRequest, HostUse, Mode, ModeNotice, Probe,
    Provider, SessionKey, VibeboxSettings, WorkspaceAccess,
};
use crate::{Notice, OnNotice, Profile, SandboxConfig, SandboxError};

/// Runs the commands of one agent through `vibebox`.
///
/// Variables stand in the program's argument list, where other users of the host can read them: that is
/// its contract. They are never secrets, and a notice says so once.
pub struct VibeboxExecutor {
    agent: AgentSandbox,
    host: HostUse,
    on_notice: Option<OnNotice>,
    /// What `auto` came to.
    backend: OnceCell<Provider>,
    /// Said already: what is not held, and what is shown.
    told: Once,
    shown: Once,
    running: Mutex<HashMap<SessionKey, watch::Sender<()>>>,
}

/// What came of [`VibeboxExecutor::init`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Init {
    /// The project had its configuration already.
    Present,
    /// It has one now.
    Made,
}

impl VibeboxExecutor {
    /// An executor for that agent. Nothing is started yet.
    #[must_use]
    pub fn new(agent: AgentSandbox, config: &SandboxConfig, host: HostUse) -> Self {
        Self {
            agent,
            host,
            on_notice: config.on_notice.clone(),
            backend: OnceCell::new(),
            told: Once::new(),
            shown: Once::new(),
            running: Mutex::new(HashMap::new()),
        }
    }

    /// Runs a command to its end.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Bridge`], when the program does not give a result in the form of its contract, or
    /// the request cannot be put in that form.
    pub async fn exec(
        &self,
        key: &SessionKey,
        request: &ExecRequest,
    ) -> Result<ExecOutput, SandboxError> {
        if matches!(&request.command, ExecCommand::Argv(argv) if argv.is_empty()) {
            return Err(SandboxError::NoCommand);
        }
        self.check_promises()
            .map_err(|kind| BridgeError::early(Stage::Exec, kind))?;
        let env = self.env(request)?;
        let backend = self.backend().await?;
        let limit = self.limit(request);
        let cwd = self.below_workspace(request.cwd.as_deref())?;
        let question = self
            .question(backend, request, cwd.as_deref(), &env, limit)
            .map_err(|kind| BridgeError::early(Stage::Exec, kind))?;
        self.tell(backend, &env);
        let mut stop = self.enter(key);
        let began = Instant::now();
        let reply = tokio::select! {
            reply = question.ask(&self.settings().program) => reply?,
            _ = stop.changed() => return Ok(stopped()),
        };
        let answer = Answer::read(&reply)?;
        let result = answer.result(&reply, backend)?;
        let (stdout, less_output) = cut(&result.stdout, request.output_limit);
        let (stderr, less_errors) = cut(&result.stderr, request.output_limit);
        Ok(ExecOutput {
            stdout,
            stderr,
            exit_code: result.exit_code,
            timed_out: result.exit_code == TIMED_OUT && began.elapsed() >= limit,
            truncated: less_output || less_errors,
        })
    }

    /// Ends the commands of a session that are under way, and says whether there were any. What else the
    /// program keeps for the session is its own.
    pub async fn stop(&self, key: &SessionKey) -> bool {
        let Some(stop) = self.running().remove(key) else {
            return false;
        };
        let any = stop.receiver_count() > 0;
        stop.send_replace(());
        stop.closed().await;
        any
    }

    /// Asks the program whether it can be used.
    pub async fn probe(&self) -> Probe {
        let finding = match self.look().await {
            Ok(finding) => finding,
            Err(error) => Finding {
                usable: None,
                message: error.to_string(),
                hints: error.hints,
            },
        };
        Probe {
            ok: finding.usable.is_some(),
            mode: Mode::Vibebox,
            message: finding.message,
            hints: finding.hints,
        }
    }

    /// Has the program set up its configuration in the project, where there is none.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Bridge`], when it does not.
    pub async fn init(&self) -> Result<Init, SandboxError> {
        let root = self.root();
        if root.join(CONFIGURATION).exists() {
            return Ok(Init::Present);
        }
        let question = Question::new(Stage::Init, CALL_LIMIT)
            .word("--non-interactive")
            .pair("--provider", self.settings().provider.word())
            .pair("--project-root", root);
        let reply = question.ask(&self.settings().program).await?;
        if reply.status.success() {
            Ok(Init::Made)
        } else {
            Err(reply.error(BridgeErrorKind::Refused { said: None }).into())
        }
    }

    /// The backend that commands are to run on. `auto` is decided once, and named from then on: the program
    /// cannot change its mind from one command to the next.
    async fn backend(&self) -> Result<Provider, Box<BridgeError>> {
        match self.settings().provider {
            Provider::AppleVm => Ok(Provider::AppleVm),
            Provider::Docker => Ok(Provider::Docker),
            Provider::Off => match self.host_refusal() {
                Some(why) => Err(BridgeError::early(
                    Stage::Exec,
                    BridgeErrorKind::HostRefused { why },
                )),
                None => Ok(Provider::Off),
            },
            Provider::Auto => self
                .backend
                .get_or_try_init(|| self.choose())
                .await
                .copied(),
        }
    }

    async fn choose(&self) -> Result<Provider, Box<BridgeError>> {
        let finding = self.look().await?;
        match finding.usable {
            Some(backend) => {
                self.notice(&ModeNotice::BackendTaken { backend }.into());
                Ok(backend)
            }
            None => {
                let said = finding.message;
                let kind = BridgeErrorKind::Unusable { said };
                let mut error = BridgeError::early(Stage::Probe, kind);
                error.hints = finding.hints;
                Err(error)
            }
        }
    }

    /// Refuses what is configured and would not be held: the contract has no word for it.
    fn check_promises(&self) -> Result<(), BridgeErrorKind> {
        let agent = &self.agent;
        let asked = [
            ("an allowlist", agent.allowlist.is_some()),
            ("a runtime", agent.runtime.is_some()),
            (
                "a workspace that is not writable",
                agent.workspace_access != WorkspaceAccess::ReadWrite,
            ),
        ];
        match asked.into_iter().find(|(_, asked)| *asked) {
            Some((what, _)) => Err(BridgeErrorKind::Unheld { what }),
            None => Ok(()),
        }
    }

    async fn look(&self) -> Result<Finding, Box<BridgeError>> {
        self.check_promises()
            .map_err(|kind| BridgeError::early(Stage::Probe, kind))?;
        let provider = self.settings().provider;
        let question = Question::new(Stage::Probe, CALL_LIMIT)
            .word("--json")
            .pair("--provider", provider.word())
            .pair("--project-root", self.root());
        let reply = question.ask(&self.settings().program).await?;
        let answer = Answer::read(&reply)?;
        Ok(answer.judge(provider, self.host_refusal()))
    }

    /// Why nothing may run on the host, unless it may.
    fn host_refusal(&self) -> Option<&'static str> {
        match self.host {
            HostUse::Refused => Some("nobody has allowed it"),
            // Only the mode `off` can judge command lines.
            HostUse::Allowed if !self.agent.commands.is_empty() => {
                Some("the agent has a list of commands, which vibebox does not hold to")
            }
            HostUse::Allowed => None,
        }
    }

    fn question(
        &self,
        backend: Provider,
        request: &ExecRequest,
        cwd: Option<&Path>,
        env: &BTreeMap<&str, &str>,
        limit: Duration,
    ) -> Result<Question, BridgeErrorKind> {
        if !request.stdin.is_empty() {
            return Err(BridgeErrorKind::Input);
        }
        let line = line(&request.command)?;
        let mut question = Question::new(Stage::Exec, limit + GRACE)
            .word("--json")
            .pair("--provider", backend.word())
            .pair("--project-root", self.root())
            .shortened("--command", &line);
        if let Some(cwd) = cwd {
            question = question.pair("--cwd", cwd);
        }
        let seconds = limit.as_secs() + u64::from(limit.subsec_nanos() > 0);
        question = question.pair("--timeout-seconds", seconds.max(1).to_string());
        for (name, value) in env {
            question = question.variable(name, value);
        }
        Ok(question)
    }

    /// The one true path of a directory in the workspace.
    fn below_workspace(&self, cwd: Option<&Path>) -> Result<Option<PathBuf>, SandboxError> {
        let Some(cwd) = cwd else {
            return Ok(None);
        };
        let found = fs::canonicalize(self.agent.workspace.join(cwd));
        let workspace = fs::canonicalize(&self.agent.workspace);
        match (found, workspace) {
            (Ok(found), Ok(workspace)) if found.starts_with(&workspace) && found.is_dir() => {
                Ok(Some(found))
            }
            _ => Err(SandboxError::Cwd {
                path: cwd.to_owned(),
            }),
        }
    }

    /// The agent's variables, with the request's over them.
    fn env<'a>(
        &'a self,
        request: &'a ExecRequest,
    ) -> Result<BTreeMap<&'a str, &'a str>, SandboxError> {
        let both = self.agent.env.iter().chain(&request.env);
        let mut merged = BTreeMap::new();
        for (name, value) in both {
            // One that begins like an option would be taken for one.
            let invalid = name.is_empty() || name.starts_with('-') || name.contains(['=', '\0']);
            if invalid || value.contains('\0') {
                return Err(SandboxError::Variable { name: name.clone() });
            }
            merged.insert(name.as_str(), value.as_str());
        }
        Ok(merged)
    }

    fn limit(&self, request: &ExecRequest) -> Duration {
        let agents = self.agent.limits.timeout;
        request
            .timeout
            .or(agents)
            .unwrap_or_else(|| self.settings().timeout)
    }

    fn settings(&self) -> &VibeboxSettings {
        &self.agent.vibebox
    }

    /// What the program calls the project's directory.
    fn root(&self) -> &Path {
        let root = self.settings().project_root.as_deref();
        root.unwrap_or(&self.agent.workspace)
    }

    /// Says what a person should know before a command runs.
    fn tell(&self, backend: Provider, env: &BTreeMap<&str, &str>) {
        if backend == Provider::Off {
            self.notice(
                &ModeNotice::NothingIsolated {
                    mode: Mode::Vibebox,
                }
                .into(),
            );
        }
        self.told.call_once(|| {
            let limits = &self.agent.limits;
            let asked = [
                ("the profile strict", self.agent.profile == Profile::Strict),
                ("memory", limits.memory.is_some()),
                ("cpus", limits.cpus.is_some()),
                ("pids", limits.pids.is_some()),
            ];
            let limits: Vec<_> = asked
                .into_iter()
                .filter_map(|(name, asked)| asked.then_some(name))
                .collect();
            if !limits.is_empty() {
                let mode = Mode::Vibebox;
                self.notice(&ModeNotice::LimitsUnheld { mode, limits }.into());
            }
        });
        if !env.is_empty() {
            self.shown.call_once(|| {
                let names = env.keys().map(|name| (*name).to_owned()).collect();
                self.notice(&ModeNotice::VariablesShown { names }.into());
            });
        }
    }

    /// How a command of that session learns that it is to stop.
    fn enter(&self, key: &SessionKey) -> watch::Receiver<()> {
        let mut running = self.running();
        running.retain(|_, stop| stop.receiver_count() > 0);
        let stop = running
            .entry(key.clone())
            .or_insert_with(|| watch::Sender::new(()));
        stop.subscribe()
    }

    fn running(&self) -> MutexGuard<'_, HashMap<SessionKey, watch::Sender<()>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notice(&self, notice: &Notice) {
        tracing::info!("{notice}");
        if let Some(callback) = &self.on_notice {
            callback(notice);
        }
    }
}

/// The command as a line of shell, which is all that the program takes.
fn line(command: &ExecCommand) -> Result<String, BridgeErrorKind> {
    match command {
        ExecCommand::Shell(line) if line.contains('\0') => Err(BridgeErrorKind::NotText),
        ExecCommand::Shell(line) => Ok(line.clone()),
        ExecCommand::Argv(argv) => {
            let words = argv.iter().map(|word| quoted(word));
            let words = words.collect::<Option<Vec<_>>>();
            words
                .map(|words| words.join(" "))
                .ok_or(BridgeErrorKind::NotText)
        }
    }
}

/// A word that a shell takes as it is.
fn quoted(word: &OsStr) -> Option<String> {
    let word = word.to_str().filter(|word| !word.contains('\0'))?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:@%+,".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return Some(word.to_owned());
    }
    Some(format!("'{}'", word.replace('\'', r"'\''")))
}

fn cut(text: &str, limit: usize) -> (Vec<u8>, bool) {
    let mut cut = Cut::default();
    cut.push(text.as_bytes(), limit);
    cut.finish()
}

/// A command that was ended by [`VibeboxExecutor::stop`].
fn stopped() -> ExecOutput {
    ExecOutput {
        exit_code: KILLED,
        ..ExecOutput::default()
    }
}

impl fmt::Debug for VibeboxExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VibeboxExecutor")
            .field("agent", &self.agent.agent)
            .field("settings", &self.agent.vibebox)
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}

/// Where a project's configuration is, below its root.
const CONFIGURATION: &str = ".vibebox/config.yaml";

/// How long the program may take for what is no command of the agent's.
const CALL_LIMIT: Duration = Duration::from_secs(60);

/// How much longer than the command's own time the program may take to say that it was up.
const GRACE: Duration = Duration::from_secs(10);

/// What a shell gives for a command whose time was up.
const TIMED_OUT: i32 = 124;

/// What a shell gives for a command that was killed.
const KILLED: i32 = 137;

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    #[test]
    fn an_argv_becomes_a_line_that_a_shell_splits_into_the_same_words() {
        let cases: &[(&[&str], &str)] = &[
            (&["make", "test"], "make test"),
            (&["echo", ""], "echo ''"),
            (&["echo", "a b", "$(id)"], "echo 'a b' '$(id)'"),
            (&["echo", "it's"], r"echo 'it'\''s'"),
            (&["a;b", "c\nd", "~", "*"], "'a;b' 'c\nd' '~' '*'"),
        ];
        for (argv, expected) in cases {
            let argv = argv.iter().map(OsString::from).collect();
            assert_eq!(line(&ExecCommand::Argv(argv)).unwrap(), *expected);
        }
    }

    #[test]
    fn what_is_no_text_cannot_be_a_line() {
        use std::os::unix::ffi::OsStringExt as _;
        let words = vec![OsString::from_vec(vec![b'a', 0xff])];
        for command in [
            ExecCommand::Argv(words),
            ExecCommand::Shell("a\0b".into()),
            ExecCommand::Argv(vec!["a\0b".into()]),
        ] {
            assert!(matches!(line(&command), Err(BridgeErrorKind::NotText)));
        }
    }
}
