//! cordon-engine
