//! Holds the architecture: which crate may use which, and which crates may not do IO.
//!
//! There is no code here, only `tests/arrows.rs`.
