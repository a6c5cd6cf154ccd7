//! What is wrong with a configuration file, where, and what to do about it.

use std::{
    error::Error,
    fmt, io,
    path::{Path, PathBuf},
};

use cordon_policy::InvalidPattern;
use cordon_secrets::SecretsError;
use cordon_yaml::{ErrorKind, Position};

use crate::{AllowlistError, InvalidLimit, InvalidMount, modes::UnknownWord};

/// A configuration file that cannot be used: `.cordon/sandbox.yaml:3:5: unknown key `scope` in …`.
#[derive(Debug)]
pub struct FileError {
    file: String,
    at: Option<Position>,
    kind: Box<FileErrorKind>,
}

impl FileError {
    /// The file with the mistake: the configuration, or the secrets file that it names.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Where in the file; `None` when it could not even be read.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        self.at
    }

    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> &FileErrorKind {
        &self.kind
    }

    /// What to type or write instead, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        self.kind.hint()
    }

    pub(crate) fn unreadable(path: &Path, source: io::Error) -> Self {
        FileErrorKind::Unreadable { source }.of(path)
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some(at) => write!(f, "{}:{}:{}: {}", self.file, at.line, at.column, self.kind),
            None => write!(f, "{}: {}", self.file, self.kind),
        }
    }
}

impl Error for FileError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.kind.source()
    }
}

/// What is wrong with a configuration file. Places are paths into it, such as `masked_secrets.GH_TOKEN.scopes`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileErrorKind {
    /// The file cannot be read.
    #[error("the file cannot be read")]
    Unreadable {
        /// Why not.
        source: io::Error,
    },
    /// No YAML, an unknown or missing key, a value of another type.
    #[error(transparent)]
    Document(#[from] ErrorKind),
    /// A tag other than the known ones before a value. It is not named: a password may begin with `!`.
    #[error("{place} has a tag that means nothing here")]
    UnknownTag {
        /// Where.
        place: String,
    },
    /// `!env`, `!secret` or `!secret?` without a name behind it.
    #[error("{place}: `{tag}` needs a name behind it")]
    TagWithoutName {
        /// Where.
        place: String,
        /// The tag.
        tag: &'static str,
    },
    /// A name that no variable can have.
    #[error("{place}: `{name}` cannot be the name of a variable")]
    VariableName {
        /// Where.
        place: String,
        /// The name.
        name: String,
    },
    /// A scope that is no pattern over hosts.
    #[error("{place} cannot be `{value}`: {reason}")]
    Scope {
        /// Where.
        place: String,
        /// What stands there.
        value: String,
        /// What is wrong with it.
        reason: InvalidPattern,
    },
    /// A masked secret that would be replaced nowhere.
    #[error("{place} does not say where in a request it is replaced")]
    Nowhere {
        /// Where.
        place: String,
    },
    /// A limit that cannot be read.
    #[error("{place}: {reason}")]
    Limit {
        /// Where.
        place: String,
        /// What is wrong with it.
        reason: InvalidLimit,
    },
    /// The command for secrets is the same for every secret.
    #[error("secrets.command has no `{{name}}` among its arguments")]
    NoNamePlace,
    /// The file wants a command to be run, and belongs to somebody else or can be written by anybody.
    #[error("secrets.command is not run, because other users can change {}", path.display())]
    Untrusted {
        /// The configuration file.
        path: PathBuf,
    },
    /// `!env NAME` of a variable that is not set.
    #[error("{place}: the variable `{variable}` is not set")]
    Unset {
        /// Where.
        place: String,
        /// The variable of the host.
        variable: String,
    },
    /// A variable of the host is no text.
    #[error("{place}: the value of the variable `{variable}` is not UTF-8")]
    NotText {
        /// Where.
        place: String,
        /// The variable of the host.
        variable: String,
    },
    /// `!secret NAME` of a secret that no source has.
    #[error("{place}: there is no secret `{secret}` {searched}")]
    NoSecret {
        /// Where.
        place: String,
        /// Its name.
        secret: String,
        /// Where it was looked for: "in the environment".
        searched: String,
    },
    /// The secrets file cannot be read.
    #[error("cannot read the secrets in {}", path.display())]
    SecretsUnreadable {
        /// The secrets file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The secrets file may be read or written by others.
    #[error("the mode of {} is {mode:04o}, and must be 0600 or 0400", path.display())]
    SecretsMode {
        /// The secrets file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The secrets file belongs to somebody else.
    #[error("{} belongs to user {owner}, and must belong to user {user}", path.display())]
    SecretsOwner {
        /// The secrets file.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who runs this process.
        user: u32,
    },
    /// `~/` in a path, and no `HOME` in the environment.
    #[error("{place} begins with `~/`, and HOME is not set")]
    NoHome {
        /// Where.
        place: &'static str,
    },
    /// The command for secrets failed.
    #[error("{place}: the command for the secret `{secret}` failed")]
    Command {
        /// Where.
        place: String,
        /// The secret it was asked for.
        secret: String,
        /// What happened.
        source: cordon_engine::Error,
    },
    /// The command for secrets wrote something else than text.
    #[error("{place}: what the command wrote for the secret `{secret}` is not UTF-8")]
    CommandOutput {
        /// Where.
        place: String,
        /// The secret it was asked for.
        secret: String,
    },
    /// A value with a character that no variable can hold.
    #[error("{place} holds a NUL character, which no variable can")]
    Nul {
        /// Where.
        place: String,
    },
    /// A variable of the container would hold the real value of a masked secret.
    #[error("{place} holds the real value of {secret}, which is masked")]
    Unmasked {
        /// The entry that holds it.
        place: String,
        /// The variable that holds its surrogate.
        secret: String,
    },
    /// The secrets cannot be masked.
    #[error(transparent)]
    Secrets(#[from] SecretsError),
    /// A word that is none of those expected.
    #[error("{place}: {reason}")]
    Word {
        /// Where.
        place: String,
        /// What was written, and what could have been.
        reason: UnknownWord,
    },
    /// A mount that is not written like one.
    #[error("{place}: {reason}")]
    Mount {
        /// Where.
        place: String,
        /// What is wrong with it.
        reason: InvalidMount,
    },
    /// Two keys that exclude each other.
    #[error("{place} has both `{one}` and `{other}`")]
    Both {
        /// Where.
        place: String,
        /// The one.
        one: &'static str,
        /// The other.
        other: &'static str,
    },
    /// An allowlist that is named cannot be read.
    #[error("{place}: cannot read the allowlist {}", path.display())]
    AllowlistUnreadable {
        /// Where it is named.
        place: String,
        /// The allowlist.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// An allowlist that is named cannot be used.
    #[error("{place}: {}", reason.in_file(path.display()))]
    Allowlist {
        /// Where it is named.
        place: String,
        /// The allowlist.
        path: PathBuf,
        /// What is wrong with it.
        reason: Box<AllowlistError>,
    },
    /// A file that says what an agent may do lies where that agent can write.
    #[error("{place} can be changed by the agent itself: {} lies in its workspace", path.display())]
    WithinReach {
        /// What names the file, or whose workspace it lies in.
        place: String,
        /// The file.
        path: PathBuf,
    },
    /// The file decides what runs on this machine, and belongs to somebody else or can be written by
    /// anybody.
    #[error("other users can change it")]
    Shared {
        /// The file.
        path: PathBuf,
    },
}

impl FileErrorKind {
    pub(super) fn at(self, at: Position, file: &str) -> FileError {
        Mistake { at, kind: self }.in_file(file)
    }

    /// The error of a file as a whole.
    pub(crate) fn of(self, path: &Path) -> FileError {
        FileError {
            file: path.display().to_string(),
            at: None,
            kind: Box::new(self),
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Document(ErrorKind::Tag { .. }) => {
                "`!env`, `!secret` and `!secret?` stand before values of variables and secrets only"
                    .into()
            }
            Self::Document(kind) => kind.hint(),
            Self::UnknownTag { .. } => {
                "write `!env NAME`, `!secret NAME` or `!secret? NAME`, or put quotes around a value that begins with `!`"
                    .into()
            }
            Self::TagWithoutName { tag, .. } => format!("write `{tag} NAME`"),
            Self::VariableName { .. } => "use letters, digits and `_`".into(),
            Self::Scope { reason, .. } => scope_hint(*reason).to_owned(),
            Self::Nowhere { .. } => "add `headers: [Authorization]`, or one of `query`, `path` and `body`".into(),
            Self::NoNamePlace => "write it where the secret's name belongs: [pass, show, \"cordon/{name}\"]".into(),
            Self::Untrusted { path } | Self::Shared { path } => format!(
                "make it yours alone: `sudo chown {} {path} && chmod o-w {path}`",
                rustix::process::geteuid().as_raw(),
                path = quoted(path)
            ),
            Self::Unset { variable, .. } => format!("set it: `export {variable}=…`"),
            Self::NoSecret { secret, .. } => {
                format!("add it there, or write `!secret? {secret}` if it may be missing")
            }
            Self::SecretsUnreadable { .. } => "paths are relative to the file that they stand in".into(),
            Self::SecretsMode { path, .. } => format!("type `chmod 600 {}`", quoted(path)),
            Self::SecretsOwner { path, user, .. } => {
                format!("type `sudo chown {user} {}`", quoted(path))
            }
            Self::Command { source, .. } => return source.hint(),
            Self::Unmasked { .. } => "remove the entry, or mask it as well".into(),
            Self::Word { reason, .. } => format!("write one of {}", reason.known),
            Self::Both { one, .. } => format!("remove `{one}`, or the other"),
            Self::AllowlistUnreadable { .. } => "paths are relative to the file that they stand in".into(),
            Self::Allowlist { reason, .. } => reason.hint(),
            Self::WithinReach { .. } => {
                "move it out of the workspace, or into its `.cordon`, which an agent cannot write".into()
            }
            Self::Unreadable { .. }
            | Self::Limit { .. }
            | Self::Mount { .. }
            | Self::NotText { .. }
            | Self::NoHome { .. }
            | Self::CommandOutput { .. }
            | Self::Nul { .. }
            | Self::Secrets(_) => return None,
        })
    }
}

/// A mistake in a file whose name is known further up.
#[derive(Debug)]
pub(crate) struct Mistake {
    pub(crate) at: Position,
    pub(crate) kind: FileErrorKind,
}

impl Mistake {
    pub(crate) fn in_file(self, file: &str) -> FileError {
        FileError {
            file: file.to_owned(),
            at: Some(self.at),
            kind: Box::new(self.kind),
        }
    }
}

impl From<cordon_yaml::Error> for Mistake {
    fn from(error: cordon_yaml::Error) -> Self {
        Self {
            at: error.at,
            kind: error.kind.into(),
        }
    }
}

/// What the allowlist knows beside hosts, a scope does not.
fn scope_hint(reason: InvalidPattern) -> &'static str {
    match reason {
        InvalidPattern::Empty
        | InvalidPattern::Url
        | InvalidPattern::Path
        | InvalidPattern::Port => {
            "a scope is a host and nothing else, such as api.example.com or \"*.example.com\""
        }
        InvalidPattern::Class
        | InvalidPattern::InternationalWildcard
        | InvalidPattern::PercentEscape
        | InvalidPattern::NoLeadingSlash
        | InvalidPattern::Host(_) => reason.hint(),
    }
}

/// A path as a shell takes it.
pub(crate) fn quoted(path: &Path) -> String {
    shell_word(&path.display().to_string())
}

/// A text as a shell takes it, as one word.
pub(crate) fn shell_word(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+,:@".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
