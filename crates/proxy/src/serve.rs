//! One request: understand, decide, forward, answer.
//!
//! Every path through here ends with exactly one record. Nothing is dialled before the whole head
//! was allowed.

use std::{convert::Infallible, sync::Arc};

use arc_swap::ArcSwap;
use cordon_policy::{Allowlist, Decision, Denial, Grant, RequestHead, Scheme, Target};
use http::{Request, Response, Version, request::Parts};
use hyper::body::Incoming;
use tokio::sync::Semaphore;

use crate::{
    Limits, Upstream,
    body::{RequestBody, ResponseBody},
    exchange::{Exchange, method_bytes},
    forward,
    front::{BadHead, Heads},
    head::{self, Arrival, Head, Kind},
    inspect,
    log::{Location, Log, Place, Slot},
    refusal::{MalformedHead, Refusal},
    tasks::Tasks,
    upstream::{Leg, Route, Sent, Upstreams},
    websocket,
};

/// What all connections of a proxy share.
pub(crate) struct Shared {
    pub(crate) allowlist: ArcSwap<Allowlist>,
    pub(crate) upstreams: Upstreams,
    pub(crate) upstream: Upstream,
    pub(crate) limits: Limits,
    pub(crate) inspections: Arc<Semaphore>,
    pub(crate) log: Log,
    pub(crate) tasks: Tasks,
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
        let (location, head) = head::understand(&parts, &self.arrival);
        let mut exchange = Exchange::new(slot, method_bytes(&parts.method), location, Some(open));
        let answered = match head {
            Ok(head) => self.decide(&mut exchange, parts, body, &head).await,
            Err(refusal) => Err(refusal),
        };
        Ok(match answered {
            Ok(Answer::Upstream(sent)) => self.pass_on(sent, exchange),
            Ok(Answer::Tunnel(tunnel)) => tunnel.begin(&self, exchange),
            Err(refusal) => refuse(exchange, &refusal),
        })
    }

    async fn decide(
        &self,
        exchange: &mut Exchange,
        parts: Parts,
        body: Incoming,
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
        match decision {
            Decision::Allow(grant) => {
                exchange.allow(grant.rule);
                if head.kind != Kind::Plain {
                    let tunnel = websocket::open(self, parts, body, head, &grant).await?;
                    return Ok(Answer::Tunnel(Box::new(tunnel)));
                }
                let body = RequestBody::new(body, exchange.traffic());
                self.forward(parts, body, head, &grant).await
            }
            Decision::Inspect(grant, rules) => {
                let (places, time) = (&self.shared.inspections, self.shared.limits.inspection_time);
                let inspected =
                    inspect::inspect(body, places, time, rules, grant.rule, &head.target).await?;
                exchange.allow(grant.rule);
                let body = RequestBody::kept(inspected, exchange.traffic());
                self.forward(parts, body, head, &grant).await
            }
            Decision::Deny(denial) => Err(denial.into()),
        }
    }

    async fn forward(
        &self,
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
        let request = forward::request(parts, head, body);
        Ok(Answer::Upstream(self.shared.upstreams.send(route, request).await?))
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

    pub(crate) fn pass_on(&self, sent: Sent, mut exchange: Exchange) -> Response<ResponseBody> {
        let Sent { response, lease, address } = sent;
        let (parts, incoming) = forward::response(response);
        exchange.answered(parts.status, address);
        let idle = self.shared.upstream.idle_time;
        Response::from_parts(parts, ResponseBody::passing(incoming, lease, exchange, idle))
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
        refuse(Exchange::new(slot, bad.method.clone(), location, None), &refusal)
    }
}

/// What a request that was allowed led to.
enum Answer {
    Upstream(Sent),
    Tunnel(Box<websocket::Opened>),
}

fn refuse(exchange: Exchange, refusal: &Refusal) -> Response<ResponseBody> {
    let (id, method, location) = exchange.refuse(refusal);
    match location {
        Some(location) => refusal.response(id, &method, &location),
        None => unrecorded(),
    }
}

/// The log is closed, which happens only while the proxy stops.
fn unrecorded() -> Response<ResponseBody> {
    let place = Place::Raw(bytes::Bytes::new());
    let target = bytes::Bytes::new();
    let location = Location::Url { scheme: Scheme::Https, place, target };
    Refusal::Stopping.response(0, b"", &location)
}
