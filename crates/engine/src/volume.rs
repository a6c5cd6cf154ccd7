//! Volumes: files that an engine keeps on its own machine, wherever that is.

use std::path::PathBuf;

use crate::{Container, Engine, Error, Kind, Mount};

/// A volume of an engine.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Volume {
    name: String,
    /// Where it is on the engine's machine; `None` where the engine itself mounts single files of it.
    path: Option<PathBuf>,
}

impl Volume {
    /// All of it, to be written.
    #[must_use]
    pub fn whole(&self, target: impl Into<String>) -> Mount {
        Mount {
            volume: Some(self.name.clone()),
            ..Mount::read_write("", target)
        }
    }

    /// One of its files, which cannot be written.
    #[must_use]
    pub fn file(&self, name: &str, target: impl Into<String>) -> Mount {
        match &self.path {
            Some(path) => Mount::read_only(path.join(name), target),
            None => Mount {
                volume: Some(self.name.clone()),
                ..Mount::read_only(name, target)
            },
        }
    }
}

impl Engine {
    /// Makes an empty volume.
    ///
    /// # Errors
    ///
    /// When the engine refuses.
    pub async fn create_volume(
        &self,
        name: &str,
        labels: &[(String, String)],
    ) -> Result<Volume, Error> {
        let mut call = self.call(&["volume", "create"]);
        for (label, value) in labels {
            call = call.args(["--label", &format!("{label}={value}")]);
        }
        call.args([name]).success(b"").await?;
        let path = if self.mounts_files_of_volumes() {
            None
        } else {
            let call = self.call(&["volume", "inspect"]);
            let call = call.args(["--format", "{{.Mountpoint}}", name]);
            let output = call.success(b"").await?;
            let path = String::from_utf8_lossy(&output.stdout);
            Some(PathBuf::from(path.trim()))
        };
        Ok(Volume {
            name: name.to_owned(),
            path,
        })
    }

    /// Removes a volume. One that is gone already is no error.
    ///
    /// # Errors
    ///
    /// When the engine refuses, for one because a container uses it.
    pub async fn remove_volume(&self, name: &str) -> Result<(), Error> {
        match self.call(&["volume", "rm"]).args([name]).success(b"").await {
            Err(Error::Rejected { stderr, .. }) if is_gone(&stderr) => Ok(()),
            other => other.map(drop),
        }
    }

    /// The names of the volumes that have the label.
    ///
    /// # Errors
    ///
    /// When the engine refuses.
    pub async fn volumes(&self, label: &str) -> Result<Vec<String>, Error> {
        let filter = format!("label={label}");
        let options = ["--filter", &filter, "--format", "{{.Name}}"];
        self.listing(&["volume", "ls"], &options).await
    }

    /// Unpacks a tar into a directory of a container, which need not run.
    ///
    /// # Errors
    ///
    /// When the engine refuses.
    pub async fn copy_into(
        &self,
        container: &Container,
        directory: &str,
        tar: &[u8],
    ) -> Result<(), Error> {
        let target = format!("{}:{directory}", container.0);
        self.call(&["cp"]).args(["-", &target]).success(tar).await?;
        Ok(())
    }

    /// Podman and older dockers mount what is at a path of their machine, and a volume has one. Docker
    /// Desktop takes such a path for one of the computer around its machine.
    fn mounts_files_of_volumes(&self) -> bool {
        self.kind() == Kind::Docker && self.facts().major() >= VOLUME_FILES
    }
}

fn is_gone(stderr: &str) -> bool {
    let lower = stderr.to_lowercase();
    lower.contains("no such volume") || lower.contains("no volume with name")
}

/// The first docker that mounts single files of a volume.
const VOLUME_FILES: u32 = 26;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_a_volume_is_mounted_from_where_the_engine_finds_it() {
        let here = Volume {
            name: "files".into(),
            path: Some("/var/lib/containers/storage/volumes/files/_data".into()),
        };
        assert_eq!(
            here.file("hosts", "/etc/hosts"),
            Mount::read_only(
                "/var/lib/containers/storage/volumes/files/_data/hosts",
                "/etc/hosts"
            )
        );
        let desktop = Volume { path: None, ..here };
        let file = desktop.file("hosts", "/etc/hosts");
        assert_eq!(
            (file.volume.as_deref(), file.read_only),
            (Some("files"), true)
        );
    }

    #[test]
    fn what_engines_say_is_understood() {
        for gone in [
            "Error: no volume with name \"x\" found: no such volume",
            "Error: No such volume: x",
            "Error response from daemon: get x: no such volume",
        ] {
            assert!(is_gone(gone), "{gone}");
        }
        assert!(!is_gone("volume is in use"));
    }
}
