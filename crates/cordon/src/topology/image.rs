//! The image of the proxy container: one static program and nothing else, named by its content.

use std::{
    env, fs,
    io::Write,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use cordon_engine::Engine;
use sha2::{Digest, Sha256};

use super::tar::{Mode, Tar};
use crate::{SandboxConfig, SandboxError};

/// Where the program is in the image.
pub(super) const PROGRAM: &str = "/cordon-proxy";

/// Sees that the engine has the image, and says its reference.
pub(super) async fn ensure(
    engine: &Engine,
    config: &SandboxConfig,
) -> Result<String, SandboxError> {
    let path = find(config)?;
    let program = fs::read(&path).map_err(|source| SandboxError::ProxyUnreadable {
        path: path.clone(),
        source,
    })?;
    if !is_static(&program) {
        return Err(SandboxError::ProxyNotStatic { path });
    }
    let digest: String = Sha256::digest(&program)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let reference = format!("localhost/cordon-proxy:{digest}");
    if engine.image(&reference).await?.is_some() {
        return Ok(reference);
    }
    let archive = Archive::write(&config.directories.runtime, &digest, &program)?;
    engine.import(&archive.0, &reference).await?;
    Ok(reference)
}

/// The program: where the caller says, else beside the running one, else in the cache.
fn find(config: &SandboxConfig) -> Result<PathBuf, SandboxError> {
    if let Some(path) = &config.proxy_program {
        return Ok(path.clone());
    }
    let beside = env::current_exe()
        .ok()
        .and_then(|path| Some(path.parent()?.join(NAME)));
    let places: Vec<_> = beside
        .into_iter()
        .chain([config.directories.cache.join(NAME)])
        .collect();
    match places.iter().find(|path| path.is_file()) {
        Some(found) => Ok(found.clone()),
        None => Err(SandboxError::NoProxyProgram { places }),
    }
}

/// Whether it is a 64-bit ELF program that asks for no loader: the image has none.
fn is_static(program: &[u8]) -> bool {
    let number = |at: usize, size: usize| {
        let bytes = program.get(at..at.checked_add(size)?)?;
        let number = bytes.iter().rev();
        Some(number.fold(0, |number: usize, byte| number << 8 | usize::from(*byte)))
    };
    let headers = || {
        let (start, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
        (0..count)
            .map(|index| number(start.checked_add(index * size)?, 4))
            .collect::<Option<Vec<_>>>()
    };
    program.starts_with(b"\x7fELF\x02\x01")
        && headers().is_some_and(|headers| !headers.contains(&ELF_INTERPRETER))
}

/// A tar with the program in it; the file is removed when this is dropped.
struct Archive(PathBuf);

impl Archive {
    fn write(directory: &Path, digest: &str, program: &[u8]) -> Result<Self, SandboxError> {
        let name = format!("proxy-{}-{}.tar", &digest[..16], std::process::id());
        let archive = Self(directory.join(name));
        let write = || {
            let mut file = fs::OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&archive.0)?;
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
            let tar = Tar::default().file(NAME, Mode::Execute, program);
            file.write_all(&tar.finish())
        };
        write().map_err(|source| SandboxError::Write {
            path: archive.0.clone(),
            source,
        })?;
        Ok(archive)
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.0));
    }
}

const NAME: &str = "cordon-proxy";

/// `PT_INTERP`.
const ELF_INTERPRETER: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_is_there_as_long_as_it_is_needed() {
        let directory = tempfile::tempdir().unwrap();
        let archive = Archive::write(directory.path(), &"0".repeat(64), b"a program").unwrap();
        let path = archive.0.clone();
        assert!(path.exists());
        drop(archive);
        assert!(!path.exists());
    }

    #[test]
    fn a_program_that_needs_a_loader_is_told_from_one_that_does_not() {
        let init = cordon_door::install(tempfile::tempdir().unwrap().path())
            .map(|path| fs::read(path).unwrap());
        assert!(is_static(&init.unwrap()));
        assert!(!is_static(&fs::read("/bin/true").unwrap()));
        assert!(!is_static(b"#!/bin/sh\n"));
        assert!(!is_static(b"\x7fELF\x02\x01"));
    }
}
