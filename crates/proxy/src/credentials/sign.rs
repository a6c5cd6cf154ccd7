//! AWS signatures: those of surrogates are replaced by real ones, others are turned away.
//!
//! An error means that nothing is sent, or that what is being sent breaks off.

use cordon_policy::Host;
use cordon_secrets::{Field as Place, Note, SecretReplacements, SigningEntry};
use cordon_sigv4::{
    Credentials, Error, Field, Head, Payload, Placement, Resigned, Resigning, SignedRequest,
    minting::{self, MAX_BODY, Verdict},
};
use http::{
    HeaderValue, Uri,
    header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, HOST},
    request::Parts,
    uri::PathAndQuery,
};
use jiff::Timestamp;

use super::{Refused, keep::Keep, request::Change};
use crate::{body::RequestBody, log::Notes, refusal::Refusal};

/// The AWS signature of a request to a host that is signed for.
pub(super) enum Signature<'a> {
    /// Made with surrogates.
    Ours(Box<Ours<'a>>),
    /// Made with other keys, which the host's credentials allow.
    Foreign { covers_encoding: bool },
}

impl Signature<'_> {
    /// Whether the signature breaks when the request asks for a plain response.
    pub(super) fn forbids_plain(&self) -> bool {
        match self {
            Self::Ours(_) => false,
            Self::Foreign { covers_encoding } => *covers_encoding,
        }
    }
}

/// The `Authorization` lines that the workload sent, where they must be of its own credentials.
pub(super) fn foreign_credentials(
    secrets: &SecretReplacements,
    host: &Host,
    parts: &Parts,
) -> Vec<HeaderValue> {
    if !secrets.refuses_foreign_signing(host) {
        return Vec::new();
    }
    parts
        .headers
        .get_all(AUTHORIZATION)
        .iter()
        .cloned()
        .collect()
}

/// Finds out who signed a request. `sent` are the `Authorization` lines from before surrogates were replaced: one that
/// is still there unchanged, and is no signature, belongs to somebody else and is taken out.
pub(super) fn find<'a>(
    secrets: &'a SecretReplacements,
    host: &Host,
    parts: &mut Parts,
    sent: &[HeaderValue],
    notes: &mut Notes,
) -> Result<Option<Signature<'a>>, Refused> {
    if !secrets.is_signing_scope(host) {
        return Ok(None);
    }
    let signed = with_head(parts, SignedRequest::parse)?;
    let in_header = signed
        .as_ref()
        .is_some_and(|signed| signed.placement() == Placement::Header);
    if !in_header
        && parts
            .headers
            .get_all(AUTHORIZATION)
            .iter()
            .any(|line| sent.contains(line))
    {
        parts.headers.remove(AUTHORIZATION);
        notes.dropped += 1;
        notes.changes.push(Note::Stripped {
            field: Place::Header(AUTHORIZATION),
        });
    }
    let Some(signed) = signed else {
        return Ok(None);
    };
    let Some(entry) = secrets.signing(host, signed.access_key_id()) else {
        if secrets.refuses_foreign_signing(host) {
            return Err(Refused::ForeignKeys);
        }
        let covers_encoding = signed.signed_headers().contains(ACCEPT_ENCODING.as_str());
        return Ok(Some(Signature::Foreign { covers_encoding }));
    };
    if let (Some(sent), Some(token)) = (signed.session_token(), entry.session_token)
        && sent != token.surrogate.as_str()
    {
        return Err(Refused::ForeignKeys);
    }
    Ok(Some(Signature::Ours(Box::new(Ours { signed, entry }))))
}

/// A signature made with surrogates, and the credentials that they stand for.
pub(super) struct Ours<'a> {
    signed: SignedRequest,
    entry: SigningEntry<'a>,
}

impl Ours<'_> {
    /// Signs the request with the real credentials.
    pub(super) async fn sign(
        self: Box<Self>,
        parts: &mut Parts,
        body: RequestBody,
        keep: &Keep,
        notes: &mut Notes,
    ) -> Result<RequestBody, Refusal> {
        let body = self.refuse_minting(parts, body, keep).await?;
        if let Some(skew) = self.signed.skew(Timestamp::now()) {
            notes.tags.push(format!("clock skew: {skew}"));
        }
        notes.masked += 1;
        notes.region = self.signed.scope().region().map(str::to_owned);
        match self.resign(parts)? {
            Resigning::Ready(resigned) => {
                edit(parts, resigned)?;
                Ok(body)
            }
            Resigning::Chunked(resigned, signer) => {
                edit(parts, resigned)?;
                Ok(Change::Sign(Box::new(signer)).of(body)?)
            }
            Resigning::Deferred(mut deferred) => {
                let body = keep.read(body, length(parts), keep.limit()).await?;
                deferred.update(body.kept_bytes());
                edit(parts, deferred.finish())?;
                Ok(body)
            }
        }
    }

    fn resign(&self, parts: &Parts) -> Result<Resigning, Refused> {
        let credentials = Credentials {
            access_key_id: self.entry.access_key_id.expose(),
            secret_access_key: self.entry.secret_access_key.expose(),
            session_token: self.entry.session_token.map(|token| token.real.expose()),
        };
        Ok(with_head(parts, |head| {
            self.signed.resign(head, &credentials)
        })?)
    }

    /// Turns away a call whose answer carries credentials. Reads the body where that is what tells.
    async fn refuse_minting(
        &self,
        parts: &Parts,
        body: RequestBody,
        keep: &Keep,
    ) -> Result<RequestBody, Refusal> {
        if self.entry.allow_credential_minting {
            return Ok(body);
        }
        let service = self.signed.scope().service();
        match with_head(parts, |head| minting::judge(head, Some(service))) {
            Verdict::Harmless => return Ok(body),
            Verdict::Mints(operation) => return Err(Refused::Minting(operation).into()),
            Verdict::Unreadable => return Err(Refused::MintingUnclear.into()),
            Verdict::NeedsBody => {}
        }
        // In chunks, a name could be cut in two.
        match self.signed.payload() {
            Payload::Chunked | Payload::ChunkedTrailer | Payload::UnsignedTrailer => {
                return Err(Refused::MintingUnclear.into());
            }
            Payload::Hash(_) | Payload::Unsigned | Payload::Deferred => {}
        }
        let body = match keep.read(body, length(parts), MAX_BODY).await {
            Err(Refusal::Credentials(Refused::TooLong { .. })) => {
                return Err(Refused::MintingUnclear.into());
            }
            read => read?,
        };
        match minting::judge_body(body.kept_bytes()) {
            Some(operation) => Err(Refused::Minting(operation).into()),
            None => Ok(body),
        }
    }
}

/// Makes the edits that a new signature consists of.
fn edit(parts: &mut Parts, resigned: Resigned) -> Result<(), Refused> {
    for edit in resigned.headers {
        parts.headers.remove(edit.name);
        if let Some(value) = edit.value {
            let malformed = |_| Error::Malformed { field: edit.name };
            let mut value = HeaderValue::try_from(value).map_err(malformed)?;
            value.set_sensitive(true);
            parts.headers.insert(edit.name, value);
        }
    }
    if let Some(target) = resigned.target {
        let malformed = |_| Error::Malformed {
            field: "the request target",
        };
        parts.uri = Uri::from(PathAndQuery::try_from(target).map_err(malformed)?);
    }
    Ok(())
}

fn length(parts: &Parts) -> Option<u64> {
    parts
        .headers
        .get(CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

/// Shows a request head to the signer, as it will be sent.
fn with_head<T>(parts: &Parts, look: impl FnOnce(&Head<'_>) -> T) -> T {
    let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let fields = parts
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()));
    let fields: Vec<Field<'_>> = fields.collect();
    look(&Head {
        method: parts.method.as_str(),
        target: parts.uri.path_and_query().map_or("/", PathAndQuery::as_str),
        authority: host.unwrap_or_default(),
        headers: &fields,
    })
}
