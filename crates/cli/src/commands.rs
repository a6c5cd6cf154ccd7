//! The subcommands, one file each, and what they share.

pub(crate) mod agent;
mod interrupts;
pub(crate) mod run;
mod state;
mod surroundings;
mod tend;
mod workspace;
