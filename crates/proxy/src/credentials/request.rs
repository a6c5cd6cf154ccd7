//! Replacement of surrogates in a request, and bodies that change on their way out.

use std::{
    mem,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use cordon_policy::Host;
use cordon_secrets::{BodyReplacer, Channel, SecretReplacements};
use cordon_sigv4::ChunkSigner;
use http::{Uri, request::Parts};
use http_body::{Body, Frame};

use super::Refused;
use crate::{
    body::{RequestBody, Traffic},
    log::Notes,
    upload::Upload,
};

/// Replaces what may be replaced in a request head.
pub(super) fn replace(
    secrets: &SecretReplacements,
    host: &Host,
    channel: Channel,
    parts: &mut Parts,
) -> Result<Notes, Refused> {
    let Some(mut target) = parts.uri.path_and_query().cloned() else {
        return Ok(Notes::default());
    };
    let applied = secrets.apply(host, channel, &mut parts.headers, &mut target)?;
    parts.uri = Uri::from(target);
    Ok(Notes {
        masked: applied.masked,
        dropped: applied.dropped,
        changes: applied.notes,
        ..Notes::default()
    })
}

/// Replaces what may be replaced in a body, as it passes.
pub(super) fn replace_body(
    secrets: &SecretReplacements,
    host: &Host,
    channel: Channel,
    parts: &Parts,
    body: RequestBody,
) -> Result<RequestBody, Refused> {
    match secrets.body(host, channel, &parts.headers) {
        Some(replacer) => Change::Replace(replacer).of(body),
        None => Ok(body),
    }
}

/// What becomes of the bytes of a body.
pub(super) enum Change {
    Replace(BodyReplacer),
    Sign(Box<ChunkSigner>),
    /// A signature that is complete, or failed.
    Over,
}

impl Change {
    /// The body with the change made: now if all of it is here, otherwise as it comes.
    pub(super) fn of(mut self, body: RequestBody) -> Result<RequestBody, Refused> {
        match body {
            RequestBody::Passing { incoming, traffic } => {
                let rewriting = Rewriting {
                    incoming,
                    change: self,
                    traffic,
                    trailers: None,
                    ended: false,
                };
                Ok(RequestBody::Rewritten(Box::new(rewriting)))
            }
            RequestBody::Kept {
                bytes,
                traffic,
                _place,
            } => {
                let mut changed = self.push(bytes.unwrap_or_default())?.to_vec();
                self.finish(&mut changed)?;
                self.count(&traffic);
                Ok(RequestBody::Kept {
                    bytes: Some(changed.into()),
                    traffic,
                    _place,
                })
            }
            RequestBody::Empty | RequestBody::Rewritten(_) => {
                self.finish(&mut Vec::new())?;
                Ok(body)
            }
        }
    }

    fn push(&mut self, piece: Bytes) -> Result<Bytes, cordon_sigv4::Error> {
        match self {
            Self::Replace(replacer) => Ok(replacer.push(piece)),
            Self::Sign(signer) => {
                let mut out = Vec::new();
                signer.push(&piece, &mut out)?;
                Ok(out.into())
            }
            Self::Over => Ok(Bytes::new()),
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), cordon_sigv4::Error> {
        match mem::replace(self, Self::Over) {
            Self::Replace(mut replacer) => {
                out.extend_from_slice(&replacer.finish());
                *self = Self::Replace(replacer);
                Ok(())
            }
            Self::Sign(signer) => signer.finish(out),
            Self::Over => Ok(()),
        }
    }

    fn count(&self, traffic: &Traffic) {
        if let Self::Replace(replacer) = self {
            traffic.masked.store(replacer.count(), Ordering::Relaxed);
        }
    }
}

/// A request body that changes while it passes. When it cannot be signed, it ends with an error and never as if it
/// were complete.
pub(crate) struct Rewriting {
    incoming: Upload,
    change: Change,
    pub(crate) traffic: Arc<Traffic>,
    trailers: Option<Frame<Bytes>>,
    ended: bool,
}

impl Rewriting {
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenUpload>>> {
        if let Some(&error) = self.traffic.unsigned.get() {
            return Poll::Ready(Some(Err(BrokenUpload::Unsigned(error))));
        }
        while !self.ended {
            let piece = match ready!(Pin::new(&mut self.incoming).poll_frame(cx)) {
                Some(Err(error)) => return Poll::Ready(Some(Err(BrokenUpload::Client(error)))),
                Some(Ok(frame)) => self.take(frame),
                None => self.end(),
            };
            match piece {
                Ok(piece) if piece.is_empty() => {}
                Ok(piece) => return Poll::Ready(Some(Ok(Frame::data(piece)))),
                Err(error) => {
                    // The answer to the workload tells why, whatever the upstream makes of it.
                    let _ = self.traffic.unsigned.set(error);
                    return Poll::Ready(Some(Err(BrokenUpload::Unsigned(error))));
                }
            }
        }
        Poll::Ready(self.trailers.take().map(Ok))
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        self.ended && self.trailers.is_none() && self.traffic.unsigned.get().is_none()
    }

    fn take(&mut self, frame: Frame<Bytes>) -> Result<Bytes, cordon_sigv4::Error> {
        match frame.into_data() {
            Ok(data) => self.change.push(data),
            Err(trailers) => {
                // No signature covers the trailers of HTTP.
                if let Change::Replace(_) = self.change {
                    self.trailers = Some(trailers);
                }
                self.end()
            }
        }
    }

    fn end(&mut self) -> Result<Bytes, cordon_sigv4::Error> {
        self.ended = true;
        let mut out = Vec::new();
        self.change.finish(&mut out)?;
        self.change.count(&self.traffic);
        Ok(out.into())
    }
}

/// Why a request body ends before its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BrokenUpload {
    #[error("the client broke off the request")]
    Client(#[source] hyper::Error),
    #[error("the body cannot be signed")]
    Unsigned(#[source] cordon_sigv4::Error),
}
