//! The environment of the process that runs the sandbox.

use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    fmt,
};

/// The variables of the host. Its printed form shows names only.
#[derive(Clone, Default)]
pub struct HostEnv(BTreeMap<OsString, OsString>);

impl HostEnv {
    /// Those of this process.
    #[must_use]
    pub fn current() -> Self {
        env::vars_os().collect()
    }

    pub(super) fn value(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&OsString, &OsString)> {
        self.0.iter()
    }
}

impl<N: Into<OsString>, V: Into<OsString>> FromIterator<(N, V)> for HostEnv {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        let variables = variables.into_iter();
        Self(
            variables
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }
}

impl fmt::Debug for HostEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
