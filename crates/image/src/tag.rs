//! Names of images: a prefix that the caller chooses, and the hash of what the image is made of.

use std::{fmt, str::FromStr};

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use crate::{Entrypoint, Recipe};

/// The two names of one recipe under one entrypoint.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Tags {
    /// The image of the caller's Dockerfile, `cordon-repo:<sha256>`.
    pub repo: String,
    /// The image that is run, `cordon:<sha256>`.
    pub overlay: String,
}

impl Tags {
    /// The names that `recipe` and `entrypoint` have under `prefix`. Asks no engine.
    #[must_use]
    pub fn of(prefix: &Prefix, recipe: &Recipe, entrypoint: &Entrypoint) -> Self {
        let repo = prefix.repo(&recipe.digest());
        let overlay = prefix.overlay(&entrypoint.digest(&repo));
        Self { repo, overlay }
    }
}

/// What the names of images begin with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Prefix(String);

impl Prefix {
    /// The name of repo images, without a tag.
    pub(crate) fn repo_name(&self) -> String {
        format!("{}-repo", self.0)
    }

    /// The name of overlays, without a tag.
    pub(crate) fn overlay_name(&self) -> &str {
        &self.0
    }

    fn repo(&self, digest: &Digest) -> String {
        format!("{}:{digest}", self.repo_name())
    }

    fn overlay(&self, digest: &Digest) -> String {
        format!("{}:{digest}", self.overlay_name())
    }
}

impl Default for Prefix {
    fn default() -> Self {
        Self("cordon".to_owned())
    }
}

/// A text that image names cannot begin with.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` cannot begin an image's name: use lower-case letters, digits and single dashes")]
pub struct InvalidPrefix(String);

impl FromStr for Prefix {
    type Err = InvalidPrefix;

    fn from_str(prefix: &str) -> Result<Self, InvalidPrefix> {
        let word = |part: &str| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        if prefix.len() <= PREFIX_MAX && prefix.split('-').all(word) {
            Ok(Self(prefix.to_owned()))
        } else {
            Err(InvalidPrefix(prefix.to_owned()))
        }
    }
}

/// What an image is made of, as 64 hexadecimal digits.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Digest(String);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Hashes a sequence of fields so that no two sequences share their bytes: each field is preceded by its length.
pub(crate) struct Fields(Sha256);

impl Fields {
    /// `kind` keeps the hashes of different sorts of images apart, and changes when their form does.
    pub(crate) fn new(kind: &str) -> Self {
        Self(Sha256::new()).field(kind.as_bytes())
    }

    pub(crate) fn field(mut self, bytes: &[u8]) -> Self {
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
        self
    }

    pub(crate) fn digest(self) -> Digest {
        Digest(HEXLOWER.encode(&self.0.finalize()))
    }
}

/// Well below what registries and engines allow for a name.
const PREFIX_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_the_prefix_and_a_sha256() {
        let tags = Tags::of(
            &Prefix::default(),
            &Recipe::new("FROM scratch\n"),
            &Entrypoint::passthrough(),
        );
        let digits = |tag: &str, name: &str| {
            let hash = tag.strip_prefix(name).unwrap().strip_prefix(':').unwrap();
            assert!(hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit()));
        };
        digits(&tags.repo, "cordon-repo");
        digits(&tags.overlay, "cordon");
    }

    #[test]
    fn an_overlay_is_named_after_its_repo_image_and_its_entrypoint() {
        let tags = |dockerfile: &'static str, entrypoint: &Entrypoint| {
            Tags::of(&Prefix::default(), &Recipe::new(dockerfile), entrypoint).overlay
        };
        let passthrough = Entrypoint::passthrough();
        let agent = Entrypoint::agent("claude");
        assert_ne!(
            tags("FROM a\n", &passthrough),
            tags("FROM b\n", &passthrough)
        );
        assert_ne!(tags("FROM a\n", &passthrough), tags("FROM a\n", &agent));
        assert_ne!(
            tags("FROM a\n", &agent),
            tags("FROM a\n", &agent.clone().sync_python())
        );
    }

    #[test]
    fn fields_cannot_run_into_each_other() {
        let digest = |fields: &[&str]| {
            fields
                .iter()
                .fold(Fields::new("test"), |all, field| {
                    all.field(field.as_bytes())
                })
                .digest()
        };
        assert_ne!(digest(&["ab", "c"]), digest(&["a", "bc"]));
        assert_ne!(digest(&["a", ""]), digest(&["", "a"]));
        assert_ne!(digest(&["a"]), digest(&["a", ""]));
    }

    #[test]
    fn a_prefix_is_a_plain_lower_case_name() {
        for good in ["cordon", "a1", "my-team-2"] {
            assert!(good.parse::<Prefix>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "-a",
            "a-",
            "a--b",
            "Cordon",
            "a/b",
            "a:b",
            "a b",
            "ä",
            &"x".repeat(65),
        ] {
            assert!(bad.parse::<Prefix>().is_err(), "{bad}");
        }
    }
}
