//! Everything that dead owners left, on every engine that answers, found and removed by request.
//!
//! A start looks where looking costs nothing; this looks everywhere, and says what it found by name.

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use cordon_engine::{Choice, Container, Engine, Kind};

use super::{
    EMPTY_IMAGES, OWNER, abandoned_networks, abandoned_volumes, dead_places, is_abandoned,
    owner_in, remove, remove_directory,
};
use crate::{EngineKind, Sandbox, SandboxError, error::with_causes, owner::Owner, place};

/// Something that a dead owner left.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Leftover {
    /// What it is.
    pub kind: LeftoverKind,
    /// Its name, or where it is.
    pub name: String,
    /// The engine that had it; `None` for a run's directory whose engine is gone.
    pub engine: Option<EngineKind>,
}

/// What a leftover is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LeftoverKind {
    /// A run's directory, with whatever belongs to it.
    Run,
    /// A container of which no directory is left.
    Container,
    /// A network of which no directory is left.
    Network,
    /// A volume of which no directory is left.
    Volume,
    /// An image of nothing, for a container that was to prove something.
    Image,
}

/// What came of a clean-up.
#[derive(Debug, Default)]
pub struct Cleaned {
    /// The engines that were looked at.
    pub engines: Vec<EngineKind>,
    /// The engines that are installed and could not be asked.
    pub unanswered: Vec<Kept>,
    /// What is gone.
    pub removed: Vec<Leftover>,
    /// What is not.
    pub kept: Vec<Kept>,
}

/// Something that could not be removed, or not even be looked for.
#[derive(Debug)]
pub struct Kept {
    /// What it is.
    pub what: String,
    /// Why it is still there.
    pub why: SandboxError,
}

impl Kept {
    /// Why it is still there, with what led to it.
    #[must_use]
    pub fn reason(&self) -> String {
        with_causes(&self.why)
    }
}

impl LeftoverKind {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Container => "container",
            Self::Network => "network",
            Self::Volume => "volume",
            Self::Image => "image",
        }
    }
}

impl Sandbox {
    /// Removes what dead owners left on every engine that is installed. What a living owner uses stays.
    pub async fn clean(&self) -> Cleaned {
        let directories = &self.shared().config.directories;
        let mut cleaned = Cleaned::default();
        for kind in [Kind::Podman, Kind::Docker] {
            match Engine::find(Choice::Kind(kind), &directories.cache).await {
                Ok(engine) => cleaned.sweep(&engine, &directories.runtime).await,
                // Nothing can be left with an engine that is not there.
                Err(cordon_engine::Error::Missing { .. }) => {}
                Err(error) => cleaned.no_answer(kind, error),
            }
        }
        cleaned.sweep_orphaned_places(&directories.runtime);
        cleaned
    }
}

impl Cleaned {
    /// Removes what dead owners left with one engine.
    pub(crate) async fn sweep(&mut self, engine: &Engine, runtime: &Path) {
        // What was remembered of an engine says nothing about whether it answers now.
        if let Err(error) = engine.list(OWNER).await {
            return self.no_answer(engine.kind(), error);
        }
        self.engines.push(engine.kind());
        for (path, name) in places_of(engine, runtime) {
            let gone = remove(engine, &path, name.clone()).await;
            self.note(LeftoverKind::Run, name, Some(engine.kind()), gone);
        }
        match abandoned(engine).await {
            Err(error) => self.keep(engine.kind().to_string(), error.into()),
            Ok(abandoned) => {
                for name in abandoned.containers {
                    let gone = engine.remove(&Container(name.clone())).await;
                    let gone = gone.map_err(Into::into);
                    self.note(LeftoverKind::Container, name, Some(engine.kind()), gone);
                }
                for name in abandoned.networks {
                    let gone = engine.remove_network(&name).await.map_err(Into::into);
                    self.note(LeftoverKind::Network, name, Some(engine.kind()), gone);
                }
                for name in abandoned.volumes {
                    let gone = engine.remove_volume(&name).await.map_err(Into::into);
                    self.note(LeftoverKind::Volume, name, Some(engine.kind()), gone);
                }
                for name in abandoned.images {
                    let gone = match engine.remove_image(&name).await {
                        // Somebody else who cleans was faster.
                        Err(_) if matches!(engine.image(&name).await, Ok(None)) => Ok(()),
                        gone => gone.map_err(Into::into),
                    };
                    self.note(LeftoverKind::Image, name, Some(engine.kind()), gone);
                }
            }
        }
    }

    /// A directory whose engine is not installed any more stands for nothing.
    fn sweep_orphaned_places(&mut self, runtime: &Path) {
        for (path, name) in dead_places(runtime) {
            if engine_of(&path).is_none_or(|program| program.exists()) {
                continue;
            }
            self.note(LeftoverKind::Run, name, None, remove_directory(&path));
        }
    }

    fn note(
        &mut self,
        kind: LeftoverKind,
        name: String,
        engine: Option<EngineKind>,
        gone: Result<(), SandboxError>,
    ) {
        match gone {
            Ok(()) => self.removed.push(Leftover { kind, name, engine }),
            Err(why) => self.keep(format!("{} {name}", kind.word()), why),
        }
    }

    fn no_answer(&mut self, kind: EngineKind, error: cordon_engine::Error) {
        self.unanswered.push(Kept {
            what: kind.to_string(),
            why: error.into(),
        });
    }

    fn keep(&mut self, what: String, why: SandboxError) {
        self.kept.push(Kept { what, why });
    }
}

/// What dead owners left with an engine. What belongs to a run's directory is counted with it.
pub(crate) async fn find(
    engine: &Engine,
    runtime: &Path,
) -> Result<Vec<Leftover>, cordon_engine::Error> {
    let abandoned = abandoned(engine).await?;
    let runs: Vec<_> = places_of(engine, runtime)
        .into_iter()
        .map(|(_, name)| name)
        .collect();
    let with_a_run = |owner: &str| runs.iter().any(|run| owner_in(run) == Some(owner));
    let leftover = |kind| {
        move |name| Leftover {
            kind,
            name,
            engine: Some(engine.kind()),
        }
    };
    let containers = abandoned.containers.into_iter().zip(abandoned.owners);
    let containers = containers.filter(|(_, owner)| !with_a_run(owner));
    let without_a_run = |name: &String| !owner_in(name).is_some_and(with_a_run);
    let networks = abandoned.networks.into_iter().filter(without_a_run);
    let volumes = abandoned.volumes.into_iter().filter(without_a_run);
    let found = containers
        .map(|(name, _)| name)
        .map(leftover(LeftoverKind::Container))
        .chain(networks.map(leftover(LeftoverKind::Network)))
        .chain(volumes.map(leftover(LeftoverKind::Volume)))
        .chain(
            abandoned
                .images
                .into_iter()
                .map(leftover(LeftoverKind::Image)),
        );
    let found: Vec<_> = found.collect();
    let runs = runs.into_iter().map(leftover(LeftoverKind::Run));
    Ok(runs.chain(found).collect())
}

/// What an engine has of dead owners.
struct Abandoned {
    containers: Vec<String>,
    /// Of the containers, one by one.
    owners: Vec<String>,
    networks: Vec<String>,
    volumes: Vec<String>,
    images: Vec<String>,
}

async fn abandoned(engine: &Engine) -> Result<Abandoned, cordon_engine::Error> {
    let listed = engine.list(OWNER).await?.into_iter();
    let (containers, owners) = listed
        .filter(|found| is_abandoned(&found.label, engine))
        .map(|found| (found.container.0, found.label))
        .unzip();
    let mut images = engine.images(EMPTY_IMAGES).await?;
    // An image may have other names, and engines list all of them.
    images.retain(|name| {
        let tag = name.strip_prefix(EMPTY_IMAGES).unwrap_or_default();
        let owner = tag.strip_prefix(':').unwrap_or_default();
        owner.parse::<Owner>().is_ok() && is_abandoned(owner, engine)
    });
    Ok(Abandoned {
        containers,
        owners,
        networks: abandoned_networks(engine).await?,
        volumes: abandoned_volumes(engine).await?,
        images,
    })
}

/// The directories of dead runs whose container is that engine's, or nobody's.
fn places_of(engine: &Engine, runtime: &Path) -> Vec<(PathBuf, String)> {
    let mut places = dead_places(runtime);
    places.retain(|(path, _)| engine_of(path).is_none_or(|used| used == engine.program()));
    places
}

/// The engine of a run, as its directory says.
fn engine_of(place: &Path) -> Option<PathBuf> {
    let used = fs::read(place.join(place::ENGINE)).ok()?;
    (!used.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(&used)))
}
