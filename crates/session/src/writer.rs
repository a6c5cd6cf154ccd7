//! Recording: the one who holds a context's lock, and the reply that is being recorded.

use std::{
    fs::{self, File},
    io::{Read, Seek, SeekFrom, Write},
    path::PathBuf,
};

use cordon_agents::{Agent, StreamEvent};
use cordon_secrets::Redactor;
use serde_json::Value;

use crate::{
    Error, ReplyUpdate, SessionMetadata, SessionReply, SessionStore, Warning,
    files::{self, io_error},
    legacy::{KEPT, Legacy},
    lock::Lock,
    metadata,
    store::Found,
};

/// A context that this process may write to; given back when dropped.
#[derive(Debug)]
pub struct Writer {
    store: SessionStore,
    metadata: SessionMetadata,
    warnings: Vec<Warning>,
    _lock: Lock,
}

impl Writer {
    pub(crate) fn open(store: &SessionStore, execution_context_id: &str) -> Result<Self, Error> {
        files::create_dir(store.dir())?;
        let lock = Lock::take(store.dir())?;
        let mut writer = Self {
            store: store.clone(),
            metadata: SessionMetadata {
                execution_context_id: execution_context_id.to_owned(),
                ..SessionMetadata::default()
            },
            warnings: Vec::new(),
            _lock: lock,
        };
        match store.read()? {
            Found::Nothing => {}
            Found::Current(metadata) => writer.adopt(metadata)?,
            Found::Old { path, legacy } => writer.take_over(path, legacy)?,
            Found::Broken { path, reason } => {
                let moved_to = files::set_aside(&path)?;
                writer.warnings.push(Warning::SetAside {
                    path,
                    moved_to,
                    reason,
                });
            }
        }
        Ok(writer)
    }

    /// What is known of the context.
    #[must_use]
    pub fn metadata(&self) -> &SessionMetadata {
        &self.metadata
    }

    /// What a person should hear of.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Chooses a model for the context, or none.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn set_model(&mut self, model: Option<&str>) -> Result<(), Error> {
        self.metadata.model = model.map(str::to_owned);
        self.save()
    }

    /// Begins a reply. It is on record from here on, as one that failed until it says otherwise.
    ///
    /// # Errors
    ///
    /// When a file cannot be written.
    pub fn begin_reply(
        mut self,
        agent: Agent,
        request_text: Option<&str>,
    ) -> Result<Recording, Error> {
        let path = self.store.journal().path().to_owned();
        let mut journal = files::open_append(&path)?;
        let offset =
            begin_segment(&mut journal).map_err(|source| io_error("write", &path, source))?;
        self.metadata.replies.push(SessionReply {
            events_offset: Some(offset),
            ..SessionReply::begun(Some(agent), request_text)
        });
        self.save()?;
        Ok(Recording {
            writer: self,
            journal,
            path,
            torn: false,
        })
    }

    /// Records a reply as a whole: replaces the last one if it has the same request, and adds a
    /// new one otherwise.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn update_or_add_reply(
        &mut self,
        request_text: Option<&str>,
        update: ReplyUpdate,
    ) -> Result<(), Error> {
        let redacted = request_text.map(|text| self.redact(text));
        let same = |reply: &SessionReply| {
            let stored = reply.request_text.as_deref();
            stored == request_text || stored == redacted.as_deref()
        };
        let mut reply = SessionReply::begun(None, request_text);
        if let Some(last) = self.metadata.replies.pop_if(|last| same(last)) {
            reply.agent = last.agent;
            reply.events_offset = last.events_offset;
        }
        reply.update(update);
        self.metadata.replies.push(reply);
        self.save()
    }

    fn adopt(&mut self, metadata: SessionMetadata) -> Result<(), Error> {
        if metadata.execution_context_id != self.metadata.execution_context_id {
            return Err(Error::OtherContext {
                dir: self.store.dir().to_owned(),
                expected: std::mem::take(&mut self.metadata.execution_context_id),
                found: metadata.execution_context_id,
            });
        }
        self.metadata = metadata;
        // A kill may have come after the takeover was done and before this last step of it.
        let old = self.store.session_path();
        if old.exists() {
            self.retire(old)?;
        }
        Ok(())
    }

    fn take_over(&mut self, path: PathBuf, mut legacy: Legacy) -> Result<(), Error> {
        let journal = self.store.journal().path().to_owned();
        let moved = legacy.move_events(&journal, |line| self.redact_line(line))?;
        self.warnings.extend(moved);
        self.metadata = SessionMetadata {
            execution_context_id: std::mem::take(&mut self.metadata.execution_context_id),
            ..legacy.metadata
        };
        if path == self.store.session_path() {
            self.save()?;
            return self.retire(path);
        }
        let kept_as = files::keep_copy(&path, KEPT)?;
        self.warnings.push(Warning::TakenOver { path, kept_as });
        self.save()
    }

    /// Gives a file that was taken over another name.
    fn retire(&mut self, path: PathBuf) -> Result<(), Error> {
        let kept_as = files::keep_copy(&path, KEPT)?;
        fs::remove_file(&path).map_err(|source| io_error("rename", &path, source))?;
        files::sync_parent(&path)?;
        self.warnings.push(Warning::TakenOver { path, kept_as });
        Ok(())
    }

    fn save(&self) -> Result<(), Error> {
        let path = self.store.context_path();
        let rendered = match self.store.redactor() {
            Some(redactor) => metadata::render(&redacted(&self.metadata, redactor)),
            None => metadata::render(&self.metadata),
        };
        let bytes = rendered.map_err(|source| Error::Json {
            path: path.clone(),
            source,
        })?;
        files::replace(&path, &bytes)
    }

    fn redact(&self, text: &str) -> String {
        match self.store.redactor() {
            Some(redactor) => redactor.redact(text).into_owned(),
            None => text.to_owned(),
        }
    }

    /// A line of JSON stays a line of JSON, whatever the secret is.
    fn redact_line(&self, line: &str) -> String {
        let Some(redactor) = self.store.redactor() else {
            return line.to_owned();
        };
        let plain = redactor.redact(line);
        if plain == line {
            return line.to_owned();
        }
        match serde_json::from_str(line) {
            Ok(mut value) => {
                redact_value(&mut value, redactor);
                value.to_string()
            }
            Err(_) => plain.into_owned(),
        }
    }
}

/// A reply while it runs. Every event costs one write, however many came before.
#[derive(Debug)]
pub struct Recording {
    writer: Writer,
    journal: File,
    path: PathBuf,
    torn: bool,
}

impl Recording {
    /// Adds an event to the journal, where readers see it at once.
    ///
    /// # Errors
    ///
    /// When the file cannot be written; later events are still recorded.
    pub fn append(&mut self, event: &StreamEvent) -> Result<(), Error> {
        let mut line = String::new();
        if self.torn {
            line.push('\n');
        }
        line.push_str(&self.writer.redact_line(event.raw()));
        line.push('\n');
        let written = self.journal.write_all(line.as_bytes());
        self.torn = written.is_err();
        written.map_err(|source| io_error("write", &self.path, source))
    }

    /// What is known of the context.
    #[must_use]
    pub fn metadata(&self) -> &SessionMetadata {
        self.writer.metadata()
    }

    /// What a person should hear of.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        self.writer.warnings()
    }

    /// Ends the reply and returns the context for the next one.
    ///
    /// # Errors
    ///
    /// When a file cannot be written.
    pub fn finish(mut self, update: ReplyUpdate) -> Result<Writer, Error> {
        // The context must not speak of events that a crash can still take away.
        self.journal
            .sync_data()
            .map_err(|source| io_error("sync", &self.path, source))?;
        if let Some(reply) = self.writer.metadata.replies.last_mut() {
            reply.update(update);
        }
        self.writer.save()?;
        Ok(self.writer)
    }
}

/// Ends a line that a kill has torn, parts the new reply from the one before, and returns where
/// the new one begins.
fn begin_segment(journal: &mut File) -> std::io::Result<u64> {
    let length = journal.seek(SeekFrom::End(0))?;
    let mut last = Vec::new();
    journal.seek(SeekFrom::Start(length.saturating_sub(2)))?;
    Read::take(&mut *journal, 2).read_to_end(&mut last)?;
    let parting: &[u8] = match last.as_slice() {
        [] | [b'\n', b'\n'] => b"",
        [.., b'\n'] => b"\n",
        _ => b"\n\n",
    };
    journal.write_all(parting)?;
    Ok(length + parting.len() as u64)
}

fn redacted(metadata: &SessionMetadata, redactor: &Redactor) -> SessionMetadata {
    let mut metadata = metadata.clone();
    let redact = |text: &mut String| {
        *text = redactor.redact(text).into_owned();
    };
    metadata.model.iter_mut().for_each(redact);
    for reply in &mut metadata.replies {
        redact(&mut reply.session_id);
        reply.request_text.iter_mut().for_each(redact);
        reply.response_text.iter_mut().for_each(redact);
        for value in reply.usage.extra.values_mut() {
            redact_value(value, redactor);
        }
    }
    metadata
}

/// Redacts every string and number in a JSON value, names of fields included.
fn redact_value(value: &mut Value, redactor: &Redactor) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => {
            let text = number.to_string();
            let redacted = redactor.redact(&text);
            if redacted != text {
                *value = Value::String(redacted.into_owned());
            }
        }
        Value::String(text) => *text = redactor.redact(text).into_owned(),
        Value::Array(items) => {
            for item in items {
                redact_value(item, redactor);
            }
        }
        Value::Object(fields) => {
            for (name, mut field) in std::mem::take(fields) {
                redact_value(&mut field, redactor);
                fields.insert(redactor.redact(&name).into_owned(), field);
            }
        }
    }
}
