use std::time::Duration;

use bytes::Bytes;
use cordon_policy::{Host, RuleRef, Scheme};
use jiff::Timestamp;

use super::*;
use crate::log::{DnsRecord, Notes};

fn record(event: Event) -> Record {
    Record {
        id: 7,
        time: Timestamp::from_millisecond(1_700_000_000_123).unwrap(),
        event,
    }
}

fn request(verdict: Verdict, status: Option<u16>) -> RequestRecord {
    RequestRecord {
        verdict,
        method: Bytes::from_static(b"GET"),
        location: Location::Url {
            scheme: Scheme::Https,
            place: Place::Known {
                host: Host::parse("example.com").unwrap(),
                port: None,
            },
            target: Bytes::from_static(b"/p?q=1"),
        },
        status,
        bytes_up: 1,
        bytes_down: 2,
        duration: Duration::from_millis(34),
        upstream: Some("192.0.2.1:443".parse().unwrap()),
        broken: None,
        notes: None,
    }
}

fn line_of(request: RequestRecord) -> String {
    line(&record(Event::Request(Box::new(request))))
}

const ALLOWED: Verdict = Verdict::Allowed {
    rule: RuleRef::Domain(0),
};

#[test]
fn requests_read_as_what_became_of_them() {
    assert_eq!(
        line_of(request(ALLOWED, Some(200))),
        "ALLOWED GET https://example.com/p?q=1 -> 200"
    );
    assert_eq!(
        line_of(request(ALLOWED, None)),
        "ALLOWED GET https://example.com/p?q=1 -> ?"
    );
    let blocked = Verdict::Blocked {
        code: "host_mismatch",
        note: Some("host mismatch: header=a, url=b".to_owned()),
    };
    assert_eq!(
        line_of(request(blocked, Some(403))),
        "BLOCKED GET https://example.com/p?q=1 -> 403 (host mismatch: header=a, url=b)"
    );
    let failed = Verdict::Failed {
        rule: RuleRef::UrlPrefix(2),
        code: "dns_failure",
        message: "no such\nname".to_owned(),
    };
    assert_eq!(
        line_of(request(failed, Some(502))),
        r"ERROR GET https://example.com/p?q=1 -> no such\x0aname"
    );
}

#[test]
fn notes_stand_behind_the_status_in_their_order() {
    let mut request = request(ALLOWED, Some(200));
    request.notes = Some(Box::new(Notes {
        tags: vec!["graphql-op: query/viewer".to_owned()],
        masked: 2,
        dropped: 1,
        region: Some("us-west-2".to_owned()),
        ..Notes::default()
    }));
    assert!(line_of(request).ends_with(
        " -> 200 [graphql-op: query/viewer] [masked: 2] [dropped: 1] [region: us-west-2]"
    ));
}

#[test]
fn a_tunnel_names_its_authority() {
    let mut tunnel = request(
        Verdict::Blocked {
            code: "tunnel_refused",
            note: Some("tunneling not allowed".to_owned()),
        },
        Some(403),
    );
    tunnel.method = Bytes::from_static(b"CONNECT");
    tunnel.location = Location::Tunnel(Bytes::from_static(b"evil.com:443"));
    assert_eq!(
        line_of(tunnel),
        "BLOCKED CONNECT evil.com:443 -> 403 (tunneling not allowed)"
    );
}

#[test]
fn whole_lines_end_with_the_detail() {
    let mut text = String::new();
    append(&mut text, &record(Event::Start));
    let broken = RequestRecord {
        broken: Some(Broken::Upstream("gone \"away\"".to_owned())),
        ..request(ALLOWED, Some(200))
    };
    append(&mut text, &record(Event::Request(Box::new(broken))));
    append(
        &mut text,
        &record(Event::Dns(DnsRecord {
            name: "example.com".to_owned(),
            record_type: 28,
            result: DnsResult::NoData,
        })),
    );
    assert_eq!(
        text,
        "=== TASK START 2023-11-14T22:13:20Z ===\n\
         ALLOWED GET https://example.com/p?q=1 -> 200 {id=7 time=2023-11-14T22:13:20.123Z rule=domains[0] \
         up=1 down=2 ms=34 via=192.0.2.1:443 broken=\"gone \\\"away\\\"\"}\n\
         DNS AAAA example.com -> NODATA {id=7 time=2023-11-14T22:13:20.123Z}\n"
    );
}

#[test]
fn record_types_without_a_usual_name_are_numbers() {
    for (number, name) in [
        (1, "A"),
        (28, "AAAA"),
        (255, "ANY"),
        (65, "TYPE65"),
        (999, "TYPE999"),
    ] {
        assert_eq!(type_name(number), name);
    }
}
