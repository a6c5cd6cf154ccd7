//! DNS as `dig` sees it.

use cordon_proxy::{DnsResult, Event, Limits};

use crate::support::{Bench, DOOR, Origin, Plan, stdout};

async fn dig(bench: &Bench, arguments: &[&str]) -> String {
    let port = bench.dns.port().to_string();
    let mut all = vec!["@127.0.0.1", "-p", &port, "+tries=1", "+time=3"];
    all.extend(arguments);
    stdout("dig", &all).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_name_has_the_address_of_the_door() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    for transport in ["+tcp", "+notcp"] {
        for edns in ["+edns", "+noedns"] {
            let answer = dig(&bench, &[transport, edns, "Some.Name.example", "A"]).await;
            assert!(answer.contains("status: NOERROR"), "{answer}");
            assert!(
                answer.contains(&format!("Some.Name.example.\t60\tIN\tA\t{DOOR}")),
                "{answer}"
            );
            assert!(!answer.contains("WARNING"), "{answer}");
            assert_eq!(
                answer.contains("EDNS: version: 0"),
                edns == "+edns",
                "{answer}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_questions_have_no_data_and_no_error() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    for record_type in ["AAAA", "HTTPS", "SVCB", "MX", "TXT", "ANY", "SOA"] {
        for transport in ["+tcp", "+notcp"] {
            let answer = dig(&bench, &[transport, "name.example", record_type]).await;
            assert!(
                answer.contains("status: NOERROR"),
                "{record_type}: {answer}"
            );
            assert!(answer.contains("ANSWER: 0"), "{record_type}: {answer}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn glibc_resolves_through_it() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    // The resolver of libc asks for A and AAAA at once and needs sound answers to both. It knows
    // no ports, so python stands in for it with the same pair of questions on one socket.
    let script = format!(
        "import socket,struct\n\
         s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.settimeout(3); s.connect(('127.0.0.1',{}))\n\
         q=lambda i,t: struct.pack('>HHHHHH',i,256,1,0,0,0)+b'\\x01a\\x04test\\0'+struct.pack('>HH',t,1)\n\
         s.send(q(1,1)); s.send(q(2,28))\n\
         r=sorted((s.recv(512),s.recv(512)))\n\
         print([struct.unpack('>HHHHHH',x[:12]) for x in r])",
        bench.dns.port()
    );
    let answers = stdout("python3", &["-c", &script]).await;
    assert_eq!(
        answers,
        "[(1, 33152, 1, 1, 0, 0), (2, 33152, 1, 0, 0, 0)]\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_question_leaves_one_record() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    dig(&bench, &["+notcp", "a.example", "A"]).await;
    dig(&bench, &["+tcp", "b.example", "HTTPS"]).await;
    let (summary, directory) = bench.stop().await;
    assert_eq!(summary.dns_questions, 2);
    let log = crate::support::read(&directory.path().join("network-sandbox.log"));
    let lines: Vec<_> = log
        .lines()
        .map(|line| line.split(" {").next().unwrap())
        .collect();
    assert!(
        lines[0].starts_with("=== TASK START 20") && lines[0].ends_with("Z ==="),
        "{log}"
    );
    assert_eq!(
        lines[1..],
        [
            format!("DNS A a.example -> {DOOR}"),
            "DNS TYPE65 b.example -> NODATA".to_owned()
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_over_the_rate_get_no_answer_and_are_counted() {
    let origin = Origin::start().await;
    let plan = Plan {
        limits: Limits {
            dns_per_second: 5,
            ..Limits::default()
        },
        ..Plan::new(&origin)
    };
    let bench = plan.start().await;
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let query = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01";
    for _ in 0..20 {
        socket.send_to(query, bench.dns).await.unwrap();
    }
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    socket.send_to(query, bench.dns).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let (mut answered, mut dropped) = (0, 0);
    for record in bench.records() {
        match record.event {
            Event::Dns(dns) if matches!(dns.result, DnsResult::Address(_)) => answered += 1,
            Event::DnsDropped { count } => dropped += count,
            _ => {}
        }
    }
    assert_eq!(answered + dropped, 21);
    assert!((6..=8).contains(&answered), "{answered}");
}
