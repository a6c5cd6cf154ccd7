//! What lasts between two runs of one execution context, on disk.
//!
//! A context has a directory of its own, with `context.json` (who, which model, every reply) and
//! `events.jsonl` (every event of every reply, append-only). One process writes at a time and
//! holds a lock meanwhile; any number may read. A kill at any moment leaves the old or the new
//! `context.json`, and costs the journal at most its last line.
//!
//! This crate starts no processes and decides nothing about runs; it records them.
//!
//! ```
//! use cordon_agents::{Agent, Transcript, parse_event};
//! use cordon_session::{ReplyUpdate, SessionStore};
//!
//! # let scratch = tempfile::tempdir()?;
//! # let directory = scratch.path().join("conv-42");
//! let store = SessionStore::new(directory);
//! assert_eq!(store.session_id_for_resume()?, None);
//!
//! let writer = store.write("conv-42")?;
//! let mut recording = writer.begin_reply(Agent::Claude, Some("Say hello."))?;
//! let mut transcript = Transcript::new(Agent::Claude);
//! let line = r#"{"type":"result","session_id":"s-1","is_error":false,"result":"Hello."}"#;
//! if let Some(event) = parse_event(line) {
//!     transcript.push_event(&event);
//!     recording.append(&event)?; // readers see it from here on
//! }
//! recording.finish(ReplyUpdate {
//!     response_text: Some(transcript.response_text()),
//!     ..ReplyUpdate::of(&transcript)
//! })?;
//!
//! assert_eq!(store.session_id_for_resume()?.as_deref(), Some("s-1"));
//! assert_eq!(store.last_successful_response()?.as_deref(), Some("Hello."));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod files;
mod journal;
mod legacy;
mod lock;
mod metadata;
mod retention;
mod store;
mod tail;
mod writer;

pub use error::{Error, Warning};
pub use journal::{Follower, Journal, Tail};
pub use metadata::{ReplyUpdate, SCHEMA_VERSION, SessionMetadata, SessionReply};
pub use retention::{ContextEntry, Pruned, Retention, contexts, prune};
pub use store::{Loaded, SessionStore};
pub use writer::{Recording, Writer};
