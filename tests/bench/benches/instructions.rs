//! Instructions that the request path takes, counted by valgrind: a busy machine does not change them.
//!
//! `scripts/bench-instructions` compares them with `instructions.tsv`.

#![expect(
    missing_docs,
    unused_qualifications,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::exit,
    reason = "what the macros of the benchmark write"
)]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot run must fail")]

use std::{
    hint::black_box,
    io::{Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket},
    sync::Arc,
};

use cordon_policy::{Allowlist, Authority, Decision, RequestHead, Scheme, Target};
use cordon_proxy::{CertificateAuthority, LogTarget, Proxy, Settings, Sockets};
use gungraun::{library_benchmark, library_benchmark_group, main};
use tokio::runtime::Runtime;

fn allowlist() -> Allowlist {
    let mut yaml = "domains:\n".to_owned();
    for number in 0..20 {
        yaml += &format!("- '*.host{number}.example'\n");
    }
    yaml += "- api.example.com\n";
    Allowlist::from_yaml(&yaml).unwrap()
}

#[library_benchmark]
#[bench::last_of_twenty(allowlist(), "api.example.com")]
#[bench::unknown_host(allowlist(), "evil.example")]
fn decide(allowlist: Allowlist, host: &str) -> (bool, Allowlist) {
    let authority = Authority::parse(black_box(host).as_bytes()).unwrap();
    let target = Target::parse(black_box(b"/v1/messages?beta=true")).unwrap();
    let head = RequestHead {
        scheme: Scheme::Https,
        host: &authority.host,
        port: 443,
        method: "POST",
        target: &target,
    };
    let allowed = matches!(black_box(&allowlist).decide(&head), Decision::Allow(_));
    // Dropping it is no part of deciding.
    (allowed, allowlist)
}

#[library_benchmark]
#[bench::question(b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x07example\x03com\0\0\x01\0\x01")]
fn dns(question: &[u8]) -> usize {
    cordon_proxy::answer(black_box(question), Ipv4Addr::LOCALHOST)
        .unwrap()
        .reply
        .len()
}

/// A proxy and a client that has a connection with it.
struct Served {
    runtime: Runtime,
    stream: TcpStream,
    _proxy: Proxy,
    _directory: tempfile::TempDir,
}

fn served() -> Served {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let dns_udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let sockets = Sockets {
        http: bind(),
        https: bind(),
        dns_tcp: bind(),
        dns_udp,
    };
    let address = sockets.http.local_addr().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let mut settings = Settings::new(Ipv4Addr::LOCALHOST, allowlist());
    settings.log = LogTarget::in_directory(directory.path());
    let authority = Arc::new(CertificateAuthority::generate().unwrap());
    let proxy = runtime
        .block_on(Proxy::start(sockets, settings, authority))
        .unwrap();
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nonblocking(true).unwrap();
    let mut served = Served {
        runtime,
        stream,
        _proxy: proxy,
        _directory: directory,
    };
    // What is done once only is not to be counted.
    ask(&mut served, 8);
    served
}

/// Requests that are refused, with their records, on one connection: all of the path but the upstream.
fn ask(served: &mut Served, count: usize) {
    let request =
        b"GET /v1/x HTTP/1.1\r\nHost: evil.example\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n";
    let mut buffer = [0; 16 * 1024];
    for _ in 0..count {
        served.stream.write_all(request).unwrap();
        let mut length = 0;
        while !complete(&buffer[..length]) {
            served.runtime.block_on(tokio::task::yield_now());
            match served.stream.read(&mut buffer[length..]) {
                Ok(read) => length += read,
                Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
            }
        }
    }
}

/// The answer is a JSON object.
fn complete(answer: &[u8]) -> bool {
    answer.trim_ascii_end().ends_with(b"}")
}

#[library_benchmark]
#[bench::hundred(served())]
fn refused_requests(mut served: Served) -> Served {
    ask(&mut served, 100);
    served
}

library_benchmark_group!(name = policy; benchmarks = decide, dns);
library_benchmark_group!(name = proxy; benchmarks = refused_requests);
main!(library_benchmark_groups = policy, proxy);
