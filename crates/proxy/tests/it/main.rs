//! The proxy on real sockets, between real clients and real TLS origins.

mod dns;
mod http;
mod support;
