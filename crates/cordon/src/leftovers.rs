//! Removes what dead owners left, and never what a living one uses.
//!
//! A container ends with its keeper, and its engine removes it then; what can be left is a directory, a
//! network, a volume, and a container whose engine was itself killed on the way.

mod audit;

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use cordon_engine::{Container, Engine};

use crate::{Notice, SandboxError, Wiring, error::with_causes, owner::Owner, place, topology};
pub(crate) use audit::find;
pub use audit::{Cleaned, Kept, Leftover, LeftoverKind};

/// The label that every container carries, with its owner as the value.
pub(crate) const OWNER: &str = "cordon.owner";

/// What images of nothing are called, with their owner as the tag.
pub(crate) const EMPTY_IMAGES: &str = "localhost/cordon-doctor";

/// What was found and could not be removed is told in a notice; a sweep does not fail.
pub(crate) async fn sweep(runtime: &Path, engine: &Engine, wiring: Wiring) -> Vec<Notice> {
    let mut notices = Vec::new();
    let mut removed = 0;
    for (path, name) in dead_places(runtime) {
        let used = fs::read(path.join(place::ENGINE)).unwrap_or_default();
        // Another engine's container is that engine's to remove, when it is the one in use.
        if !used.is_empty() && Path::new(OsStr::from_bytes(&used)) != engine.program() {
            continue;
        }
        match remove(engine, &path, name).await {
            Ok(()) => removed += 1,
            Err(error) => notices.push(Notice::LeftoversKept {
                what: with_causes(&error),
            }),
        }
    }
    let new_boot = NewBoot::since(runtime);
    // Of a network no directory may be left, when a run was dropped and its process ended before the
    // engine did; and in this topology one call more or less is not felt.
    if new_boot.is_some() || wiring == Wiring::ProxyContainer {
        removed += sweep_containers(engine, &mut notices).await;
        removed += sweep_networks(engine, &mut notices).await;
        removed += sweep_volumes(engine, &mut notices).await;
    }
    if let Some(stamp) = new_boot {
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
        if !is_abandoned(&found.label, engine) {
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

/// Removes every network of a dead owner that the engine knows, and says how many there were.
async fn sweep_networks(engine: &Engine, notices: &mut Vec<Notice>) -> usize {
    let names = abandoned_networks(engine).await;
    sweep_named(names, notices, async |name| {
        engine.remove_network(name).await
    })
    .await
}

/// Removes every volume of a dead owner that the engine knows, and says how many there were.
async fn sweep_volumes(engine: &Engine, notices: &mut Vec<Notice>) -> usize {
    let names = abandoned_volumes(engine).await;
    sweep_named(names, notices, async |name| {
        engine.remove_volume(name).await
    })
    .await
}

async fn sweep_named(
    names: Result<Vec<String>, cordon_engine::Error>,
    notices: &mut Vec<Notice>,
    remove: impl AsyncFn(&str) -> Result<(), cordon_engine::Error>,
) -> usize {
    let mut keep = |error: cordon_engine::Error| {
        notices.push(Notice::LeftoversKept {
            what: error.to_string(),
        });
    };
    let names = names.unwrap_or_else(|error| {
        keep(error);
        Vec::new()
    });
    let mut removed = 0;
    for name in names {
        match remove(&name).await {
            Ok(()) => removed += 1,
            Err(error) => keep(error),
        }
    }
    removed
}

/// Networks of dead owners.
async fn abandoned_networks(engine: &Engine) -> Result<Vec<String>, cordon_engine::Error> {
    Ok(of_dead_owners(engine, engine.networks(OWNER).await?))
}

/// Volumes of dead owners. None is ever made where the engine sees the files of this machine.
async fn abandoned_volumes(engine: &Engine) -> Result<Vec<String>, cordon_engine::Error> {
    if engine.facts().local {
        return Ok(Vec::new());
    }
    Ok(of_dead_owners(engine, engine.volumes(OWNER).await?))
}

fn of_dead_owners(engine: &Engine, mut names: Vec<String>) -> Vec<String> {
    names.retain(|name| owner_in(name).is_some_and(|owner| is_abandoned(owner, engine)));
    names
}

/// Removes a run's directory, and before it what it stands for.
async fn remove(engine: &Engine, place: &Path, name: String) -> Result<(), SandboxError> {
    engine.remove(&Container(name.clone())).await?;
    if place.join(place::NETWORK).exists() {
        engine.remove(&topology::container_of(&name)).await?;
        engine.remove_network(topology::network_of(&name)).await?;
        topology::remove_files(engine, &name).await?;
    }
    remove_directory(place)
}

fn remove_directory(place: &Path) -> Result<(), SandboxError> {
    match fs::remove_dir_all(place) {
        // Somebody else who cleans was faster.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        gone => gone.map_err(|source| SandboxError::Remove {
            path: place.to_owned(),
            source,
        }),
    }
}

/// Whether what an engine has of that owner is nobody's any more. Of an engine in another machine we are
/// not the only user: an owner of another boot may be alive on yet another one.
fn is_abandoned(owner: &str, engine: &Engine) -> bool {
    match owner.parse::<Owner>() {
        Ok(owner) => !owner.is_alive() && (engine.facts().local || owner.is_of_this_boot()),
        Err(_) => engine.facts().local,
    }
}

/// The owner in the name of a directory, container or network.
fn owner_in(name: &str) -> Option<&str> {
    let (owner, _) = name.strip_prefix(place::PREFIX)?.rsplit_once('-')?;
    Some(owner)
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
            let owner: Owner = owner_in(&name)?.parse().ok()?;
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
