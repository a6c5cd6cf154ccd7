//! The `git` program, without anything of the host's configuration.

use std::{
    fs,
    path::{Path, PathBuf},
};

use cordon_engine::process::{Call, which};
use tempfile::TempDir;

use super::GitError;

/// A `git` with a home of its own, which is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Git {
    program: PathBuf,
    home: TempDir,
}

impl Git {
    /// `config` is all the configuration that it and what it starts will see.
    pub(super) fn new(config: &str) -> Result<Self, GitError> {
        let program = which("git").ok_or(GitError::Missing)?;
        let home = tempfile::Builder::new()
            .prefix("cordon-git-")
            .tempdir()
            .map_err(GitError::Scratch)?;
        fs::write(home.path().join(CONFIG), config).map_err(GitError::Scratch)?;
        Ok(Self { program, home })
    }

    pub(super) fn home(&self) -> &Path {
        self.home.path()
    }

    /// A call that finds no configuration but ours, asks nobody, and fetches nothing unless it is told to.
    pub(super) fn call(&self, verb: &str) -> Call {
        let home = self.home();
        Call::new(&self.program, &format!("git {verb}"))
            .env("HOME", home)
            .env("XDG_CONFIG_HOME", home)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", home.join(CONFIG))
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ALLOW_PROTOCOL", NO_PROTOCOL)
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("LC_ALL", "C.UTF-8")
    }
}

const CONFIG: &str = "config";

/// An empty list would mean the default one.
const NO_PROTOCOL: &str = "none";
