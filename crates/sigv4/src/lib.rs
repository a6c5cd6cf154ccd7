//! cordon-sigv4
