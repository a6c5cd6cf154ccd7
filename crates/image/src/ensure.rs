//! Finds an image or builds it: the one place that puts hash, age, lock and engine together.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use cordon_engine::{BuildNetwork, BuildSpec, Engine, Image, Network};
use jiff::Timestamp;

use crate::{
    Action, Age, Base, Created, Entrypoint, Error, Prefix, Recipe, Tags, Why, decide,
    layout::Layout, lock::Lock,
};

/// The images of one engine.
#[derive(Clone, Debug)]
pub struct Images<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) config: Config,
}

/// How images are named, kept and built.
#[derive(Clone, Debug)]
pub struct Config {
    /// What their names begin with.
    pub prefix: Prefix,
    /// How old an image may get before it is built anew; zero builds it every time.
    pub max_age: Duration,
    /// Where the files lie that keep builds of one image apart. Processes that share an engine share this.
    pub locks: PathBuf,
    /// What the builds of repo images are connected to. Overlays fetch nothing.
    pub network: BuildNetwork,
    /// How long one build may take.
    pub build_limit: Duration,
}

/// What happens on the way to an image.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// Somebody else builds the same image; it is waited for.
    Waiting {
        /// The image.
        tag: &'a str,
    },
    /// A build begins.
    Building {
        /// The image.
        tag: &'a str,
        /// Why it is built.
        why: Why,
    },
    /// The build said something.
    Line(&'a str),
}

/// An image that is ready, and how it came to be.
#[derive(Clone, Debug)]
pub struct Ensured {
    /// Its names; the overlay is the one to run.
    pub tags: Tags,
    /// What happened to the repo image.
    pub repo: Layer,
    /// What happened to the overlay.
    pub overlay: Layer,
}

/// What happened to one of the two images.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Layer {
    /// It was there.
    Reused(Age),
    /// It was built now.
    Built(Why),
}

impl<'a> Images<'a> {
    /// The images of `engine`.
    #[must_use]
    pub fn new(engine: &'a Engine, config: Config) -> Self {
        Self { engine, config }
    }

    /// Makes sure that the image of `recipe` and `entrypoint` is there and not too old.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] when the Dockerfile does not build; others when the engine or the disk refuses.
    pub async fn ensure(
        &self,
        recipe: &Recipe,
        entrypoint: &Entrypoint,
        mut progress: impl FnMut(Progress<'_>),
    ) -> Result<Ensured, Error> {
        let tags = Tags::of(&self.config.prefix, recipe, entrypoint);
        let wanted = Wanted::repo(&tags, recipe);
        let repo = self.ensure_one(&wanted, &mut progress).await?;
        let on_top = entrypoint.recipe(&tags.repo);
        let wanted = Wanted::overlay(&tags, &on_top, repo);
        let overlay = self.ensure_one(&wanted, &mut progress).await?;
        Ok(Ensured {
            repo: repo.layer,
            overlay: overlay.layer,
            tags,
        })
    }

    /// The image of `recipe` and `entrypoint`, if it is there and not too old; `None` when something has to be built.
    ///
    /// # Errors
    ///
    /// When the engine refuses.
    pub async fn ready(
        &self,
        recipe: &Recipe,
        entrypoint: &Entrypoint,
    ) -> Result<Option<Ensured>, Error> {
        let tags = Tags::of(&self.config.prefix, recipe, entrypoint);
        let Outlook::Ready(repo) = self.outlook(&Wanted::repo(&tags, recipe)).await? else {
            return Ok(None);
        };
        let on_top = entrypoint.recipe(&tags.repo);
        let wanted = Wanted::overlay(&tags, &on_top, repo);
        let Outlook::Ready(overlay) = self.outlook(&wanted).await? else {
            return Ok(None);
        };
        Ok(Some(Ensured {
            repo: repo.layer,
            overlay: overlay.layer,
            tags,
        }))
    }

    async fn ensure_one(
        &self,
        wanted: &Wanted<'_>,
        progress: &mut impl FnMut(Progress<'_>),
    ) -> Result<Ready, Error> {
        let tag = wanted.tag;
        if let Outlook::Ready(ready) = self.outlook(wanted).await? {
            return Ok(ready);
        }
        let waiting = || progress(Progress::Waiting { tag });
        let _lock = Lock::take(&self.config.locks, tag, waiting).await?;

        // Whoever held the lock before may have done the work.
        let (why, predecessor) = match self.outlook(wanted).await? {
            Outlook::Ready(ready) => return Ok(ready),
            Outlook::Build { why, predecessor } => (why, predecessor),
        };
        let mut ready = self.build(wanted, why, progress).await?;
        if why == Why::Missing && ready.stale(self.config.max_age) {
            // All of it came out of the cache of an old build.
            ready = self.build(wanted, Why::Stale, progress).await?;
        }
        if let Some(predecessor) = predecessor {
            self.remove_nameless(&predecessor).await;
        }
        Ok(ready)
    }

    /// What is to be done about an image, going by what the engine has.
    async fn outlook(&self, wanted: &Wanted<'_>) -> Result<Outlook, Error> {
        let found = self.engine.image(wanted.tag).await?;
        let created = found.as_ref().and_then(|found| readable(&found.created));
        let age = created.map(|created| created.age(Timestamp::now()));
        let action = decide(age, wanted.base_of(created), self.config.max_age);
        Ok(match (action, age) {
            (Action::Reuse, Some(age)) => Outlook::Ready(Ready {
                layer: Layer::Reused(age),
                created,
            }),
            (Action::Reuse, None) => Outlook::build(Why::Missing, found),
            (Action::Build(why), _) => Outlook::build(why, found),
        })
    }

    async fn build(
        &self,
        wanted: &Wanted<'_>,
        why: Why,
        progress: &mut impl FnMut(Progress<'_>),
    ) -> Result<Ready, Error> {
        let tag = wanted.tag;
        progress(Progress::Building { tag, why });
        let recipe = wanted.recipe.clone();
        let layout = tokio::task::spawn_blocking(move || Layout::write(&recipe));
        let layout = layout.await.map_err(|died| Error::Layout {
            path: std::env::temp_dir(),
            source: died.into(),
        })??;
        let network = wanted.network(&self.config);
        let spec = BuildSpec {
            context: layout.context(),
            dockerfile: layout.dockerfile(),
            tag: tag.to_owned(),
            // Also makes a Dockerfile of one FROM line an image of its own, with a time of its own.
            labels: vec![(KIND_LABEL.to_owned(), wanted.kind.label().to_owned())],
            // The engine cannot tell a layer that was made inside from one that could reach anything.
            cached: why.cached() && !matches!(network, BuildNetwork::Inside(_)),
            network,
            limit: self.config.build_limit,
        };
        let built = self
            .engine
            .build(&spec, |line| progress(Progress::Line(line)));
        built.await.map_err(|source| Error::Build {
            tag: tag.to_owned(),
            source,
        })?;
        match self.engine.image(tag).await? {
            Some(image) => Ok(Ready {
                layer: Layer::Built(why),
                created: readable(&image.created),
            }),
            None => Err(Error::Vanished {
                tag: tag.to_owned(),
            }),
        }
    }

    /// Removes an image that a build has taken the name from, unless it has another or is in use.
    async fn remove_nameless(&self, id: &str) {
        let removed = match self.engine.image(id).await {
            Ok(Some(image)) if image.tags.is_empty() => self.engine.remove_image(id).await,
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = removed {
            tracing::debug!(%error, id, "the image of an earlier build stays");
        }
    }
}

impl Config {
    /// Images named `cordon`, at most a day old, built with the host's network; locks below `cache`.
    #[must_use]
    pub fn new(cache: impl AsRef<Path>) -> Self {
        Self {
            prefix: Prefix::default(),
            max_age: DAY,
            locks: cache.as_ref().join("locks"),
            network: BuildNetwork::Commands(Network::Named {
                name: "host".to_owned(),
                address: None,
            }),
            build_limit: BUILD_LIMIT,
        }
    }
}

/// An image as it should be.
struct Wanted<'a> {
    tag: &'a str,
    kind: Kind,
    recipe: &'a Recipe,
    /// The image of ours that it stands on.
    base: Option<Ready>,
}

/// Which of the two an image is.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Repo,
    Overlay,
}

impl Kind {
    fn label(self) -> &'static str {
        match self {
            Self::Repo => "repo",
            Self::Overlay => "overlay",
        }
    }
}

impl<'a> Wanted<'a> {
    fn repo(tags: &'a Tags, recipe: &'a Recipe) -> Self {
        Self {
            tag: &tags.repo,
            kind: Kind::Repo,
            recipe,
            base: None,
        }
    }

    fn overlay(tags: &'a Tags, recipe: &'a Recipe, repo: Ready) -> Self {
        Self {
            tag: &tags.overlay,
            kind: Kind::Overlay,
            recipe,
            base: Some(repo),
        }
    }

    fn network(&self, config: &Config) -> BuildNetwork {
        match self.kind {
            Kind::Repo => config.network.clone(),
            Kind::Overlay => BuildNetwork::Commands(Network::None),
        }
    }

    /// Also an image that is older than its base stands on an earlier one: a build of both may have
    /// been cut short between them.
    fn base_of(&self, created: Option<Created>) -> Base {
        match self.base {
            Some(Ready {
                layer: Layer::Built(_),
                ..
            }) => Base::Changed,
            Some(base) if created < base.created => Base::Changed,
            Some(_) | None => Base::Unchanged,
        }
    }
}

/// An image as it is.
#[derive(Clone, Copy, Debug)]
struct Ready {
    layer: Layer,
    created: Option<Created>,
}

impl Ready {
    fn stale(&self, max_age: Duration) -> bool {
        let age = self.created.map(|created| created.age(Timestamp::now()));
        decide(age, Base::Unchanged, max_age) == Action::Build(Why::Stale)
    }
}

enum Outlook {
    Ready(Ready),
    Build {
        why: Why,
        predecessor: Option<String>,
    },
}

impl Outlook {
    fn build(why: Why, found: Option<Image>) -> Self {
        Self::Build {
            why,
            predecessor: found.map(|found| found.id),
        }
    }
}

/// A time that cannot be read makes the image as good as missing: it is built again, from cache.
pub(crate) fn readable(created: &str) -> Option<Created> {
    created
        .parse()
        .inspect_err(|error| tracing::warn!(%error, "the age of an image is not known"))
        .ok()
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A large image on a slow line; what takes longer hangs.
const BUILD_LIMIT: Duration = Duration::from_secs(60 * 60);

/// The label that says which of the two an image is.
const KIND_LABEL: &str = "cordon.image";
