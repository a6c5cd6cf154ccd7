//! The proxy on real sockets, between real clients and real TLS origins.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends where it fails"
)]

mod aws;
mod botocore;
mod credentials;
mod dns;
mod framing;
mod git;
mod http;
mod http2;
mod interim;
mod limits;
mod log;
mod program;
mod scrub;
mod streaming;
mod support;
mod tls;
mod upstream;
mod websocket;
