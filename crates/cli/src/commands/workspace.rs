//! What a run works on, and where its rules come from.

use std::{
    env,
    fs::DirBuilder,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use anyhow::Context;
use cordon::{
    CloneSource, ConfigSource, GitClone, GitError, Mount, SandboxError, SandboxFile,
    clone_workspace,
};

use crate::{
    args::Container,
    commands::{interrupts::Interrupts, state},
    exit::Exit,
    printer::{Hinted, Printer},
};

/// The workspace of a run.
pub(crate) struct Workspace {
    clone: Option<GitClone>,
    rules: ConfigSource,
}

impl Workspace {
    /// Clones if that was asked for; a signal meanwhile leaves nothing.
    pub(crate) async fn prepare(
        args: &Container,
        interrupts: &mut Interrupts,
        printer: &Printer,
    ) -> anyhow::Result<Result<Self, Exit>> {
        let work = async {
            let clone = match &args.clone {
                Some(from) => Some(clone(&from.0, args.clone_dir.as_deref(), printer).await?),
                None => None,
            };
            let rules = rules(args, clone.as_ref()).await?;
            anyhow::Ok(Self { clone, rules })
        };
        tokio::select! {
            workspace = work => workspace.map(Ok),
            number = interrupts.next() => Ok(Err(Exit::Signal(number))),
        }
    }

    pub(crate) fn rules(&self) -> &ConfigSource {
        &self.rules
    }

    /// The mounts that were asked for, and at `/workspace` the clone or the current directory, unless something else is
    /// to be there.
    pub(crate) fn mounts(&self, asked: &[Mount]) -> anyhow::Result<Vec<Mount>> {
        let mut mounts = Vec::new();
        let taken = asked
            .iter()
            .any(|mount| mount.container_path.trim_end_matches('/') == WORKSPACE);
        match &self.clone {
            Some(_) if taken => {
                let message = format!("both a clone and a mount are to be at {WORKSPACE}");
                return Err(Hinted::new(message, "leave out --clone, or that --mount").into());
            }
            Some(clone) => mounts.push(Mount::read_write(clone.path(), WORKSPACE)),
            None if taken => {}
            None => mounts.push(Mount::read_write(here()?, WORKSPACE)),
        }
        mounts.extend_from_slice(asked);
        Ok(mounts)
    }

    /// Rules that what runs can exchange for others are no rules for the next run: that is said, and none of them may
    /// have a command run on the host.
    pub(crate) fn judge(
        &self,
        file: &SandboxFile,
        mounts: &[Mount],
        printer: &Printer,
    ) -> anyhow::Result<()> {
        // Nothing has run in a fresh clone.
        let fresh = |path: &Path| {
            let clone = self.clone.as_ref().map(GitClone::path);
            clone.is_some_and(|clone| path.starts_with(clone))
        };
        match &self.rules {
            ConfigSource::Commit { snapshot, .. }
                if self.rules.can_be_moved_by(mounts) && !fresh(snapshot.git_dir()) =>
            {
                let reference = snapshot.reference();
                let hint = "name the commit by its full hash, or a repository out of reach with --config-repo";
                if file.runs_command() {
                    let message = format!(
                        "`{reference}` can be moved from inside, and its settings would run a command on this host"
                    );
                    return Err(Hinted::new(message, hint).into());
                }
                printer.warning(format_args!(
                    "what runs here can move `{reference}`, and so choose the rules of the next run; {hint}"
                ));
                Ok(())
            }
            ConfigSource::Commit { .. } | ConfigSource::Worktree => Ok(()),
        }
    }

    /// From here on somebody's work may be in the clone.
    pub(crate) fn keep(&mut self) {
        if let Some(clone) = &mut self.clone {
            clone.keep();
        }
    }

    /// Says where the work is.
    pub(crate) fn name(&self, printer: &Printer) {
        if let Some(clone) = &self.clone {
            printer.say(format_args!("the clone is in {}", clone.path().display()));
        }
    }
}

async fn clone(from: &str, to: Option<&Path>, printer: &Printer) -> anyhow::Result<GitClone> {
    let source: CloneSource = from.parse().map_err(SandboxError::Git)?;
    printer.info(format_args!("cloning {source}"));
    if let Some(directory) = to {
        let clone = clone_workspace(&source, directory).await;
        return Ok(clone.map_err(SandboxError::Git)?);
    }
    let clones = state::clones()?;
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&clones)
        .with_context(|| format!("cannot make {}", clones.display()))?;
    let mut number = 1;
    loop {
        let directory = clones.join(format!("{}-{number}", source.name()));
        match clone_workspace(&source, &directory).await {
            Err(GitError::Occupied { .. }) => number += 1,
            other => return Ok(other.map_err(SandboxError::Git)?),
        }
    }
}

async fn rules(args: &Container, clone: Option<&GitClone>) -> anyhow::Result<ConfigSource> {
    match &args.config_ref {
        Some(reference) => rules_at(reference, args.config_repo.as_deref(), clone).await,
        None => Ok(ConfigSource::Worktree),
    }
}

/// Rules at a ref: of the repository that was named, of the clone, or of the one around the current directory.
pub(crate) async fn rules_at(
    reference: &str,
    repository: Option<&Path>,
    clone: Option<&GitClone>,
) -> anyhow::Result<ConfigSource> {
    let rules = match (repository, clone) {
        (Some(repository), _) => ConfigSource::repository(repository, reference).await,
        (None, Some(clone)) => ConfigSource::repository(clone.path(), reference).await,
        (None, None) => ConfigSource::around(&current_dir()?, reference).await,
    };
    Ok(rules.map_err(SandboxError::Git)?)
}

/// The current directory, unless that is too much to show.
fn here() -> anyhow::Result<PathBuf> {
    let here = current_dir()?;
    let home = env::var_os("HOME").map(PathBuf::from);
    if here == Path::new("/") || home.as_deref() == Some(&here) {
        let what = format!(
            "{} as a whole would be the command's workspace",
            here.display()
        );
        let hint = format!(
            "change into a project, or say `--mount {}:{WORKSPACE}` if you mean it",
            here.display()
        );
        return Err(Hinted::new(what, hint).into());
    }
    Ok(here)
}

fn current_dir() -> anyhow::Result<PathBuf> {
    env::current_dir().context("cannot tell the current directory")
}

const WORKSPACE: &str = "/workspace";
