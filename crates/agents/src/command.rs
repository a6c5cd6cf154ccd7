//! One run as the program sees it: arguments and environment.
//!
//! The prompt is never among the arguments, where anybody could read it: all three programs take
//! it on stdin. Every flag here is in the program's own `--help`.

use std::{fmt, str::FromStr};

use crate::{Agent, Budget, Error};

/// What to ask of an agent, beside the prompt.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The model; the agent's own default without it.
    pub model: Option<Model>,
    /// How hard to think; the agent's own default without it.
    pub effort: Option<Effort>,
    /// The session to go on with; a new one without it.
    pub resume: Option<SessionId>,
    /// What the run may use up.
    pub budget: Budget,
    /// The home directory of the agent's user in the container.
    pub home: String,
    /// Another server than the agent's own API, as the base that the agent's paths are added to.
    pub base_url: Option<String>,
    /// Further arguments, after ours.
    pub extra_args: Vec<String>,
}

impl Default for Invocation {
    fn default() -> Self {
        Self {
            model: None,
            effort: None,
            resume: None,
            budget: Budget::default(),
            home: "/root".to_owned(),
            base_url: None,
            extra_args: Vec::new(),
        }
    }
}

/// Arguments and environment of one run.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct AgentCommand {
    /// Arguments after the program's name.
    pub args: Vec<String>,
    /// Variables that the caller may override.
    pub default_env: Vec<(&'static str, String)>,
    /// Variables that go in last; the run depends on them.
    pub forced_env: Vec<(&'static str, String)>,
}

impl Agent {
    /// The arguments and environment for one run.
    ///
    /// # Errors
    ///
    /// When the program has no such effort, or cannot keep the budget.
    pub fn command(self, invocation: &Invocation) -> Result<AgentCommand, Error> {
        invocation.budget.validate(self)?;
        let mut command = match self {
            Self::Claude => claude(invocation),
            Self::Codex => codex(invocation)?,
            Self::Gemini => gemini(invocation)?,
        };
        if let (Some(variable), Some(url)) = (self.base_url_variable(), &invocation.base_url) {
            command.forced_env.push((variable, url.clone()));
        }
        Ok(command)
    }
}

/// `-p` alone reads the prompt from stdin; `-p -` would put a dash before it.
fn claude(invocation: &Invocation) -> AgentCommand {
    let mut args = Vec::new();
    if let Some(id) = &invocation.resume {
        args.extend(["--resume".to_owned(), id.to_string()]);
    }
    if let Some(model) = &invocation.model {
        args.extend(["--model".to_owned(), model.to_string()]);
    }
    if let Some(effort) = invocation.effort {
        args.extend(["--effort".to_owned(), effort.to_string()]);
    }
    if let Some(limit) = invocation.budget.max_cost_usd {
        args.extend(["--max-budget-usd".to_owned(), limit.to_string()]);
    }
    args.extend(
        [
            "-p",
            "--dangerously-skip-permissions",
            "--output-format",
            "stream-json",
            "--verbose",
        ]
        .map(str::to_owned),
    );
    args.extend(invocation.extra_args.iter().cloned());

    let on = || "1".to_owned();
    let mut forced_env = vec![
        // Background work would die with the container as soon as the answer is out.
        ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", on()),
        // Without it the program refuses to skip permissions as root.
        ("IS_SANDBOX", on()),
        (
            "CLAUDE_CONFIG_DIR",
            Agent::Claude.state_dir(&invocation.home),
        ),
    ];
    if let Some(limit) = invocation.budget.max_turns {
        forced_env.push(("CLAUDE_CODE_MAX_TURNS", limit.to_string()));
    }
    AgentCommand {
        args,
        default_env: vec![
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", on()),
            ("DISABLE_AUTOUPDATER", on()),
        ],
        forced_env,
    }
}

/// The built-in provider tries a WebSocket first and cannot be told not to, so the run names one
/// of its own that differs in nothing else. Its address is always said: without one, Codex shows
/// the key to the hosts of another product first.
fn codex(invocation: &Invocation) -> Result<AgentCommand, Error> {
    let mut args = vec!["exec".to_owned()];
    if let Some(id) = &invocation.resume {
        args.extend(["resume".to_owned(), id.to_string()]);
    }
    args.extend(
        [
            "--json",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
        ]
        .map(str::to_owned),
    );
    if let Some(model) = &invocation.model {
        args.extend(["-m".to_owned(), model.to_string()]);
    }
    let url = invocation.base_url.as_deref().unwrap_or(CODEX_BASE_URL);
    let provider = format!(
        r#"name="OpenAI",wire_api="responses",supports_websockets=false,requires_openai_auth=true,base_url={}"#,
        toml_string(url)
    );
    let mut settings = vec![
        r#"model_provider="cordon""#.to_owned(),
        format!("model_providers.cordon={{{provider}}}"),
        "analytics.enabled=false".to_owned(),
        // Or a refused connection would be retried until the run's time is up.
        "features.unbounded_connection_retries=false".to_owned(),
        // Plug-ins are fetched from hosts that nothing else needs.
        "features.plugins=false".to_owned(),
    ];
    match invocation.effort {
        Some(effort @ Effort::Max) => {
            return Err(Error::EffortNotSupported {
                agent: Agent::Codex,
                effort,
            });
        }
        Some(effort) => settings.push(format!(r#"model_reasoning_effort="{effort}""#)),
        None => {}
    }
    for setting in settings {
        args.extend(["-c".to_owned(), setting]);
    }
    args.extend(invocation.extra_args.iter().cloned());
    args.push("-".to_owned());
    Ok(AgentCommand {
        args,
        default_env: Vec::new(),
        forced_env: vec![("CODEX_HOME", Agent::Codex.state_dir(&invocation.home))],
    })
}

fn gemini(invocation: &Invocation) -> Result<AgentCommand, Error> {
    if let Some(effort) = invocation.effort {
        return Err(Error::EffortNotSupported {
            agent: Agent::Gemini,
            effort,
        });
    }
    let mut args = [
        "--output-format",
        "stream-json",
        "--approval-mode",
        "yolo",
        "--skip-trust",
    ]
    .map(str::to_owned)
    .to_vec();
    if let Some(model) = &invocation.model {
        args.extend(["--model".to_owned(), model.to_string()]);
    }
    if let Some(id) = &invocation.resume {
        args.extend(["--resume".to_owned(), id.to_string()]);
    }
    args.extend(invocation.extra_args.iter().cloned());
    Ok(AgentCommand {
        args,
        default_env: Vec::new(),
        forced_env: vec![
            // It would start itself a second time, and the first would swallow SIGTERM.
            ("GEMINI_CLI_NO_RELAUNCH", "true".to_owned()),
            ("GEMINI_CLI_HOME", invocation.home.clone()),
        ],
    })
}

/// A basic string of TOML; every escape that JSON writes is one there too.
fn toml_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A model's name, fit for an argument list.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Model(String);

impl Model {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Model {
    type Err = Error;

    fn from_str(value: &str) -> Result<Self, Error> {
        // Bedrock and Vertex spell models with colons, slashes, dots, at signs and brackets.
        if is_argument(value, b"-_.:/@[]") {
            Ok(Self(value.to_owned()))
        } else {
            Err(Error::InvalidModel {
                value: value.to_owned(),
            })
        }
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The agent's own name for a conversation, fit for an argument list.
///
/// It was printed inside the container, so it is looked at before it becomes an argument.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct SessionId(String);

impl SessionId {
    /// The id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SessionId {
    type Err = Error;

    fn from_str(value: &str) -> Result<Self, Error> {
        if is_argument(value, b"-_.") {
            Ok(Self(value.to_owned()))
        } else {
            Err(Error::InvalidSessionId {
                value: value.to_owned(),
            })
        }
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Whether the value is short, plain, and cannot be taken for a flag.
fn is_argument(value: &str, punctuation: &[u8]) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || punctuation.contains(&byte);
    matches!(value.len(), 1..=MAX_ARGUMENT_BYTES)
        && !value.starts_with('-')
        && value.bytes().all(allowed)
}

/// How hard the agent should think.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Effort {
    /// Quick answers.
    Low,
    /// The middle.
    Medium,
    /// Careful.
    High,
    /// More careful.
    XHigh,
    /// As much as the model has; Claude Code only.
    Max,
}

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
            Self::Max => "max",
        })
    }
}

impl FromStr for Effort {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        [Self::Low, Self::Medium, Self::High, Self::XHigh, Self::Max]
            .into_iter()
            .find(|effort| effort.to_string() == name)
            .ok_or_else(|| Error::UnknownEffort {
                name: name.to_owned(),
            })
    }
}

/// Where Codex finds its API, as its built-in provider says.
const CODEX_BASE_URL: &str = "https://api.openai.com/v1";

/// Real ids have 36 bytes; the longest model names, those of Bedrock profiles, stay under this.
const MAX_ARGUMENT_BYTES: usize = 256;

#[cfg(test)]
mod tests;
