//! Reads a request body into memory where an entry of the allowlist judges bodies.
//!
//! The only place that keeps a body, so it is bounded in size, number and time.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use cordon_policy::{Denial, GraphqlDenial, GraphqlRules, MAX_GRAPHQL_BODY, RuleRef, Target};
use http_body_util::{BodyExt, Limited};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    refusal::{MalformedHead, Refusal},
    upload::Upload,
};

/// A body that was judged, and its place among those in memory.
pub(crate) struct Inspected {
    pub(crate) bytes: Bytes,
    pub(crate) place: OwnedSemaphorePermit,
}

/// Reads and judges a body.
pub(crate) async fn inspect(
    body: Upload,
    places: &Arc<Semaphore>,
    time: Duration,
    rules: &GraphqlRules,
    rule: RuleRef,
    target: &Target,
) -> Result<Inspected, Refusal> {
    let denied = |reason| Refusal::Denied(Denial::Graphql { rule, reason });
    let place = Arc::clone(places)
        .acquire_owned()
        .await
        .map_err(|_| Refusal::Stopping)?;
    let reading = Limited::new(body, MAX_GRAPHQL_BODY).collect();
    let bytes = match tokio::time::timeout(time, reading).await {
        Ok(Ok(collected)) => collected.to_bytes(),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            return Err(denied(GraphqlDenial::TooLarge));
        }
        Ok(Err(_)) => return Err(MalformedHead::Incomplete.into()),
        Err(_) => return Err(MalformedHead::TooSlow.into()),
    };
    rules.check(target, &bytes).map_err(denied)?;
    Ok(Inspected { bytes, place })
}
