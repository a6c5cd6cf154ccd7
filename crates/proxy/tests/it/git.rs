//! git over https with a masked token, against git's own http backend.

use std::{
    convert::Infallible,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{Output, Stdio},
    sync::Arc,
};

use bytes::Bytes;
use data_encoding::BASE64;
use http::{Request, Response, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::{io::AsyncWriteExt, process::Command};
use tokio_rustls::TlsAcceptor;

use crate::support::{
    Plan, origin,
    secrets::{TOKEN, assert_absent, token},
};

#[tokio::test(flavor = "multi_thread")]
async fn git_clones_and_pushes_with_a_masked_token() {
    let (directory, prepared) = (tempfile::tempdir().unwrap(), token());
    let work = directory.path();
    git(work, &["init", "--quiet", "--bare", "server/repo.git"]).await;
    git(
        &work.join("server/repo.git"),
        &["config", "http.receivepack", "true"],
    )
    .await;

    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .unwrap();
    let port = listener.local_addr().unwrap().port();
    let (root, config) = origin::credentials(&["h2", "http/1.1"]);
    tokio::spawn(serve(
        listener,
        TlsAcceptor::from(Arc::new(config)),
        work.join("server"),
    ));
    // git cannot be told to use another port than that of the URL, but another address.
    let door = TcpListener::bind((Ipv4Addr::new(127, 0, 0, 77), port)).unwrap();
    let mut plan = Plan::reaching(port, &root, &prepared.replacements);
    plan.https = Some(door);
    let bench = plan.start().await;

    let surrogate = &prepared.env["GH_TOKEN"];
    let resolve = format!("http.curloptResolve=api.test:{port}:127.0.0.77");
    let ca = format!("http.sslCAInfo={}", bench.ca().display());
    let url = format!("https://x-access-token:{surrogate}@api.test:{port}/repo.git");
    let through = ["-c", &resolve, "-c", &ca];
    git(work, &[&through[..], &["clone", &url, "copy"]].concat()).await;
    let copy = work.join("copy");
    // Large enough to be sent in pieces.
    std::fs::write(copy.join("file"), "line of text\n".repeat(300_000)).unwrap();
    git(&copy, &["add", "file"]).await;
    git(&copy, &["commit", "--quiet", "--message", "first"]).await;
    git(
        &copy,
        &[&through[..], &["push", "origin", "HEAD:refs/heads/main"]].concat(),
    )
    .await;
    git(
        work,
        &[&through[..], &["clone", "--branch", "main", &url, "again"]].concat(),
    )
    .await;
    assert_eq!(
        std::fs::read(work.join("again/file")).unwrap(),
        std::fs::read(copy.join("file")).unwrap()
    );

    // Without the token there is no way in.
    let wrong = url.replace(surrogate.as_str(), "somebody-else");
    let refused = try_git(work, &[&through[..], &["clone", &wrong, "never"]].concat()).await;
    assert!(!refused.status.success());
    let lines = bench.lines();
    assert!(
        lines
            .iter()
            .any(|line| line.contains("git-receive-pack -> 200 [masked: 1]")),
        "{lines:#?}"
    );
    for line in lines {
        assert_absent(TOKEN, &line);
    }
}

async fn serve(listener: tokio::net::TcpListener, acceptor: TlsAcceptor, repositories: PathBuf) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (acceptor, repositories) = (acceptor.clone(), repositories.clone());
        tokio::spawn(async move {
            let stream = acceptor.accept(stream).await.unwrap();
            let service = service_fn(move |request| answer(request, repositories.clone()));
            // Clients may leave when they like.
            let _ = auto::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

/// Lets in whoever has the real token.
async fn answer(
    request: Request<Incoming>,
    repositories: PathBuf,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let expected = format!(
        "Basic {}",
        BASE64.encode(format!("x-access-token:{TOKEN}").as_bytes())
    );
    let sent = head.headers.get(header::AUTHORIZATION);
    if sent.is_none_or(|sent| sent.as_bytes() != expected.as_bytes()) {
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, "Basic realm=git".parse().unwrap());
        return Ok(response);
    }
    let body = body.collect().await.unwrap().to_bytes();
    Ok(backend(&head, &body, &repositories).await)
}

/// Runs `git http-backend`, which speaks CGI.
#[expect(clippy::disallowed_methods, reason = "tests drive real programs")]
async fn backend(head: &Parts, body: &[u8], repositories: &Path) -> Response<Full<Bytes>> {
    let field = |name: &str| {
        head.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    };
    let mut process = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", repositories)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REMOTE_USER", "tester")
        .env("REQUEST_METHOD", head.method.as_str())
        .env("PATH_INFO", head.uri.path())
        .env("QUERY_STRING", head.uri.query().unwrap_or_default())
        .env("CONTENT_TYPE", field("content-type"))
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", field("content-encoding"))
        .env("GIT_PROTOCOL", field("git-protocol"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = process.stdin.take().unwrap();
    let body = body.to_vec();
    let writing = tokio::spawn(async move { stdin.write_all(&body).await });
    let output = process.wait_with_output().await.unwrap().stdout;
    writing.await.unwrap().unwrap();
    let end = output
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .unwrap();
    let mut response = Response::new(Full::new(Bytes::copy_from_slice(&output[end + 4..])));
    for line in String::from_utf8_lossy(&output[..end]).lines() {
        let (name, value) = line.split_once(": ").unwrap();
        if name == "Status" {
            *response.status_mut() = value[..3].parse().unwrap();
        } else {
            let name: http::HeaderName = name.parse().unwrap();
            response.headers_mut().insert(name, value.parse().unwrap());
        }
    }
    response
}

async fn git(directory: &Path, arguments: &[&str]) {
    let output = try_git(directory, arguments).await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {said}");
    assert_absent(TOKEN, &said);
}

#[expect(clippy::disallowed_methods, reason = "tests drive real programs")]
async fn try_git(directory: &Path, arguments: &[&str]) -> Output {
    Command::new("git")
        .current_dir(directory)
        .args([
            "-c",
            "user.name=Tester",
            "-c",
            "user.email=tester@example.com",
        ])
        .args(["-c", "credential.helper="])
        .args(arguments)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env_remove("GIT_SSL_CAINFO")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .await
        .unwrap()
}
