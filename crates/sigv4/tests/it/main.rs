//! Signatures judged by the signers of AWS: botocore and awscrt in Python, aws-sigv4 in Rust.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends where it fails"
)]

mod botocore;
mod crt;
mod oracle;
mod properties;
mod python;
