//! Interim responses of an HTTP/1 upstream, made fit for the client.
//!
//! They go through what the fields of a response go through. They are no exchange of their own: nothing is recorded but
//! the secrets that were taken out of them.

use std::sync::{Arc, atomic::Ordering};

use cordon_secrets::Scrub;
use http::{HeaderMap, StatusCode, header};

use crate::{
    body::Traffic,
    forward,
    front::{Heads, Turn},
};

/// The client of a request, who may be told of interim responses.
#[derive(Clone, Copy)]
pub(crate) struct Interim<'a> {
    pub(crate) client: &'a Arc<Heads>,
    pub(crate) scrub: Option<&'a Scrub>,
    pub(crate) traffic: &'a Arc<Traffic>,
}

impl Interim<'_> {
    /// Begins to pass them on. What passed them on before does so no longer.
    pub(crate) fn relay(self) -> Relay {
        Relay {
            turn: self.client.lane.open(),
            client: Arc::clone(self.client),
            scrub: self.scrub.cloned(),
            traffic: Arc::clone(self.traffic),
        }
    }
}

/// Passes on the interim responses to one request.
pub(crate) struct Relay {
    client: Arc<Heads>,
    turn: Turn,
    scrub: Option<Scrub>,
    traffic: Arc<Traffic>,
}

impl Relay {
    /// The upstream asks for the body, and so does the HTTP library then.
    pub(crate) fn pass_continue(&self) {
        self.client.lane.put_continue(self.turn);
    }

    /// Passes on one that is neither 100 nor 101.
    pub(crate) fn pass(&self, status: StatusCode, fields: &HeaderMap) {
        if !self.client.lane.admits(self.turn) {
            return;
        }
        let mut fields = fields.clone();
        forward::response_fields(&mut fields);
        // A client that believed it would wait for a body.
        fields.remove(header::CONTENT_LENGTH);
        if let Some(scrub) = &self.scrub {
            let count = scrub.headers(&mut fields);
            self.traffic.scrubbed.fetch_add(count, Ordering::Relaxed);
        }
        self.client.lane.put(self.turn, &encode(status, &fields));
    }
}

/// The head in bytes. Names and values hold no line ends, so it ends where it seems to end.
fn encode(status: StatusCode, fields: &HeaderMap) -> Vec<u8> {
    let mut head = Vec::with_capacity(USUAL_LENGTH);
    let mut extend = |parts: [&[u8]; 4]| parts.iter().for_each(|part| head.extend_from_slice(part));
    let reason = status.canonical_reason().unwrap_or_default();
    extend([
        b"HTTP/1.1 ",
        status.as_str().as_bytes(),
        b" ",
        reason.as_bytes(),
    ]);
    for (name, value) in fields {
        extend([b"\r\n", name.as_str().as_bytes(), b": ", value.as_bytes()]);
    }
    head.extend_from_slice(b"\r\n\r\n");
    head
}

/// Holds a status line and a few links.
const USUAL_LENGTH: usize = 512;
