//! cordon-agents
