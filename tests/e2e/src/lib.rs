//! Whole-system tests: the real program, on podman, on rootless podman and on docker.
//!
//! There is no code here, only `tests/it`. Every test runs on all three set-ups; one that is missing
//! fails.
