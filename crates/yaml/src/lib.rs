//! Files that people write: YAML as a tree that knows its lines, read strictly.
//!
//! A key that is unknown, missing or there twice, a value of another type and a tag that nobody asked for are errors,
//! each with its place and with what to write instead. Knows nothing of what the files are for, opens none, and never
//! prints a value on its own.
//!
//! ```
//! use cordon_yaml::{Error, parse};
//!
//! fn retries(text: &str) -> Result<i64, Error> {
//!     let mut retries = 0;
//!     for (key, node) in parse(text, "the settings")?.map("the settings", "a map")? {
//!         match key.name.as_str() {
//!             "retries" => retries = node.integer("retries")?,
//!             _ => return Err(key.unknown("the settings", &["retries"])),
//!         }
//!     }
//!     Ok(retries)
//! }
//!
//! assert_eq!(retries("retries: 3"), Ok(3));
//! let error = retries("retires: 3").unwrap_err();
//! assert_eq!(error.to_string(), "unknown key `retires` in the settings (line 1, column 1)");
//! assert_eq!(error.kind.hint(), "did you mean `retries`?");
//! ```

mod error;
mod node;
mod parse;

pub use error::{Error, ErrorKind};
pub use node::{Key, Node, Position, Tag, Value};
pub use parse::parse;
