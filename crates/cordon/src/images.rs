//! Images as things that are named, listed, kept and removed.

use std::path::Path;

use cordon_image::{
    Config, Entrypoint, Images, Loaded, Prefix, Progress, Pruned, Recipe, Stored, Tags,
};

use crate::{BuildNetwork, Sandbox, SandboxError};

impl Sandbox {
    /// The names that a recipe's images have when they are built with that network. Asks no engine.
    #[must_use]
    pub fn image_tags(network: &BuildNetwork, recipe: &Recipe, entrypoint: &Entrypoint) -> Tags {
        let recipe = recipe.clone().under(network.conditions());
        Tags::of(&Prefix::default(), &recipe, entrypoint)
    }

    /// The images that were built from recipes and are in the engine's store, the youngest first.
    ///
    /// # Errors
    ///
    /// When the sandbox has not been started, or the engine refuses.
    pub async fn images(&self) -> Result<Vec<Stored>, SandboxError> {
        let engine = self.engine()?;
        Ok(Images::new(&engine, self.image_config()).list().await?)
    }

    /// Writes both images of a recipe to a directory, building what is missing or too old.
    ///
    /// # Errors
    ///
    /// As [`Sandbox::ensure_image_on`], and when the archives cannot be written.
    pub async fn save_image(
        &self,
        network: &BuildNetwork,
        recipe: &Recipe,
        entrypoint: &Entrypoint,
        directory: &Path,
        progress: impl FnMut(Progress<'_>),
    ) -> Result<Tags, SandboxError> {
        self.ensure_image_on(network, recipe, entrypoint, progress)
            .await?;
        let engine = self.engine()?;
        let tags = Self::image_tags(network, recipe, entrypoint);
        let images = Images::new(&engine, self.image_config());
        // Whatever has gone in between is not built here, where no door is open.
        images.archive(&tags, directory).await?;
        Ok(tags)
    }

    /// Reads what [`Sandbox::save_image`] wrote. An archive that is not there is no error.
    ///
    /// # Errors
    ///
    /// When the sandbox has not been started, or the engine refuses an archive.
    pub async fn load_images(&self, directory: &Path) -> Result<Loaded, SandboxError> {
        let engine = self.engine()?;
        let images = Images::new(&engine, self.image_config());
        Ok(images.load(directory).await?)
    }

    /// Removes the images that are too old to be used again.
    ///
    /// # Errors
    ///
    /// When the sandbox has not been started, or the engine cannot list its images.
    pub async fn prune_images(&self) -> Result<Pruned, SandboxError> {
        let engine = self.engine()?;
        Ok(Images::new(&engine, self.image_config()).prune().await?)
    }

    fn image_config(&self) -> Config {
        let config = self.config();
        Config {
            max_age: config.max_image_age.0,
            ..Config::new(&config.directories.cache)
        }
    }
}
