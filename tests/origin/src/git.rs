//! Repositories over HTTP, served by git's own `http-backend`.

#![expect(
    clippy::disallowed_methods,
    reason = "the backend is a program of git's"
)]

use std::{path::PathBuf, process::Stdio};

use data_encoding::BASE64;
use http_body_util::BodyExt;
use hyper::{Request, Response, StatusCode, body::Incoming};
use tokio::{io::AsyncWriteExt, process::Command};

use crate::Seen;

/// The repositories and the password that opens them.
pub(crate) type Repositories = (PathBuf, String);

/// Whether the request is for a repository.
pub(crate) fn serves(request: &Request<Incoming>, seen: &Seen) -> Option<Repositories> {
    if !request.uri().path().starts_with("/git/") {
        return None;
    }
    seen.git.lock().unwrap().clone()
}

pub(crate) async fn respond(
    request: Request<Incoming>,
    repositories: Repositories,
) -> Response<Vec<u8>> {
    let (root, password) = repositories;
    let expected = format!(
        "Basic {}",
        BASE64.encode(format!("user:{password}").as_bytes())
    );
    let given = request.headers().get("authorization");
    if given.is_none_or(|given| given.as_bytes() != expected.as_bytes()) {
        return Response::builder()
            .status(StatusCode::UNAUTHORIZED)
            .header("www-authenticate", "Basic realm=\"git\"")
            .body(Vec::new())
            .unwrap();
    }
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let header = |name: &str| {
        let value = head.headers.get(name);
        value
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_owned()
    };
    let mut child = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REMOTE_USER", "user")
        .env("REQUEST_METHOD", head.method.as_str())
        .env("PATH_INFO", head.uri.path().trim_start_matches("/git"))
        .env("QUERY_STRING", head.uri.query().unwrap_or_default())
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("GIT_PROTOCOL", header("git-protocol"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let feed = async move { drop(stdin.write_all(&body).await) };
    let (_, output) = tokio::join!(feed, child.wait_with_output());
    parse(&output.unwrap().stdout)
}

/// A CGI response: headers, an empty line, the body.
fn parse(output: &[u8]) -> Response<Vec<u8>> {
    let end = output
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .unwrap();
    let mut response = Response::builder();
    for line in String::from_utf8_lossy(&output[..end]).lines() {
        let (name, value) = line.split_once(": ").unwrap();
        response = match name {
            "Status" => response.status(value.split(' ').next().unwrap()),
            _ => response.header(name, value),
        };
    }
    response.body(output[end + 4..].to_vec()).unwrap()
}
