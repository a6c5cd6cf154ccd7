//! A host in another machine: PID 1 comes over TCP, and somebody passes its bytes on.

use std::{
    fs,
    net::SocketAddr,
    process::{Child, Command, Stdio},
    time::Duration,
};

use cordon_door::{Ended, Far, Go, Keeper, install};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    time::timeout,
};

const TOKEN: &[u8] = b"a token of whatever length";

const SOON: Duration = Duration::from_secs(20);

/// A `cordon-init` that is PID 1 of its own namespace, and shares its network with this process.
struct Contained {
    child: Child,
    directory: TempDir,
}

impl Contained {
    fn start(address: SocketAddr) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let init = install(&directory.path().join("cache")).unwrap();
        let token = directory.path().join("token");
        fs::write(&token, TOKEN).unwrap();
        let child = Command::new("unshare")
            .args(["--pid", "--fork", "--kill-child", "--mount-proc"])
            .arg(init)
            .args(Far::arguments(address, token.to_str().unwrap()))
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, directory }
    }
}

/// Waits for the one that brings the token.
async fn accept(listener: &TcpListener) -> TcpStream {
    let (mut stream, _) = timeout(SOON, listener.accept()).await.unwrap().unwrap();
    let mut brought = [0; TOKEN.len()];
    stream.read_exact(&mut brought).await.unwrap();
    assert_eq!(brought, TOKEN);
    stream
}

async fn go(keeper: &Keeper, script: &str) {
    let command = ["sh", "-c", script].map(Into::into);
    let go = Go {
        before: &[],
        command: &command,
        environment: &[],
        mounts: &[],
    };
    keeper.go(go).await.unwrap();
}

#[tokio::test]
async fn a_workload_is_started_and_reported_over_tcp() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut contained = Contained::start(listener.local_addr().unwrap());
    let (far, mut other) = Far::pair().unwrap();
    let mut stream = accept(&listener).await;
    tokio::spawn(async move { copy_bidirectional(&mut stream, &mut other).await });
    let keeper = far.greeting(SOON).await.unwrap();
    go(&keeper, "exit 9").await;
    let report = timeout(SOON, keeper.ended()).await.unwrap().unwrap();
    let Ended::Status(status) = report.ended else {
        panic!("{report:?}");
    };
    assert_eq!(status.code(), Some(9));
    assert_eq!(contained.child.wait().unwrap().code(), Some(9));
}

#[tokio::test]
async fn when_nobody_passes_the_connection_on_any_more_the_container_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut contained = Contained::start(listener.local_addr().unwrap());
    let (far, mut other) = Far::pair().unwrap();
    let mut stream = accept(&listener).await;
    let passing = tokio::spawn(async move { copy_bidirectional(&mut stream, &mut other).await });
    let keeper = far.greeting(SOON).await.unwrap();
    let runs = contained.directory.path().join("runs");
    let script = format!(
        "trap '' TERM; touch {}; while :; do sleep 0.1; done",
        runs.display()
    );
    go(&keeper, &script).await;
    while !runs.exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    passing.abort();
    assert_eq!(timeout(SOON, keeper.ended()).await.unwrap(), None);
    let status = tokio::task::spawn_blocking(move || contained.child.wait());
    let status = timeout(SOON, status).await.unwrap().unwrap().unwrap();
    assert_eq!(status.code(), Some(137));
}

#[tokio::test]
async fn what_is_no_greeting_is_refused() {
    let (far, other) = Far::pair().unwrap();
    drop(other);
    far.greeting(SOON).await.unwrap_err();
    let (far, _other) = Far::pair().unwrap();
    far.greeting(Duration::from_millis(10)).await.unwrap_err();
}
