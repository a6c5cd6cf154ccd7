//! Which host paths may be seen in a container.

mod handle;

use std::{
    fs, io,
    os::unix::fs::FileTypeExt,
    path::{Component, Path, PathBuf},
    str::FromStr,
};

pub(crate) use handle::Handles;

/// A host path inside the container.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mount {
    /// The path on the host.
    pub host_path: PathBuf,
    /// Where it is in the container.
    pub container_path: String,
    /// It cannot be written through this mount.
    pub read_only: bool,
}

/// Something else than `SRC:DST[:ro|:rw]`.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "`{0}` is not a mount, which is written HOST-PATH:CONTAINER-PATH, with :ro behind it if it is not to be written"
)]
pub struct InvalidMount(String);

/// A mount that is refused.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The path is not there or cannot be looked at.
    #[error("cannot mount {}", path.display())]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Some part of the path is a symbolic link.
    #[error("{} goes through a symbolic link to {}", path.display(), target.display())]
    Symlink {
        /// The path that was asked for.
        path: PathBuf,
        /// Where it really leads.
        target: PathBuf,
    },
    /// The whole file system of the host.
    #[error("the host's root directory cannot be mounted")]
    Root,
    /// Whoever holds an engine's socket holds the machine.
    #[error("{} is, or holds, a container engine's socket", path.display())]
    EngineSocket {
        /// The path that was asked for.
        path: PathBuf,
    },
    /// The sandbox's own directories.
    #[error("{} belongs to the sandbox itself", path.display())]
    State {
        /// The path that was asked for.
        path: PathBuf,
    },
    /// The path in the container is not usable.
    #[error(
        "`{path}` is not a path in the container; it must be absolute, without `..`, and not `/`"
    )]
    Target {
        /// The path that was asked for.
        path: String,
    },
    /// The sandbox itself puts something there.
    #[error("`{path}` is where the sandbox puts its own files")]
    Reserved {
        /// The path that was asked for.
        path: String,
    },
    /// Two mounts at one place.
    #[error("two mounts at `{path}`")]
    Twice {
        /// The path in the container.
        path: String,
    },
    /// The path is outside the roots that the caller allows.
    #[error("{} is under none of the allowed directories", path.display())]
    OutsideRoots {
        /// The path that was asked for.
        path: PathBuf,
    },
}

impl Mount {
    /// A mount that can be written.
    #[must_use]
    pub fn read_write(host_path: impl Into<PathBuf>, container_path: impl Into<String>) -> Self {
        Self {
            host_path: host_path.into(),
            container_path: container_path.into(),
            read_only: false,
        }
    }

    /// A mount that cannot be written.
    #[must_use]
    pub fn read_only(host_path: impl Into<PathBuf>, container_path: impl Into<String>) -> Self {
        Self {
            read_only: true,
            ..Self::read_write(host_path, container_path)
        }
    }

    /// Checks the mount and gives its one true host path.
    pub(crate) fn check(&self, rules: &MountRules<'_>) -> Result<Self, MountError> {
        let container_path = target(&self.container_path)?;
        let host_path = source(&self.host_path)?;
        if host_path == Path::new("/") {
            return Err(MountError::Root);
        }
        let inside = |directory: &Path| {
            host_path.starts_with(directory) || directory.starts_with(&host_path)
        };
        if rules.state.iter().any(|directory| inside(directory)) {
            return Err(MountError::State { path: host_path });
        }
        if leads_to_engine(&host_path) {
            return Err(MountError::EngineSocket { path: host_path });
        }
        let allowed =
            |root: &PathBuf| fs::canonicalize(root).is_ok_and(|root| host_path.starts_with(root));
        if !rules.roots.is_empty() && !rules.roots.iter().any(allowed) {
            return Err(MountError::OutsideRoots { path: host_path });
        }
        Ok(Self {
            host_path,
            container_path,
            read_only: self.read_only,
        })
    }
}

impl FromStr for Mount {
    type Err = InvalidMount;

    /// Reads `SRC:DST[:ro|:rw]`; the last colons count, so that a host path may hold some.
    fn from_str(text: &str) -> Result<Self, InvalidMount> {
        let (rest, read_only) = match text.rsplit_once(':') {
            Some((rest, "ro")) => (rest, true),
            Some((rest, "rw")) => (rest, false),
            _ => (text, false),
        };
        match rest.rsplit_once(':') {
            Some((source, target)) if !source.is_empty() && target.starts_with('/') => Ok(Self {
                host_path: source.into(),
                container_path: target.into(),
                read_only,
            }),
            _ => Err(InvalidMount(text.to_owned())),
        }
    }
}

/// What mounts are checked against.
#[derive(Debug)]
pub(crate) struct MountRules<'a> {
    /// The sandbox's own directories; they, what is in them and what holds them are refused.
    pub(crate) state: &'a [PathBuf],
    /// Directories that mounts must be under; none means anywhere.
    pub(crate) roots: &'a [PathBuf],
}

/// Checks all mounts of a task, and that no two are at one place.
pub(crate) fn check_all(
    mounts: &[Mount],
    rules: &MountRules<'_>,
) -> Result<Vec<Mount>, MountError> {
    let checked = mounts
        .iter()
        .map(|mount| mount.check(rules))
        .collect::<Result<Vec<_>, _>>()?;
    for (index, mount) in checked.iter().enumerate() {
        if checked[..index]
            .iter()
            .any(|earlier| earlier.container_path == mount.container_path)
        {
            return Err(MountError::Twice {
                path: mount.container_path.clone(),
            });
        }
    }
    Ok(checked)
}

/// The canonical host path, provided that it is the one that was written.
fn source(path: &Path) -> Result<PathBuf, MountError> {
    let unreadable = |source| MountError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let absolute = std::path::absolute(path).map_err(unreadable)?;
    let mut written = PathBuf::new();
    for component in absolute.components() {
        match component {
            Component::ParentDir => {
                written.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                written.push(component)
            }
        }
    }
    let canonical = fs::canonicalize(path).map_err(unreadable)?;
    if canonical == written {
        Ok(canonical)
    } else {
        Err(MountError::Symlink {
            path: absolute,
            target: canonical,
        })
    }
}

fn target(path: &str) -> Result<String, MountError> {
    let invalid = || MountError::Target {
        path: path.to_owned(),
    };
    let parsed = Path::new(path);
    let plain = parsed
        .components()
        .all(|component| matches!(component, Component::RootDir | Component::Normal(_)));
    if !parsed.is_absolute() || !plain || path.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(invalid());
    }
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() {
        return Err(invalid());
    }
    let reserved = |place: &&str| {
        Path::new(trimmed).starts_with(place) || Path::new(place).starts_with(trimmed)
    };
    if RESERVED.iter().any(reserved) {
        return Err(MountError::Reserved {
            path: path.to_owned(),
        });
    }
    Ok(trimmed.to_owned())
}

/// Whether a path is an engine's socket, or a directory through which one is reached.
fn leads_to_engine(path: &Path) -> bool {
    let socket = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket());
    let named = |name: &str| {
        path.file_name()
            .is_some_and(|file| file.to_string_lossy().contains(name))
    };
    if socket
        && ["docker", "podman", "containerd", "crio", "buildkit"]
            .iter()
            .any(|name| named(name))
    {
        return true;
    }
    let user = format!("/run/user/{}", rustix::process::getuid().as_raw());
    ENGINE_SOCKETS
        .iter()
        .map(|known| PathBuf::from(known.replace("$XDG_RUNTIME_DIR", &user)))
        .any(|known| known.starts_with(path) || path == known)
}

const ENGINE_SOCKETS: &[&str] = &[
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/run/podman/podman.sock",
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/run/buildkit/buildkitd.sock",
    "$XDG_RUNTIME_DIR/docker.sock",
    "$XDG_RUNTIME_DIR/podman/podman.sock",
];

/// Places in the container that the sandbox fills or the kernel owns.
const RESERVED: &[&str] = &[
    "/.cordon",
    "/etc/resolv.conf",
    "/etc/hosts",
    "/proc",
    "/sys",
    "/dev",
];
