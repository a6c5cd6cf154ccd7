//! Everything that can end a request here. No variant carries what the client sent, so that no credential can
//! surface in a log.

/// Why a request cannot be signed again. The request must not be sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Error {
    /// An AWS scheme that is neither SigV4 nor SigV4A, such as SigV2 or an X.509 signature.
    #[error("the signing scheme is not SigV4 or SigV4A")]
    UnsupportedScheme,
    /// A field that the signature needs is absent.
    #[error("{field} is missing")]
    Missing {
        /// Name of the field.
        field: &'static str,
    },
    /// A field is not what its name says.
    #[error("{field} is malformed")]
    Malformed {
        /// Name of the field.
        field: &'static str,
    },
    /// A field that must be unique occurs more than once.
    #[error("{field} occurs more than once")]
    Duplicate {
        /// Name of the field.
        field: &'static str,
    },
    /// Both an `Authorization` header and a presigned query.
    #[error("the request is signed twice, in its header and in its query")]
    SignedTwice,
    /// The signature would be good for any host.
    #[error("the host is not among the signed headers")]
    HostNotSigned,
    /// The signature would be good for a host that the request is not sent to.
    #[error("the Host header names another host than the request is sent to")]
    HostMismatch,
    /// The client sent a session token, and the real credentials have none.
    #[error("the request carries a session token but the credentials have none")]
    UnexpectedSessionToken,
    /// The body is a stream of signed events.
    #[error("signed event streams are not supported")]
    EventStream,
    /// The request and its chunks are signed with different algorithms.
    #[error("the chunks are signed with another algorithm than the request")]
    ChunkAlgorithm,
    /// `Content-Length` is signed, and the length of the body cannot be known beforehand.
    #[error("content-length is signed but the length of the new body is not known")]
    UnknownLength,
    /// The body is longer than can be counted.
    #[error("the body is too long")]
    TooLong,
    /// No key can be derived from the credentials for this algorithm and scope.
    #[error("no signing key can be derived from the credentials")]
    KeyDerivation,
    /// The `aws-chunked` body is broken.
    #[error("the aws-chunked body is malformed")]
    Framing(#[from] Framing),
}

/// What is wrong with an `aws-chunked` body.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Framing {
    /// The line before a chunk is longer than [`MAX_CHUNK_LINE`](crate::MAX_CHUNK_LINE).
    #[error("a chunk header is too long")]
    LineTooLong,
    /// The line before a chunk is not `size;chunk-signature=signature`.
    #[error("a chunk header is malformed")]
    ChunkHeader,
    /// The data of a chunk is not followed by a line end.
    #[error("a chunk does not end where its size says")]
    ChunkEnd,
    /// The trailers are longer than [`MAX_TRAILERS`](crate::MAX_TRAILERS).
    #[error("the trailers are too long")]
    TrailersTooLong,
    /// A trailer is not `name:value`, or occurs twice.
    #[error("a trailer is malformed")]
    Trailer,
    /// The trailers are not signed.
    #[error("the trailers are not signed")]
    TrailerSignature,
    /// The body ended early.
    #[error("the body is incomplete")]
    Truncated,
    /// There is something behind the last chunk.
    #[error("there is data behind the last chunk")]
    DataAfterEnd,
    /// The data does not have the length that the request announced.
    #[error("the data is not as long as announced")]
    Length,
}
