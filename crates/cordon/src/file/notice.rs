//! What a person should know about a configuration file that is no error.

use std::fmt;

use crate::Level;

/// Something in a configuration file that protects less than it could, or was left out. Holds names, never values.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum FileNotice {
    /// The real value of a secret stands in the file.
    SecretInFile {
        /// Where, such as `masked_secrets.GH_TOKEN.value`.
        place: String,
        /// The file.
        file: String,
    },
    /// A secret is handed to the container unmasked.
    SecretInContainer {
        /// The variable of the container.
        variable: String,
        /// The secret's name.
        secret: String,
    },
    /// An optional secret is missing, and its entry is left out.
    SecretMissing {
        /// Where, such as `masked_secrets.GH_TOKEN.value`.
        place: String,
        /// The secret's name.
        secret: String,
    },
    /// A variable that is to be passed on is not set on the host.
    NotPassed {
        /// Its name.
        variable: String,
    },
    /// Secrets are masked, and nothing replaces their surrogates, because the network sandbox is off.
    NothingReplaced {
        /// The variables with the surrogates.
        variables: Vec<String>,
    },
}

impl FileNotice {
    /// How loud it is.
    #[must_use]
    pub fn level(&self) -> Level {
        match self {
            Self::SecretMissing { .. } => Level::Info,
            Self::SecretInFile { .. }
            | Self::SecretInContainer { .. }
            | Self::NotPassed { .. }
            | Self::NothingReplaced { .. } => Level::Warning,
        }
    }
}

impl fmt::Display for FileNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SecretInFile { place, file } => write!(
                f,
                "{place} stands in {file} as it is, for everybody who can read that file; use `!secret NAME` instead"
            ),
            Self::SecretInContainer { variable, secret } => write!(
                f,
                "the container gets the secret `{secret}` as it is, in {variable}; `masked_secrets` would keep it outside"
            ),
            Self::SecretMissing { place, secret } => write!(
                f,
                "there is no secret `{secret}`, so that the entry of {place} is left out"
            ),
            Self::NotPassed { variable } => write!(
                f,
                "{variable} is not set here, so that the container does not get it"
            ),
            Self::NothingReplaced { variables } => write!(
                f,
                "the network sandbox is off, so that nothing replaces the surrogates in {}",
                variables.join(", ")
            ),
        }
    }
}
