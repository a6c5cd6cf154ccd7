//! The two log files, under hostile input and on a bad disk.

use std::path::PathBuf;

use cordon_proxy::{Limits, LogTarget, NetworkLog};

use crate::support::{Bench, Origin, Plan, read, run};

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_request_holds_can_add_or_break_a_line() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    for head in [
        "GET /x\rALLOWED\x1b[2J HTTP/1.1\r\nHost: $HOST\r\n\r\n",
        "GET /%0aALLOWED%20GET%20https://evil/%20-%3E%20200 HTTP/1.1\r\nHost: $HOST\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\x1b]0;title\x07\r\n\r\n",
        "G\x7fT /\x01\x02 HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /\u{85}\u{2028}\u{202e} HTTP/1.1\r\nHost: $HOST\r\n\r\n",
        "GET /\\x0a HTTP/1.1\r\nHost: $HOST\r\n\r\n",
    ] {
        bench
            .raw(head.replace("$HOST", &origin.http_host()).as_bytes())
            .await;
    }
    bench
        .raw(b"GET /\xff\xfe HTTP/1.1\r\nHost: \xc3\x28\r\n\r\n")
        .await;
    bench.requests(7).await;
    let (summary, directory) = bench.stop().await;
    assert_eq!(summary.lost_records, 0);
    let text = std::fs::read(directory.path().join("network-sandbox.log")).unwrap();
    assert!(
        text.iter()
            .all(|&byte| byte == b'\n' || (0x20..0x7f).contains(&byte))
    );
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.lines().count(), 8, "{text}");
    assert!(
        text.lines()
            .skip(1)
            .all(|line| line.starts_with("BLOCKED ") || line.starts_with("ALLOWED GET "))
    );
    let json = read(&directory.path().join("network-sandbox.jsonl"));
    let lines: Vec<serde_json::Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 8);
    let urls: Vec<_> = lines[1..]
        .iter()
        .map(|line| line["url"].as_str().unwrap())
        .collect();
    assert!(
        urls.iter()
            .all(|url| url.bytes().all(|byte| byte.is_ascii_graphic())),
        "{urls:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_tells_all_in_both_formats() {
    let origin = Origin::start().await;
    let bench = Bench::start(&origin).await;
    bench
        .curl(&["-d", "hello", &origin.https_url("/echo?a=b")])
        .await;
    bench.requests(1).await;
    let (_, directory) = bench.stop().await;
    let json = read(&directory.path().join("network-sandbox.jsonl"));
    let line: serde_json::Value = serde_json::from_str(json.lines().nth(1).unwrap()).unwrap();
    assert_eq!(line["kind"], "request");
    assert_eq!(line["verdict"], "allowed");
    assert_eq!(line["rule"], "domains[0]");
    assert_eq!(line["method"], "POST");
    assert_eq!(line["url"], origin.https_url("/echo?a=b"));
    assert_eq!(line["status"], 200);
    assert_eq!(
        (&line["bytes_up"], &line["bytes_down"]),
        (&5.into(), &5.into())
    );
    assert_eq!(line["upstream"], origin.https.to_string());
    assert!(line["duration_ms"].is_u64());
    let time = line["time"].as_str().unwrap();
    assert!(time.len() == 24 && time.ends_with('Z'), "{time}");
    let text = read(&directory.path().join("network-sandbox.log"));
    let expected = format!(
        "ALLOWED POST {} -> 200 {{id={} time={time} rule=domains[0] up=5 down=5 ms={} via={}}}",
        origin.https_url("/echo?a=b"),
        line["id"],
        line["duration_ms"],
        origin.https
    );
    assert_eq!(text.lines().nth(1).unwrap(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_grows_is_rotated() {
    let origin = Origin::start().await;
    let limits = Limits {
        log_bytes: 2000,
        ..Limits::default()
    };
    let bench = Plan {
        limits,
        ..Plan::new(&origin)
    }
    .start()
    .await;
    let log = NetworkLog::new(bench.directory.path().join("network-sandbox.log"));
    let mut follow = log.follow();
    for round in 0..40 {
        let line = format!("GET /{round} HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n");
        bench.raw(line.as_bytes()).await;
        if round == 0 {
            assert!(follow.next().await.unwrap().starts_with("=== TASK START"));
            assert!(
                follow
                    .next()
                    .await
                    .unwrap()
                    .starts_with("BLOCKED GET http://evil.test/0 ")
            );
        }
    }
    bench.requests(40).await;
    let directory = bench.directory.path().to_owned();
    for name in [
        "network-sandbox.log",
        "network-sandbox.log.1",
        "network-sandbox.jsonl",
        "network-sandbox.jsonl.1",
    ] {
        let length = std::fs::metadata(directory.join(name)).unwrap().len();
        assert!((1..=2000).contains(&length), "{name}: {length}");
    }
    assert!(log.read_raw().unwrap().contains("http://evil.test/39 "));
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_reported_and_does_not_stop_the_traffic() {
    let origin = Origin::start().await;
    let mut plan = Plan::new(&origin);
    plan.log = Some(LogTarget {
        text: Some(PathBuf::from("/dev/full")),
        json: None,
    });
    let bench = plan.start().await;
    for _ in 0..3 {
        assert!(bench.curl(&[&origin.https_url("/")]).await.contains("200"));
    }
    bench.requests(3).await;
    let (summary, _) = bench.stop().await;
    assert_eq!(summary.allowed, 3);
    assert!(summary.lost_records >= 3, "{summary:?}");
    let error = summary.log_error.unwrap();
    assert_eq!(error.to_string(), "cannot use the network log /dev/full");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_cannot_be_opened_stops_the_start() {
    let origin = Origin::start().await;
    let mut plan = Plan::new(&origin);
    plan.log = Some(LogTarget::in_directory(&PathBuf::from(
        "/nonexistent/directory",
    )));
    let error = plan.try_start().await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("/nonexistent/directory/network-sandbox.log"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_after_a_full_disk_tell_what_was_lost() {
    // A file system of its own, too small for the log.
    let directory = tempfile::tempdir().unwrap();
    let mount = directory.path().display().to_string();
    let mounted = run("mount", &["-t", "tmpfs", "-o", "size=64k", "tmpfs", &mount]).await;
    assert!(
        mounted.status.success(),
        "{}",
        String::from_utf8_lossy(&mounted.stderr)
    );
    let filler = directory.path().join("filler");

    let origin = Origin::start().await;
    let mut plan = Plan::new(&origin);
    plan.log = Some(LogTarget::in_directory(directory.path()));
    let bench = plan.start().await;
    bench
        .raw(b"GET /1 HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n")
        .await;
    bench.requests(1).await;
    let mut left = vec![0; 64 * 1024];
    while std::fs::write(&filler, &left).is_err() {
        left.truncate(left.len() / 2);
    }
    for round in 2..200 {
        let line = format!("GET /{round} HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n");
        bench.raw(line.as_bytes()).await;
    }
    bench.requests(199).await;
    std::fs::remove_file(&filler).unwrap();
    bench
        .raw(b"GET /last HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n")
        .await;
    bench.requests(200).await;
    let log = read(&directory.path().join("network-sandbox.log"));
    let (summary, _) = bench.stop().await;
    let unmounted = run("umount", &[&mount]).await;
    assert!(unmounted.status.success());

    assert!(summary.lost_records > 0);
    assert!(log.contains("ERROR LOG -> "), "{log}");
    assert!(log.contains("http://evil.test/last "), "{log}");
    for line in log.lines() {
        assert!(
            line.starts_with("BLOCKED GET http://evil.test/")
                || line.contains("=== TASK START")
                || line.starts_with("ERROR LOG"),
            "{line}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_line_of_an_earlier_run_swallows_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("network-sandbox.log");
    std::fs::write(&path, "BLOCKED GET http://evil.test/ -> 4").unwrap();
    let origin = Origin::start().await;
    let mut plan = Plan::new(&origin);
    plan.log = Some(LogTarget {
        text: Some(path.clone()),
        json: None,
    });
    let bench: Bench = plan.start().await;
    bench.stop().await;
    let text = read(&path);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "BLOCKED GET http://evil.test/ -> 4");
    assert!(lines[1].starts_with("=== TASK START "));
}
