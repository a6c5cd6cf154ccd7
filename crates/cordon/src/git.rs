//! Git repositories that a workload may have written to.
//!
//! Nothing here lets git see a repository's own configuration, refs or hooks, since these can name programs to run. Refs
//! are read as files, objects through a git directory of our own, and every object is checked against the hash that it
//! was asked for by. The `git` program does it rather than a library: clones need it anyway, and it comes with no crates.

mod clone;
mod error;
#[cfg(test)]
pub(crate) mod fixture;
mod objects;
mod program;
mod refs;
mod repository;
mod snapshot;
mod source;
mod tree;

pub use clone::{GitClone, clone_workspace};
pub use error::GitError;
pub use snapshot::GitSnapshot;
pub use source::CloneSource;

pub(crate) use repository::Repository;
