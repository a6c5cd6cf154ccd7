//! One request: understand, decide, forward, answer.
//!
//! Every path through here ends with exactly one record. Nothing is dialled before the whole head
//! was allowed.

use std::{convert::Infallible, future::poll_fn, sync::Arc};

use arc_swap::ArcSwap;
use cordon_policy::{Allowlist, Decision, Denial, Grant, RequestHead, Scheme, Target};
use cordon_secrets::Scrub;
use http::{Request, Response, Version, request::Parts};
use http_body::Body;
use hyper::body::Incoming;
use tokio::sync::Semaphore;

use crate::{
    Limits, Upstream,
    ahead::Buffers,
    body::{RequestBody, ResponseBody},
    credentials::{Credentials, Refused, Scrubbing, Secrets},
    exchange::{Exchange, method_bytes},
    forward,
    front::{BadHead, Heads},
    head::{self, Arrival, Head, Kind},
    inspect,
    interim::Interim,
    log::{Location, Log, Place, Slot},
    refusal::{MalformedHead, Refusal},
    tasks::Tasks,
    upload::Upload,
    upstream::{Leg, Route, Sent, Upstreams},
    websocket,
};

/// What all connections of a proxy share.
pub(crate) struct Shared {
    pub(crate) allowlist: ArcSwap<Allowlist>,
    pub(crate) credentials: Credentials,
    pub(crate) secrets: Secrets,
    pub(crate) upstreams: Upstreams,
    pub(crate) upstream: Upstream,
    pub(crate) limits: Limits,
    pub(crate) inspections: Arc<Semaphore>,
    pub(crate) log: Log,
    pub(crate) tasks: Tasks,
    pub(crate) buffers: Buffers,
}

/// One connection of the workload.
pub(crate) struct Client {
    pub(crate) shared: Arc<Shared>,
    pub(crate) arrival: Arrival,
    pub(crate) heads: Arc<Heads>,
}

impl Client {
    /// Answers one request.
    pub(crate) async fn serve(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<ResponseBody>, Infallible> {
        let bad = self.heads.next();
        let open = self.heads.open();
        let Some(slot) = self.shared.log.reserve().await else {
            return Ok(unrecorded());
        };
        if let Some(bad) = bad {
            return Ok(self.refuse_bad_head(slot, bad));
        }
        let (parts, body) = request.into_parts();
        let body = Upload::new(body, parts.version, &self.shared.tasks);
        let (location, head) = head::understand(&parts, &self.arrival);
        let mut exchange = Exchange::new(slot, method_bytes(&parts.method), location, Some(open));
        let answered = match head {
            Ok(head) => self.decide(&mut exchange, parts, body, &head).await,
            Err(refusal) => Err(refusal),
        };
        poll_fn(|_| self.heads.lane.poll_close()).await;
        Ok(match answered {
            Ok(Answer::Upstream(sent, scrub)) => self.pass_on(sent, scrub, exchange),
            Ok(Answer::Tunnel(tunnel)) => tunnel.begin(&self, exchange),
            Err(refusal) => self.refuse(exchange, &refusal),
        })
    }

    async fn decide(
        &self,
        exchange: &mut Exchange,
        parts: Parts,
        body: Upload,
        head: &Head,
    ) -> Result<Answer, Refusal> {
        if parts.headers.len() > self.shared.limits.header_count {
            return Err(MalformedHead::TooManyFields.into());
        }
        let allowlist = self.shared.allowlist.load_full();
        let method = match head.kind {
            Kind::Plain => parts.method.as_str(),
            Kind::Upgrade | Kind::ExtendedConnect => "GET",
        };
        let decision = allowlist.decide(&RequestHead {
            scheme: self.arrival.scheme,
            host: &head.authority.host,
            port: head.port,
            method,
            target: &head.target,
        });
        // Every request carries the future of this function; what few requests need is boxed.
        match decision {
            Decision::Allow(grant) => {
                exchange.allow(grant.rule);
                if head.kind != Kind::Plain {
                    let tunnel =
                        Box::pin(websocket::open(self, exchange, parts, head, &grant)).await?;
                    return Ok(Answer::Tunnel(tunnel));
                }
                let body = RequestBody::new(body, exchange.traffic());
                self.forward(exchange, parts, body, head, &grant).await
            }
            Decision::Inspect(grant, rules) => {
                self.raise_alarm(&parts, head)?;
                let (places, time) = (&self.shared.inspections, self.shared.limits.inspection_time);
                let inspecting =
                    inspect::inspect(body, places, time, rules, grant.rule, &head.target);
                let inspected = Box::pin(inspecting).await?;
                exchange.allow(grant.rule);
                let body = RequestBody::kept(inspected, exchange.traffic());
                Box::pin(self.forward(exchange, parts, body, head, &grant)).await
            }
            Decision::Deny(denial) => {
                self.raise_alarm(&parts, head)?;
                Err(denial.into())
            }
        }
    }

    /// Looks for surrogates in a request that is, or may yet be, refused for another reason.
    fn raise_alarm(&self, parts: &Parts, head: &Head) -> Result<(), Refused> {
        let (host, target) = (&head.authority.host, parts.uri.path_and_query());
        let credentials = &self.shared.credentials;
        credentials.check(self.arrival.scheme, host, &parts.headers, target)
    }

    async fn forward(
        &self,
        exchange: &mut Exchange,
        parts: Parts,
        body: RequestBody,
        head: &Head,
        grant: &Grant<'_>,
    ) -> Result<Answer, Refusal> {
        let leg = match (parts.version, self.arrival.scheme) {
            (Version::HTTP_2, Scheme::Http) => Leg::Http2,
            _ => Leg::Auto,
        };
        let route = self.route(head, leg, grant);
        let version = parts.version;
        let request = forward::request(parts, head, body);
        let (request, scrub) = self
            .shared
            .credentials
            .apply(route.scheme, route.host, request, exchange)
            .await?;
        let interim = self.interim(version, scrub.as_ref(), exchange);
        match self.shared.upstreams.send(route, request, interim).await {
            Ok(sent) => Ok(Answer::Upstream(sent, scrub)),
            Err(trouble) => Err(match exchange.traffic().unsigned.get() {
                Some(&error) => Refused::Signature(error).into(),
                None => trouble.into(),
            }),
        }
    }

    pub(crate) fn route<'a>(&self, head: &'a Head, leg: Leg, grant: &'a Grant<'a>) -> Route<'a> {
        Route {
            scheme: self.arrival.scheme,
            host: &head.authority.host,
            port: head.port,
            leg,
            grant,
        }
    }

    /// Whom to tell of interim responses. HTTP/1.0 does not know them, and to an HTTP/2 client the library cannot
    /// send any.
    pub(crate) fn interim<'a>(
        &'a self,
        version: Version,
        scrub: Option<&'a Scrub>,
        exchange: &'a Exchange,
    ) -> Option<Interim<'a>> {
        (version == Version::HTTP_11).then(|| Interim {
            client: &self.heads,
            scrub,
            traffic: exchange.traffic(),
        })
    }

    pub(crate) fn pass_on(
        &self,
        sent: Sent,
        scrub: Option<Scrub>,
        mut exchange: Exchange,
    ) -> Response<ResponseBody> {
        let Sent {
            response,
            lease,
            address,
        } = sent;
        let (mut parts, incoming) = forward::response(response);
        exchange.answered(parts.status, address);
        let scrubbing = match scrub {
            None => None,
            Some(scrub) => {
                let has_body = !incoming.is_end_stream();
                match Scrubbing::begin(scrub, &mut parts, has_body, exchange.traffic()) {
                    Ok(scrubbing) => scrubbing,
                    Err(error) => {
                        return self.refuse(exchange, &Refused::Unscrubbable(error).into());
                    }
                }
            }
        };
        let idle = self.shared.upstream.idle_time;
        Response::from_parts(
            parts,
            ResponseBody::passing(incoming, scrubbing, lease, exchange, idle),
        )
    }

    fn refuse_bad_head(&self, slot: Slot, bad: &BadHead) -> Response<ResponseBody> {
        let location = Location::Url {
            scheme: self.arrival.scheme,
            place: Place::Raw(bad.host.clone()),
            target: bad.target.clone(),
        };
        // The policy knows best what is wrong with a target.
        let refusal = match Target::parse(&bad.target) {
            Err(malformed) if bad.why == MalformedHead::Target => {
                Denial::MalformedTarget(malformed).into()
            }
            _ => Refusal::Malformed(bad.why),
        };
        self.refuse(
            Exchange::new(slot, bad.method.clone(), location, None),
            &refusal,
        )
    }

    pub(crate) fn refuse(&self, exchange: Exchange, refusal: &Refusal) -> Response<ResponseBody> {
        let (id, method, location) = exchange.refuse(refusal);
        match location {
            Some(location) => {
                let redactor = self.shared.secrets.redactor();
                refusal.response(id, &method, &location, redactor.as_ref())
            }
            None => unrecorded(),
        }
    }
}

/// What a request that was allowed led to.
enum Answer {
    Upstream(Sent, Option<Scrub>),
    Tunnel(websocket::Opened),
}

/// The log is closed, which happens only while the proxy stops.
fn unrecorded() -> Response<ResponseBody> {
    let place = Place::Raw(bytes::Bytes::new());
    let target = bytes::Bytes::new();
    let location = Location::Url {
        scheme: Scheme::Https,
        place,
        target,
    };
    Refusal::Stopping.response(0, b"", &location, None)
}
