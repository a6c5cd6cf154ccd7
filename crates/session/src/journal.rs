//! `events.jsonl`: every event of every reply, one line each, replies parted by a blank line.
//!
//! Reading needs no lock. A line that a kill has torn is not an event, and is skipped.

use std::path::{Path, PathBuf};

use cordon_agents::{Agent, Line, MAX_LINE_BYTES, StreamEvent, Transcript};

use crate::{
    Error,
    files::io_error,
    tail::{complete_lines, remainder},
};

/// Read access to a context's events.
#[derive(Clone, Debug)]
pub struct Journal {
    path: PathBuf,
}

/// What has come since an offset.
#[derive(Clone, Debug, PartialEq)]
pub struct Tail<T> {
    /// The new items.
    pub items: Vec<T>,
    /// Where to go on from.
    pub offset: u64,
}

impl Journal {
    /// The journal in this file, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All events, by reply. Replies without events are left out.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn read_all(&self) -> Result<Vec<Vec<StreamEvent>>, Error> {
        let mut replies: Vec<Vec<StreamEvent>> = Vec::new();
        let mut fresh = true;
        self.scan(Range::ALL, |entry| {
            match entry {
                Entry::Boundary => fresh = true,
                Entry::Event(event) if fresh => {
                    fresh = false;
                    replies.push(vec![*event]);
                }
                Entry::Event(event) => {
                    if let Some(reply) = replies.last_mut() {
                        reply.push(*event);
                    }
                }
            }
            Scan::GoOn
        })?;
        Ok(replies)
    }

    /// The events of the reply at `index`, counted as [`read_all`](Self::read_all) does; empty if
    /// there is none.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn read_reply(&self, index: usize) -> Result<Vec<StreamEvent>, Error> {
        let mut events = Vec::new();
        let (mut number, mut fresh) = (0, true);
        self.scan(Range::ALL, |entry| match entry {
            Entry::Boundary => {
                fresh = true;
                Scan::GoOn
            }
            Entry::Event(event) => {
                number += usize::from(std::mem::take(&mut fresh));
                if number == index + 1 {
                    events.push(*event);
                }
                if number > index + 1 {
                    Scan::Stop
                } else {
                    Scan::GoOn
                }
            }
        })?;
        Ok(events)
    }

    /// The events that were completed since `offset`, a bounded number of bytes at a time.
    ///
    /// A line that is still being written is left for the next call. An empty answer means that
    /// there is nothing new.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn tail(&self, offset: u64) -> Result<Tail<StreamEvent>, Error> {
        let mut items = Vec::new();
        let mut at = offset;
        // A piece may hold nothing but blank or torn lines.
        loop {
            let next = self.lines(at, |_, entry| {
                if let Entry::Event(event) = entry {
                    items.push(*event);
                }
            })?;
            if next == at || !items.is_empty() {
                return Ok(Tail {
                    items,
                    offset: next,
                });
            }
            at = next;
        }
    }

    /// Goes on asking from `offset`.
    #[must_use]
    pub fn follow(&self, offset: u64) -> Follower {
        Follower {
            journal: self.clone(),
            offset,
        }
    }

    /// The events between two offsets, which are those of one reply.
    pub(crate) fn read_range(&self, range: Range) -> Result<Vec<StreamEvent>, Error> {
        let mut events = Vec::new();
        self.scan(range, |entry| {
            if let Entry::Event(event) = entry {
                events.push(*event);
            }
            Scan::GoOn
        })?;
        Ok(events)
    }

    /// The session that the reply in this range names, its result before its start.
    pub(crate) fn session_id_in(&self, range: Range) -> Result<Option<String>, Error> {
        let mut transcript = Transcript::new(Agent::Claude);
        self.scan(range, |entry| {
            if let Entry::Event(event) = entry {
                transcript.push_event(&event);
            }
            Scan::GoOn
        })?;
        Ok(transcript.session_id().map(str::to_owned))
    }

    /// The session that the newest reply names which names one.
    pub(crate) fn last_session_id(&self) -> Result<Option<String>, Error> {
        let mut newest = None;
        let mut transcript = Transcript::new(Agent::Claude);
        self.scan(Range::ALL, |entry| {
            match entry {
                Entry::Boundary => transcript = Transcript::new(Agent::Claude),
                Entry::Event(event) => transcript.push_event(&event),
            }
            if let Some(id) = transcript.session_id() {
                newest = Some(id.to_owned());
            }
            Scan::GoOn
        })?;
        Ok(newest)
    }

    fn scan(&self, range: Range, mut each: impl FnMut(Entry) -> Scan) -> Result<(), Error> {
        let mut at = range.start;
        let mut stopped = false;
        loop {
            let next = self.lines(at, |offset, entry| {
                stopped = stopped || range.is_before(offset) || matches!(each(entry), Scan::Stop);
            })?;
            if stopped {
                return Ok(());
            }
            if next == at {
                break;
            }
            at = next;
        }
        if !range.is_before(at)
            && let Some(event) = self.unended(at)?
        {
            each(Entry::Event(Box::new(event)));
        }
        Ok(())
    }

    /// The last line may be whole but for its LF, if a kill came between the two.
    fn unended(&self, offset: u64) -> Result<Option<StreamEvent>, Error> {
        let bytes = remainder(&self.path, offset, MAX_JOURNAL_LINE)
            .map_err(|source| io_error("read", &self.path, source))?;
        Ok(StreamEvent::parse_any(&String::from_utf8_lossy(&bytes)))
    }

    fn lines(&self, offset: u64, mut each: impl FnMut(u64, Entry)) -> Result<u64, Error> {
        complete_lines(
            &self.path,
            offset,
            MAX_JOURNAL_LINE,
            |offset, line| match line {
                Line::Whole(line) if line.trim_ascii().is_empty() => each(offset, Entry::Boundary),
                Line::Whole(line) => {
                    let text = String::from_utf8_lossy(line);
                    if let Some(event) = StreamEvent::parse_any(&text) {
                        each(offset, Entry::Event(Box::new(event)));
                    }
                }
                Line::Oversized(head) => {
                    let note = StreamEvent::oversized(head, MAX_JOURNAL_LINE);
                    each(offset, Entry::Event(Box::new(note)));
                }
            },
        )
        .map_err(|source| io_error("read", &self.path, source))
    }
}

/// Reads a journal as it grows.
#[derive(Clone, Debug)]
pub struct Follower {
    journal: Journal,
    offset: u64,
}

impl Follower {
    /// The events that have been completed since the last call; empty if there are none yet.
    ///
    /// # Errors
    ///
    /// When the file cannot be read; the next call goes on where this one began.
    pub fn poll(&mut self) -> Result<Vec<StreamEvent>, Error> {
        let tail = self.journal.tail(self.offset)?;
        self.offset = tail.offset;
        Ok(tail.items)
    }

    /// How far it has come.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

/// A part of the journal, open at its end where none is set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) start: u64,
    pub(crate) end: Option<u64>,
}

impl Range {
    const ALL: Self = Self {
        start: 0,
        end: None,
    };

    /// Whether it is over where this offset begins.
    fn is_before(self, offset: u64) -> bool {
        self.end.is_some_and(|end| offset >= end)
    }
}

/// A line of the journal that means something.
enum Entry {
    Event(Box<StreamEvent>),
    Boundary,
}

enum Scan {
    GoOn,
    Stop,
}

/// Redaction may make a line a little longer than it was on the agent's stdout.
const MAX_JOURNAL_LINE: usize = 2 * MAX_LINE_BYTES;
