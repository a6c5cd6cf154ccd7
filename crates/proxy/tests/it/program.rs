//! The proxy as a program: told over standard input, answering over standard output, ending with both.

use std::{
    net::{Ipv4Addr, TcpListener, UdpSocket},
    process::{Command, Stdio},
    sync::atomic::{AtomicU8, Ordering},
    time::Duration,
};

use cordon_policy::Allowlist;
use cordon_proxy::{Answers, CertificateAuthority, Document, Order, RELAY_PORT, Settings, Token};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    process::{Child, ChildStdin, ChildStdout},
    time::timeout,
};

#[tokio::test]
async fn the_program_serves_records_and_ends_when_it_is_told() {
    let mut program = Program::start(&settings("domains: [a.example]")).await;
    assert!(program.answers.ready().await.unwrap());
    let address = program.settings.address;
    let dig = judge(
        "dig",
        &[
            "+short",
            "+time=2",
            &format!("@{address}"),
            "b.example",
            "A",
        ],
    );
    assert_eq!(dig, format!("{address}\n"));
    assert_eq!(program.curl("b.example"), "403");

    let line = Order::Allowlist(
        Allowlist::from_yaml("domains: [{ host: b.example, schemes: [https] }]").unwrap(),
    )
    .line()
    .unwrap();
    program.stdin.write_all(&line).await.unwrap();
    program
        .stdin
        .write_all(&Order::Stop.line().unwrap())
        .await
        .unwrap();
    let summary = timeout(SOON, program.answers.end()).await.unwrap().unwrap();
    assert_eq!(
        (summary.blocked, summary.dns_questions, summary.lost_records),
        (1, 1, 0)
    );
    assert!(
        timeout(SOON, program.child.wait())
            .await
            .unwrap()
            .unwrap()
            .success()
    );
}

#[tokio::test]
async fn the_program_ends_with_its_input() {
    let mut program = Program::start(&settings("domains: [a.example]")).await;
    assert!(program.answers.ready().await.unwrap());
    drop(program.stdin);
    assert!(
        timeout(SOON, program.child.wait())
            .await
            .unwrap()
            .unwrap()
            .success()
    );
}

#[tokio::test]
async fn the_log_is_the_keepers_and_like_that_of_a_proxy_in_its_own_process() {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = settings("domains: [a.example]");
    settings.log = cordon_proxy::LogTarget::in_directory(directory.path());
    let mut program = Program::start(&settings).await;
    assert!(program.answers.ready().await.unwrap());
    assert_eq!(program.curl("b.example"), "403");
    // A keeper that is gone has no use for the last records; one that wants them says so.
    let stop = Order::Stop.line().unwrap();
    program.stdin.write_all(&stop).await.unwrap();
    timeout(SOON, program.answers.end()).await.unwrap().unwrap();
    let text = std::fs::read_to_string(directory.path().join("network-sandbox.log")).unwrap();
    assert!(text.starts_with("=== TASK START"), "{text}");
    assert!(
        text.contains("BLOCKED GET http://b.example/ -> 403"),
        "{text}"
    );
    let json = std::fs::read_to_string(directory.path().join("network-sandbox.jsonl")).unwrap();
    assert!(json.contains(r#""verdict":"blocked","denial":"#), "{json}");
}

#[tokio::test]
async fn one_connection_with_the_token_is_passed_on_and_no_other() {
    let settings = settings("domains: [a.example]");
    let token = Token::new([0x5a; 32]);
    let mut program = Program::relaying(&settings, Some(&token)).await;
    let (sender, mut said) = tokio::sync::mpsc::channel(8);
    program.answers = program.answers.relaying(sender);
    assert!(program.answers.ready().await.unwrap());
    let answers = tokio::spawn(program.answers.end());
    let relay = (settings.address, RELAY_PORT);

    for wrong in [[0; 32], [0x5b; 32]] {
        let mut other = TcpStream::connect(relay).await.unwrap();
        other.write_all(&wrong).await.unwrap();
        let read = timeout(SOON, other.read(&mut [0])).await.unwrap();
        assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    }
    let mut first = TcpStream::connect(relay).await.unwrap();
    first.write_all(token.bytes()).await.unwrap();
    first.write_all(b"hello").await.unwrap();
    assert_eq!(said.recv().await.unwrap(), b"hello");
    // From here on there is nobody to bring a token to.
    let refused = TcpStream::connect(relay).await.unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);

    let order = Order::Relay(b"go".to_vec()).line().unwrap();
    program.stdin.write_all(&order).await.unwrap();
    let mut heard = [0; 2];
    first.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"go");

    // The end of the program is the end of the connection, however it came about.
    program.child.kill().await.unwrap();
    let read = timeout(SOON, first.read(&mut [0])).await.unwrap();
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    let summary = answers.await.unwrap().unwrap();
    assert_eq!(summary.lost_records, 0);
    assert_eq!(said.recv().await, None);
}

#[tokio::test]
async fn the_end_of_a_connection_that_is_passed_on_is_told_both_ways() {
    for from_here in [false, true] {
        let settings = settings("domains: [a.example]");
        let token = Token::new([1; 32]);
        let mut program = Program::relaying(&settings, Some(&token)).await;
        let (sender, mut said) = tokio::sync::mpsc::channel(8);
        program.answers = program.answers.relaying(sender);
        assert!(program.answers.ready().await.unwrap());
        let _answers = tokio::spawn(program.answers.end());
        let mut stream = TcpStream::connect((settings.address, RELAY_PORT))
            .await
            .unwrap();
        stream.write_all(token.bytes()).await.unwrap();
        stream.write_all(b"x").await.unwrap();
        assert_eq!(said.recv().await.unwrap(), b"x");
        if from_here {
            let end = Order::Relay(Vec::new()).line().unwrap();
            program.stdin.write_all(&end).await.unwrap();
            let read = timeout(SOON, stream.read(&mut [0])).await.unwrap();
            assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
        } else {
            drop(stream);
        }
        assert_eq!(timeout(SOON, said.recv()).await.unwrap(), Some(Vec::new()));
    }
}

#[tokio::test]
async fn a_program_that_is_to_pass_a_connection_on_serves_nothing_else() {
    let settings = settings("domains: []");
    let token = Token::new([9; 32]);
    let (mut child, mut stdin, stdout) = spawn();
    let line = Document::relay_line(settings.address, &token).unwrap();
    stdin.write_all(&line).await.unwrap();
    let (sender, mut said) = tokio::sync::mpsc::channel(8);
    let mut answers = Answers::new(stdout, &settings).unwrap().relaying(sender);
    assert!(answers.ready().await.unwrap());
    let answers = tokio::spawn(answers.end());
    for port in [53, 80, 443] {
        TcpStream::connect((settings.address, port))
            .await
            .unwrap_err();
    }
    let relay = (settings.address, RELAY_PORT);
    let mut stream = TcpStream::connect(relay).await.unwrap();
    stream.write_all(token.bytes()).await.unwrap();
    stream.write_all(b"x").await.unwrap();
    assert_eq!(said.recv().await.unwrap(), b"x");
    let stop = Order::Stop.line().unwrap();
    stdin.write_all(&stop).await.unwrap();
    timeout(SOON, answers).await.unwrap().unwrap().unwrap();
    let status = timeout(SOON, child.wait()).await.unwrap().unwrap();
    assert!(status.success());
    let read = timeout(SOON, stream.read(&mut [0])).await.unwrap();
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
}

#[tokio::test]
async fn what_the_program_does_not_understand_is_not_quoted() {
    let (mut child, mut stdin, _) = spawn();
    stdin
        .write_all(b"{\"key\": \"hunter2-hunter2\"}\n")
        .await
        .unwrap();
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .await
        .unwrap();
    assert_eq!(
        timeout(SOON, child.wait()).await.unwrap().unwrap().code(),
        Some(1)
    );
    assert!(
        said.starts_with("cordon-proxy: ") && !said.contains("hunter2"),
        "{said}"
    );
}

#[tokio::test]
async fn a_port_that_is_taken_is_said_and_not_ready() {
    for (port, name) in [(53, "DNS over TCP"), (80, "HTTP"), (443, "HTTPS")] {
        let settings = settings("domains: [a.example]");
        let _taken = TcpListener::bind((settings.address, port)).unwrap();
        not_ready(&settings, name).await;
    }
    let settings = settings("domains: [a.example]");
    let _taken = UdpSocket::bind((settings.address, 53)).unwrap();
    not_ready(&settings, "DNS over UDP").await;
}

async fn not_ready(settings: &Settings, name: &str) {
    let mut program = Program::start(settings).await;
    assert!(!program.answers.ready().await.unwrap());
    let mut said = String::new();
    let mut stderr = program.child.stderr.take().unwrap();
    stderr.read_to_string(&mut said).await.unwrap();
    assert!(
        said.contains(&format!("cannot serve the {name} socket")),
        "{said}"
    );
}

struct Program {
    child: Child,
    stdin: ChildStdin,
    answers: Answers<ChildStdout>,
    settings: Settings,
}

impl Program {
    async fn start(settings: &Settings) -> Self {
        Self::relaying(settings, None).await
    }

    async fn relaying(settings: &Settings, relay: Option<&Token>) -> Self {
        let authority = CertificateAuthority::generate().unwrap();
        let (child, mut stdin, stdout) = spawn();
        let line = Document::line(settings, &authority, relay).unwrap();
        stdin.write_all(&line).await.unwrap();
        Self {
            child,
            stdin,
            answers: Answers::new(stdout, settings).unwrap(),
            settings: Settings::new(settings.address, settings.allowlist.clone()),
        }
    }

    fn curl(&self, host: &str) -> String {
        let address = self.settings.address;
        let resolve = format!("{host}:80:{address}");
        let url = format!("http://{host}/");
        judge(
            "curl",
            &[
                "-s",
                "-o",
                "/dev/null",
                "-w",
                "%{http_code}",
                "--resolve",
                &resolve,
                &url,
            ],
        )
    }
}

#[expect(clippy::disallowed_methods, reason = "tests drive real programs")]
fn spawn() -> (Child, ChildStdin, ChildStdout) {
    let mut child = tokio::process::Command::new(env!("CARGO_BIN_EXE_cordon-proxy"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    (child, stdin, stdout)
}

#[expect(clippy::disallowed_methods, reason = "tests drive real programs")]
fn judge(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Settings at a loopback address of their own, so that the real ports can be used.
fn settings(allowlist: &str) -> Settings {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let [.., high, low] = std::process::id().to_be_bytes();
    let address = Ipv4Addr::new(
        127,
        64 | (high & 0x3f),
        low,
        NEXT.fetch_add(1, Ordering::SeqCst),
    );
    Settings::new(address, Allowlist::from_yaml(allowlist).unwrap())
}

const SOON: Duration = Duration::from_secs(5);
