//! The real agents in containers. Their APIs have a stand-in, which they reach under the APIs' own
//! names, through the door, with keys that they never hold.

mod api;
mod bench;
mod claude;
mod gateway;
mod library;
mod others;
mod strict;
mod user;
