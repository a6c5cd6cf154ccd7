//! cordon-session
