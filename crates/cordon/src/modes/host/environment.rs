//! The variables of a command on the host: a clean few, and those of the agent that change nothing else.

use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use cordon_engine::process::Call;
use cordon_shell::judge_variable;
use rustix::fs::{Access, access};

use crate::SandboxError;

/// The variables of a command.
pub(super) struct Environment {
    path: Vec<PathBuf>,
    variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// The clean variables, and over them those that were asked for, later ones over earlier.
    pub(super) fn build<'a>(
        workspace: &Path,
        asked: impl IntoIterator<Item = &'a Vec<(String, String)>>,
    ) -> Result<Self, SandboxError> {
        let path = search_path(workspace);
        let mut variables: BTreeMap<_, _> = KEPT
            .iter()
            .filter_map(|name| Some((OsString::from(name), env::var_os(name)?)))
            .collect();
        variables.insert("TERM".into(), "dumb".into());
        variables.insert("PATH".into(), join(&path));
        for (name, value) in asked.into_iter().flatten() {
            if !is_name(name) || value.contains('\0') {
                return Err(SandboxError::Variable { name: name.clone() });
            }
            judge_variable(name)?;
            variables.insert(name.into(), value.into());
        }
        Ok(Self { path, variables })
    }

    /// Gives the variables to a call, and no others.
    pub(super) fn apply(&self, call: Call) -> Call {
        let bare = call.without_environment();
        self.variables
            .iter()
            .fold(bare, |call, (name, value)| call.env(name, value))
    }

    /// The program of that name on the search path; a path is itself.
    pub(super) fn find(&self, program: &OsStr) -> Option<PathBuf> {
        if program.as_bytes().contains(&b'/') {
            return Some(program.into());
        }
        let candidates = self.path.iter().map(|directory| directory.join(program));
        candidates
            .into_iter()
            .find(|candidate| candidate.is_file() && access(candidate, Access::EXEC_OK).is_ok())
    }
}

/// The directories where programs are looked for by name. What a command can write to is not among them: it could
/// put a program there under an allowed name.
fn search_path(workspace: &Path) -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let usable = |directory: &PathBuf| {
        directory.is_absolute()
            && fs::canonicalize(directory).is_ok_and(|directory| !directory.starts_with(workspace))
    };
    let directories: Vec<_> = env::split_paths(&path).filter(usable).collect();
    if directories.is_empty() {
        return FALLBACK.iter().map(PathBuf::from).collect();
    }
    directories
}

fn join(directories: &[PathBuf]) -> OsString {
    // Each came out of a search path, so none holds a colon.
    env::join_paths(directories).unwrap_or_default()
}

/// Whether shells and programs agree that this is a variable's name.
fn is_name(name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(word) && !name.starts_with(|c: char| c.is_ascii_digit())
}

const KEPT: &[&str] = &["HOME", "LANG", "USER"];

const FALLBACK: &[&str] = &["/usr/local/bin", "/usr/bin", "/bin"];
