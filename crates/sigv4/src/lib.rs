//! Takes a request that a client signed with surrogate AWS credentials and signs it again with the real ones.
//!
//! SigV4 and SigV4A, in the `Authorization` header or in a presigned URL, with a payload that is hashed, unsigned,
//! sent as signed `aws-chunked` chunks, or not hashed by the client at all. Pure: no IO, no clock. Credentials are
//! borrowed for one call. What outlives it, [`ChunkSigner`] and [`Deferred`], holds a derived key for as long as the
//! body lasts, and wipes it when dropped. Nothing here prints a credential, a token or a signature.
//!
//! ```
//! use cordon_sigv4::{Credentials, Head, Resigning, SignedRequest};
//!
//! let head = Head {
//!     method: "GET",
//!     target: "/photos/cat.jpg",
//!     authority: "example.s3.eu-west-1.amazonaws.com",
//!     headers: &[
//!         ("host", b"example.s3.eu-west-1.amazonaws.com"),
//!         ("x-amz-date", b"20260101T000000Z"),
//!         ("x-amz-content-sha256", b"UNSIGNED-PAYLOAD"),
//!         (
//!             "authorization",
//!             b"AWS4-HMAC-SHA256 Credential=AKIASURROGATE/20260101/eu-west-1/s3/aws4_request, \
//!               SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=00ff",
//!         ),
//!     ],
//! };
//! let signed = SignedRequest::parse(&head)?.expect("the request is signed");
//! assert_eq!(signed.access_key_id(), "AKIASURROGATE");
//!
//! let real = Credentials {
//!     access_key_id: "AKIAREAL",
//!     secret_access_key: "secret",
//!     session_token: None,
//! };
//! let Resigning::Ready(resigned) = signed.resign(&head, &real)? else {
//!     unreachable!("an unsigned payload needs no body");
//! };
//! assert_eq!(resigned.headers[0].name, "authorization");
//! # Ok::<(), cordon_sigv4::Error>(())
//! ```

mod authorization;
pub mod canonical;
mod chunked;
mod credentials;
mod error;
mod key;
pub mod minting;
mod presigned;
mod request;
mod resign;
mod scope;
mod signed_headers;
mod timestamp;

pub use chunked::{
    CHUNK_SIZE, ChunkSigner, ChunkStream, MAX_CHUNK_LINE, MAX_TRAILERS, encoded_length,
};
pub use credentials::Credentials;
pub use error::{Error, Framing};
pub use key::{SigningKey, ecdsa_scalar, hmac_key};
pub use request::{Field, Head, Payload, Placement, SignedRequest};
pub use resign::{Deferred, HeaderEdit, Resigned, Resigning};
pub use scope::{Algorithm, CredentialScope};
pub use signed_headers::SignedHeaders;
pub use timestamp::{MAX_SKEW, Skew, Timestamp, skew};
