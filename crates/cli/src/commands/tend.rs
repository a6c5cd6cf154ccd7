//! What is looked after while a command or agent runs: an allowlist that is edited, secrets that expire.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use anyhow::Context;
use cordon::{
    Allowlist, CommandTask, HostEnv, SandboxError, SandboxFile, Secret, Task,
    modes::SessionContainers,
};
use tokio::time::{Instant, sleep, sleep_until};

use crate::{commands::surroundings, printer::Printer};

/// Whatever runs.
#[derive(Clone, Copy)]
pub(crate) enum Running<'a> {
    Command(&'a CommandTask),
    Agent(&'a Task),
    Session(&'a SessionContainers),
}

impl Running<'_> {
    fn replace_allowlist(self, allowlist: Allowlist) {
        match self {
            Self::Command(task) => task.replace_allowlist(allowlist),
            Self::Agent(task) => task.replace_allowlist(allowlist),
            Self::Session(containers) => containers.replace_allowlist(allowlist),
        }
    }

    fn replace_secret(self, env_var: &str, value: Secret) -> Result<(), SandboxError> {
        match self {
            Self::Command(task) => task.replace_secret(env_var, value),
            Self::Agent(task) => task.replace_secret(env_var, value),
            Self::Session(containers) => containers.replace_secret(env_var, value),
        }
    }
}

/// What there is to look after.
pub(crate) struct Tend {
    pub(crate) watched: Option<Watched>,
    pub(crate) file: SandboxFile,
}

/// An allowlist that is read again whenever its file changes.
pub(crate) struct Watched {
    pub(crate) path: PathBuf,
    /// Hosts that are allowed beside those of the file.
    pub(crate) hosts: Vec<String>,
}

impl Tend {
    /// Goes on until it is dropped.
    pub(crate) async fn run(&self, running: Running<'_>, printer: &Printer) {
        tokio::join!(self.watch(running, printer), self.renew(running, printer));
        std::future::pending().await
    }

    async fn watch(&self, running: Running<'_>, printer: &Printer) {
        let Some(watched) = &self.watched else {
            return;
        };
        let mut seen = watched.changed();
        loop {
            sleep(LOOK_EVERY).await;
            let now = watched.changed();
            if now == seen {
                continue;
            }
            seen = now;
            match watched.read() {
                Ok(allowlist) => {
                    running.replace_allowlist(allowlist);
                    printer.info(format_args!("{} is in force", watched.path.display()));
                }
                Err(why) => printer.warning(format_args!(
                    "the allowlist is still the one before: {why:#}"
                )),
            }
        }
    }

    /// Looks each secret up again before its time is over.
    async fn renew(&self, running: Running<'_>, printer: &Printer) {
        let begun = Instant::now();
        let mut due: Vec<_> = self
            .file
            .expiring()
            .map(|(name, life)| (begun + early(life), name, life))
            .collect();
        while let Some(next) = due.iter_mut().min_by_key(|(at, ..)| *at) {
            let (at, name, life) = *next;
            sleep_until(at).await;
            next.0 = at + early(life);
            let renewed = match self.file.look_up(name, &HostEnv::current()).await {
                Ok(Some(value)) => running.replace_secret(name, value),
                Ok(None) => continue,
                Err(error) => Err(error.into()),
            };
            match renewed {
                Ok(()) => printer.info(format_args!("{name} has a fresh value")),
                Err(error) => printer.warning(format_args!("{name} keeps its value: {error}")),
            }
        }
    }
}

impl Watched {
    fn read(&self) -> anyhow::Result<Allowlist> {
        let text = fs::read_to_string(&self.path)
            .with_context(|| format!("cannot read the allowlist {}", self.path.display()))?;
        surroundings::allowlist(self, &text)
    }

    fn changed(&self) -> Option<(SystemTime, u64)> {
        let metadata = fs::metadata(&self.path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    }
}

/// A little before a value's time is over.
fn early(life: Duration) -> Duration {
    life.mul_f64(0.9).max(Duration::from_secs(1))
}

/// Often enough for somebody who saves a file and tries again.
const LOOK_EVERY: Duration = Duration::from_millis(300);
