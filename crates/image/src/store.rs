//! Images as things that take space and travel: removing old ones, and archives for a CI's cache.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::Timestamp;

use crate::{
    Age, Config, Ensured, Entrypoint, Error, Images, Progress, Recipe, Tags, ensure::readable,
    lock::Lock,
};

/// An image of ours in the engine's store.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Stored {
    /// Its name.
    pub tag: String,
    /// Its id, as the engine writes it.
    pub id: String,
    /// How old it is; none if the engine does not say it readably.
    pub age: Option<Age>,
}

/// What came of removing old images.
#[derive(Debug, Default)]
pub struct Pruned {
    /// Those that are gone, with the age that they had.
    pub removed: Vec<(String, Age)>,
    /// Those that are old enough, and could not be removed; most likely a container uses them.
    pub kept: Vec<(String, cordon_engine::Error)>,
}

/// Which archives of a directory were there to be loaded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Loaded {
    /// The repo image's.
    pub repo: bool,
    /// The overlay's.
    pub overlay: bool,
}

impl Images<'_> {
    /// Removes the images under our prefix that are too old to be used again, whatever recipe they were made from.
    /// Where images may not get any age, nothing is removed: they are replaced every time.
    ///
    /// # Errors
    ///
    /// When the engine cannot list its images.
    pub async fn prune(&self) -> Result<Pruned, Error> {
        let mut pruned = Pruned::default();
        if self.config.max_age.is_zero() {
            return Ok(pruned);
        }
        for tag in self.tags().await? {
            self.prune_one(&tag, &mut pruned).await?;
        }
        Ok(pruned)
    }

    /// The images under our prefix, the youngest first.
    ///
    /// # Errors
    ///
    /// When the engine cannot list its images.
    pub async fn list(&self) -> Result<Vec<Stored>, Error> {
        let mut stored = Vec::new();
        for tag in self.tags().await? {
            // One that was removed meanwhile is not there.
            if let Some(image) = self.engine.image(&tag).await? {
                stored.push(Stored {
                    age: readable(&image.created).map(|created| created.age(Timestamp::now())),
                    id: image.id,
                    tag,
                });
            }
        }
        stored.sort_by_key(|image| image.age.map_or(Duration::MAX, |age| age.0));
        Ok(stored)
    }

    /// The names of all images under our prefix. Overlays come first: an image that another stands on is not removed.
    async fn tags(&self) -> Result<Vec<String>, Error> {
        let names = [
            self.config.prefix.overlay_name().to_owned(),
            self.config.prefix.repo_name(),
        ];
        let mut tags = Vec::new();
        for name in names {
            for listed in self.engine.images(&format!("{name}:*")).await? {
                // Podman's form of a name without a registry.
                let tag = listed.strip_prefix("localhost/").unwrap_or(&listed);
                if tag.starts_with(&format!("{name}:")) {
                    tags.push(tag.to_owned());
                }
            }
        }
        Ok(tags)
    }

    async fn prune_one(&self, tag: &str, pruned: &mut Pruned) -> Result<(), Error> {
        // Somebody is building it, so it is not old.
        let Some(_lock) = Lock::try_take(&self.config.locks, tag)? else {
            return Ok(());
        };
        let Some(image) = self.engine.image(tag).await? else {
            return Ok(());
        };
        let Some(age) = readable(&image.created).map(|created| created.age(Timestamp::now()))
        else {
            return Ok(());
        };
        if age.0 <= self.config.max_age {
            return Ok(());
        }
        match self.engine.remove_image(tag).await {
            Ok(()) => pruned.removed.push((tag.to_owned(), age)),
            Err(error) => pruned.kept.push((tag.to_owned(), error)),
        }
        Ok(())
    }

    /// Writes both images of a recipe to `directory`, building what is missing; any age will do.
    ///
    /// # Errors
    ///
    /// As [`Images::ensure`], and when the archives cannot be written.
    pub async fn save(
        &self,
        recipe: &Recipe,
        entrypoint: &Entrypoint,
        directory: &Path,
        progress: impl FnMut(Progress<'_>),
    ) -> Result<Ensured, Error> {
        let ageless = Images {
            engine: self.engine,
            config: Config {
                max_age: Duration::MAX,
                ..self.config.clone()
            },
        };
        let ensured = ageless.ensure(recipe, entrypoint, progress).await?;
        self.archive(&ensured.tags, directory).await?;
        Ok(ensured)
    }

    /// Writes two images that are there to `directory`. Builds nothing.
    ///
    /// # Errors
    ///
    /// When one of them is not there, or the archives cannot be written.
    pub async fn archive(&self, tags: &Tags, directory: &Path) -> Result<(), Error> {
        for (tag, archive) in [
            (&tags.repo, repo_archive(directory)),
            (&tags.overlay, overlay_archive(directory)),
        ] {
            self.save_one(tag, &archive).await?;
        }
        Ok(())
    }

    /// Written beside its place and renamed: podman refuses to replace an archive, and half of one is worth nothing.
    async fn save_one(&self, tag: &str, archive: &Path) -> Result<(), Error> {
        let part = archive.with_extension("part");
        let at = |source| Error::Archive {
            path: archive.to_owned(),
            source,
        };
        match tokio::fs::remove_file(&part).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(at(error)),
            Ok(()) | Err(_) => {}
        }
        self.engine.save(&[tag], &part).await?;
        tokio::fs::rename(&part, archive).await.map_err(at)
    }

    /// Reads what [`Images::save`] wrote. An archive that is not there is none of a cache's errors.
    ///
    /// # Errors
    ///
    /// When an archive is there and the engine refuses it.
    pub async fn load(&self, directory: &Path) -> Result<Loaded, Error> {
        Ok(Loaded {
            repo: self.load_one(&repo_archive(directory)).await?,
            overlay: self.load_one(&overlay_archive(directory)).await?,
        })
    }

    async fn load_one(&self, archive: &Path) -> Result<bool, Error> {
        let there = tokio::fs::try_exists(archive).await;
        let there = there.map_err(|source| Error::Archive {
            path: archive.to_owned(),
            source,
        })?;
        if there {
            self.engine.load(archive).await?;
        }
        Ok(there)
    }
}

fn repo_archive(directory: &Path) -> PathBuf {
    directory.join("repo.tar")
}

fn overlay_archive(directory: &Path) -> PathBuf {
    directory.join("overlay.tar")
}
