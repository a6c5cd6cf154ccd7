//! How far a container is closed beyond its door.

use std::{fmt, str::FromStr, time::Duration};

use cordon_engine::{Engine, Tmpfs};

use crate::{Cpus, Memory, Pids, ResourceLimits, modes::UnknownWord};

/// How far a container is closed. Neither gives new privileges, and both keep the engine's system call
/// filter and its masked files.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Profile {
    /// Root inside, with the few capabilities that package managers need, and a root that can be
    /// written and is gone afterwards.
    Standard,
    /// The caller's own user without any capability, a root that cannot be written, `/tmp` and `/home`
    /// in memory, and limits on everything.
    #[default]
    Strict,
}

impl Profile {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Strict => "strict",
        }
    }

    /// What root in the container keeps.
    pub(crate) fn capabilities(self) -> Vec<String> {
        let kept: &[&str] = match self {
            // Files of other users, and becoming another user; nothing that reaches beyond the
            // container's own files.
            Self::Standard => &["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"],
            Self::Strict => &[],
        };
        kept.iter().map(|name| (*name).to_owned()).collect()
    }

    /// Whether the container's root cannot be written.
    pub(crate) fn read_only(self) -> bool {
        self == Self::Strict
    }

    /// What can be written all the same.
    pub(crate) fn tmpfs(self) -> Vec<Tmpfs> {
        match self {
            Self::Standard => Vec::new(),
            Self::Strict => vec![in_memory("/tmp", "1g"), in_memory(HOME, "100m")],
        }
    }

    /// Where the home directory is, if it is not the image's business.
    pub(crate) fn home(self) -> Option<&'static str> {
        match self {
            Self::Standard => None,
            Self::Strict => Some(HOME),
        }
    }

    /// Who a command runs as where nobody said: somebody whose files are the caller's on the host.
    pub(crate) fn user(self, engine: &Engine) -> Option<String> {
        match self {
            Self::Standard => None,
            // There is no such user on Windows, whose engines see to the files themselves.
            Self::Strict if cfg!(windows) => None,
            // Root of a user namespace is the caller outside of it, and without capabilities it is
            // nobody in particular inside.
            Self::Strict if engine.facts().rootless => Some("0:0".to_owned()),
            Self::Strict => {
                let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
                Some(format!("{}:{}", user.as_raw(), group.as_raw()))
            }
        }
    }

    /// The limits that were asked for, and where none was, the profile's.
    pub(crate) fn limits(self, asked: &ResourceLimits) -> ResourceLimits {
        match self {
            Self::Standard => asked.clone(),
            Self::Strict => ResourceLimits {
                timeout: asked.timeout.or(Some(COMMAND_TIMEOUT)),
                memory: asked.memory.or(Some(Memory::gigabytes(4))),
                cpus: asked.cpus.or_else(|| Some(Cpus::whole(cores()))),
                pids: asked.pids.or(Some(Pids::new(256))),
            },
        }
    }
}

impl FromStr for Profile {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        let found = [Self::Standard, Self::Strict]
            .into_iter()
            .find(|profile| profile.word() == text);
        found.ok_or_else(|| UnknownWord {
            written: text.to_owned(),
            known: "standard, strict",
        })
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// An empty directory in memory that everybody may write. Programs may be run from it: the workspace
/// would let them too, and build tools do.
pub(crate) fn in_memory(target: &str, size: &str) -> Tmpfs {
    Tmpfs {
        target: target.to_owned(),
        options: format!("rw,exec,nosuid,nodev,mode=1777,size={size}"),
    }
}

/// Two, or what there is: engines refuse more than that.
fn cores() -> u16 {
    match std::thread::available_parallelism() {
        Ok(there) if there.get() == 1 => 1,
        _ => 2,
    }
}

const HOME: &str = "/home";

/// What a command gets where nobody said.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(600);
