//! Where things are kept that last from one run to the next.

use std::{env, path::PathBuf};

use anyhow::Context;

/// The contexts of agents.
pub(crate) fn contexts() -> anyhow::Result<PathBuf> {
    Ok(directory()?.join("contexts"))
}

/// The clones that runs worked on.
pub(crate) fn clones() -> anyhow::Result<PathBuf> {
    Ok(directory()?.join("clones"))
}

fn directory() -> anyhow::Result<PathBuf> {
    let directory = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let state = directory("XDG_STATE_HOME")
        .or_else(|| directory("HOME").map(|home| home.join(".local/state")));
    let state = state.context("neither XDG_STATE_HOME nor HOME is set")?;
    Ok(state.join("cordon"))
}
