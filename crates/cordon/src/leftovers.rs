//! Removes what dead owners left, and never what a living one uses.
//!
//! A container ends with its keeper, and its engine removes it then; what can be left is a directory,
//! and a container whose engine was itself killed on the way.

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use cordon_engine::{Container, Engine};

use crate::{Notice, owner::Owner, place};

/// The label that every container carries, with its owner as the value.
pub(crate) const OWNER: &str = "cordon.owner";

/// What was found and could not be removed is told in a notice; a sweep does not fail.
pub(crate) async fn sweep(runtime: &Path, engine: &Engine) -> Vec<Notice> {
    let mut notices = Vec::new();
    let mut removed = 0;
    for (path, name) in dead_places(runtime) {
        let used = fs::read(path.join(place::ENGINE)).unwrap_or_default();
        // Another engine's container is that engine's to remove, when it is the one in use.
        if !used.is_empty() && Path::new(OsStr::from_bytes(&used)) != engine.program() {
            continue;
        }
        let gone = match engine.remove(&Container(name)).await {
            Ok(()) => {
                fs::remove_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))
            }
            Err(error) => Err(error.to_string()),
        };
        match gone {
            Ok(()) => removed += 1,
            Err(what) => notices.push(Notice::LeftoversKept { what }),
        }
    }
    if let Some(stamp) = NewBoot::since(runtime) {
        removed += sweep_containers(engine, &mut notices).await;
        stamp.keep();
    }
    if removed > 0 {
        notices.push(Notice::LeftoversRemoved { count: removed });
    }
    notices
}

/// Removes every container of a dead owner that the engine knows, and says how many there were.
pub(crate) async fn sweep_containers(engine: &Engine, notices: &mut Vec<Notice>) -> usize {
    let listed = match engine.list(OWNER).await {
        Ok(listed) => listed,
        Err(error) => {
            notices.push(Notice::LeftoversKept {
                what: error.to_string(),
            });
            return 0;
        }
    };
    let mut removed = 0;
    for found in listed {
        if found
            .label
            .parse::<Owner>()
            .is_ok_and(|owner| owner.is_alive())
        {
            continue;
        }
        match engine.remove(&found.container).await {
            Ok(()) => removed += 1,
            Err(error) => notices.push(Notice::LeftoversKept {
                what: error.to_string(),
            }),
        }
    }
    removed
}

/// The directories of runs whose owner is dead, with the name of their container.
fn dead_places(runtime: &Path) -> Vec<(PathBuf, String)> {
    let Ok(entries) = fs::read_dir(runtime) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (owner, _) = name.strip_prefix(place::PREFIX)?.rsplit_once('-')?;
            let owner: Owner = owner.parse().ok()?;
            (!owner.is_alive()).then(|| (entry.path(), name))
        })
        .collect()
}

/// The first start since the machine was booted: directories in memory are gone then, and say nothing
/// about containers that an engine still has on disk.
struct NewBoot(PathBuf);

impl NewBoot {
    fn since(runtime: &Path) -> Option<Self> {
        let stamp = runtime.join("swept");
        let seen = fs::read_to_string(&stamp).unwrap_or_default();
        (seen != boot_id()).then_some(Self(stamp))
    }

    fn keep(self) {
        drop(fs::write(self.0, boot_id()));
    }
}

fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}
