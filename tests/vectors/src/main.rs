//! vectors
fn main() {}
