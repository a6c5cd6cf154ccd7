//! Calls of Apple's `container` that look and remove, and what it answers.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use cordon_engine::process::{self, Call, Output};
use serde::Deserialize;
use serde_json::Value;

use super::AppleError;

/// The program.
#[derive(Clone, Debug)]
pub(super) struct Client {
    program: PathBuf,
}

/// A container as the program lists it.
#[derive(Debug, Deserialize)]
pub(super) struct Listed {
    configuration: Configuration,
    status: Status,
    /// Where it is connected, by versions before 1.0.
    networks: Option<Vec<Attachment>>,
}

#[derive(Debug, Deserialize)]
struct Configuration {
    id: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    networks: Vec<Attachment>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Status {
    Whole {
        state: String,
        networks: Vec<Attachment>,
    },
    /// By versions before 1.0.
    Word(String),
}

#[derive(Debug, Deserialize)]
struct Attachment {
    network: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SystemStatus {
    status: String,
    #[serde(default)]
    api_server_version: String,
}

impl Client {
    /// Finds the program.
    pub(super) fn find(program: &Path) -> Result<Self, AppleError> {
        match process::find(program) {
            Some(program) => Ok(Self { program }),
            None => Err(AppleError::Missing {
                program: program.to_owned(),
            }),
        }
    }

    /// A call with that verb in errors; the verb itself is among the arguments.
    pub(super) fn call(&self, verb: &str) -> Call {
        Call::new(&self.program, &format!("container {verb}"))
    }

    /// Whether the service runs, and in a version that has what is needed.
    pub(super) async fn check(&self) -> Result<(), AppleError> {
        let verb = "system status";
        let output = self
            .call(verb)
            .args(["system", "status", "--format", "json"])
            .output(b"")
            .await?;
        if !output.status.success() {
            let said = match serde_json::from_slice::<SystemStatus>(&output.stdout) {
                Ok(answer) => answer.status,
                Err(_) => output.stderr.trim().to_owned(),
            };
            return Err(AppleError::NotRunning { said });
        }
        let answer: SystemStatus = read(verb, serde_json::from_slice(&output.stdout))?;
        if answer.status != "running" {
            return Err(AppleError::NotRunning {
                said: answer.status,
            });
        }
        match version(&answer.api_server_version) {
            Some(version) if version < LEAST_VERSION => Err(AppleError::TooOld {
                version: answer.api_server_version,
            }),
            // One that does not say will refuse what it does not know.
            Some(_) | None => Ok(()),
        }
    }

    pub(super) async fn has_image(&self, image: &str) -> Result<bool, AppleError> {
        let verb = "image inspect";
        let output = self
            .call(verb)
            .args(["image", "inspect", image])
            .output(b"")
            .await?;
        if output.status.success() {
            return Ok(true);
        }
        if output.stderr.to_ascii_lowercase().contains("not found") {
            return Ok(false);
        }
        Err(rejected(verb, &output))
    }

    pub(super) async fn pull(&self, image: &str) -> Result<(), AppleError> {
        let output = self
            .call("image pull")
            .args(["image", "pull", "--progress", "none", image])
            .limit(PULL_LIMIT)
            .output(b"")
            .await?;
        if output.status.success() {
            return Ok(());
        }
        Err(AppleError::PullFailed {
            image: image.to_owned(),
            said: output.stderr.trim().to_owned(),
        })
    }

    /// Every container, running or not, of which enough is said to tell whose it is.
    pub(super) async fn list(&self) -> Result<Vec<Listed>, AppleError> {
        let all = self.entries().await?;
        let known = all.into_iter().map(serde_json::from_value);
        Ok(known.filter_map(Result::ok).collect())
    }

    /// The container of that name, if there is one. Only of this one everything must be said.
    pub(super) async fn look_at(&self, name: &str) -> Result<Option<Listed>, AppleError> {
        let named = |entry: &Value| entry["configuration"]["id"] == name || entry["id"] == name;
        match self.entries().await?.into_iter().find(named) {
            Some(entry) => read(LIST, serde_json::from_value(entry)).map(Some),
            None => Ok(None),
        }
    }

    async fn entries(&self) -> Result<Vec<Value>, AppleError> {
        let output = self
            .call(LIST)
            .args([LIST, "--all", "--format", "json"])
            .output(b"")
            .await?;
        if !output.status.success() {
            return Err(rejected(LIST, &output));
        }
        read(LIST, serde_json::from_slice(&output.stdout))
    }

    /// Removes a container, running or not, and returns once it is gone.
    pub(super) async fn remove(&self, name: &str) -> Result<(), AppleError> {
        let mut said = String::new();
        for _ in 0..REMOVE_TRIES {
            if self.look_at(name).await?.is_none() {
                return Ok(());
            }
            let output = self
                .call("delete")
                .args(["delete", "--force", name])
                .output(b"")
                .await?;
            if !output.status.success() {
                // It may be on its way out by itself.
                said = output.stderr.trim().to_owned();
                tokio::time::sleep(REMOVE_PAUSE).await;
            }
        }
        match self.look_at(name).await? {
            None => Ok(()),
            Some(_) => Err(AppleError::LeftBehind {
                container: name.to_owned(),
                said,
            }),
        }
    }
}

impl Listed {
    pub(super) fn name(&self) -> &str {
        &self.configuration.id
    }

    pub(super) fn label(&self, name: &str) -> Option<&str> {
        self.configuration.labels.get(name).map(String::as_str)
    }

    pub(super) fn is_running(&self) -> bool {
        let (Status::Whole { state, .. } | Status::Word(state)) = &self.status;
        state == "running"
    }

    /// Where it is connected, as it was asked for and as it came to be. `None` when that is not said.
    pub(super) fn networks(&self) -> Option<Vec<String>> {
        let now = match &self.status {
            Status::Whole { networks, .. } => networks,
            Status::Word(_) => self.networks.as_ref()?,
        };
        let all = self.configuration.networks.iter().chain(now);
        let mut names: Vec<_> = all.map(|attachment| attachment.network.clone()).collect();
        names.dedup();
        Some(names)
    }
}

fn read<T>(verb: &str, answer: serde_json::Result<T>) -> Result<T, AppleError> {
    answer.map_err(|source| AppleError::Unreadable {
        verb: format!("container {verb}"),
        source,
    })
}

fn rejected(verb: &str, output: &Output) -> AppleError {
    AppleError::Rejected {
        verb: format!("container {verb}"),
        status: output.status,
        said: output.stderr.trim().to_owned(),
    }
}

/// The first two numbers of the first word that looks like a version.
fn version(text: &str) -> Option<(u32, u32)> {
    text.split_whitespace().find_map(|word| {
        let mut numbers = word.trim_start_matches('v').split('.');
        let major = numbers.next()?.parse().ok()?;
        let minor = numbers.next()?.parse().ok()?;
        Some((major, minor))
    })
}

const LIST: &str = "list";

/// The first in which capabilities can be dropped.
const LEAST_VERSION: (u32, u32) = (0, 12);

/// A large image over a slow line.
const PULL_LIMIT: Duration = Duration::from_secs(30 * 60);

const REMOVE_TRIES: u32 = 10;

const REMOVE_PAUSE: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(json: &str) -> Listed {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn listings_of_old_and_new_versions_are_understood() {
        let new = listed(
            r#"{"id":"a","configuration":{"id":"a","labels":{"cordon.owner":"x"},"networks":[]},
                "status":{"state":"running","networks":[],"startedDate":1}}"#,
        );
        assert!(new.is_running());
        assert_eq!(new.networks(), Some(Vec::new()));
        assert_eq!(new.label("cordon.owner"), Some("x"));
        let old = listed(
            r#"{"configuration":{"id":"a","networks":[{"network":"default","options":{}}]},
                "status":"stopped","networks":[{"network":"default","hostname":"a"}]}"#,
        );
        assert!(!old.is_running());
        assert_eq!(old.networks(), Some(vec!["default".to_owned()]));
    }

    #[test]
    fn a_network_is_absent_only_where_that_is_said() {
        let silent = listed(r#"{"configuration":{"id":"a","networks":[]},"status":"running"}"#);
        assert_eq!(silent.networks(), None);
        let half = listed(
            r#"{"configuration":{"id":"a","networks":[]},
                "status":{"state":"running","networks":[{"network":"default"}]}}"#,
        );
        assert_eq!(half.networks(), Some(vec!["default".to_owned()]));
        for json in [
            r#"{"configuration":{"id":"a"},"status":{"state":"running","networks":[]}}"#,
            r#"{"configuration":{"id":"a","networks":[]},"status":{"state":"running"}}"#,
        ] {
            assert!(serde_json::from_str::<Listed>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn versions_are_read_from_what_the_service_says() {
        let said = "container-apiserver version 1.2.2 (build: release, commit: af405ff)";
        assert_eq!(version(said), Some((1, 2)));
        assert_eq!(version("0.9.0"), Some((0, 9)));
        assert_eq!(version("unspecified"), None);
    }
}
