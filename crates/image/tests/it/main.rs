//! Images on real engines: podman and docker as root, from the base images that `scripts/setup test` makes.

#[cfg(test)]
mod engines;
#[cfg(test)]
mod ensure;
#[cfg(test)]
mod store;
