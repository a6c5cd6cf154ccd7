//! What `vibebox` answers: strict about what is relied upon, indifferent to what is added.

use std::{collections::BTreeMap, str::FromStr as _};

use serde::Deserialize;
use serde_json::error::Category;

use super::{BridgeError, BridgeErrorKind, bridge::Reply};
use crate::modes::Provider;

/// An answer to `exec` or `probe`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    ok: bool,
    error: Option<Trouble>,
    selected: Option<String>,
    diagnostics: Option<BTreeMap<String, Diagnosis>>,
    stdout: Option<String>,
    stderr: Option<String>,
    exit_code: Option<i32>,
}

/// What went wrong, in one of the two forms that programs like it use.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Trouble {
    Text(String),
    Told { message: String },
}

/// What is known of one backend.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Diagnosis {
    available: bool,
    reason: Option<String>,
    #[serde(default)]
    fix_hints: Vec<String>,
}

/// What a command came to.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct CommandResult {
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) exit_code: i32,
}

/// What a probe came to.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Finding {
    /// The backend that commands would run on.
    pub(super) usable: Option<Provider>,
    pub(super) message: String,
    pub(super) hints: Vec<String>,
}

impl Answer {
    pub(super) fn read(reply: &Reply) -> Result<Self, Box<BridgeError>> {
        if reply.stdout.trim_ascii().is_empty() {
            return Err(reply.error(BridgeErrorKind::Empty));
        }
        serde_json::from_slice(&reply.stdout).map_err(|source| {
            reply.error(match source.classify() {
                Category::Data => BridgeErrorKind::Shape { source },
                Category::Io | Category::Syntax | Category::Eof => {
                    BridgeErrorKind::NotJson { source }
                }
            })
        })
    }

    /// What a command came to on the backend that was asked for.
    pub(super) fn result(
        self,
        reply: &Reply,
        asked: Provider,
    ) -> Result<CommandResult, Box<BridgeError>> {
        if !self.ok {
            let hints = self.fix_hints(asked);
            let said = self.error.map(Trouble::words);
            let mut error = reply.error(BridgeErrorKind::Refused { said });
            error.hints = hints;
            return Err(error);
        }
        if let Some(selected) = self.selected.filter(|selected| selected != asked.word()) {
            return Err(reply.error(BridgeErrorKind::OtherBackend { asked, selected }));
        }
        let Some(exit_code) = self.exit_code else {
            return Err(reply.error(BridgeErrorKind::Incomplete { field: "exitCode" }));
        };
        // A program may end as its command did; ending in another way, it failed.
        if !reply.status.success() && reply.status.code() != Some(exit_code) {
            return Err(reply.error(BridgeErrorKind::Contradiction { exit_code }));
        }
        Ok(CommandResult {
            stdout: self.stdout.unwrap_or_default(),
            stderr: self.stderr.unwrap_or_default(),
            exit_code,
        })
    }

    /// Whether commands can be run, and where. `host_refusal` says why they may not on the host.
    pub(super) fn judge(self, asked: Provider, host_refusal: Option<&str>) -> Finding {
        match self.usable(asked, host_refusal) {
            Ok(backend) => Finding {
                usable: Some(backend),
                message: match backend {
                    Provider::Off => {
                        "vibebox runs commands on the host, with nothing isolated".into()
                    }
                    Provider::Auto | Provider::AppleVm | Provider::Docker => {
                        format!("vibebox uses {}", backend.word())
                    }
                },
                hints: Vec::new(),
            },
            Err(message) => Finding {
                usable: None,
                message,
                hints: self.fix_hints(asked),
            },
        }
    }

    fn usable(&self, asked: Provider, host_refusal: Option<&str>) -> Result<Provider, String> {
        if !self.ok {
            let said = self.error.as_ref().map(Trouble::text);
            let said = said.or_else(|| self.diagnosis(asked)?.reason.as_deref());
            return Err(said
                .unwrap_or("vibebox refuses and does not say why")
                .to_owned());
        }
        let selected = self
            .selected
            .as_deref()
            .ok_or("vibebox does not say which backend it selected")?;
        let backend = Provider::from_str(selected)
            .ok()
            .filter(|backend| *backend != Provider::Auto)
            .ok_or_else(|| format!("vibebox selected `{selected}`, which is no backend"))?;
        if asked != Provider::Auto && backend != asked {
            let asked = asked.word();
            return Err(format!("vibebox selected {selected} instead of {asked}"));
        }
        if backend == Provider::Off {
            return match host_refusal {
                Some(why) => Err(format!("vibebox would run commands on the host: {why}")),
                None => Ok(backend),
            };
        }
        let diagnosis = self
            .diagnosis(backend)
            .ok_or_else(|| format!("vibebox says nothing about {selected}, which it selected"))?;
        if diagnosis.available {
            return Ok(backend);
        }
        let reason = diagnosis.reason.as_deref().unwrap_or("no reason is given");
        Err(format!("{selected} is not available: {reason}"))
    }

    /// How to mend the backend that is meant; every backend's way where none is.
    fn fix_hints(&self, asked: Provider) -> Vec<String> {
        let meant = self.selected.as_deref().unwrap_or_else(|| asked.word());
        let all = self.diagnostics.iter().flatten();
        let of = |wanted: &dyn Fn(&str) -> bool| -> Vec<String> {
            all.clone()
                .filter(|(name, _)| wanted(name))
                .flat_map(|(_, diagnosis)| diagnosis.fix_hints.clone())
                .collect()
        };
        let hints = of(&|name| name == meant);
        if hints.is_empty() {
            of(&|_| true)
        } else {
            hints
        }
    }

    fn diagnosis(&self, backend: Provider) -> Option<&Diagnosis> {
        self.diagnostics.as_ref()?.get(backend.word())
    }
}

impl Trouble {
    fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Told { message: text } => text,
        }
    }

    fn words(self) -> String {
        match self {
            Self::Text(text) | Self::Told { message: text } => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(json: &str, asked: Provider) -> Finding {
        let answer: Answer = serde_json::from_str(json).unwrap();
        answer.judge(asked, Some("nobody has allowed it"))
    }

    #[test]
    fn a_probe_is_believed_only_with_diagnostics_of_the_backend_it_selected() {
        let good = r#"{"ok":true,"selected":"docker","later":1,
            "diagnostics":{"docker":{"available":true,"since":"now"},"apple-vm":{"available":false}}}"#;
        assert_eq!(judge(good, Provider::Auto).usable, Some(Provider::Docker));
        assert_eq!(judge(good, Provider::Docker).usable, Some(Provider::Docker));
        for (json, words) in [
            (r#"{"ok":true}"#, "does not say which backend"),
            (
                r#"{"ok":true,"selected":"docker"}"#,
                "says nothing about docker",
            ),
            (
                r#"{"ok":true,"selected":"docker","diagnostics":{"apple-vm":{"available":true}}}"#,
                "says nothing about docker",
            ),
            (
                r#"{"ok":true,"selected":"docker","diagnostics":{"docker":{"available":false,"reason":"down"}}}"#,
                "not available: down",
            ),
            (r#"{"ok":true,"selected":"auto"}"#, "no backend"),
            (r#"{"ok":true,"selected":"qemu"}"#, "no backend"),
            (
                r#"{"ok":true,"selected":"off","diagnostics":{"off":{"available":true}}}"#,
                "on the host: nobody has allowed it",
            ),
            (r#"{"ok":false}"#, "does not say why"),
            (r#"{"ok":false,"error":{"message":"no"}}"#, "no"),
        ] {
            let finding = judge(json, Provider::Auto);
            assert_eq!(finding.usable, None, "{json}");
            assert!(
                finding.message.contains(words),
                "{json}: {}",
                finding.message
            );
        }
        let other = judge(good, Provider::AppleVm);
        assert_eq!(other.message, "vibebox selected docker instead of apple-vm");
    }

    #[test]
    fn the_host_is_taken_only_where_it_is_allowed() {
        let json = r#"{"ok":true,"selected":"off"}"#;
        let answer: Answer = serde_json::from_str(json).unwrap();
        let finding = answer.judge(Provider::Off, None);
        assert_eq!(finding.usable, Some(Provider::Off));
        assert!(finding.message.contains("nothing isolated"));
    }

    #[test]
    fn hints_are_those_of_the_backend_that_is_meant() {
        let json = r#"{"ok":false,"diagnostics":{
            "docker":{"available":false,"fixHints":["start docker"]},
            "apple-vm":{"available":false,"fixHints":["start container"]}}}"#;
        assert_eq!(judge(json, Provider::Docker).hints, ["start docker"]);
        assert_eq!(
            judge(json, Provider::Auto).hints,
            ["start container", "start docker"]
        );
    }

    #[test]
    fn nonsense_is_no_answer() {
        for json in [
            "[]",
            r#"{"ok":"yes"}"#,
            r#"{"error":"x"}"#,
            r#"{"ok":true,"exitCode":"0"}"#,
            r#"{"ok":true,"exitCode":4294967296}"#,
            r#"{"ok":true,"diagnostics":[]}"#,
            r#"{"ok":true,"diagnostics":{"docker":{}}}"#,
        ] {
            assert!(serde_json::from_str::<Answer>(json).is_err(), "{json}");
        }
    }
}
