//! Where secrets come from: the environment, a file, a command, asked in that order.
//!
//! The file is opened and the command run when a secret is asked for that the sources before it do not have.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    path::{Path, PathBuf},
    time::Duration,
};

use cordon_engine::process::Call;
use cordon_secrets::Secret;
use cordon_yaml::{Position, parse};
use rustix::process::geteuid;

use super::{
    FileError, FileErrorKind, HostEnv, directory, error::Mistake, open, schema::NAME_PLACE,
    value::Value,
};

/// What `secrets` says.
pub(super) struct Sources {
    pub(super) environment: Environment,
    pub(super) file: Option<(PathBuf, Position)>,
    pub(super) command: Option<(Vec<String>, Position)>,
    /// How long the command may take for one secret.
    pub(super) timeout: Duration,
}

/// Which variables of the host are secrets.
pub(super) enum Environment {
    All,
    Named(Vec<String>),
    None,
}

impl Default for Sources {
    fn default() -> Self {
        Self {
            environment: Environment::All,
            file: None,
            command: None,
            timeout: COMMAND_LIMIT,
        }
    }
}

impl Sources {
    pub(super) fn command_position(&self) -> Option<Position> {
        self.command.as_ref().map(|(_, at)| *at)
    }

    /// Where secrets are looked for, as the end of a sentence.
    fn searched(&self) -> String {
        let environment = match &self.environment {
            Environment::All => Some("in the environment".to_owned()),
            Environment::Named(names) => Some(format!(
                "among the variables that secrets.environment lists ({})",
                names.join(", ")
            )),
            Environment::None => None,
        };
        let file = self.file.as_ref();
        let file = file.map(|(path, _)| format!("in {}", path.display()));
        let command = self.command.as_ref().and_then(|(words, _)| words.first());
        let command = command.map(|program| format!("with {program}"));
        let searched = Vec::from_iter([environment, file, command].into_iter().flatten());
        match searched.as_slice() {
            [] => "anywhere, because `secrets` names no source".to_owned(),
            searched => searched.join(" or "),
        }
    }
}

/// The sources as they are on this host.
pub(super) struct Pool<'a> {
    sources: &'a Sources,
    host: &'a HostEnv,
    /// The configuration file, for errors and as the place that paths are relative to.
    config: &'a str,
    file: Option<BTreeMap<String, Secret>>,
    answers: BTreeMap<String, Secret>,
}

/// What asking for a secret came to.
pub(super) enum Answer {
    Found(Secret),
    Missing(FileErrorKind),
}

impl<'a> Pool<'a> {
    pub(super) fn new(sources: &'a Sources, host: &'a HostEnv, config: &'a str) -> Self {
        Self {
            sources,
            host,
            config,
            file: None,
            answers: BTreeMap::new(),
        }
    }

    /// Looks for the secret that a value names; an empty one is none.
    pub(super) async fn find(&mut self, name: &str, value: &Value) -> Result<Answer, FileError> {
        if let Some(secret) = self.in_environment(name, value)? {
            return Ok(Answer::Found(secret));
        }
        if let Some(secret) = self.in_file()?.and_then(|secrets| secrets.get(name)) {
            return Ok(Answer::Found(Secret::new(secret.expose())));
        }
        self.ask_command(name, value).await
    }

    /// The path of the secrets file, if the configuration names one.
    pub(super) fn path(&self) -> Result<Option<PathBuf>, FileError> {
        let Some((path, at)) = &self.sources.file else {
            return Ok(None);
        };
        let located = self.locate(path, "secrets.file");
        located.map(Some).map_err(|kind| kind.at(*at, self.config))
    }

    fn in_environment(&self, name: &str, value: &Value) -> Result<Option<Secret>, FileError> {
        let listed = match &self.sources.environment {
            Environment::All => true,
            Environment::Named(names) => names.iter().any(|other| other == name),
            Environment::None => false,
        };
        let found = self.host.value(name);
        let Some(found) = found.filter(|found| listed && !found.is_empty()) else {
            return Ok(None);
        };
        match found.to_str() {
            Some(text) => Ok(Some(Secret::new(text))),
            None => Err(FileErrorKind::NotText {
                place: value.place.clone(),
                variable: name.to_owned(),
            }
            .at(value.at, self.config)),
        }
    }

    fn in_file(&mut self) -> Result<Option<&BTreeMap<String, Secret>>, FileError> {
        if let (None, Some((_, at)), Some(path)) = (&self.file, &self.sources.file, self.path()?) {
            let in_config = |kind: FileErrorKind| kind.at(*at, self.config);
            let text = secrets_text(&path).map_err(in_config)?;
            let name = path.display().to_string();
            let secrets = secrets(&text).map_err(|mistake| mistake.in_file(&name))?;
            self.file = Some(secrets);
        }
        Ok(self.file.as_ref())
    }

    async fn ask_command(&mut self, name: &str, value: &Value) -> Result<Answer, FileError> {
        let (place, secret) = (value.place.clone(), name.to_owned());
        let Some((words, position)) = &self.sources.command else {
            return Ok(self.missing(place, secret));
        };
        if let Some(known) = self.answers.get(name) {
            return Ok(Answer::Found(Secret::new(known.expose())));
        }
        let call = self.call(words, name);
        let call = call.map_err(|kind| kind.at(*position, self.config))?;
        let stdout = match call.success(b"").await {
            Ok(output) => output.stdout,
            Err(source) => {
                // A password manager says in no other way that it does not have something.
                let is_missing = matches!(source, cordon_engine::Error::Rejected { .. });
                let kind = FileErrorKind::Command {
                    place,
                    secret,
                    source,
                };
                return if is_missing {
                    Ok(Answer::Missing(kind))
                } else {
                    Err(kind.at(value.at, self.config))
                };
            }
        };
        let Ok(mut text) = String::from_utf8(stdout) else {
            return Err(FileErrorKind::CommandOutput { place, secret }.at(value.at, self.config));
        };
        text.truncate(without_newline(&text).len());
        if text.is_empty() {
            return Ok(self.missing(place, secret));
        }
        let found = Secret::new(text);
        self.answers.insert(secret, Secret::new(found.expose()));
        Ok(Answer::Found(found))
    }

    fn missing(&self, place: String, secret: String) -> Answer {
        Answer::Missing(FileErrorKind::NoSecret {
            place,
            secret,
            searched: self.sources.searched(),
        })
    }

    /// The command for one secret, with the whole environment: a password manager's session is in it.
    fn call(&self, words: &[String], name: &str) -> Result<Call, FileErrorKind> {
        let program = words.first().map_or("", String::as_str);
        let path = if program.contains('/') {
            self.locate(Path::new(program), "secrets.command[0]")?
        } else {
            program.into()
        };
        let arguments = words.iter().skip(1);
        let call = Call::new(&path, program)
            .args(arguments.map(|word| word.replace(NAME_PLACE, name)))
            .limit(self.sources.timeout);
        Ok(self
            .host
            .iter()
            .fold(call, |call, (name, value)| call.env(name, value)))
    }

    /// A path of the configuration, from where the process runs.
    fn locate(&self, path: &Path, place: &'static str) -> Result<PathBuf, FileErrorKind> {
        match (path.strip_prefix("~"), self.host.value("HOME")) {
            (Ok(rest), Some(home)) if home != OsStr::new("") => Ok(Path::new(home).join(rest)),
            (Ok(_), _) => Err(FileErrorKind::NoHome { place }),
            (Err(_), _) => Ok(directory(self.config).join(path)),
        }
    }
}

/// What a program meant that ended its output with a line break.
fn without_newline(text: &str) -> &str {
    match text.strip_suffix('\n') {
        Some(line) => line.strip_suffix('\r').unwrap_or(line),
        None => text,
    }
}

/// The text of a file that nobody else can read.
fn secrets_text(path: &Path) -> Result<String, FileErrorKind> {
    let path = path.to_owned();
    let unreadable = |source| FileErrorKind::SecretsUnreadable {
        path: path.clone(),
        source,
    };
    let file = open::regular(&path).map_err(unreadable)?;
    let (mode, owner, user) = (file.mode(), file.owner(), geteuid().as_raw());
    if owner != user {
        return Err(FileErrorKind::SecretsOwner { path, owner, user });
    }
    if !matches!(mode, 0o600 | 0o400) {
        return Err(FileErrorKind::SecretsMode { path, mode });
    }
    let (text, _) = file.text(MAX_SIZE).map_err(unreadable)?;
    Ok(text)
}

/// Reads a map of names to values.
fn secrets(text: &str) -> Result<BTreeMap<String, Secret>, Mistake> {
    let root = parse(text, WHOLE)?;
    let mut secrets = BTreeMap::new();
    for (key, node) in root.map(WHOLE, "a map of names to values")? {
        // The tag is not named: a password may begin with `!`.
        if let Some(tag) = &node.tag {
            let (at, place) = (tag.at, key.name);
            let kind = FileErrorKind::UnknownTag { place };
            return Err(Mistake { at, kind });
        }
        let value = node.scalar(&key.name)?;
        if !value.is_empty() {
            secrets.insert(key.name, Secret::new(value));
        }
    }
    Ok(secrets)
}

const WHOLE: &str = "the secrets file";

/// Enough for a person to find and touch a security key.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);

/// Room for hundreds of keys; whatever is larger is another file.
const MAX_SIZE: u64 = 1 << 20;
