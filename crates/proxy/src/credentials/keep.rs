//! Keeps request bodies that must be seen whole before their head can be sent.
//!
//! All of them together stay within one budget, which each asks for once: whoever waits for room holds none.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::BodyExt;
use tokio::sync::Semaphore;

use super::Refused;
use crate::{
    Limits,
    body::RequestBody,
    refusal::{MalformedHead, Refusal},
    upload::Upload,
};

/// Room for bodies.
pub(super) struct Keep {
    /// In units of [`UNIT`] bytes.
    room: Arc<Semaphore>,
    limit: usize,
    time: Duration,
}

impl Keep {
    pub(super) fn new(limits: &Limits) -> Self {
        let units = limits
            .signed_bytes
            .div_ceil(UNIT)
            .min(Semaphore::MAX_PERMITS);
        Self {
            room: Arc::new(Semaphore::new(units)),
            limit: limits.signed_bytes,
            time: limits.inspection_time,
        }
    }

    /// The longest body that can be kept.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Reads a body of which no more than `most` bytes may come.
    pub(super) async fn read(
        &self,
        body: RequestBody,
        announced: Option<u64>,
        most: usize,
    ) -> Result<RequestBody, Refusal> {
        let most = most.min(self.limit);
        let too_long = || Refusal::from(Refused::TooLong { limit: most });
        let length = match announced.map(usize::try_from) {
            None => most,
            Some(Ok(length)) if length <= most => length,
            Some(_) => return Err(too_long()),
        };
        let (incoming, traffic) = match body {
            RequestBody::Passing { incoming, traffic } => (incoming, traffic),
            RequestBody::Kept {
                bytes: Some(bytes), ..
            } if bytes.len() > most => return Err(too_long()),
            RequestBody::Empty | RequestBody::Kept { .. } | RequestBody::Rewritten(_) => {
                return Ok(body);
            }
        };
        let units = u32::try_from(length.div_ceil(UNIT)).map_err(|_| too_long())?;
        let place = Arc::clone(&self.room)
            .acquire_many_owned(units)
            .await
            .map_err(|_| Refusal::Stopping)?;
        let reading = collect(incoming, length, most);
        match tokio::time::timeout(self.time, reading).await {
            Ok(Ok(Some(bytes))) => Ok(RequestBody::Kept {
                bytes: Some(bytes),
                traffic,
                _place: place,
            }),
            Ok(Ok(None)) => Err(too_long()),
            Ok(Err(_)) => Err(MalformedHead::Incomplete.into()),
            Err(_) => Err(MalformedHead::TooSlow.into()),
        }
    }
}

/// All of a body; none if it is longer than it may be. Holds each byte once.
async fn collect(
    mut body: Upload,
    expected: usize,
    most: usize,
) -> Result<Option<Bytes>, hyper::Error> {
    let mut bytes = Vec::with_capacity(expected);
    while let Some(frame) = body.frame().await {
        let data = frame?.into_data().unwrap_or_default();
        if bytes.len() + data.len() > most {
            return Ok(None);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(Some(bytes.into()))
}

/// Permits are counted in 32 bits; bodies are not.
const UNIT: usize = 1024;
