//! A gRPC service whose messages are plain bytes, so that nobody needs a schema.
//!
//! | method | answer |
//! | --- | --- |
//! | `/door.Probe/Echo` | the message |
//! | `/door.Probe/Count` | as many messages as the message says, from 1 |
//! | anything else | status 12, and why |

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt, StreamBody, combinators::BoxBody};
use hyper::{
    HeaderMap, Request, Response,
    body::{Frame, Incoming},
    header::HeaderValue,
};

/// Whether the request is one of gRPC's.
pub(crate) fn serves(request: &Request<Incoming>) -> bool {
    let kind = request.headers().get("content-type");
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

pub(crate) async fn respond(request: Request<Incoming>) -> Response<BoxBody<Bytes, Infallible>> {
    let method = request.uri().path().to_owned();
    let body = request.into_body().collect().await;
    let body = body.map(|body| body.to_bytes()).unwrap_or_default();
    // A message stands behind a flag and its length.
    let message = body.get(5..).unwrap_or_default();
    let (messages, status, why) = match method.as_str() {
        "/door.Probe/Echo" => (vec![message.to_vec()], "0", ""),
        "/door.Probe/Count" => (count(message), "0", ""),
        _ => (Vec::new(), "12", "no such method"),
    };
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static(status));
    trailers.insert("grpc-message", HeaderValue::from_static(why));
    trailers.insert("said-at-the-end", HeaderValue::from_static("goodbye"));

    let frames = messages
        .into_iter()
        .map(|message| Frame::data(framed(&message)));
    let frames = frames.chain([Frame::trailers(trailers)]);
    let frames = stream::iter(frames.map(Ok::<_, Infallible>));
    Response::builder()
        .header("content-type", "application/grpc")
        .body(BodyExt::boxed(StreamBody::new(frames)))
        .unwrap()
}

fn count(message: &[u8]) -> Vec<Vec<u8>> {
    let last: u32 = String::from_utf8_lossy(message).parse().unwrap_or_default();
    (1..=last)
        .map(|number| number.to_string().into_bytes())
        .collect()
}

fn framed(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap();
    let mut frame = vec![0];
    frame.extend(length.to_be_bytes());
    frame.extend(message);
    frame.into()
}
