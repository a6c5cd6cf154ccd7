//! The subcommands, one file each, and what they share.

pub(crate) mod agent;
pub(crate) mod clean;
pub(crate) mod context;
pub(crate) mod doctor;
pub(crate) mod image;
mod interrupts;
pub(crate) mod run;
pub(crate) mod session;
mod state;
mod surroundings;
mod tend;
mod workspace;
