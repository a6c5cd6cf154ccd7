//! Real credentials for requests that may carry them, and none in what comes back.
//!
//! Works on a request that was allowed, in the form in which it will be sent, before anything is dialled. What is done
//! to it is told in its record; values are told nowhere.

mod keep;
mod refused;
mod request;
mod scrub;
mod sign;

use std::sync::Arc;

use arc_swap::ArcSwap;
use cordon_policy::{Host, Scheme};
use cordon_secrets::{Channel, Redactor, Scrub, SecretReplacements};
use http::{HeaderMap, Request, uri::PathAndQuery};

use crate::{Limits, body::RequestBody, exchange::Exchange, refusal::Refusal};

use keep::Keep;
pub(crate) use refused::Refused;
pub(crate) use request::{BrokenUpload, Rewriting};
pub(crate) use scrub::{ScrubbedFrames, Scrubbing};
use sign::Signature;

/// The secrets of a run as they are now.
#[derive(Clone)]
pub(crate) struct Secrets(Arc<ArcSwap<SecretReplacements>>);

impl Secrets {
    pub(crate) fn new(replacements: SecretReplacements) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(replacements)))
    }

    pub(crate) fn replace(&self, replacements: SecretReplacements) {
        self.0.store(Arc::new(replacements));
    }

    /// What keeps them out of texts; nothing where there are none.
    pub(crate) fn redactor(&self) -> Option<Redactor> {
        let secrets = self.0.load();
        (!secrets.is_empty()).then(|| Redactor::new(&secrets))
    }
}

/// Puts credentials into requests.
pub(crate) struct Credentials {
    secrets: Secrets,
    keep: Keep,
}

impl Credentials {
    pub(crate) fn new(secrets: Secrets, limits: &Limits) -> Self {
        Self {
            secrets,
            keep: Keep::new(limits),
        }
    }

    /// Looks for surrogates in a request that goes nowhere, since what it was meant to do matters nevertheless.
    pub(crate) fn check(
        &self,
        scheme: Scheme,
        host: &Host,
        headers: &HeaderMap,
        target: Option<&PathAndQuery>,
    ) -> Result<(), Refused> {
        let root = PathAndQuery::from_static("/");
        let target = target.unwrap_or(&root);
        Ok(self
            .secrets
            .0
            .load()
            .check(host, channel(scheme), headers, target)?)
    }

    /// Gives a request its real credentials. Also says how its response is to be scrubbed.
    pub(crate) async fn apply(
        &self,
        scheme: Scheme,
        host: &Host,
        request: Request<RequestBody>,
        exchange: &mut Exchange,
    ) -> Result<(Request<RequestBody>, Option<Scrub>), Refusal> {
        let secrets = self.secrets.0.load();
        if secrets.is_empty() {
            return Ok((request, None));
        }
        let secrets = SecretReplacements::clone(&secrets);
        // Requests of a sandbox without secrets shall not carry so large a future.
        Box::pin(self.rewrite(secrets, scheme, host, request, exchange)).await
    }

    async fn rewrite(
        &self,
        secrets: SecretReplacements,
        scheme: Scheme,
        host: &Host,
        request: Request<RequestBody>,
        exchange: &mut Exchange,
    ) -> Result<(Request<RequestBody>, Option<Scrub>), Refusal> {
        let channel = channel(scheme);
        let (mut parts, body) = request.into_parts();
        let foreign = sign::foreign_credentials(&secrets, host, &parts);
        let mut notes = request::replace(&secrets, host, channel, &mut parts)?;
        let signature = sign::find(&secrets, host, &mut parts, &foreign, &mut notes)?;
        let scrub = secrets.scrub(host);
        if let Some(scrub) = &scrub
            && !signature.as_ref().is_some_and(Signature::forbids_plain)
        {
            scrub.ask_plain(&mut parts.headers);
        }
        let body = match signature {
            Some(Signature::Ours(ours)) => {
                ours.sign(&mut parts, body, &self.keep, &mut notes).await?
            }
            Some(Signature::Foreign { .. }) => body,
            None => request::replace_body(&secrets, host, channel, &parts, body)?,
        };
        exchange.note(notes);
        Ok((Request::from_parts(parts, body), scrub))
    }
}

/// Upstream certificates are always verified, so TLS is all that it takes.
fn channel(scheme: Scheme) -> Channel {
    match scheme {
        Scheme::Https => Channel::VerifiedTls,
        Scheme::Http => Channel::Unverified,
    }
}
