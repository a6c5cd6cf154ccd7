//! What is wrong with the secrets that a caller or another process brought.

use cordon_policy::InvalidPattern;

/// Why secrets could not be prepared or taken over. No message holds a value.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    /// A look-alike of so short a value could turn up in ordinary text by chance.
    #[error(
        "the value of {env_var} is too short to be masked: its look-alike would have {bits} random bits and {} are needed; \
         use a longer credential, or pass it unmasked if it is no secret",
        crate::surrogate::MIN_RANDOM_BITS
    )]
    TooShort {
        /// The variable that the value belongs to.
        env_var: String,
        /// The randomness that its surrogate would have.
        bits: u32,
    },
    /// The name cannot be one of an environment variable.
    #[error("{env_var:?} is not a name for an environment variable")]
    InvalidVariable {
        /// The name as given.
        env_var: String,
    },
    /// Two credentials want the same variable.
    #[error("{env_var} is set by more than one credential")]
    DuplicateVariable {
        /// The variable in question.
        env_var: String,
    },
    /// No credential sets the variable.
    #[error("no credential sets {env_var}")]
    UnknownVariable {
        /// The variable in question.
        env_var: String,
    },
    /// The value is to replace another one, but there is none.
    #[error("the new value of {env_var} is empty")]
    EmptyValue {
        /// The variable in question.
        env_var: String,
    },
    /// The value has a line break or another character that no header carries.
    #[error(
        "the value of {env_var} holds a character that no header can carry; is there a line break at its end?"
    )]
    NotAHeaderValue {
        /// The variable in question.
        env_var: String,
    },
    /// The value would need escapes in a body, and so another length than its surrogate.
    #[error(
        "the value of {env_var} cannot be replaced in bodies: it holds characters that {content_type} escapes"
    )]
    NotABodyValue {
        /// The variable in question.
        env_var: String,
        /// The content type that has no room for it.
        content_type: String,
    },
    /// Bodies keep their length, so a value for them has the length of its surrogate.
    #[error(
        "the value of {env_var} cannot be replaced in bodies: its length is not that of its surrogate"
    )]
    LengthChanged {
        /// The variable in question.
        env_var: String,
    },
    /// A signing credential has a key id without a secret key, or the reverse.
    #[error(
        "the signing credential of {env_var} has only one of access key id and secret access key"
    )]
    IncompleteCredential {
        /// The variable of the access key id.
        env_var: String,
    },
    /// Without a variable, no client in the container would send the session token.
    #[error("the signing credential of {env_var} has a session token but no variable for it")]
    NoSessionVariable {
        /// The variable of the access key id.
        env_var: String,
    },
    /// A surrogate and a real value are part of one another.
    #[error("no surrogate for {env_var} keeps apart from the other values")]
    Collision {
        /// The variable in question.
        env_var: String,
    },
    /// The operating system gave no randomness.
    #[error("no randomness to draw a surrogate from")]
    Random(#[source] getrandom::Error),
    /// The bytes from the other process do not parse. The parser's own message would quote them.
    #[error("the handed-over secrets do not parse at line {line}, column {column}")]
    Handover {
        /// Line of the first error.
        line: usize,
        /// Column of the first error.
        column: usize,
    },
    /// The other process speaks another version.
    #[error(
        "the handed-over secrets have version {version}, this program reads {}",
        crate::replacements::HANDOVER_VERSION
    )]
    HandoverVersion {
        /// The version that was found.
        version: u32,
    },
    /// A surrogate from the other process is not printable ASCII.
    #[error("the handed-over surrogate of {env_var} is not printable")]
    InvalidSurrogate {
        /// The variable in question.
        env_var: String,
    },
    /// A scope is no host pattern.
    #[error("a scope of {env_var} is not a host pattern")]
    InvalidScope {
        /// The variable in question.
        env_var: String,
        /// What is wrong with it.
        source: InvalidPattern,
    },
}
