//! The connection to PID 1 that keeps a container alive, and tells how its workload ended.

use std::{
    ffi::OsString,
    fmt,
    os::unix::{ffi::OsStrExt, process::ExitStatusExt},
    process::ExitStatus,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::Mutex,
};

use crate::{Error, Holder};

/// Holds the container. When it is dropped, however that comes about, the container ends.
#[derive(Debug)]
pub struct Keeper {
    orders: Mutex<OwnedWriteHalf>,
    reports: Mutex<OwnedReadHalf>,
}

/// What PID 1 is to start, once it has seen that the container is as it should be.
#[derive(Clone, Copy)]
pub struct Go<'a> {
    /// What is run first, in order; when one of it fails, that is the workload's end.
    pub before: &'a [Before],
    /// The program and its arguments.
    pub command: &'a [OsString],
    /// What is set over the image's own variables.
    pub environment: &'a [(String, String)],
    /// What must be found where; if one is not, nothing is started.
    pub mounts: &'a [Mounted],
}

/// What a mount must show in the container: the very file or directory that was judged on the host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mounted {
    /// Its path in the container.
    pub path: String,
    /// The number of its file system.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

/// A command that makes ready for the workload.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Before {
    /// It is run only if this file exists in the container.
    pub where_exists: String,
    /// The program and its arguments.
    pub command: Vec<String>,
}

/// What PID 1 said before it left.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Report {
    /// How the workload ended.
    pub ended: Ended,
    /// How often the kernel killed something in the container for want of memory.
    pub out_of_memory_kills: u32,
}

/// How a workload ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ended {
    /// It exited by itself, or a signal ended it.
    Status(ExitStatus),
    /// It could not be started; the system's error number says why.
    NotStarted {
        /// `ENOENT` and its like.
        errno: i32,
    },
    /// Nothing was started: one of the mounts is missing, or is not what was judged.
    MountMoved {
        /// Which one of [`Go::mounts`].
        index: usize,
    },
}

impl Keeper {
    pub(crate) fn new(stream: UnixStream) -> Self {
        let (reports, orders) = stream.into_split();
        Self {
            orders: Mutex::new(orders),
            reports: Mutex::new(reports),
        }
    }

    /// Lets the workload start.
    ///
    /// # Errors
    ///
    /// When the container is gone already.
    pub async fn go(&self, go: Go<'_>) -> Result<(), Error> {
        self.order(&go.message(b'G')?).await
    }

    /// Keeps the container with no workload, once what is `before` has been run; from then on it runs
    /// what it is ordered to, over the variables of `environment`. There is no command in such a `go`.
    ///
    /// # Errors
    ///
    /// When the container is gone already, or ends instead because a mount was moved or what is
    /// `before` failed.
    pub async fn hold(self, go: Go<'_>) -> Result<Holder, Error> {
        self.order(&go.message(b'H')?).await?;
        match self.next().await {
            Some((HOLDING, ..)) => {}
            said => {
                let report = said.and_then(|(kind, value, kills)| report(kind, value, kills));
                return Err(Error::NotHeld { report });
            }
        }
        Ok(Holder::new(
            self.orders.into_inner(),
            self.reports.into_inner(),
        ))
    }

    /// Sends a signal to the workload's process group.
    ///
    /// # Errors
    ///
    /// When the container is gone already.
    pub async fn signal(&self, number: u8) -> Result<(), Error> {
        self.order(&[b'S', number]).await
    }

    /// Kills every process of the container but PID 1, which then reports and leaves.
    ///
    /// # Errors
    ///
    /// When the container is gone already.
    pub async fn kill(&self) -> Result<(), Error> {
        self.order(&[b'K', 0]).await
    }

    /// Waits for PID 1's report; `None` when it went without one, because somebody killed it.
    pub async fn ended(&self) -> Option<Report> {
        let (kind, value, kills) = self.next().await?;
        report(kind, value, kills)
    }

    async fn next(&self) -> Option<(u8, i32, u32)> {
        let mut reports = self.reports.lock().await;
        let kind = reports.read_u8().await.ok()?;
        let value = reports.read_i32_le().await.ok()?;
        Some((kind, value, reports.read_u32_le().await.ok()?))
    }

    async fn order(&self, bytes: &[u8]) -> Result<(), Error> {
        let mut orders = self.orders.lock().await;
        orders.write_all(bytes).await.map_err(Error::Connection)
    }
}

impl Go<'_> {
    fn message(&self, kind: u8) -> Result<Vec<u8>, Error> {
        let mut parts = Vec::new();
        for mounted in self.mounts {
            let numbers = [mounted.device.to_le_bytes(), mounted.inode.to_le_bytes()];
            part(
                &mut parts,
                b'm',
                &[&numbers.concat(), mounted.path.as_bytes()],
            )?;
        }
        for step in self.before {
            part(&mut parts, b's', &[step.where_exists.as_bytes()])?;
            for argument in &step.command {
                part(&mut parts, b'a', &[argument.as_bytes()])?;
            }
        }
        if !self.command.is_empty() {
            command(&mut parts, self.command)?;
        }
        variables(&mut parts, self.environment)?;
        let mut message = vec![kind];
        message.extend(size(parts.len())?);
        message.extend(parts);
        Ok(message)
    }
}

/// What one of PID 1's reports means; `None` when it means nothing.
pub(crate) fn report(kind: u8, value: i32, out_of_memory_kills: u32) -> Option<Report> {
    let ended = match kind {
        b'E' => Ended::Status(ExitStatus::from_raw(value << 8)),
        b'S' => Ended::Status(ExitStatus::from_raw(value)),
        b'N' => Ended::NotStarted { errno: value },
        b'M' => Ended::MountMoved {
            index: usize::try_from(value).ok()?,
        },
        _ => return None,
    };
    Some(Report {
        ended,
        out_of_memory_kills,
    })
}

impl fmt::Debug for Go<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values of variables may be secrets, and arguments may hold prompts.
        f.debug_struct("Go")
            .field("program", &self.command.first())
            .field("mounts", &self.mounts)
            .finish_non_exhaustive()
    }
}

/// Appends a command that is always run.
pub(crate) fn command(parts: &mut Vec<u8>, command: &[OsString]) -> Result<(), Error> {
    part(parts, b's', &[])?;
    for argument in command {
        part(parts, b'a', &[argument.as_bytes()])?;
    }
    Ok(())
}

/// Appends an environment.
pub(crate) fn variables(
    parts: &mut Vec<u8>,
    environment: &[(String, String)],
) -> Result<(), Error> {
    for (name, value) in environment {
        part(parts, b'e', &[name.as_bytes(), b"=", value.as_bytes()])?;
    }
    Ok(())
}

/// Appends one part of an order: its tag, its length, its bytes.
pub(crate) fn part(parts: &mut Vec<u8>, tag: u8, pieces: &[&[u8]]) -> Result<(), Error> {
    parts.push(tag);
    parts.extend(size(pieces.iter().map(|piece| piece.len()).sum())?);
    for piece in pieces {
        parts.extend_from_slice(piece);
    }
    Ok(())
}

pub(crate) fn size(length: usize) -> Result<[u8; 4], Error> {
    match u32::try_from(length) {
        Ok(length) => Ok(length.to_le_bytes()),
        Err(_) => Err(Error::TooLarge),
    }
}

/// PID 1 holds the container.
const HOLDING: u8 = b'H';
