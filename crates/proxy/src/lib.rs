//! cordon-proxy
