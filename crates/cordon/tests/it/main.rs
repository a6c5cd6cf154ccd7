//! The library against programs that stand in for those of other systems.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops where something is not as it should be"
)]

mod bridge;
mod engines;
