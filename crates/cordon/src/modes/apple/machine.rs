//! One virtual machine from its start to its verified end.
//!
//! The program stays in the foreground and holds the machine's standard input, which is ours: when it
//! closes, because it was closed or because this process died however it did, the machine ends and the
//! program removes it.

use std::{
    process::Stdio,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use cordon_engine::process::{self, Group, Streams};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::{ChildStdin, ChildStdout},
    sync::watch,
    task::JoinHandle,
    time::timeout,
};

use super::{
    AppleError,
    arguments::Run,
    client::{Client, Listed},
};
use crate::{modes::AppleNetwork, shield::Shield};

/// A virtual machine that runs, or has run.
#[derive(Debug)]
pub(super) struct Machine {
    remains: Remains,
    keeper: Mutex<Option<Keeper>>,
    /// How many commands run in it.
    pub(super) busy: watch::Sender<usize>,
    /// Kept as long as the machine is.
    _shield: Shield,
}

/// What keeps a machine alive.
#[derive(Debug)]
struct Keeper {
    program: Group,
    words: JoinHandle<std::io::Result<String>>,
    _stdin: ChildStdin,
    _stdout: ChildStdout,
}

impl Machine {
    /// Starts a machine and returns once it is up and as it was asked for.
    pub(super) async fn start(
        client: &Client,
        run: &Run<'_>,
        shield: Shield,
        limit: Duration,
    ) -> Result<Self, AppleError> {
        let arguments = run.arguments()?;
        let streams = Streams {
            stdin: Stdio::piped(),
            stdout: Stdio::piped(),
            stderr: Stdio::piped(),
        };
        let mut program = client.call("run").args(arguments).spawn_group(streams)?;
        let remains = Remains {
            client: client.clone(),
            name: run.name.to_owned(),
            removed: AtomicBool::new(false),
        };
        let child = program.child();
        let words = tokio::spawn(process::tail(child.stderr.take(), WORDS_MAX));
        let (Some(stdin), Some(mut stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(AppleError::NotStarted {
                said: String::new(),
            });
        };
        let up = timeout(limit, says(&mut stdout, run.marker)).await;
        let machine = Self {
            remains,
            keeper: Mutex::new(Some(Keeper {
                program,
                words,
                _stdin: stdin,
                _stdout: stdout,
            })),
            busy: watch::Sender::new(0),
            _shield: shield,
        };
        let fit = match up {
            Ok(true) => machine.verify(run.network).await,
            Ok(false) => Err(AppleError::NotStarted {
                said: machine.last_words().await,
            }),
            Err(_) => Err(AppleError::NotStarted {
                said: format!("nothing within {} s", limit.as_secs()),
            }),
        };
        match fit {
            Ok(()) => Ok(machine),
            Err(error) => {
                // Why it cannot be used matters more than what could not be removed; that is found by the
                // next sweep.
                drop(machine.end().await);
                Err(error)
            }
        }
    }

    /// Whether the machine has no network, where it is to have none: not by what was asked for, but by
    /// what the program says it has.
    async fn verify(&self, network: AppleNetwork) -> Result<(), AppleError> {
        let listed = self.remains.client.look_at(self.name()).await?;
        let Some(listed) = listed.filter(Listed::is_running) else {
            return Err(AppleError::NotStarted {
                said: "it is not among the containers that run".to_owned(),
            });
        };
        let networks = match (network, listed.networks()) {
            (AppleNetwork::Unrestricted, _) => return Ok(()),
            (AppleNetwork::None, Some(networks)) if networks.is_empty() => return Ok(()),
            (AppleNetwork::None, Some(networks)) => networks,
            (AppleNetwork::None, None) => vec!["an unknown network".to_owned()],
        };
        Err(AppleError::NetworkNotCut {
            container: self.name().to_owned(),
            networks,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.remains.name
    }

    /// Whether the program still keeps it.
    pub(super) fn is_kept(&self) -> bool {
        match &mut *self.keeper() {
            Some(keeper) => matches!(keeper.program.child().try_wait(), Ok(None)),
            None => false,
        }
    }

    /// Whether it runs, by what the program lists; one that does not is not kept any longer.
    pub(super) async fn is_up(&self) -> Result<bool, AppleError> {
        let listed = self.remains.client.look_at(self.name()).await?;
        let up = self.is_kept() && listed.is_some_and(|listed| listed.is_running());
        if !up {
            self.let_go();
        }
        Ok(up)
    }

    /// Keeps it no longer: it ends by itself, some time.
    pub(super) fn let_go(&self) {
        drop(self.keeper().take());
    }

    /// What the program said last, when it has ended or does so now.
    pub(super) async fn last_words(&self) -> String {
        let Some(mut keeper) = self.keeper().take() else {
            return String::new();
        };
        drop(timeout(WORDS_TIME, keeper.program.wait()).await);
        match timeout(WORDS_TIME, keeper.words).await {
            Ok(Ok(Ok(words))) => words.trim().to_owned(),
            _ => String::new(),
        }
    }

    /// Ends and removes it, and returns once it is gone.
    pub(super) async fn end(&self) -> Result<(), AppleError> {
        self.let_go();
        self.remains.client.remove(self.name()).await?;
        self.remains.removed.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn keeper(&self) -> MutexGuard<'_, Option<Keeper>> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a start leaves unless it is removed.
#[derive(Debug)]
struct Remains {
    client: Client,
    name: String,
    removed: AtomicBool,
}

impl Drop for Remains {
    /// Nobody has waited for the end; the program may have been killed between making the container and
    /// starting it, and does not remove it then.
    fn drop(&mut self) {
        if self.removed.load(Ordering::Relaxed) {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            // The next sweep finds it, and its owner dead.
            return;
        };
        let (client, name) = (self.client.clone(), std::mem::take(&mut self.name));
        runtime.spawn(async move {
            if let Err(error) = client.remove(&name).await {
                tracing::warn!(%error, "a container is left");
            }
        });
    }
}

/// Whether a stream comes to a line with that word.
async fn says(stream: &mut (impl AsyncRead + Unpin), word: &str) -> bool {
    let mut heard = Vec::new();
    let mut chunk = [0; 1024];
    while let Ok(size @ 1..) = stream.read(&mut chunk).await {
        heard.extend_from_slice(&chunk[..size]);
        let mut lines = heard.split(|byte| *byte == b'\n');
        if lines.any(|line| line == word.as_bytes()) {
            return true;
        }
        if heard.len() > GREETING_MAX {
            return false;
        }
    }
    false
}

/// What a program may say before its machine is up.
const GREETING_MAX: usize = 64 << 10;

const WORDS_MAX: usize = 8 << 10;

const WORDS_TIME: Duration = Duration::from_secs(5);
