//! Read access to `network-sandbox.log`, which the proxy writes.

use std::path::{Path, PathBuf};

use cordon_agents::Line;

use crate::{
    Error, Tail,
    files::{self, io_error},
    tail::complete_lines,
};

/// The record of a context's requests, one line each, for people.
#[derive(Clone, Debug)]
pub struct NetworkLog {
    path: PathBuf,
}

impl NetworkLog {
    /// The log in this file, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether anything was ever logged.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.path.exists()
    }

    /// The whole log; empty if there is none.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn read_raw(&self) -> Result<String, Error> {
        let bytes = files::read(&self.path)?.unwrap_or_default();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The lines that were completed since `offset`, a bounded number of bytes at a time.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn tail(&self, offset: u64) -> Result<Tail<String>, Error> {
        let mut items = Vec::new();
        let offset = complete_lines(&self.path, offset, MAX_LOG_LINE, |_, line| {
            let (Line::Whole(line) | Line::Oversized(line)) = line;
            items.push(String::from_utf8_lossy(line).into_owned());
        })
        .map_err(|source| io_error("read", &self.path, source))?;
        Ok(Tail { items, offset })
    }
}

/// The proxy cuts what it logs long before this.
const MAX_LOG_LINE: usize = 64 * 1024;
