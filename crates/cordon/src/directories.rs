//! Where things are kept on the host.

use std::{
    env,
    fs::{self, DirBuilder},
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::process::getuid;

use crate::SandboxError;

/// The directories of a sandbox.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Directories {
    /// What lives as long as a run: sockets and the files that are mounted into its container.
    pub runtime: PathBuf,
    /// What may be lost at any time: `cordon-init`, and what is known about engines.
    pub cache: PathBuf,
}

impl Default for Directories {
    /// `$XDG_RUNTIME_DIR/cordon` and `$XDG_CACHE_HOME/cordon`, or where these are for the user.
    fn default() -> Self {
        let root = getuid().is_root();
        let directory = |name: &str| {
            env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let runtime = match directory("XDG_RUNTIME_DIR") {
            Some(path) => path.join("cordon"),
            None if root => "/run/cordon".into(),
            None => env::temp_dir().join(format!("cordon-{}", getuid().as_raw())),
        };
        let cache = match (directory("XDG_CACHE_HOME"), directory("HOME")) {
            (Some(path), _) => path.join("cordon"),
            (None, _) if root => "/var/cache/cordon".into(),
            (None, Some(home)) => home.join(".cache/cordon"),
            (None, None) => runtime.join("cache"),
        };
        Self { runtime, cache }
    }
}

impl Directories {
    /// Makes both, private to the caller.
    ///
    /// # Errors
    ///
    /// When one cannot be made, or belongs to somebody else.
    pub fn prepare(&self) -> Result<(), SandboxError> {
        private(&self.runtime)?;
        private(&self.cache)
    }
}

/// Makes a directory that nobody else may enter; one that is there already must be like that.
fn private(path: &Path) -> Result<(), SandboxError> {
    let at = |source| SandboxError::Directory {
        path: path.to_owned(),
        source,
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(at)?;
    let metadata = fs::symlink_metadata(path).map_err(at)?;
    if !metadata.is_dir() || metadata.uid() != getuid().as_raw() {
        return Err(SandboxError::ForeignDirectory {
            path: path.to_owned(),
        });
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(at)?;
    }
    Ok(())
}
