//! The crate from outside, with other people's programs as judges.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends where it fails"
)]

mod compression;
