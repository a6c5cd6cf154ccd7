//! A container that is held, and the commands that PID 1 runs in it on order.
//!
//! PID 1 makes the pipes of each command and sends the host's ends out, so that what a command writes
//! passes through nobody. One task reads all reports and hands each to whoever waits for it.

use std::{
    collections::HashMap,
    ffi::OsString,
    fmt,
    os::fd::OwnedFd,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use rustix::fs::{FileType, fstat};
use tokio::{
    io::AsyncWriteExt,
    net::unix::{OwnedReadHalf, OwnedWriteHalf},
    sync::{oneshot, watch},
    task::JoinHandle,
};

use crate::{
    Error, Report, door,
    keeper::{command, part, report, size, variables},
};

/// Holds a container in which commands are run on order. When it is dropped or closed, however that
/// comes about, the container ends.
#[derive(Debug)]
pub struct Holder {
    orders: Arc<tokio::sync::Mutex<Option<OwnedWriteHalf>>>,
    waiting: Arc<Waiting>,
    next: AtomicU32,
    reader: JoinHandle<()>,
}

/// A command to be run in a held container.
#[derive(Clone, Copy)]
pub struct Exec<'a> {
    /// The program and its arguments.
    pub command: &'a [OsString],
    /// Its own variables, over those of the container.
    pub environment: &'a [(String, String)],
    /// Where it starts in the container; where the container did, if `None`.
    pub directory: Option<&'a str>,
}

/// Tells the commands of one container apart.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ExecId(u32);

/// What came of an order to run a command.
#[derive(Debug)]
pub enum Begun {
    /// It runs.
    Running(Running),
    /// It could not be started; the system's error number says why.
    NotStarted {
        /// `ENOENT` and its like.
        errno: i32,
    },
    /// The directory that it should start in cannot be used.
    NoDirectory {
        /// `ENOENT` and its like.
        errno: i32,
    },
}

/// A command that runs in a held container. Its pipes are the host's to use and to close; a closed
/// standard input is the end of it.
#[derive(Debug)]
pub struct Running {
    /// What to call it in an order.
    pub id: ExecId,
    /// The pipe to its standard input.
    pub stdin: OwnedFd,
    /// The pipe from its standard output.
    pub stdout: OwnedFd,
    /// The pipe from its standard error.
    pub stderr: OwnedFd,
    /// How it ended, once it has.
    pub end: Ending,
}

/// The end of a command, to be waited for.
#[derive(Debug)]
pub struct Ending(oneshot::Receiver<Report>);

impl Ending {
    /// Waits until the command has ended; `None` when the container went first.
    ///
    /// May be dropped on the way and called again.
    pub async fn ended(&mut self) -> Option<Report> {
        (&mut self.0).await.ok()
    }
}

impl Holder {
    pub(crate) fn new(orders: OwnedWriteHalf, reports: OwnedReadHalf) -> Self {
        let waiting = Arc::new(Waiting::default());
        let reader = tokio::spawn(read(reports, Arc::clone(&waiting)));
        Self {
            orders: Arc::new(tokio::sync::Mutex::new(Some(orders))),
            waiting,
            next: AtomicU32::new(0),
            reader,
        }
    }

    /// Runs a command beside whatever runs already. When the returned future is dropped, the command
    /// may run all the same, with its pipes closed.
    ///
    /// # Errors
    ///
    /// When the container is gone, or goes before the command runs.
    pub async fn exec(&self, exec: Exec<'_>) -> Result<Begun, Error> {
        let mut parts = Vec::new();
        command(&mut parts, exec.command)?;
        variables(&mut parts, exec.environment)?;
        if let Some(directory) = exec.directory {
            part(&mut parts, b'd', &[directory.as_bytes()])?;
        }
        let id = ExecId(self.next.fetch_add(1, Ordering::Relaxed));
        let begins = self.waiting.add(id).ok_or_else(gone)?;
        let mut message = head(b'X', id, size(parts.len())?);
        message.extend(parts);
        self.order(message).await?;
        begins.await.map_err(|_| gone())
    }

    /// Sends a signal to a command's process group. One that has ended is none to signal, and no error.
    ///
    /// # Errors
    ///
    /// When the container is gone.
    pub async fn signal(&self, id: ExecId, number: u8) -> Result<(), Error> {
        self.order(head(b'S', id, [number, 0, 0, 0])).await
    }

    /// Sends a signal to the process group of every command that runs.
    ///
    /// # Errors
    ///
    /// When the container is gone.
    pub async fn signal_each(&self, number: u8) -> Result<(), Error> {
        for id in self.waiting.running() {
            self.signal(id, number).await?;
        }
        Ok(())
    }

    /// Kills a command, its process group and everything that descends from it. What it has detached, so
    /// that PID 1 is its parent, is the container's own and stays.
    ///
    /// # Errors
    ///
    /// When the container is gone.
    pub async fn kill(&self, id: ExecId) -> Result<(), Error> {
        self.order(head(b'K', id, [0; 4])).await
    }

    /// Kills every process of the container but PID 1, which goes on holding it.
    ///
    /// # Errors
    ///
    /// When the container is gone.
    pub async fn kill_all(&self) -> Result<(), Error> {
        self.order(head(b'A', ExecId(0), [0; 4])).await
    }

    /// Lets go: the container ends with whatever runs in it.
    pub async fn close(&self) {
        // Dropping this half shuts the connection down for writing, which is what PID 1 waits for.
        drop(self.orders.lock().await.take());
    }

    /// Whether the container has ended.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        *self.waiting.gone.borrow()
    }

    /// Returns once the container has ended.
    pub async fn gone(&self) {
        // The sender lives in `self`, so waiting cannot fail.
        drop(self.waiting.gone.subscribe().wait_for(|gone| *gone).await);
    }

    /// Sends an order whole, even if the caller is dropped halfway: the next one follows behind it.
    async fn order(&self, bytes: Vec<u8>) -> Result<(), Error> {
        let orders = Arc::clone(&self.orders);
        let sent = tokio::spawn(async move {
            let mut orders = orders.lock().await;
            let orders = orders.as_mut().ok_or_else(gone)?;
            orders.write_all(&bytes).await.map_err(Error::Connection)
        });
        sent.await.map_err(|_| gone())?
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// Who waits for a report.
#[derive(Debug)]
struct Waiting {
    /// `None` once the container is gone: nobody may begin to wait any more.
    commands: Mutex<Option<HashMap<ExecId, Waits>>>,
    gone: watch::Sender<bool>,
}

#[derive(Debug)]
enum Waits {
    ForStart(oneshot::Sender<Begun>),
    ForEnd(oneshot::Sender<Report>),
}

impl Default for Waiting {
    fn default() -> Self {
        Self {
            commands: Mutex::new(Some(HashMap::new())),
            gone: watch::Sender::new(false),
        }
    }
}

impl Waiting {
    /// `None` when the container is gone.
    fn add(&self, id: ExecId) -> Option<oneshot::Receiver<Begun>> {
        let (sender, receiver) = oneshot::channel();
        self.lock().as_mut()?.insert(id, Waits::ForStart(sender));
        Some(receiver)
    }

    fn running(&self) -> Vec<ExecId> {
        let commands = self.lock();
        commands.iter().flatten().map(|(id, _)| *id).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Option<HashMap<ExecId, Waits>>> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a report to whoever waits for it; `None` when it makes no sense.
    fn hand(&self, frame: Frame) -> Option<()> {
        let mut commands = self.lock();
        let commands = commands.as_mut()?;
        match (commands.remove(&frame.id)?, frame.kind) {
            (Waits::ForStart(starts), b'P') => {
                let (ends, end) = oneshot::channel();
                commands.insert(frame.id, Waits::ForEnd(ends));
                let [stdin, stdout, stderr] = pipes(frame.descriptors)?;
                // Whoever no longer waits has dropped the pipes, and the command learns of it.
                drop(starts.send(Begun::Running(Running {
                    id: frame.id,
                    stdin,
                    stdout,
                    stderr,
                    end: Ending(end),
                })));
            }
            (Waits::ForStart(starts), b'N') => {
                drop(starts.send(Begun::NotStarted { errno: frame.value }));
            }
            (Waits::ForStart(starts), b'D') => {
                drop(starts.send(Begun::NoDirectory { errno: frame.value }));
            }
            (Waits::ForEnd(ends), kind) => {
                // Whoever no longer waits does not care.
                let _ = ends.send(report(kind, frame.value, frame.kills)?);
            }
            (Waits::ForStart(_), _) => return None,
        }
        Some(())
    }

    /// Nobody waits in vain.
    fn end(&self) {
        drop(self.lock().take());
        self.gone.send_replace(true);
    }
}

/// One report about a command.
struct Frame {
    kind: u8,
    id: ExecId,
    value: i32,
    kills: u32,
    descriptors: Vec<OwnedFd>,
}

/// Hands out reports until there are no more, or until one makes no sense.
async fn read(reports: OwnedReadHalf, waiting: Arc<Waiting>) {
    while let Some(frame) = next(&reports).await {
        if waiting.hand(frame).is_none() {
            break;
        }
    }
    waiting.end();
}

/// The next report. Descriptors come with the first byte of theirs, and never with another's, because
/// no more is asked for than what is missing of one.
async fn next(reports: &OwnedReadHalf) -> Option<Frame> {
    let mut bytes = [0; FRAME];
    let mut descriptors = Vec::new();
    let mut filled = 0;
    while filled < FRAME {
        let (count, came) = door::receive(reports.as_ref(), &mut bytes[filled..])
            .await
            .ok()?;
        if count == 0 {
            return None;
        }
        filled += count;
        descriptors.extend(came);
    }
    let [kind, numbers @ ..] = bytes;
    let mut numbers = numbers.chunks_exact(4).flat_map(<[u8; 4]>::try_from);
    Some(Frame {
        kind,
        id: ExecId(u32::from_le_bytes(numbers.next()?)),
        value: i32::from_le_bytes(numbers.next()?),
        kills: u32::from_le_bytes(numbers.next()?),
        descriptors,
    })
}

/// Three pipes and nothing else.
fn pipes(descriptors: Vec<OwnedFd>) -> Option<[OwnedFd; 3]> {
    let is_pipe = |descriptor: &OwnedFd| {
        fstat(descriptor)
            .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Fifo)
    };
    let all = descriptors.iter().all(is_pipe);
    let pipes = descriptors.try_into().ok()?;
    all.then_some(pipes)
}

fn head(kind: u8, id: ExecId, size: [u8; 4]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend(id.0.to_le_bytes());
    bytes.extend(size);
    bytes
}

fn gone() -> Error {
    Error::Connection(std::io::ErrorKind::BrokenPipe.into())
}

impl fmt::Debug for Exec<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values of variables may be secrets, and arguments may hold prompts.
        f.debug_struct("Exec")
            .field("program", &self.command.first())
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

/// A kind and three numbers of four bytes.
const FRAME: usize = 13;
