//! Writes a build context where an engine can read it, with its directories, modes and links.

use std::{
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use crate::{Entry, Error, Recipe};

/// A context on disk, removed when dropped.
#[derive(Debug)]
pub(crate) struct Layout {
    directory: TempDir,
}

impl Layout {
    pub(crate) fn write(recipe: &Recipe) -> Result<Self, Error> {
        let directory = tempfile::Builder::new()
            .prefix("cordon-build-")
            .tempdir()
            .map_err(|source| Error::Layout {
                path: std::env::temp_dir(),
                source,
            })?;
        let layout = Self { directory };
        let context = layout.context();
        at(&context, make_directory)?;
        at(&layout.dockerfile(), |path| {
            fs::write(path, recipe.dockerfile())
        })?;
        for (name, entry) in recipe.entries() {
            for parent in name.parents() {
                at(&context.join(parent), make_directory)?;
            }
            at(&context.join(name), |path| place(path, entry))?;
        }
        Ok(layout)
    }

    pub(crate) fn context(&self) -> PathBuf {
        self.directory.path().join("context")
    }

    pub(crate) fn dockerfile(&self) -> PathBuf {
        self.directory.path().join("Dockerfile")
    }
}

fn at(path: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), Error> {
    write(path).map_err(|source| Error::Layout {
        path: path.to_owned(),
        source,
    })
}

fn make_directory(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o755).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
        // The caller's umask must not end up in the image.
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(0o755)),
    }
}

fn place(path: &Path, entry: &Entry) -> io::Result<()> {
    match entry {
        Entry::File { content, mode } => {
            fs::write(path, content)?;
            fs::set_permissions(path, Permissions::from_mode(*mode))
        }
        Entry::Link { target } => symlink(target, path),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn files_keep_their_modes_and_directories() {
        let mut recipe = Recipe::new("FROM scratch\n");
        recipe
            .insert("a/b/run".parse().unwrap(), Entry::program("x"))
            .unwrap();
        recipe
            .insert("a/read".parse().unwrap(), Entry::file("y"))
            .unwrap();
        let secret = Entry::File {
            content: "z".into(),
            mode: 0o4751,
        };
        recipe.insert("odd".parse().unwrap(), secret).unwrap();

        let layout = Layout::write(&recipe).unwrap();
        let mode = |name: &str| fs::metadata(layout.context().join(name)).unwrap().mode() & 0o7777;
        assert_eq!(mode("a/b/run"), 0o755);
        assert_eq!(mode("a/read"), 0o644);
        assert_eq!(mode("odd"), 0o4751);
        assert_eq!(mode("a/b"), 0o755);
    }

    #[test]
    fn a_context_file_called_dockerfile_is_only_a_file() {
        let mut recipe = Recipe::new("FROM scratch\n");
        recipe
            .insert("Dockerfile".parse().unwrap(), Entry::file("other"))
            .unwrap();
        let layout = Layout::write(&recipe).unwrap();
        assert_eq!(fs::read(layout.dockerfile()).unwrap(), b"FROM scratch\n");
        assert_eq!(
            fs::read(layout.context().join("Dockerfile")).unwrap(),
            b"other"
        );
    }

    #[test]
    fn a_link_stays_a_link_and_nothing_is_written_through_it() {
        let outside = tempfile::tempdir().unwrap();
        let mut recipe = Recipe::new("FROM scratch\n");
        let link = Entry::Link {
            target: outside.path().to_owned(),
        };
        recipe.insert("way-out".parse().unwrap(), link).unwrap();
        assert!(
            recipe
                .insert("way-out/file".parse().unwrap(), Entry::file("x"))
                .is_err()
        );

        let layout = Layout::write(&recipe).unwrap();
        assert!(layout.context().join("way-out").is_symlink());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn nothing_is_left_behind() {
        let layout = Layout::write(&Recipe::new("FROM scratch\n")).unwrap();
        let context = layout.context();
        drop(layout);
        assert!(!context.exists());
    }
}
