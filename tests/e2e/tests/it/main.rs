//! One binary; a module for each kind of claim.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "these tests drive real programs, and stop where one does not do as it should"
)]

mod agents;
mod bad_input;
mod build;
mod clients;
mod clone;
mod contexts;
mod doctor;
mod elsewhere;
mod host;
mod images;
mod isolation;
mod lifecycle;
mod live;
mod modes;
mod network;
mod outside;
mod profiles;
mod proxy_container;
mod rules;
mod run;
mod secrets;
mod sessions;
mod setup;
mod topologies;
