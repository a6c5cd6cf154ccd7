//! Puts the embedded `cordon-init` where an engine can mount it from.

use std::{
    fs::{self, DirBuilder, Permissions},
    io::Write,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use crate::Error;

/// Writes `cordon-init` below `directory`, under a name that follows its content, and returns its path.
///
/// A copy that is there already is used only if its bytes are the right ones. The directory must not
/// be on a file system mounted `noexec`, as `/run` often is: the mount option would follow the program
/// into the container.
///
/// # Errors
///
/// When the directory or the file cannot be written.
pub fn install(directory: &Path) -> Result<PathBuf, Error> {
    let path = directory.join(concat!("cordon-init-", env!("CORDON_INIT_TAG")));
    if fs::read(&path).is_ok_and(|bytes| bytes == PROGRAM) {
        return Ok(path);
    }
    let at = |source| Error::Write {
        path: path.clone(),
        source,
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(at)?;
    let mut file = NamedTempFile::new_in(directory).map_err(at)?;
    file.write_all(PROGRAM).map_err(at)?;
    fs::set_permissions(file.path(), Permissions::from_mode(0o755)).map_err(at)?;
    // A rename, so that a run that starts at the same moment sees all of it or none.
    file.persist(&path).map_err(|error| at(error.error))?;
    Ok(path)
}

const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/cordon-init"));
