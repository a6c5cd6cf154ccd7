//! What a client's signature says, read once.

use std::{fmt, time::Duration};

use crate::{
    Algorithm, CredentialScope, Error, SignedHeaders, Skew, Timestamp,
    authorization::Authorization,
    canonical::{self, PathRule},
    presigned::Presigned,
    timestamp,
};

/// A header field: name and raw value.
pub type Field<'a> = (&'a str, &'a [u8]);

/// A request head as the client sent it.
#[derive(Clone, Copy)]
pub struct Head<'a> {
    /// The method.
    pub method: &'a str,
    /// Path and query as on the wire, in origin form.
    pub target: &'a str,
    /// Host and port that the request goes to, as `Host` or `:authority` will name them upstream.
    pub authority: &'a str,
    /// The header fields in order; repeated ones are not joined.
    pub headers: &'a [Field<'a>],
}

impl<'a> Head<'a> {
    /// The one value of a header, trimmed.
    pub(crate) fn single(&self, field: &'static str) -> Result<Option<&'a str>, Error> {
        let mut values = self.values(field);
        match (values.next(), values.next()) {
            (None, _) => Ok(None),
            (Some(_), Some(_)) => Err(Error::Duplicate { field }),
            (Some(value), None) => str::from_utf8(value)
                .map(|value| Some(value.trim_ascii()))
                .map_err(|_| Error::Malformed { field }),
        }
    }

    /// All values of a header.
    pub(crate) fn values(&self, field: &str) -> impl Iterator<Item = &'a [u8]> {
        self.headers
            .iter()
            .filter(move |(name, _)| name.eq_ignore_ascii_case(field))
            .map(|(_, value)| *value)
    }
}

impl fmt::Debug for Head<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Head")
            .field("method", &self.method)
            .field("authority", &self.authority)
            .finish_non_exhaustive()
    }
}

/// Where the signature is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Placement {
    /// In the `Authorization` header.
    Header,
    /// In the query: a presigned URL.
    Query,
}

/// What the signature says about the body.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Payload {
    /// The client hashed it.
    Hash(String),
    /// The body is not signed.
    Unsigned,
    /// The body is `aws-chunked`, unsigned, and has a checksum behind it.
    UnsignedTrailer,
    /// The body is `aws-chunked`, and each chunk is signed.
    Chunked,
    /// The same with signed trailers.
    ChunkedTrailer,
    /// The client signed the hash of the body without sending it: whoever signs must see the body first.
    Deferred,
}

impl Payload {
    /// The word for it in the canonical request; `None` if it is a hash that is not known yet.
    #[must_use]
    pub fn canonical(&self, algorithm: Algorithm) -> Option<String> {
        let chunks = |suffix| format!("STREAMING-{}-PAYLOAD{suffix}", algorithm.name());
        match self {
            Self::Hash(hash) => Some(hash.clone()),
            Self::Unsigned => Some(UNSIGNED.to_owned()),
            Self::UnsignedTrailer => Some(UNSIGNED_TRAILER.to_owned()),
            Self::Chunked => Some(chunks("")),
            Self::ChunkedTrailer => Some(chunks(TRAILER)),
            Self::Deferred => None,
        }
    }

    fn parse(text: &str, algorithm: Algorithm) -> Result<Self, Error> {
        if text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Ok(Self::Hash(text.to_owned()));
        }
        match text {
            UNSIGNED => return Ok(Self::Unsigned),
            UNSIGNED_TRAILER => return Ok(Self::UnsignedTrailer),
            _ => {}
        }
        const MALFORMED: Error = Error::Malformed {
            field: CONTENT_SHA256,
        };
        let kind = text.strip_prefix("STREAMING-").ok_or(MALFORMED)?;
        if kind.ends_with("-EVENTS") {
            return Err(Error::EventStream);
        }
        let (signed_with, suffix) = kind.split_once("-PAYLOAD").ok_or(MALFORMED)?;
        match Algorithm::from_name(signed_with) {
            None => Err(MALFORMED),
            Some(other) if other != algorithm => Err(Error::ChunkAlgorithm),
            Some(_) => match suffix {
                "" => Ok(Self::Chunked),
                TRAILER => Ok(Self::ChunkedTrailer),
                _ => Err(MALFORMED),
            },
        }
    }
}

/// A request that carries an AWS signature.
pub struct SignedRequest {
    algorithm: Algorithm,
    access_key_id: String,
    scope: CredentialScope,
    signed_headers: SignedHeaders,
    signature: String,
    timestamp: Timestamp,
    expires: Option<u64>,
    session_token: Option<String>,
    placement: Placement,
    payload: Payload,
}

impl SignedRequest {
    /// Reads the signature of a request; `None` if it has none.
    ///
    /// Whatever looks like an AWS signature but cannot be read is an error: such a request must not pass as unsigned.
    pub fn parse(head: &Head<'_>) -> Result<Option<Self>, Error> {
        let (_, query) = canonical::split_target(head.target);
        let header = Authorization::find(head.headers)?;
        let query = Presigned::parse(query)?;
        match (header, query) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => Err(Error::SignedTwice),
            (Some(header), None) => Self::from_header(head, header).map(Some),
            (None, Some(query)) => Self::from_query(head, query).map(Some),
        }
    }

    fn from_header(head: &Head<'_>, claims: Authorization) -> Result<Self, Error> {
        let timestamp = match head.single(DATE)? {
            Some(date) => Timestamp::parse(date)?,
            None => head
                .single("date")?
                .ok_or(Error::Missing { field: DATE })
                .and_then(Timestamp::parse_date)?,
        };
        let payload = head
            .single(CONTENT_SHA256)?
            .map(|text| Payload::parse(text, claims.algorithm))
            .transpose()?;
        Ok(Self {
            algorithm: claims.algorithm,
            access_key_id: claims.access_key_id,
            scope: claims.scope,
            signed_headers: claims.signed_headers,
            signature: claims.signature,
            timestamp,
            expires: None,
            session_token: head.single(SESSION_TOKEN)?.map(str::to_owned),
            placement: Placement::Header,
            payload: payload.unwrap_or(Payload::Deferred),
        })
    }

    fn from_query(head: &Head<'_>, claims: Presigned) -> Result<Self, Error> {
        let payload = match (&claims.payload, head.single(CONTENT_SHA256)?) {
            (Some(text), _) => Payload::parse(text, claims.algorithm)?,
            (None, Some(text)) => Payload::parse(text, claims.algorithm)?,
            (None, None) => match PathRule::of(claims.scope.service()) {
                PathRule::Single => Payload::Unsigned,
                PathRule::Double => Payload::Deferred,
            },
        };
        let header_token = head.single(SESSION_TOKEN)?.map(str::to_owned);
        Ok(Self {
            algorithm: claims.algorithm,
            access_key_id: claims.access_key_id,
            scope: claims.scope,
            signed_headers: claims.signed_headers,
            signature: claims.signature,
            timestamp: claims.timestamp,
            expires: claims.expires,
            session_token: claims.session_token.or(header_token),
            placement: Placement::Query,
            payload,
        })
    }

    /// How the request is signed.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Whose signature it claims to be: a surrogate, or a foreign key.
    #[must_use]
    pub fn access_key_id(&self) -> &str {
        &self.access_key_id
    }

    /// What the signature is good for.
    #[must_use]
    pub fn scope(&self) -> &CredentialScope {
        &self.scope
    }

    /// The headers it covers.
    #[must_use]
    pub fn signed_headers(&self) -> &SignedHeaders {
        &self.signed_headers
    }

    /// The client's own signature, which is replaced and never verified.
    #[must_use]
    pub fn signature(&self) -> &str {
        &self.signature
    }

    /// When it was signed.
    #[must_use]
    pub fn timestamp(&self) -> Timestamp {
        self.timestamp
    }

    /// The session token that the client sent: a surrogate, or a foreign one.
    #[must_use]
    pub fn session_token(&self) -> Option<&str> {
        self.session_token.as_deref()
    }

    /// Where the signature is.
    #[must_use]
    pub fn placement(&self) -> Placement {
        self.placement
    }

    /// What it says about the body.
    #[must_use]
    pub fn payload(&self) -> &Payload {
        &self.payload
    }

    /// The skew worth naming in the record. A presigned URL may be as old as it says it may.
    #[must_use]
    pub fn skew(&self, now: jiff::Timestamp) -> Option<Skew> {
        let found = timestamp::skew(now, self.timestamp)?;
        match (found, self.expires) {
            (Skew::Behind(age), Some(expires)) if age <= Duration::from_secs(expires) => None,
            (Skew::Ahead(_) | Skew::Behind(_), _) => Some(found),
        }
    }
}

impl fmt::Debug for SignedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignedRequest")
            .field("algorithm", &self.algorithm)
            .field("scope", &self.scope)
            .field("placement", &self.placement)
            .field("payload", &self.payload)
            .finish_non_exhaustive()
    }
}

pub(crate) const SESSION_TOKEN: &str = "x-amz-security-token";

const CONTENT_SHA256: &str = "x-amz-content-sha256";
const DATE: &str = "x-amz-date";
const TRAILER: &str = "-TRAILER";
const UNSIGNED: &str = "UNSIGNED-PAYLOAD";
const UNSIGNED_TRAILER: &str = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";

#[cfg(test)]
mod tests;
