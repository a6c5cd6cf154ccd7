//! Images by content: a recipe is hashed, looked up, and built only when it must be.
//!
//! An image has two layers. The *repo* image is the caller's Dockerfile with its context files; the
//! *overlay* puts what the sandbox needs on top of it: `IS_SANDBOX=1` and the [`Entrypoint`]. Both are
//! named by what they are made of, so equal recipes share one image and no other can take its place.
//! The overlay runs nothing while it is built and holds no file: images without a shell work.
//!
//! ```no_run
//! # async fn example(engine: &cordon_engine::Engine) -> Result<(), cordon_image::Error> {
//! use cordon_image::{Config, Entrypoint, Entry, Images, Recipe};
//!
//! let mut recipe = Recipe::new("FROM debian:12\nCOPY tools/ /opt/tools/\n");
//! recipe.insert("tools/hello".parse()?, Entry::program("#!/bin/sh\necho hello\n"))?;
//!
//! let images = Images::new(engine, Config::new("/var/cache/cordon"));
//! let ensured = images.ensure(&recipe, &Entrypoint::passthrough(), |_| {}).await?;
//! println!("run {}", ensured.tags.overlay);
//! # Ok(())
//! # }
//! ```
//!
//! Knows nothing of execution contexts or networks; what a build is connected to, its caller says.

mod created;
mod decide;
mod ensure;
mod entrypoint;
mod error;
mod ignore;
mod layout;
mod lock;
mod path;
mod recipe;
mod store;
mod tag;

pub use created::{Age, Created, UnreadableTime};
pub use decide::{Action, Base, Why, decide};
pub use ensure::{Config, Ensured, Images, Layer, Progress};
pub use entrypoint::{Before, Entrypoint};
pub use error::Error;
pub use ignore::Ignore;
pub use path::{ContextPath, InvalidPath};
pub use recipe::{Entry, Recipe};
pub use store::{Loaded, Pruned, Stored};
pub use tag::{Digest, InvalidPrefix, Prefix, Tags};
