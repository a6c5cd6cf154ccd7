//! Writes records to the two log files and to the caller's function.
//!
//! Runs on its own thread. A disk that refuses a write costs the records of that write, which are
//! counted and reported; it never stops the traffic.

use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};

use super::{
    json,
    record::{Event, Record, Verdict},
    text,
};
use crate::{Error, credentials::Secrets};

/// Where records go.
#[derive(Clone, Debug, Default)]
pub struct LogTarget {
    /// Lines for people, usually `network-sandbox.log`.
    pub text: Option<PathBuf>,
    /// JSON lines for programs, usually `network-sandbox.jsonl`.
    pub json: Option<PathBuf>,
}

impl LogTarget {
    /// Both files under their usual names.
    pub fn in_directory(directory: &Path) -> Self {
        Self {
            text: Some(directory.join("network-sandbox.log")),
            json: Some(directory.join("network-sandbox.jsonl")),
        }
    }
}

/// Called with every record, in order, on the writer's thread.
pub type OnRecord = Arc<dyn Fn(&Record) + Send + Sync>;

/// What a proxy did in its life.
#[derive(Debug, Default)]
pub struct Summary {
    /// Requests that went upstream.
    pub allowed: u64,
    /// Requests that were refused, alarms included.
    pub blocked: u64,
    /// Requests that were refused because they carried a surrogate where none belongs.
    pub alarms: u64,
    /// Requests that were admitted and failed upstream.
    pub failed: u64,
    /// DNS questions.
    pub dns_questions: u64,
    /// Records that a log file did not take.
    pub lost_records: u64,
    /// The first failure of a log file.
    pub log_error: Option<Error>,
}

/// The writer's thread and the way to hear its last word.
pub(crate) struct Writer {
    summary: oneshot::Receiver<Summary>,
}

impl Writer {
    /// Opens the files and starts the thread. The thread ends when every sender is gone.
    pub(crate) fn start(
        target: &LogTarget,
        rotate_at: u64,
        on_record: Option<OnRecord>,
        secrets: Secrets,
        records: mpsc::Receiver<Record>,
    ) -> Result<Self, Error> {
        let open = |path: &Option<PathBuf>| {
            path.as_ref()
                .map(|path| LogFile::open(path, rotate_at))
                .transpose()
        };
        let mut state = State {
            text: open(&target.text)?,
            json: open(&target.json)?,
            on_record,
            secrets,
            summary: Summary::default(),
            unreported: 0,
        };
        let (done, summary) = oneshot::channel();
        thread::Builder::new()
            .name("cordon-netlog".to_owned())
            .spawn(move || {
                state.run(records);
                // Nobody may be left to hear it.
                let _ = done.send(state.summary);
            })
            .map_err(|source| Error::LogThread { source })?;
        Ok(Self { summary })
    }

    /// Waits until everything is written.
    pub(crate) async fn finish(self) -> Summary {
        self.summary.await.unwrap_or_default()
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

struct State {
    text: Option<LogFile>,
    json: Option<LogFile>,
    on_record: Option<OnRecord>,
    secrets: Secrets,
    summary: Summary,
    /// Lost records that no line speaks of yet.
    unreported: u64,
}

impl State {
    fn run(&mut self, mut records: mpsc::Receiver<Record>) {
        let mut batch = Vec::with_capacity(BATCH);
        while let Some(first) = records.blocking_recv() {
            batch.push(first);
            self.drain(&mut records, &mut batch);
            // A busy proxy then pays for one wake-up per pause and not for one per record.
            thread::sleep(PAUSE);
            self.drain(&mut records, &mut batch);
            self.write(&mut batch);
        }
    }

    fn drain(&mut self, records: &mut mpsc::Receiver<Record>, batch: &mut Vec<Record>) {
        while let Ok(record) = records.try_recv() {
            batch.push(record);
            if batch.len() == BATCH {
                self.write(batch);
            }
        }
    }

    fn write(&mut self, batch: &mut Vec<Record>) {
        if let Some(redactor) = self.secrets.redactor() {
            batch.iter_mut().for_each(|record| record.redact(&redactor));
        }
        if self.unreported > 0 {
            let event = Event::Lost {
                count: self.unreported,
            };
            let lost = Record {
                id: 0,
                time: Timestamp::now(),
                event,
            };
            if self.write_files(std::slice::from_ref(&lost)).is_ok() {
                self.unreported = 0;
            }
        }
        if let Err(error) = self.write_files(batch) {
            let count = batch.len() as u64;
            self.summary.lost_records += count;
            self.unreported += count;
            self.summary.log_error.get_or_insert(error);
        }
        for record in batch.drain(..) {
            self.count(&record);
            if let Some(on_record) = &self.on_record {
                on_record(&record);
            }
        }
    }

    fn write_files(&mut self, batch: &[Record]) -> Result<(), Error> {
        let mut result = Ok(());
        if let Some(file) = &mut self.text {
            let mut lines = String::new();
            batch
                .iter()
                .for_each(|record| text::append(&mut lines, record));
            result = file.append(lines.as_bytes());
        }
        if let Some(file) = &mut self.json {
            let mut lines = Vec::new();
            batch
                .iter()
                .for_each(|record| json::append(&mut lines, record));
            let appended = file.append(&lines);
            result = result.and(appended);
        }
        result
    }

    fn count(&mut self, record: &Record) {
        match &record.event {
            Event::Request(request) => match request.verdict {
                Verdict::Allowed { .. } => self.summary.allowed += 1,
                Verdict::Blocked { .. } => self.summary.blocked += 1,
                Verdict::Alarm { .. } => {
                    self.summary.blocked += 1;
                    self.summary.alarms += 1;
                }
                Verdict::Failed { .. } => self.summary.failed += 1,
            },
            Event::Dns(_) => self.summary.dns_questions += 1,
            Event::DnsDropped { count } => self.summary.dns_questions += count,
            Event::Start | Event::Handshake { .. } | Event::Lost { .. } => {}
        }
    }
}

/// One log file. Holds whole lines only, whatever the disk does.
struct LogFile {
    path: PathBuf,
    file: File,
    length: u64,
    rotate_at: u64,
}

impl LogFile {
    fn open(path: &Path, rotate_at: u64) -> Result<Self, Error> {
        let failed = |source| Error::Log {
            path: path.to_owned(),
            source,
        };
        let mut file = append_to(path).map_err(failed)?;
        let mut length = file.metadata().map_err(failed)?.len();
        if length > 0 && !ends_with_line_feed(path).map_err(failed)? {
            // An earlier process died in mid-line; its fragment must not swallow our first line.
            file.write_all(b"\n").map_err(failed)?;
            length += 1;
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            length,
            rotate_at,
        })
    }

    fn append(&mut self, lines: &[u8]) -> Result<(), Error> {
        self.try_append(lines).map_err(|source| Error::Log {
            path: self.path.clone(),
            source,
        })
    }

    fn try_append(&mut self, mut lines: &[u8]) -> io::Result<()> {
        while !lines.is_empty() {
            let room =
                usize::try_from(self.rotate_at.saturating_sub(self.length)).unwrap_or(usize::MAX);
            let (now, later) = lines.split_at(whole_lines(lines, room));
            if now.is_empty() && self.length > 0 {
                self.rotate()?;
                continue;
            }
            // A line that is longer than a file may be gets a file of its own.
            let (now, later) = if now.is_empty() {
                lines.split_at(first_line(lines))
            } else {
                (now, later)
            };
            self.write(now)?;
            lines = later;
        }
        Ok(())
    }

    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all(lines) {
            // Half a line would run into the next one.
            self.file.set_len(self.length)?;
            return Err(error);
        }
        self.length += lines.len() as u64;
        Ok(())
    }

    /// Keeps one predecessor, so a file pair takes at most twice the limit.
    fn rotate(&mut self) -> io::Result<()> {
        let mut older = self.path.clone().into_os_string();
        older.push(".1");
        fs::rename(&self.path, older)?;
        self.file = append_to(&self.path)?;
        self.length = 0;
        Ok(())
    }
}

/// How much of the lines fits into the room without cutting one.
fn whole_lines(lines: &[u8], room: usize) -> usize {
    let fitting = &lines[..lines.len().min(room)];
    fitting
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |end| end + 1)
}

fn first_line(lines: &[u8]) -> usize {
    lines
        .iter()
        .position(|&byte| byte == b'\n')
        .map_or(lines.len(), |end| end + 1)
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

fn ends_with_line_feed(path: &Path) -> io::Result<bool> {
    use std::io::{Read, Seek, SeekFrom};

    let mut file = File::open(path)?;
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// Records that go to the disk in one write.
const BATCH: usize = 256;

/// Live lines may be this late.
const PAUSE: Duration = Duration::from_millis(2);
