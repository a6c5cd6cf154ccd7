//! Signs a request again: the real credentials go in first, then everything is canonicalised and signed.
//!
//! The result is a list of edits. Nothing is sent from here, and an error means that nothing may be sent.

use std::fmt;

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::{
    ChunkSigner, ChunkStream, Credentials, Error, Field, Head, Payload, Placement, SignedHeaders,
    SignedRequest, SigningKey, authorization,
    canonical::{self, Context, PathRule},
    chunked,
    presigned::Unsigned,
    request::SESSION_TOKEN,
    signed_headers::HOST,
};

/// A request on its way to a new signature.
#[derive(Debug)]
pub enum Resigning {
    /// Signed. The body passes unchanged.
    Ready(Resigned),
    /// The head is signed; the body must go through the chunk signer.
    Chunked(Resigned, ChunkSigner),
    /// The body must be seen before the head can be signed.
    Deferred(Deferred),
}

/// The edits that make a request the holder's of the real credentials.
pub struct Resigned {
    /// Headers to replace.
    pub headers: Vec<HeaderEdit>,
    /// The new request target, if the signature is in the query.
    pub target: Option<String>,
}

impl fmt::Debug for Resigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resigned")
            .field("headers", &self.headers)
            .finish_non_exhaustive()
    }
}

/// One header to replace: all fields of that name go, and one with the new value comes in their place.
#[derive(Clone, Eq, PartialEq)]
pub struct HeaderEdit {
    /// Name in lower case.
    pub name: &'static str,
    /// The new value; `None` only removes.
    pub value: Option<String>,
}

impl fmt::Debug for HeaderEdit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeaderEdit")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A signature that waits for the body: feed all of it, as sent on the wire, then finish.
pub struct Deferred {
    draft: Draft,
    hash: Sha256,
}

impl Deferred {
    /// Takes the next bytes of the body.
    pub fn update(&mut self, body: &[u8]) {
        self.hash.update(body);
    }

    /// Signs, now that the whole body is known.
    #[must_use]
    pub fn finish(self) -> Resigned {
        let hash = data_encoding::HEXLOWER.encode(&self.hash.finalize());
        let signature = self.draft.sign(&hash);
        self.draft.seal(&signature)
    }
}

impl fmt::Debug for Deferred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deferred").finish_non_exhaustive()
    }
}

impl SignedRequest {
    /// Signs the request with the real credentials.
    ///
    /// `head` is the one that was parsed; scope, time and signed headers stay as the client chose them.
    pub fn resign(
        &self,
        head: &Head<'_>,
        credentials: &Credentials<'_>,
    ) -> Result<Resigning, Error> {
        check_host(head)?;
        let stream = self.chunk_stream(head)?;
        let edits = self.edits(head, credentials, stream.as_ref())?;
        let draft = self.draft(head, credentials, edits)?;
        let Some(payload) = self.payload().canonical(self.algorithm()) else {
            return Ok(Resigning::Deferred(Deferred {
                draft,
                hash: Sha256::new(),
            }));
        };
        let signature = draft.sign(&payload);
        let Some(stream) = stream else {
            return Ok(Resigning::Ready(draft.seal(&signature)));
        };
        let resigned = draft.seal(&signature);
        let chunks = ChunkSigner::new(draft.key, draft.context, signature, stream)?;
        Ok(Resigning::Chunked(resigned, chunks))
    }

    fn chunk_stream(&self, head: &Head<'_>) -> Result<Option<ChunkStream>, Error> {
        match self.payload() {
            Payload::Chunked => ChunkStream::plain(head).map(Some),
            Payload::ChunkedTrailer => ChunkStream::with_trailers(head).map(Some),
            Payload::Hash(_) | Payload::Unsigned | Payload::UnsignedTrailer | Payload::Deferred => {
                Ok(None)
            }
        }
    }

    /// What changes in the header besides the signature. Signed headers must change before they are signed.
    fn edits(
        &self,
        head: &Head<'_>,
        credentials: &Credentials<'_>,
        stream: Option<&ChunkStream>,
    ) -> Result<Vec<HeaderEdit>, Error> {
        let mut edits = Vec::new();
        if self.session_token().is_some() && credentials.session_token.is_none() {
            return Err(Error::UnexpectedSessionToken);
        }
        if head.values(SESSION_TOKEN).next().is_some() {
            edits.push(HeaderEdit {
                name: SESSION_TOKEN,
                value: credentials.session_token.map(str::to_owned),
            });
        }
        if let Some(stream) = stream {
            let length = chunked::encoded_length(self.algorithm(), stream)?;
            if length.is_none() && self.signed_headers().contains(CONTENT_LENGTH) {
                return Err(Error::UnknownLength);
            }
            edits.push(HeaderEdit {
                name: CONTENT_LENGTH,
                value: length.map(|length| length.to_string()),
            });
        }
        Ok(edits)
    }

    fn draft(
        &self,
        head: &Head<'_>,
        credentials: &Credentials<'_>,
        edits: Vec<HeaderEdit>,
    ) -> Result<Draft, Error> {
        let credential = format!("{}/{}", credentials.access_key_id, self.scope());
        let (path, query) = canonical::split_target(head.target);
        let (place, query) = match self.placement() {
            Placement::Header => (Place::Header { credential }, canonical::query(query)),
            Placement::Query => {
                let query = Unsigned::new(
                    query,
                    &credential,
                    credentials.session_token,
                    self.signed_headers(),
                );
                let canonical = query.canonical();
                let path = path.to_owned();
                (Place::Query { path, query }, canonical)
            }
        };
        let request = canonical::request(
            head.method,
            &canonical::uri(path, PathRule::of(self.scope().service())),
            &query,
            &canonical::headers(
                &edited(head.headers, &edits),
                self.signed_headers(),
                head.authority,
            )?,
            self.signed_headers(),
            "",
        );
        Ok(Draft {
            request: Zeroizing::new(request),
            context: Context {
                algorithm: self.algorithm(),
                timestamp: self.timestamp(),
                scope: self.scope().clone(),
            },
            key: SigningKey::derive(self.algorithm(), credentials, self.scope())?,
            signed_headers: self.signed_headers().clone(),
            place,
            edits,
        })
    }
}

/// All that is known before the payload's hash is.
struct Draft {
    /// The canonical request up to the hash. A signed session token is in it.
    request: Zeroizing<Vec<u8>>,
    context: Context,
    key: SigningKey,
    signed_headers: SignedHeaders,
    place: Place,
    edits: Vec<HeaderEdit>,
}

/// Where the new signature goes.
enum Place {
    Header { credential: String },
    Query { path: String, query: Unsigned },
}

impl Draft {
    fn sign(&self, payload: &str) -> String {
        let request = Zeroizing::new([&self.request, payload.as_bytes()].concat());
        self.key.sign(&self.context.string_to_sign(&request))
    }

    fn seal(&self, signature: &str) -> Resigned {
        let mut headers = self.edits.clone();
        let target = match &self.place {
            Place::Header { credential } => {
                let value = authorization::format(
                    self.context.algorithm,
                    credential,
                    &self.signed_headers,
                    signature,
                );
                headers.insert(
                    0,
                    HeaderEdit {
                        name: authorization::AUTHORIZATION,
                        value: Some(value),
                    },
                );
                None
            }
            Place::Query { path, query } => Some(format!("{path}?{}", query.sign(signature))),
        };
        Resigned { headers, target }
    }
}

/// The fields as they will be sent.
fn edited<'a>(fields: &[Field<'a>], edits: &'a [HeaderEdit]) -> Vec<Field<'a>> {
    let edit = |name: &str| {
        edits
            .iter()
            .find(|edit| edit.name.eq_ignore_ascii_case(name))
    };
    let kept = fields
        .iter()
        .copied()
        .filter(|(name, _)| edit(name).is_none());
    let new = edits
        .iter()
        .filter_map(|edit| Some((edit.name, edit.value.as_ref()?.as_bytes())));
    kept.chain(new).collect()
}

/// A signature for a host that the request does not go to could be used there by whoever receives it.
fn check_host(head: &Head<'_>) -> Result<(), Error> {
    let Some(host) = head.single(HOST)?.filter(|host| !host.is_empty()) else {
        return Ok(());
    };
    if without_default_port(host).eq_ignore_ascii_case(without_default_port(head.authority)) {
        Ok(())
    } else {
        Err(Error::HostMismatch)
    }
}

fn without_default_port(host: &str) -> &str {
    host.strip_suffix(":443")
        .or_else(|| host.strip_suffix(":80"))
        .unwrap_or(host)
}

const CONTENT_LENGTH: &str = "content-length";

#[cfg(test)]
mod tests;
