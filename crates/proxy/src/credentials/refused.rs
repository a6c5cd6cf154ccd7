//! Why a request or its response does not pass, for the sake of credentials.

use cordon_secrets::{Alarm, AlarmKind, ScrubError};
use http::StatusCode;

/// What is wrong. No variant holds a value.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error(transparent)]
    Alarm(#[from] Alarm),
    #[error("the request is signed with AWS credentials that are not the sandbox's")]
    ForeignKeys,
    #[error("`{0}` is refused: its answer would carry real credentials")]
    Minting(&'static str),
    #[error(
        "the call is refused: its body does not tell that its answer carries no real credentials"
    )]
    MintingUnclear,
    #[error("the request cannot be signed: {}", chain(.0))]
    Signature(cordon_sigv4::Error),
    #[error(
        "the request cannot be signed: its body is longer than the {limit} bytes that may be kept"
    )]
    TooLong { limit: usize },
    #[error("the response could carry real credentials: {0}")]
    Unscrubbable(ScrubError),
}

impl Refused {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Alarm(_) | Self::ForeignKeys | Self::Minting(_) | Self::MintingUnclear => {
                StatusCode::FORBIDDEN
            }
            Self::Signature(cordon_sigv4::Error::KeyDerivation) | Self::Unscrubbable(_) => {
                StatusCode::BAD_GATEWAY
            }
            Self::Signature(_) => StatusCode::BAD_REQUEST,
            Self::TooLong { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        }
    }

    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Alarm(alarm) => alarm.code(),
            Self::ForeignKeys => "foreign_aws_credentials",
            Self::Minting(_) | Self::MintingUnclear => "credential_minting",
            Self::Signature(_) => "signing_failed",
            Self::TooLong { .. } => "body_too_long_to_sign",
            Self::Unscrubbable(_) => "response_not_scrubbed",
        }
    }

    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Alarm(alarm) => match alarm.kind {
                AlarmKind::SurrogateOutOfScope => {
                    Some("a secret goes to the hosts in its `scopes` only, over https only")
                }
                AlarmKind::RealValue => Some("find out how the real value came into the container"),
            },
            Self::ForeignKeys => Some(
                "use the credentials of the environment, or set `allow_foreign_credentials: true`",
            ),
            Self::Minting(_) | Self::MintingUnclear => Some(
                "set `allow_credential_minting: true` on the signing credential to let it through",
            ),
            Self::Signature(_) | Self::TooLong { .. } | Self::Unscrubbable(_) => None,
        }
    }

    /// Whether it was refused on purpose, and did not merely fail.
    pub(crate) fn is_policy(&self) -> bool {
        match self {
            Self::Alarm(_) | Self::ForeignKeys | Self::Minting(_) | Self::MintingUnclear => true,
            Self::Signature(_) | Self::TooLong { .. } | Self::Unscrubbable(_) => false,
        }
    }
}

impl From<cordon_sigv4::Error> for Refused {
    fn from(error: cordon_sigv4::Error) -> Self {
        Self::Signature(error)
    }
}

fn chain(error: &cordon_sigv4::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
