//! The image of the proxy container: one static program and nothing else, named by its content.

use std::{
    env, fs,
    io::Write,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use cordon_engine::Engine;
use sha2::{Digest, Sha256};

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
            file.write_all(&tar_header(program.len()))?;
            file.write_all(program)?;
            let padding = program.len().next_multiple_of(TAR_BLOCK) - program.len();
            // Two empty blocks end an archive.
            file.write_all(&vec![0; padding + 2 * TAR_BLOCK])
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

/// The head of a tar's only file, in the form of POSIX.
fn tar_header(size: usize) -> [u8; TAR_BLOCK] {
    let mut header = [0; TAR_BLOCK];
    let mut put =
        |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, NAME);
    put(100, "0000755");
    put(108, "0000000");
    put(116, "0000000");
    put(124, &format!("{size:011o}"));
    put(136, "00000000000");
    // The sum is taken with its own field full of spaces.
    put(148, "        ");
    put(156, "0");
    put(257, "ustar");
    put(263, "00");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    let text = format!("{sum:06o}\0 ");
    header[148..156].copy_from_slice(text.as_bytes());
    header
}

const NAME: &str = "cordon-proxy";

/// `PT_INTERP`.
const ELF_INTERPRETER: usize = 3;

const TAR_BLOCK: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "tar is the judge")]
    fn tar_reads_the_archive() {
        let directory = tempfile::tempdir().unwrap();
        let archive = Archive::write(directory.path(), &"0".repeat(64), b"a program").unwrap();
        let tar = |flags: &[&str]| {
            let output = std::process::Command::new("tar")
                .args(flags)
                .arg("-f")
                .arg(&archive.0)
                .output()
                .unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        assert_eq!(tar(&["-x", "--to-stdout"]), "a program");
        let listed = tar(&["-tv", "--numeric-owner"]);
        assert!(listed.starts_with("-rwxr-xr-x 0/0 "), "{listed}");
        assert!(listed.ends_with(" cordon-proxy\n"), "{listed}");
        let path = archive.0.clone();
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
