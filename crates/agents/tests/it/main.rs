//! The crate against what the real programs print: recorded, and live.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test ends where it fails"
)]

mod live;
mod recorded;
mod standin;
