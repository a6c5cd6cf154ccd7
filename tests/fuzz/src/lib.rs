//! What must hold for any bytes at all: each target takes some and panics where a promise is broken.
//!
//! `make fuzz` runs them with a fuzzer for as long as one likes (`fuzz/`); the tests of this package run
//! them on seeds, on broken seeds and on random bytes for a second each.

#![expect(clippy::expect_used, reason = "a broken promise must stop the fuzzer")]

mod credentials;
mod door;
mod policy;

pub use credentials::{aws_chunked, scrubber, sigv4};
pub use door::{client_hello, dns, http1, http2};
pub use policy::{allowlist, host, target};

/// A target: its name, what it does, and bytes that lead it somewhere.
pub type Target = (&'static str, fn(&[u8]), &'static [&'static [u8]]);

/// All of them.
pub const TARGETS: &[Target] = &[
    ("allowlist", allowlist, policy::ALLOWLISTS),
    ("host", host, policy::HOSTS),
    ("target", target, policy::TARGETS),
    ("dns", dns, door::QUESTIONS),
    ("client_hello", client_hello, door::HELLOS),
    ("http1", http1, door::REQUESTS),
    ("http2", http2, door::FRAMES),
    ("aws_chunked", aws_chunked, credentials::CHUNKS),
    ("sigv4", sigv4, credentials::SIGNED),
    ("scrubber", scrubber, credentials::BODIES),
];
