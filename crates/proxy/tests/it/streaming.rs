//! Bodies that are long, slow or endless.

use std::time::{Duration, Instant};

use cordon_proxy::Broken;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{Bench, Origin};

#[tokio::test(flavor = "multi_thread")]
async fn events_arrive_one_by_one() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    let mut stream = TcpStream::connect(bench.http).await.unwrap();
    let request = format!(
        "GET /events HTTP/1.1\r\nHost: {}\r\n\r\n",
        origin.http_host()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    let mut times = Vec::new();
    let mut buffer = [0; 1024];
    while times.len() < 3 {
        let length = stream.read(&mut buffer).await.unwrap();
        text.push_str(std::str::from_utf8(&buffer[..length]).unwrap());
        times.resize(text.matches("data: ").count(), Instant::now());
    }
    for pair in times.windows(2) {
        let gap = pair[1] - pair[0];
        assert!(
            gap > Duration::from_millis(200) && gap < Duration::from_millis(600),
            "{gap:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_ends_the_exchange_and_leaves_a_record() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    // In the middle of a response, before it, and in the middle of an upload.
    for (index, (method, path, fields)) in [
        ("GET", "/stall", ""),
        ("GET", "/silent", ""),
        ("POST", "/sink", "Content-Length: 100\r\n"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut stream = TcpStream::connect(bench.http).await.unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{fields}\r\n",
            origin.http_host()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        drop(stream);
        let requests = bench.requests(index + 1).await;
        assert_eq!(
            requests[index].broken,
            Some(Broken::ClientGone),
            "{path}: {:?}",
            requests[index]
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_exchange_is_recorded_when_the_proxy_stops() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    let mut streams = Vec::new();
    for path in ["/stall", "/silent", "/stall"] {
        let mut stream = TcpStream::connect(bench.http).await.unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n",
            origin.http_host()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        streams.push(stream);
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let begun = Instant::now();
    let (summary, directory) = bench.stop().await;
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!((summary.allowed, summary.lost_records), (3, 0));
    let log = crate::support::read(&directory.path().join("network-sandbox.log"));
    assert_eq!(log.matches("ALLOWED GET ").count(), 3, "{log}");
    for stream in &mut streams {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gigabyte_each_way_takes_little_memory() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    let size: usize = 256 << 20;
    let before = resident();
    for option in ["--http1.1", "--http2"] {
        let url = origin.https_url(&format!("/bytes?{size}"));
        let answer = bench
            .curl(&[option, "-o", "/dev/null", "-w", "%{size_download}", &url])
            .await;
        assert!(answer.contains(&size.to_string()), "{answer}");
        let file = bench.directory.path().join("zeros");
        std::fs::File::create(&file)
            .unwrap()
            .set_len(size as u64)
            .unwrap();
        let url = origin.https_url("/sink");
        let answer = bench
            .curl(&[option, "-T", &file.display().to_string(), &url])
            .await;
        assert!(answer.starts_with(&size.to_string()), "{answer}");
    }
    // The origin is in this process as well.
    let grown = resident().saturating_sub(before);
    assert!(grown < 48 << 20, "grew by {} MiB", grown >> 20);
    let requests = bench.requests(4).await;
    assert!(
        requests
            .iter()
            .all(|request| request.bytes_up.max(request.bytes_down) == size as u64)
    );
}

/// The most memory that this process ever held, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<usize>()
        .unwrap()
        << 10
}
