//! Rewrites what belongs to one connection and not to the request: for the upstream, and back.
//!
//! A request is kept in origin form with its Host header until it is known which protocol the
//! upstream speaks; then it takes that protocol's form.

use std::collections::HashSet;

use cordon_policy::{Authority, Scheme};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri, Version, header, request,
    response,
    uri::{self, PathAndQuery},
};

use crate::{
    body::RequestBody,
    head::{Head, Kind},
};

/// The request to send, made from the one that came.
pub(crate) fn request(
    parts: request::Parts,
    head: &Head,
    body: RequestBody,
) -> Request<RequestBody> {
    let mut headers = parts.headers;
    let websocket = head.kind != Kind::Plain;
    let trailers = wants_trailers(&headers);
    strip(&mut headers);
    if trailers {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
    }
    if websocket {
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    }
    set_host(&mut headers, &head.authority);
    let mut request = Request::new(body);
    *request.method_mut() = if websocket { Method::GET } else { parts.method };
    *request.uri_mut() = origin_form(parts.uri);
    *request.headers_mut() = headers;
    request
}

/// Gives a request the form that HTTP/1.1 wants.
pub(crate) fn for_http1(request: &mut Request<RequestBody>) {
    *request.version_mut() = Version::HTTP_11;
    if let Some(authority) = request.uri().authority()
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        request.headers_mut().insert(header::HOST, host);
        *request.uri_mut() = origin_form(std::mem::take(request.uri_mut()));
    }
    join_cookies(request.headers_mut());
    // Trailers are asked for hop by hop.
    if request.headers().contains_key(header::TE)
        && !request.headers().contains_key(header::UPGRADE)
    {
        request
            .headers_mut()
            .insert(header::CONNECTION, HeaderValue::from_static("te"));
    }
}

/// Gives a request the form that HTTP/2 wants.
pub(crate) fn for_http2(request: &mut Request<RequestBody>, scheme: Scheme) {
    *request.version_mut() = Version::HTTP_2;
    request.headers_mut().remove(header::CONNECTION);
    // The library does not tell of interim responses, so nobody would hear the upstream ask.
    request.headers_mut().remove(header::EXPECT);
    let Some(host) = request.headers_mut().remove(header::HOST) else {
        return;
    };
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    parts.scheme = Some(match scheme {
        Scheme::Http => uri::Scheme::HTTP,
        Scheme::Https => uri::Scheme::HTTPS,
    });
    parts.authority = uri::Authority::try_from(host.as_bytes()).ok();
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
}

/// Takes from a response what belonged to the upstream connection.
pub(crate) fn response<B>(response: Response<B>) -> (response::Parts, B) {
    let (mut parts, body) = response.into_parts();
    response_fields(&mut parts.headers);
    parts.extensions.clear();
    parts.version = Version::default();
    (parts, body)
}

/// Takes from the fields of a response, be it the final one or not, what belonged to the upstream connection.
pub(crate) fn response_fields(headers: &mut HeaderMap) {
    strip(headers);
    // It would send the client to a UDP port that nobody serves.
    headers.remove(header::ALT_SVC);
}

/// Removes the fields that are for one connection only, and those that `Connection` names.
fn strip(headers: &mut HeaderMap) {
    if headers.contains_key(header::CONNECTION) {
        for name in named_by_connection(headers) {
            headers.remove(name);
        }
    }
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
}

/// A sender may not use `Connection` to take away what a request stands on.
fn named_by_connection(headers: &HeaderMap) -> HashSet<HeaderName> {
    headers
        .get_all(header::CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|&byte| byte == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .filter(|name| !END_TO_END.contains(name))
        .collect()
}

fn wants_trailers(headers: &HeaderMap) -> bool {
    crate::head::has_token(headers, &header::TE, "trailers")
}

/// The upstream gets the host in the spelling that was judged.
fn set_host(headers: &mut HeaderMap, authority: &Authority) {
    let written = headers.get(header::HOST).map(HeaderValue::as_bytes);
    if authority.port.is_none() && written == Some(authority.host.as_str().as_bytes()) {
        return;
    }
    // A normalised authority is visible ASCII.
    if let Ok(host) = HeaderValue::try_from(authority.to_string()) {
        headers.insert(header::HOST, host);
    }
}

fn origin_form(uri: Uri) -> Uri {
    if uri.scheme().is_none() && uri.authority().is_none() && uri.path_and_query().is_some() {
        return uri;
    }
    let target = uri
        .into_parts()
        .path_and_query
        .filter(|target| !target.as_str().is_empty());
    Uri::from(target.unwrap_or(PathAndQuery::from_static("/")))
}

/// HTTP/2 clients may send cookies in pieces; HTTP/1 knows one Cookie header.
fn join_cookies(headers: &mut HeaderMap) {
    if headers.get_all(header::COOKIE).iter().nth(1).is_none() {
        return;
    }
    let pieces: Vec<_> = headers
        .get_all(header::COOKIE)
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    if let Ok(joined) = HeaderValue::from_bytes(&pieces.join(&b"; "[..])) {
        headers.insert(header::COOKIE, joined);
    }
}

/// Fields that mean something to the next hop only.
static HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Fields that no `Connection` header can take away.
static END_TO_END: [HeaderName; 4] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::AUTHORIZATION,
];
