//! The drivers of Apple's `container` and of `vibebox`. Neither runs here: small programs stand in for
//! them at the outermost process, record how they are called and behave as theirs do.

mod apple;
pub(crate) mod stand_in;
mod vibebox;
