//! A context's directory: where its files are, and questions about them that need no lock.

use std::path::{Path, PathBuf};

use cordon_agents::StreamEvent;
use cordon_secrets::Redactor;
use serde_json::Value;

use crate::{
    Error, Journal, ReplyUpdate, SCHEMA_VERSION, SessionMetadata, SessionReply, Warning, Writer,
    files, journal::Range, legacy::Legacy, lock::Lock, metadata,
};

/// Persistent state of one execution context.
#[derive(Clone, Debug)]
pub struct SessionStore {
    dir: PathBuf,
    redactor: Option<Redactor>,
}

/// What is known of a context.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    /// The context; none if nothing was ever recorded, or if it cannot be read.
    pub metadata: Option<SessionMetadata>,
    /// What a person should hear of.
    pub warnings: Vec<Warning>,
}

impl SessionStore {
    /// The context in this directory, which need not exist.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            redactor: None,
        }
    }

    /// The same, with everything that is written redacted first.
    #[must_use]
    pub fn with_redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = Some(redactor);
        self
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What is known of the context. Changes nothing on disk.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is of a newer version. A file that is torn or foreign is
    /// a warning.
    pub fn load(&self) -> Result<Loaded, Error> {
        Ok(match self.read()? {
            Found::Nothing => Loaded::default(),
            Found::Current(metadata) => Loaded {
                metadata: Some(metadata),
                warnings: Vec::new(),
            },
            Found::Old { legacy, .. } => Loaded {
                metadata: Some(legacy.metadata),
                warnings: Vec::new(),
            },
            Found::Broken { path, reason } => Loaded {
                metadata: None,
                warnings: vec![Warning::Unreadable { path, reason }],
            },
        })
    }

    /// The session to resume: the newest that a reply names.
    ///
    /// A reply that was interrupted before it could be recorded is looked up in the journal.
    ///
    /// # Errors
    ///
    /// When a file cannot be read.
    pub fn session_id_for_resume(&self) -> Result<Option<String>, Error> {
        let replies = self.load()?.metadata.unwrap_or_default().replies;
        if replies.is_empty() {
            return self.journal().last_session_id();
        }
        for (index, reply) in replies.iter().enumerate().rev() {
            if !reply.session_id.is_empty() {
                return Ok(Some(reply.session_id.clone()));
            }
            let Some(range) = events_of(&replies, index) else {
                continue;
            };
            if let Some(id) = self.journal().session_id_in(range)? {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    /// The text of the newest reply that went well and said something.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn last_successful_response(&self) -> Result<Option<String>, Error> {
        let metadata = self.load()?.metadata.unwrap_or_default();
        Ok(metadata.last_successful_response().map(str::to_owned))
    }

    /// The model that was chosen for the context.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn model(&self) -> Result<Option<String>, Error> {
        Ok(self.load()?.metadata.unwrap_or_default().model)
    }

    /// Chooses a model for the context.
    ///
    /// # Errors
    ///
    /// As for [`write`](Self::write).
    pub fn set_model(&self, execution_context_id: &str, model: &str) -> Result<(), Error> {
        self.write(execution_context_id)?.set_model(Some(model))
    }

    /// Records a reply as a whole; see [`Writer::update_or_add_reply`].
    ///
    /// # Errors
    ///
    /// As for [`write`](Self::write).
    pub fn update_or_add_reply(
        &self,
        execution_context_id: &str,
        request_text: Option<&str>,
        update: ReplyUpdate,
    ) -> Result<(), Error> {
        self.write(execution_context_id)?
            .update_or_add_reply(request_text, update)
    }

    /// Takes the context for writing, creating it if need be.
    ///
    /// A file that is torn or foreign gets another name, and one of an older layout is taken
    /// over; [`Writer::warnings`] tells.
    ///
    /// # Errors
    ///
    /// [`Error::InUse`] while somebody else writes, [`Error::OtherContext`] if the directory is
    /// another context's, [`Error::Newer`], and what the file system refuses.
    pub fn write(&self, execution_context_id: &str) -> Result<Writer, Error> {
        Writer::open(self, execution_context_id)
    }

    /// Whether somebody is writing to the context.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        Lock::is_held(&self.dir)
    }

    /// The events of the reply at `index`; empty if there are none.
    ///
    /// # Errors
    ///
    /// When a file cannot be read.
    pub fn reply_events(&self, index: usize) -> Result<Vec<StreamEvent>, Error> {
        let replies = self.load()?.metadata.unwrap_or_default().replies;
        match events_of(&replies, index) {
            Some(range) => self.journal().read_range(range),
            None => Ok(Vec::new()),
        }
    }

    /// The context's events.
    #[must_use]
    pub fn journal(&self) -> Journal {
        Journal::new(self.dir.join(JOURNAL_FILE))
    }

    pub(crate) fn context_path(&self) -> PathBuf {
        self.dir.join(CONTEXT_FILE)
    }

    pub(crate) fn session_path(&self) -> PathBuf {
        self.dir.join(SESSION_FILE)
    }

    pub(crate) fn redactor(&self) -> Option<&Redactor> {
        self.redactor.as_ref()
    }

    /// Looks at `context.json`, or at `session.json` where that is all there is.
    pub(crate) fn read(&self) -> Result<Found, Error> {
        for path in [self.context_path(), self.session_path()] {
            let Some(bytes) = files::read(&path)? else {
                continue;
            };
            return match metadata::parse(&bytes) {
                metadata::Contents::Current(metadata) => Ok(Found::Current(metadata)),
                metadata::Contents::Unversioned(value) => Ok(Found::old(path, value)),
                metadata::Contents::Broken(reason) => Ok(Found::Broken { path, reason }),
                metadata::Contents::Newer(found) => Err(Error::Newer {
                    path,
                    found,
                    known: SCHEMA_VERSION,
                }),
            };
        }
        Ok(Found::Nothing)
    }
}

/// Where the journal has the events of the reply at `index`.
fn events_of(replies: &[SessionReply], index: usize) -> Option<Range> {
    let start = replies.get(index)?.events_offset?;
    let later = replies.iter().skip(index + 1);
    let end = later.filter_map(|reply| reply.events_offset).next();
    Some(Range { start, end })
}

/// What a context's directory holds.
pub(crate) enum Found {
    Nothing,
    Current(SessionMetadata),
    Old { path: PathBuf, legacy: Legacy },
    Broken { path: PathBuf, reason: String },
}

impl Found {
    fn old(path: PathBuf, value: Value) -> Self {
        match Legacy::parse(value) {
            Ok(legacy) => Self::Old { path, legacy },
            Err(error) => Self::Broken {
                path,
                reason: error.to_string(),
            },
        }
    }
}

pub(crate) const CONTEXT_FILE: &str = "context.json";
pub(crate) const JOURNAL_FILE: &str = "events.jsonl";

/// The older layout's name for the context file.
pub(crate) const SESSION_FILE: &str = "session.json";
