//! cordon-door
