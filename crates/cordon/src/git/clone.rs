//! Clones that need nothing of the host and bring nothing of it along.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use cordon_engine::process::Call;

use super::{
    CloneSource, GitError, Repository,
    objects::Id,
    program::Git,
    refs::Reference,
    source::{Login, Place},
};

/// A clone on disk. It is removed when this is dropped, unless it was kept.
#[derive(Debug)]
pub struct GitClone {
    path: PathBuf,
    commit: Option<Id>,
    kept: bool,
}

/// Clones a repository whole into `directory`, which must not be there yet: every object is its own and was checked, and
/// there are no hooks, no templates, no submodules, nothing of the host's git configuration, and no credentials in the
/// address of its remote. A directory that borrows from other repositories of the host is refused.
///
/// # Errors
///
/// When the directory is there, or git cannot clone; nothing is left then.
pub async fn clone_workspace(source: &CloneSource, directory: &Path) -> Result<GitClone, GitError> {
    if let Place::Directory(directory) = &source.place {
        Repository::open(directory)?.stands_alone()?;
    }
    let git = Git::new(CONFIG)?;
    let path = std::path::absolute(directory).map_err(|source| GitError::Write {
        path: directory.to_owned(),
        source,
    })?;
    fs::create_dir(&path).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => GitError::Occupied { path: path.clone() },
        _ => GitError::Write {
            path: path.clone(),
            source,
        },
    })?;
    // From here on the directory is ours to remove.
    let mut clone = GitClone {
        path,
        commit: None,
        kept: false,
    };
    clone.fill(&git, source).await?;
    let repository = Repository::open(&clone.path)?;
    // A repository without a commit can be cloned, too.
    clone.commit = Reference::Name("HEAD".to_owned()).resolve(&repository).ok();
    Ok(clone)
}

impl GitClone {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The hash of the commit that is checked out; none in an empty repository.
    #[must_use]
    pub fn commit(&self) -> Option<String> {
        self.commit.as_ref().map(Id::to_string)
    }

    /// Leaves it on disk for good.
    pub fn keep(&mut self) {
        self.kept = true;
    }

    async fn fill(&self, git: &Git, source: &CloneSource) -> Result<(), GitError> {
        let (from, protocol): (&std::ffi::OsStr, _) = match &source.place {
            Place::Directory(path) => (path.as_os_str(), "file"),
            Place::Https(address) => (address.as_ref(), "https"),
            Place::Ssh { address, .. } => (address.as_ref(), "ssh"),
        };
        let fetch = git.call("clone").env("GIT_ALLOW_PROTOCOL", protocol);
        let mut fetch = credentials(fetch, source.login.as_ref())
            .args(["clone", "--quiet", "--no-local", "--no-hardlinks"])
            .args(["--no-recurse-submodules", "--template="]);
        let hash = match &source.reference {
            Some(Reference::Hash(id)) => {
                fetch = fetch.args(["--no-checkout"]);
                Some(id.to_string())
            }
            Some(Reference::Name(name)) => {
                let short = ["refs/heads/", "refs/tags/"]
                    .iter()
                    .find_map(|prefix| name.strip_prefix(prefix));
                fetch = fetch.args(["--branch", short.unwrap_or(name)]);
                None
            }
            None => None,
        };
        run(
            fetch.args(["--"]).args([from, self.path.as_os_str()]),
            source,
        )
        .await?;
        let inside = |verb| git.call(verb).args(["-C".as_ref(), self.path.as_os_str()]);
        if let Some(hash) = hash {
            let checkout =
                inside("checkout").args(["checkout", "--quiet", "--detach", &hash, "--"]);
            run(checkout, source).await?;
        }
        if let Place::Ssh { bare, .. } = &source.place {
            run(
                inside("config").args(["config", "remote.origin.url", bare]),
                source,
            )
            .await?;
        }
        Ok(())
    }
}

impl Drop for GitClone {
    fn drop(&mut self) {
        if !self.kept {
            drop(fs::remove_dir_all(&self.path));
        }
    }
}

async fn run(call: Call, source: &CloneSource) -> Result<(), GitError> {
    let call = call
        .env("GIT_SSH_COMMAND", "ssh -oBatchMode=yes")
        // The reflog would name the user and the host.
        .env("GIT_COMMITTER_NAME", "cordon")
        .env("GIT_COMMITTER_EMAIL", "cordon@localhost")
        .limit(CLONE_LIMIT);
    let output = call.output(b"").await.map_err(GitError::Process)?;
    if output.status.success() {
        return Ok(());
    }
    Err(GitError::CloneFailed {
        from: source.to_string(),
        said: output.stderr.trim().to_owned(),
    })
}

/// Lets git ask for the credentials, for that one host, through variables: they are in no argument list and no file.
fn credentials(call: Call, login: Option<&Login>) -> Call {
    let Some(Login {
        user,
        password,
        scope,
    }) = login
    else {
        return call;
    };
    call.env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", format!("credential.{scope}.helper"))
        .env("GIT_CONFIG_VALUE_0", CREDENTIALS)
        .env("CORDON_GIT_USER", user)
        .env("CORDON_GIT_PASSWORD", password.expose())
}

/// Prints the two variables when git asks; the shell is git's own for such helpers.
const CREDENTIALS: &str = r#"!f() { test "$1" = get && printf 'username=%s\npassword=%s\n' "$CORDON_GIT_USER" "$CORDON_GIT_PASSWORD"; }; f"#;

/// Whose the repository is does not matter: it was named, and what is in its configuration is not run when git serves it.
/// Three old mistakes of other programs are in the history of many a repository, and harmless.
const CONFIG: &str = "\
[safe]
	directory = *
[core]
	hooksPath = /dev/null
[transfer]
	fsckObjects = true
[fetch \"fsck\"]
	badTimezone = ignore
	missingSpaceBeforeDate = ignore
	zeroPaddedFilemode = ignore
[advice]
	detachedHead = false
";

/// A large repository on a slow line; what takes longer hangs.
const CLONE_LIMIT: Duration = Duration::from_secs(60 * 60);

#[cfg(test)]
mod tests;
