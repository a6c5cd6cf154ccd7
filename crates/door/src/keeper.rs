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

use crate::Error;

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
        let mut parts = Vec::new();
        for mounted in go.mounts {
            let numbers = [mounted.device.to_le_bytes(), mounted.inode.to_le_bytes()];
            part(
                &mut parts,
                b'm',
                &[&numbers.concat(), mounted.path.as_bytes()],
            )?;
        }
        for step in go.before {
            part(&mut parts, b's', &[step.where_exists.as_bytes()])?;
            for argument in &step.command {
                part(&mut parts, b'a', &[argument.as_bytes()])?;
            }
        }
        part(&mut parts, b's', &[])?;
        for argument in go.command {
            part(&mut parts, b'a', &[argument.as_bytes()])?;
        }
        for (name, value) in go.environment {
            part(&mut parts, b'e', &[name.as_bytes(), b"=", value.as_bytes()])?;
        }
        let mut message = vec![b'G'];
        message.extend(size(parts.len())?);
        message.extend(parts);
        self.order(&message).await
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
        let mut bytes = [0; 9];
        self.reports
            .lock()
            .await
            .read_exact(&mut bytes)
            .await
            .ok()?;
        let (kind, numbers) = bytes.split_first()?;
        let (value, kills) = numbers.split_at_checked(4)?;
        let value = i32::from_le_bytes(value.try_into().ok()?);
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
            out_of_memory_kills: u32::from_le_bytes(kills.try_into().ok()?),
        })
    }

    async fn order(&self, bytes: &[u8]) -> Result<(), Error> {
        let mut orders = self.orders.lock().await;
        orders.write_all(bytes).await.map_err(Error::Connection)
    }
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

/// Appends one part of the order to go: its tag, its length, its bytes.
fn part(parts: &mut Vec<u8>, tag: u8, pieces: &[&[u8]]) -> Result<(), Error> {
    parts.push(tag);
    parts.extend(size(pieces.iter().map(|piece| piece.len()).sum())?);
    for piece in pieces {
        parts.extend_from_slice(piece);
    }
    Ok(())
}

fn size(length: usize) -> Result<[u8; 4], Error> {
    match u32::try_from(length) {
        Ok(length) => Ok(length.to_le_bytes()),
        Err(_) => Err(Error::TooLarge),
    }
}
