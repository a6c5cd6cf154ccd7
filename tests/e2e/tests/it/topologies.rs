//! What must hold however a container is connected: by the door, and beside a proxy container.

use std::{
    io::{self, BufRead, BufReader, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    sync::{Arc, Mutex, atomic::Ordering},
    thread,
};

use origin::Origin;

use crate::host::{host_addresses, host_service};
use crate::outside::Outside;
use crate::setup::{DEBIAN, Run, Setup, on_every_engine};

/// Sends each argument to port 80 of the name server's address, and one question whose name holds a line of the log.
/// In an argument, `~` stands for what an argument cannot hold: a byte that is no UTF-8.
const ODD_BYTES: &str = r#"
import socket, sys
server = open("/etc/resolv.conf").read().split()[1]
for head in sys.argv[1:]:
    with socket.create_connection((server, 80), 10) as s:
        s.sendall(head.replace("\n", "\r\n").encode().replace(b"~", b"\xff"))
        while s.recv(4096):
            pass
label = b"x\nALLOWED GET https://forged/ -> 200"
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.settimeout(10)
    s.connect((server, 53))
    s.send(b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0" + bytes([len(label)]) + label + b"\0\0\x01\0\x01")
    s.recv(512)
print("done")
"#;

on_every_engine! {
    fn an_allowed_host_is_reached_on_its_own_ports_and_schemes_only(setup) {
        in_both_topologies(setup, &["api.example.com"], |run, origin| {
            let allowlist = "url_prefixes: [{ host: api.example.com, private_addresses: true }]\n";
            let run = run.origin_with(origin, allowlist).sh(
                "code() { curl -s -o /dev/null -w '%{http_code} ' \"$@\"; }; \
                 for port in 22 80 8443; do code -H Host:api.example.com:$port https://api.example.com/; done; \
                 code http://api.example.com/; code https://api.example.com/; \
                 for port in 22 8080 8443; do code https://api.example.com:$port/ --max-time 2; done; true",
            );
            assert_eq!(run.succeed().stdout, "403 403 403 403 200 000 000 000 ", "{}", run.network_log());
            assert_eq!(origin.requests(), 1);
        });
    }

    fn names_that_lead_to_private_addresses_or_to_the_host_are_refused(setup) {
        let (port, heard) = host_service();
        in_both_topologies(setup, &["*.example.com"], |run, origin| {
            let of_the_host = host_addresses().into_iter().filter_map(|address| address.parse::<Ipv4Addr>().ok());
            let mut addresses: Vec<_> = of_the_host.filter(Ipv4Addr::is_private).map(|address| address.to_string()).collect();
            addresses.extend(["127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"].map(str::to_owned));
            let names: Vec<_> = addresses.iter().map(|address| address.replace('.', "-")).collect();
            let allowlist = format!("domains: [{{ host: '*.example.com', ports: [80, 443, {port}] }}]\n");
            let script = format!(
                "for name in {}; do curl -s -o /dev/null -w '%{{http_code}}\\n' -H Host:$name.example.com:{port} http://$name.example.com/; done",
                names.join(" ")
            );
            let run = run.origin_with(origin, &allowlist).sh(&script);
            assert_eq!(run.succeed().stdout, "403\n".repeat(names.len()), "{}", run.network_log());
        });
        assert_eq!(heard.load(Ordering::SeqCst), 0);
    }

    fn a_path_that_servers_resolve_differently_is_refused(setup) {
        in_both_topologies(setup, &["api.example.com"], |run, origin| {
            let allowlist = "url_prefixes: [{ host: api.example.com, path: '/status/*', private_addresses: true }]\n";
            let run = run.origin_with(origin, allowlist).sh(
                "for path in '/status/..?x' '/status/..;/echo' '/status/%252e%252e/echo' '/status/%2e%2e/echo' '/status/..%5cecho' '/status/201'; do \
                 curl -s --path-as-is -o /dev/null -w '%{http_code} ' \"https://api.example.com$path\"; done",
            );
            assert_eq!(run.succeed().stdout, "403 403 403 403 403 201 ", "{}", run.network_log());
            assert_eq!(origin.requests(), 1);
        });
    }

    fn a_name_without_ipv6_is_no_failure_to_resolve(setup) {
        in_both_topologies(setup, &["api.example.com"], |run, origin| {
            let run = run.origin(origin, &["api.example.com"]).sh(
                "for way in +tcp +notcp; do for type in A AAAA HTTPS MX; do \
                 dig $way api.example.com $type | sed -n 's/.*status: \\([A-Z]*\\).*/\\1/p; s/.*ANSWER: \\([0-9]*\\).*/\\1/p'; done; done | tr '\\n' ' '",
            );
            assert_eq!(run.succeed().stdout, "NOERROR 1 NOERROR 0 NOERROR 0 NOERROR 0 ".repeat(2));
        });
    }

    fn a_companys_proxy_is_asked_with_credentials_that_no_argument_holds(setup) {
        in_both_topologies(setup, &["*.example.com"], |run, origin| {
            let (port, heads) = corporate_proxy(origin);
            let url = format!("http://{}:{port}", origin.address());
            let run = run.origin(origin, &["*.example.com"])
                .flags(["--upstream-proxy", &url, "--upstream-proxy-bypass", "near.example.com"])
                .env("CORDON_UPSTREAM_PROXY_CREDENTIALS", "user:p@ss")
                .sh("for name in missing near; do curl -sS -o /dev/null -w '%{http_code} ' https://$name.example.com/; done; env | grep -c 'p@ss'; true");
            // Only the proxy can resolve the first; only the second is looked up here.
            let ended = run.succeed();
            assert_eq!(ended.stdout, "200 200 0\n", "{ended:?} {}", run.network_log());
            let heads = heads.lock().unwrap();
            assert_eq!(heads.len(), 1, "{heads:?}");
            assert!(heads[0].starts_with("CONNECT missing.example.com:443 "), "{heads:?}");
            assert!(heads[0].contains("Proxy-Authorization: Basic dXNlcjpwQHNz"), "{heads:?}");
        });
    }

    fn each_request_leaves_one_line_whatever_its_bytes(setup) {
        in_both_topologies(setup, &["api.example.com"], |run, origin| {
            let heads = [
                "GET /~ HTTP/1.1\nHost: api.example.com\n\n",
                "GET /\u{1b}[2J\u{202e} HTTP/1.1\nHost: api.example.com\n\n",
                "POST /two HTTP/1.1\nHost: api.example.com\nContent-Length: 3\nTransfer-Encoding: chunked\n\n",
                "GET /bad HTTP/1.1\nHost: api.example.com\nBad Name: x\n\n",
                "GET http://other.example.com/mismatch HTTP/1.1\nHost: api.example.com\nConnection: close\n\n",
                "GET http://api.example.com:8443/port HTTP/1.1\nHost: api.example.com:8443\nConnection: close\n\n",
            ];
            let run = run.origin(origin, &["api.example.com"]).command(["python3", "-c", ODD_BYTES]).command_with(&heads);
            assert_eq!(run.succeed().stdout, "done\n");
            let log = run.network_log();
            assert!(log.bytes().all(|byte| byte == b'\n' || (0x20..0x7f).contains(&byte)), "{log:?}");
            let lines: Vec<_> = log.lines().skip(1).collect();
            assert_eq!(lines.len(), heads.len() + 1, "{log}");
            let (question, requests) = lines.split_last().unwrap();
            assert!(question.starts_with("DNS A x"), "{log}");
            assert!(requests.iter().all(|line| line.starts_with("BLOCKED ") && line.contains(" time=")), "{log}");
            for url in ["http://api.example.com:8443/port ", "/mismatch ", "/two ", "/bad "] {
                assert_eq!(log.matches(url).count(), 1, "{url}: {log}");
            }
            assert_eq!(origin.connections(), 0);
        });
    }
}

/// A company's proxy at the address of the world outside, which it leads to, and the heads that it got.
fn corporate_proxy(origin: &Origin) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind((origin.address(), 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let heads = Arc::<Mutex<Vec<String>>>::default();
    let (seen, target) = (Arc::clone(&heads), (origin.address(), 443));
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(client.try_clone().unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap() > 0 {}
            seen.lock().unwrap().push(head);
            (&client).write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            let upstream = TcpStream::connect(target).unwrap();
            let (mut from, mut to) = (upstream.try_clone().unwrap(), client);
            thread::spawn(move || io::copy(&mut from, &mut to));
            thread::spawn(move || io::copy(&mut reader, &mut &upstream));
        }
    });
    (port, heads)
}

/// Makes the same claim of a run by the door and of one beside a proxy container.
fn in_both_topologies(setup: Setup, names: &[&str], claim: impl Fn(Run, &Origin)) {
    for topology in ["door", "proxy-container"] {
        let outside = Outside::new(names);
        let run = Run::new(setup)
            .flags(["--topology", topology])
            .image(DEBIAN);
        claim(run, &outside.origin);
    }
}
