//! cordon
