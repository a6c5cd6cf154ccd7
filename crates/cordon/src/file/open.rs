//! Opens files that must be what they seem.
//!
//! What is checked is the open file and not its path, so that nothing can be exchanged in between.

use std::{
    fs::{File, Metadata, OpenOptions},
    io::{self, Read},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
};

use rustix::{fs::OFlags, process::geteuid};

/// An open regular file.
pub(crate) struct Regular {
    file: File,
    metadata: Metadata,
}

/// Opens a regular file. A pipe or device is refused at once, and not waited for.
pub(crate) fn regular(path: &Path) -> io::Result<Regular> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(Regular { file, metadata })
}

impl Regular {
    /// The whole text, of at most so many bytes.
    pub(crate) fn text(self, limit: u64) -> io::Result<(String, Metadata)> {
        let mut text = String::new();
        let size = self.file.take(limit + 1).read_to_string(&mut text)?;
        if size as u64 > limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok((text, self.metadata))
    }

    /// The permission bits.
    pub(crate) fn mode(&self) -> u32 {
        self.metadata.mode() & 0o7777
    }

    /// The user whom the file belongs to.
    pub(crate) fn owner(&self) -> u32 {
        self.metadata.uid()
    }
}

/// Whether somebody who is neither this user nor root can change the file. The group can be trusted: on most systems
/// it is the user's own.
pub(crate) fn is_writable_by_others(metadata: &Metadata) -> bool {
    let owner = metadata.uid();
    let is_foreign = owner != 0 && owner != geteuid().as_raw();
    is_foreign || metadata.mode() & 0o002 != 0
}
