//! What the program prints, read by its keeper.

use data_encoding::BASE64;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader},
    sync::mpsc,
};

use crate::{
    Error, LogTarget, OnRecord, Record, Settings, Summary, credentials::Secrets, log::Writer,
};

use super::{LINE_MAX, READY, RELAYED};

/// The keeper's end: writes the log that the proxy would have written, had it served in this process.
pub struct Answers<R> {
    lines: BufReader<R>,
    sender: mpsc::Sender<Record>,
    relayed: Option<mpsc::Sender<Vec<u8>>>,
    writer: Writer,
}

impl<R: AsyncRead + Unpin> Answers<R> {
    /// Opens the log that `settings` name, and reads from the program's standard output.
    pub fn new(stdout: R, settings: &Settings) -> Result<Self, Error> {
        let (sender, records) = mpsc::channel(QUEUE);
        let target: &LogTarget = &settings.log;
        let on_record: Option<OnRecord> = settings.on_record.clone();
        // The program has taken real values out already; whatever comes is looked at once more.
        let secrets = Secrets::new(settings.replacements.clone());
        let bytes = settings.limits.log_bytes;
        let writer = Writer::start(target, bytes, on_record, secrets, records)?;
        Ok(Self {
            lines: BufReader::new(stdout),
            sender,
            relayed: None,
            writer,
        })
    }

    /// Hands on what PID 1 says; no bytes at all are the end of it.
    #[must_use]
    pub fn relaying(self, to: mpsc::Sender<Vec<u8>>) -> Self {
        Self {
            relayed: Some(to),
            ..self
        }
    }

    /// Returns once the program serves all four sockets; false when it ends before that.
    pub async fn ready(&mut self) -> Result<bool, Error> {
        while let Some(line) = self.line().await? {
            if line == READY {
                return Ok(true);
            }
            self.take(&line).await?;
        }
        Ok(false)
    }

    /// Takes records until the program ends, and writes the last of them.
    pub async fn end(mut self) -> Result<Summary, Error> {
        let mut result = Ok(());
        while result.is_ok() {
            result = match self.line().await {
                Ok(Some(line)) => self.take(&line).await,
                Ok(None) => break,
                Err(error) => Err(error),
            };
        }
        drop(self.sender);
        let mut summary = self.writer.finish().await;
        if let Err(error) = result {
            summary.lost_records += 1;
            summary.log_error.get_or_insert(error);
        }
        Ok(summary)
    }

    async fn take(&self, line: &[u8]) -> Result<(), Error> {
        if let Some((&RELAYED, text)) = line.split_first() {
            let bytes = BASE64.decode(text.trim_ascii_end());
            let bytes = bytes.map_err(|_| Error::BadRelay)?;
            if let Some(relayed) = &self.relayed {
                // Whoever no longer listens has let the container go.
                drop(relayed.send(bytes).await);
            }
            return Ok(());
        }
        let record = Record::from_line(line).map_err(|source| Error::Answer { source })?;
        // The writer outlives its last sender.
        drop(self.sender.send(record).await);
        Ok(())
    }

    async fn line(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let mut line = Vec::new();
        let mut limited = (&mut self.lines).take(LINE_MAX);
        limited
            .read_until(b'\n', &mut line)
            .await
            .map_err(Error::Stream)?;
        match line.last() {
            None => Ok(None),
            Some(b'\n') => Ok(Some(line)),
            Some(_) if line.len() as u64 == LINE_MAX => Err(Error::LineTooLong),
            // It was killed in mid-line.
            Some(_) => Ok(None),
        }
    }
}

impl<R> std::fmt::Debug for Answers<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answers").finish_non_exhaustive()
    }
}

/// Records on their way to the disk.
const QUEUE: usize = 256;
