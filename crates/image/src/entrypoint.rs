//! What an image starts with, generated here and part of the overlay's hash.
//!
//! An entrypoint is a description, not a script: the container's PID 1 is the sandbox's own program, which does what
//! it says. Neither a shell nor any other program of the image is needed for it.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{Digest, Recipe, tag::Fields};

/// How the workload of an image is started.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Entrypoint {
    /// The program that takes the arguments; without one, the arguments are the command itself.
    program: Option<String>,
    /// What is run first, in order.
    before: Vec<Before>,
}

/// A command that is run before the workload, where there is something for it to do.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Before {
    /// It is run only if this file exists.
    pub where_exists: String,
    /// The command. When it fails, the workload is not started.
    pub command: Vec<String>,
}

impl Entrypoint {
    /// Runs the arguments themselves.
    #[must_use]
    pub fn passthrough() -> Self {
        Self::default()
    }

    /// Runs an agent's program with the arguments.
    #[must_use]
    pub fn agent(program: impl Into<String>) -> Self {
        Self {
            program: Some(program.into()),
            before: Vec::new(),
        }
    }

    /// Also brings the Python environment of `/workspace` up to date first, where it is a project of uv's.
    #[must_use]
    pub fn sync_python(mut self) -> Self {
        self.before.push(Before {
            where_exists: "/workspace/pyproject.toml".into(),
            command: ["uv", "sync", "--quiet"].map(str::to_owned).into(),
        });
        self
    }

    /// What is run before the workload.
    #[must_use]
    pub fn before(&self) -> &[Before] {
        &self.before
    }

    /// The workload's whole command.
    #[must_use]
    pub fn command(&self, arguments: impl IntoIterator<Item = String>) -> Vec<String> {
        self.program.iter().cloned().chain(arguments).collect()
    }

    /// Variables that every workload has.
    #[must_use]
    pub fn environment() -> [(&'static str, &'static str); 1] {
        ENVIRONMENT
    }

    /// The hash of the overlay that puts this entrypoint on the image called `repo`.
    pub(crate) fn digest(&self, repo: &str) -> Digest {
        Fields::new("cordon overlay image 1")
            .field(self.recipe(repo).digest().to_string().as_bytes())
            .digest()
    }

    /// The overlay: metadata on top of `repo`, nothing that would have to run there.
    pub(crate) fn recipe(&self, repo: &str) -> Recipe {
        let mut text = format!("FROM {repo}\n");
        for (name, value) in ENVIRONMENT {
            text += &format!("ENV {name}={value}\n");
        }
        let program: Vec<&String> = self.program.iter().collect();
        text += &format!("ENTRYPOINT {}\n", json!(program));
        text += &format!("LABEL {LABEL}={}\n", quoted(&json!(self).to_string()));
        Recipe::new(text)
    }
}

/// A word of a Dockerfile, in which nothing is expanded.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        if matches!(c, '"' | '\\' | '$') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted
}

/// Agents refuse some of their options to root unless they are told that they are contained.
const ENVIRONMENT: [(&str, &str); 1] = [("IS_SANDBOX", "1")];

/// The image says for itself how it wants to be started.
const LABEL: &str = "cordon.entrypoint";

#[cfg(test)]
mod tests {
    use super::*;

    fn dockerfile(entrypoint: &Entrypoint) -> String {
        let recipe = entrypoint.recipe("cordon-repo:abc");
        String::from_utf8(recipe.dockerfile().to_vec()).unwrap()
    }

    #[test]
    fn an_overlay_is_metadata_only() {
        assert_eq!(
            dockerfile(&Entrypoint::agent("claude")),
            "FROM cordon-repo:abc\n\
             ENV IS_SANDBOX=1\n\
             ENTRYPOINT [\"claude\"]\n\
             LABEL cordon.entrypoint=\"{\\\"before\\\":[],\\\"program\\\":\\\"claude\\\"}\"\n"
        );
        assert!(dockerfile(&Entrypoint::passthrough()).contains("ENTRYPOINT []\n"));
    }

    #[test]
    fn the_command_is_the_program_and_the_arguments() {
        let arguments = || ["-p".to_owned(), "-".to_owned()];
        assert_eq!(
            Entrypoint::agent("claude").command(arguments()),
            ["claude", "-p", "-"]
        );
        assert_eq!(Entrypoint::passthrough().command(arguments()), ["-p", "-"]);
    }

    #[test]
    fn python_is_synced_only_where_it_was_asked_for() {
        assert_eq!(Entrypoint::agent("claude").before(), []);
        let synced = Entrypoint::agent("claude").sync_python();
        assert_eq!(
            synced.before(),
            [Before {
                where_exists: "/workspace/pyproject.toml".into(),
                command: vec!["uv".into(), "sync".into(), "--quiet".into()],
            }]
        );
    }

    #[test]
    fn nothing_in_a_program_s_name_breaks_out_of_its_line() {
        let text = dockerfile(&Entrypoint::agent("a\nRUN evil\n\"$HOME\\"));
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(text.contains("\\$HOME"), "{text}");
    }
}
