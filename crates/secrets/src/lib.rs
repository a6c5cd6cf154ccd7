//! cordon-secrets
