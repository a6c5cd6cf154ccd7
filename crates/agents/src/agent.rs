//! The three programs, and what is fixed about each: names, places, hosts, limits.
//!
//! Facts here were checked against Claude Code 2.1, Codex 0.166 and Gemini CLI 0.61. What differs
//! from run to run is in `command`.

use std::{fmt, str::FromStr};

use crate::Error;

/// A coding agent that runs without a terminal.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Agent {
    /// Anthropic's Claude Code.
    Claude,
    /// OpenAI's Codex.
    Codex,
    /// Google's Gemini CLI.
    Gemini,
}

impl Agent {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Claude, Self::Codex, Self::Gemini];

    /// The name in configuration, and of the directory on the host that holds the agent's state.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }

    /// The executable, as found on `PATH` in an image that has it.
    #[must_use]
    pub fn program(self) -> &'static str {
        self.name()
    }

    /// Where the agent keeps its state in the container, given the home directory of its user.
    ///
    /// The directory called [`name`](Self::name) of the session directory is mounted here, and
    /// what it holds is what makes a later run able to resume.
    #[must_use]
    pub fn state_dir(self, home: &str) -> String {
        format!("{}/.{}", home.trim_end_matches('/'), self.name())
    }

    /// Files to put into the state directory before a run, where they do not exist yet.
    #[must_use]
    pub fn state_files(self) -> &'static [StateFile] {
        match self {
            Self::Claude | Self::Codex => &[],
            Self::Gemini => GEMINI_FILES,
        }
    }

    /// Every host that the agent needs in order to work with an API key.
    ///
    /// The programs try others too, for telemetry, plug-ins and updates; refusing those costs
    /// nothing.
    #[must_use]
    pub fn api_hosts(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &["api.anthropic.com"],
            Self::Codex => &["api.openai.com"],
            Self::Gemini => &["generativelanguage.googleapis.com"],
        }
    }

    /// How the agent can be given a key, the usual way first.
    #[must_use]
    pub fn credentials(self) -> &'static [Credential] {
        match self {
            Self::Claude => CLAUDE_CREDENTIALS,
            Self::Codex => CODEX_CREDENTIALS,
            Self::Gemini => GEMINI_CREDENTIALS,
        }
    }

    /// The variable that points the agent at another server, where it has one.
    ///
    /// Codex takes that as an argument; [`Invocation::base_url`](crate::Invocation::base_url)
    /// serves all three.
    #[must_use]
    pub fn base_url_variable(self) -> Option<&'static str> {
        match self {
            Self::Claude => Some("ANTHROPIC_BASE_URL"),
            Self::Codex => None,
            Self::Gemini => Some("GOOGLE_GEMINI_BASE_URL"),
        }
    }

    /// The variables that make the agent trust one more certificate authority; each is enough.
    #[must_use]
    pub fn ca_variables(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"],
            Self::Codex => &["CODEX_CA_CERTIFICATE", "SSL_CERT_FILE"],
            Self::Gemini => &["NODE_EXTRA_CA_CERTS"],
        }
    }

    /// Whether the agent says what a run costs.
    #[must_use]
    pub fn reports_cost(self) -> bool {
        match self {
            Self::Claude => true,
            Self::Codex | Self::Gemini => false,
        }
    }

    /// Refuses a prompt that the agent would refuse, or would cut without a word.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyPrompt`] and [`Error::PromptTooLarge`].
    pub fn check_prompt(self, prompt: &str) -> Result<(), Error> {
        if prompt.trim().is_empty() {
            return Err(Error::EmptyPrompt);
        }
        let (limit, unit, size) = match self {
            Self::Claude => (CLAUDE_PROMPT_BYTES, "bytes", prompt.len()),
            Self::Codex => (CODEX_PROMPT_CHARS, "characters", prompt.chars().count()),
            Self::Gemini => (GEMINI_PROMPT_BYTES, "bytes", prompt.len()),
        };
        if size > limit {
            return Err(Error::PromptTooLarge {
                agent: self,
                limit,
                unit,
                size,
            });
        }
        Ok(())
    }

    /// What a reply says when the agent ended well and said nothing.
    #[must_use]
    pub fn no_output(self) -> &'static str {
        match self {
            Self::Claude => "No output received from Claude.",
            Self::Codex => "No output received from Codex.",
            Self::Gemini => "No output received from Gemini.",
        }
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
        })
    }
}

impl FromStr for Agent {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|agent| agent.name() == name)
            .ok_or_else(|| Error::UnknownAgent {
                name: name.to_owned(),
            })
    }
}

/// A key that an agent reads from its environment and sends in a header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Credential {
    /// The environment variable.
    pub variable: &'static str,
    /// The request header that carries it.
    pub header: &'static str,
    /// The hosts that may receive it.
    pub hosts: &'static [&'static str],
}

/// A file for the state directory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StateFile {
    /// Its name, relative to the state directory.
    pub name: &'static str,
    /// Its whole text.
    pub text: &'static str,
}

/// Claude Code answers "piped stdin input exceeds 10MB" beyond this.
const CLAUDE_PROMPT_BYTES: usize = 10 * 1024 * 1024;

/// Codex refuses longer input with `input_too_large`.
const CODEX_PROMPT_CHARS: usize = 1024 * 1024;

/// Gemini CLI drops what comes after this and goes on with the rest.
const GEMINI_PROMPT_BYTES: usize = 8 * 1024 * 1024;

const CLAUDE_CREDENTIALS: &[Credential] = &[
    Credential {
        variable: "ANTHROPIC_API_KEY",
        header: "x-api-key",
        hosts: &["api.anthropic.com"],
    },
    Credential {
        variable: "CLAUDE_CODE_OAUTH_TOKEN",
        header: "authorization",
        hosts: &["api.anthropic.com"],
    },
    Credential {
        variable: "ANTHROPIC_AUTH_TOKEN",
        header: "authorization",
        hosts: &["api.anthropic.com"],
    },
];

/// `codex exec` ignores `OPENAI_API_KEY`.
const CODEX_CREDENTIALS: &[Credential] = &[Credential {
    variable: "CODEX_API_KEY",
    header: "authorization",
    hosts: &["api.openai.com"],
}];

const GEMINI_CREDENTIALS: &[Credential] = &[Credential {
    variable: "GEMINI_API_KEY",
    header: "x-goog-api-key",
    hosts: &["generativelanguage.googleapis.com"],
}];

/// Without a chosen kind of key, Gemini CLI refuses to start when its base URL is set; usage
/// statistics would go to a host that nothing else needs.
const GEMINI_FILES: &[StateFile] = &[StateFile {
    name: "settings.json",
    text: r#"{
  "general": { "enableAutoUpdate": false, "enableAutoUpdateNotification": false },
  "privacy": { "usageStatisticsEnabled": false },
  "security": { "auth": { "selectedType": "gemini-api-key" } }
}
"#,
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_follows_the_home_directory() {
        assert_eq!(Agent::Claude.state_dir("/root"), "/root/.claude");
        assert_eq!(Agent::Codex.state_dir("/home/dev/"), "/home/dev/.codex");
        assert_eq!(Agent::Gemini.state_dir("/home/dev"), "/home/dev/.gemini");
    }

    #[test]
    fn names_parse_back() {
        for agent in Agent::ALL {
            assert_eq!(agent.name().parse::<Agent>().unwrap(), agent);
        }
        assert!("Claude".parse::<Agent>().is_err());
    }

    #[test]
    fn a_prompt_that_the_program_would_cut_is_refused() {
        let prompt = "x".repeat(GEMINI_PROMPT_BYTES);
        assert!(Agent::Gemini.check_prompt(&prompt).is_ok());
        assert!(matches!(
            Agent::Gemini.check_prompt(&(prompt + "x")),
            Err(Error::PromptTooLarge { .. })
        ));
        assert!(matches!(
            Agent::Claude.check_prompt(" \n"),
            Err(Error::EmptyPrompt)
        ));
    }

    #[test]
    fn codex_counts_characters() {
        let prompt = "é".repeat(CODEX_PROMPT_CHARS);
        assert!(Agent::Codex.check_prompt(&prompt).is_ok());
        assert!(Agent::Codex.check_prompt(&(prompt + "é")).is_err());
    }

    #[test]
    fn state_files_are_json() {
        for file in Agent::ALL.iter().flat_map(|agent| agent.state_files()) {
            serde_json::from_str::<serde_json::Value>(file.text).unwrap();
        }
    }
}
