//! cordon-image
