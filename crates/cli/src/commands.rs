//! The subcommands, one file each.

pub(crate) mod run;
