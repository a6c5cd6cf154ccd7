//! Keeps the C library from giving memory back that is wanted again at once.
//!
//! glibc returns the end of its heap to the kernel as soon as more than a threshold of it is free, and gets it back
//! page by page: under a bulk transfer, whose buffers come and go in bursts, a third of the proxy's work. The threshold
//! is twice the largest block that was ever mapped by itself and freed, so one is. Other allocators do not mind.

use std::{hint::black_box, sync::Once};

/// Raises the threshold, once for the process.
pub(crate) fn keep_freed() {
    static KEPT: Once = Once::new();
    KEPT.call_once(|| drop(black_box(Vec::<u8>::with_capacity(BLOCK))));
}

/// Never touched, so it costs nothing. Twice as much is more than the buffers of a few transfers.
const BLOCK: usize = 2 * 1024 * 1024;
