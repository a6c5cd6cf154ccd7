//! The hand-over and the duties of PID 1, in namespaces of their own and without an engine. Takes root.

#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "these tests drive the real program, and stop where it does not do as it should"
)]

mod far;
mod hold;

use std::{
    ffi::OsString,
    fs,
    io::Read,
    os::unix::{
        fs::{MetadataExt, symlink},
        process::ExitStatusExt,
    },
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use cordon_door::{
    ADDRESS, Access, Before, Door, Ended, Error, Go, Keeper, Mounted, Sockets, install,
};
use tempfile::TempDir;

/// A `cordon-init` that is PID 1 of its own namespace and has a loopback interface of its own.
struct Contained {
    child: Child,
    keeper: Keeper,
    sockets: Option<Sockets>,
    _directory: TempDir,
}

impl Contained {
    async fn start(access: Access) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let init = install(&directory.path().join("cache")).unwrap();
        let door = Door::open(directory.path()).unwrap();
        let mounted = door.directory().to_str().unwrap().to_owned();
        let child = Command::new("unshare")
            .args([
                "--pid",
                "--fork",
                "--kill-child",
                "--mount-proc",
                "--net",
                "sh",
                "-c",
                "ip link set lo up; exec \"$0\" \"$@\"",
            ])
            .arg(init)
            .args(Door::arguments(&mounted, access))
            .stdout(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let (sockets, keeper) = door
            .handover(access, Duration::from_secs(20))
            .await
            .unwrap();
        Self {
            child,
            keeper,
            sockets,
            _directory: directory,
        }
    }

    async fn go(&self, before: &[Before], script: &str) {
        self.order(before, &[], &["sh", "-c", script]).await;
    }

    async fn order(&self, before: &[Before], mounts: &[Mounted], command: &[&str]) {
        let command: Vec<OsString> = command.iter().map(OsString::from).collect();
        let go = Go {
            before,
            command: &command,
            environment: &[("GIVEN".to_owned(), "a value".to_owned())],
            mounts,
        };
        self.keeper.go(go).await.unwrap();
    }

    async fn ended(mut self) -> (Ended, String) {
        let report = self.keeper.ended().await.unwrap();
        let mut said = String::new();
        self.child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        self.child.wait().unwrap();
        (report.ended, said)
    }
}

fn exited(code: i32) -> Ended {
    Ended::Status(ExitStatus::from_raw(code << 8))
}

#[tokio::test]
async fn four_sockets_come_over_and_work() {
    let contained = Contained::start(Access::Open).await;
    let sockets = contained.sockets.as_ref().unwrap();
    let http = sockets.http.try_clone().unwrap();
    let served = std::thread::spawn(move || {
        let (mut stream, client) = http.accept().unwrap();
        assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
        std::io::Write::write_all(&mut stream, b"HTTP/1.0 200 OK\r\n\r\nthrough the door").unwrap();
        client
    });
    contained
        .go(&[], &format!("curl -s http://{ADDRESS}/"))
        .await;
    assert_eq!(
        contained.ended().await,
        (exited(0), "through the door".to_owned())
    );
    assert_eq!(served.join().unwrap().ip().to_string(), "127.0.0.1");
}

#[tokio::test]
async fn a_shut_door_hands_over_nothing_and_keeps_all_the_same() {
    let contained = Contained::start(Access::Shut).await;
    assert!(contained.sockets.is_none());
    contained.go(&[], "echo \"$GIVEN\"; exit 3").await;
    assert_eq!(contained.ended().await, (exited(3), "a value\n".to_owned()));
}

#[tokio::test]
async fn what_makes_ready_is_run_first_where_it_applies() {
    let contained = Contained::start(Access::Shut).await;
    let step = |file: &str, word: &str| Before {
        where_exists: file.into(),
        command: vec!["echo".into(), word.into()],
    };
    let before = [
        step("/etc/passwd", "one"),
        step("/no/such/file", "two"),
        step("", "three"),
    ];
    contained.go(&before, "echo command").await;
    assert_eq!(
        contained.ended().await,
        (exited(0), "one\nthree\ncommand\n".to_owned())
    );
}

#[tokio::test]
async fn when_making_ready_fails_the_command_is_not_run() {
    let contained = Contained::start(Access::Shut).await;
    let before = [Before {
        where_exists: String::new(),
        command: vec!["sh".into(), "-c".into(), "exit 9".into()],
    }];
    contained.go(&before, "echo command").await;
    assert_eq!(contained.ended().await, (exited(9), String::new()));
}

#[tokio::test]
async fn a_command_that_cannot_be_started_says_why() {
    let contained = Contained::start(Access::Shut).await;
    contained.order(&[], &[], &["/no/such/program"]).await;
    assert_eq!(contained.ended().await.0, Ended::NotStarted { errno: 2 });
}

/// What is at a path now.
fn mounted(path: &Path) -> Mounted {
    let found = fs::symlink_metadata(path).unwrap();
    Mounted {
        path: path.to_str().unwrap().to_owned(),
        device: found.dev(),
        inode: found.ino(),
    }
}

#[tokio::test]
async fn mounts_that_are_what_was_judged_let_the_command_start() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let contained = Contained::start(Access::Shut).await;
    let before = [Before {
        where_exists: String::new(),
        command: vec!["echo".into(), "before".into()],
    }];
    let mounts = [mounted(directory.path()), mounted(&file)];
    contained
        .order(&before, &mounts, &["echo", "command"])
        .await;
    assert_eq!(
        contained.ended().await,
        (exited(0), "before\ncommand\n".to_owned())
    );
}

#[tokio::test]
async fn a_mount_that_leads_elsewhere_keeps_everything_from_starting() {
    let directory = tempfile::tempdir().unwrap();
    let [good, moved, aside] = ["good", "moved", "aside"].map(|name| directory.path().join(name));
    fs::create_dir(&good).unwrap();
    let before = [Before {
        where_exists: String::new(),
        command: vec!["echo".into(), "before".into()],
    }];
    let missing = |path: &Path| fs::rename(path, &aside).unwrap();
    let replaced = |path: &Path| {
        fs::rename(path, &aside).unwrap();
        fs::create_dir(path).unwrap();
    };
    let linked = |path: &Path| {
        fs::rename(path, &aside).unwrap();
        symlink(&aside, path).unwrap();
    };
    let swaps: [&dyn Fn(&Path); 3] = [&missing, &replaced, &linked];
    for swap in swaps {
        fs::create_dir(&moved).unwrap();
        let mounts = [mounted(&good), mounted(&moved)];
        let contained = Contained::start(Access::Shut).await;
        swap(&moved);
        contained
            .order(&before, &mounts, &["echo", "command"])
            .await;
        assert_eq!(
            contained.ended().await,
            (Ended::MountMoved { index: 1 }, String::new())
        );
        let _ = fs::remove_file(&moved).or_else(|_| fs::remove_dir(&moved));
        fs::remove_dir(&aside).unwrap();
    }
}

#[tokio::test]
async fn signals_reach_the_whole_group_and_kill_reaches_everything() {
    let mut contained = Contained::start(Access::Shut).await;
    contained
        .go(
            &[],
            "trap 'echo asked; exit 4' TERM; echo up; while :; do sleep 0.05; done",
        )
        .await;
    let mut up = [0; 3];
    let stdout = contained.child.stdout.as_mut().unwrap();
    stdout.read_exact(&mut up).unwrap();
    contained.keeper.signal(15).await.unwrap();
    assert_eq!(contained.ended().await, (exited(4), "asked\n".to_owned()));

    let contained = Contained::start(Access::Shut).await;
    contained
        .go(
            &[],
            "trap '' TERM; setsid sleep 300 & while :; do sleep 0.05; done",
        )
        .await;
    contained.keeper.kill().await.unwrap();
    assert_eq!(
        contained.ended().await.0,
        Ended::Status(ExitStatus::from_raw(9))
    );
}

#[tokio::test]
async fn the_container_ends_when_its_keeper_is_gone() {
    let Contained {
        mut child, keeper, ..
    } = {
        let contained = Contained::start(Access::Shut).await;
        contained
            .go(&[], "trap '' TERM HUP; while :; do sleep 0.05; done")
            .await;
        contained
    };
    drop(keeper);
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(137));
}

#[tokio::test]
async fn nothing_that_is_not_the_door_is_taken() {
    let directory = tempfile::tempdir().unwrap();
    let door = Door::open(directory.path()).unwrap();
    let socket = door.directory().join("s");
    let stranger = std::thread::spawn(move || {
        let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
        std::io::Write::write_all(&mut stream, &[2]).unwrap();
        stream
    });
    let taken = door.handover(Access::Open, Duration::from_secs(5)).await;
    assert!(matches!(taken, Err(Error::Foreign { .. })), "{taken:?}");
    stranger.join().unwrap();
    assert!(
        !directory.path().join("door/s").exists(),
        "the socket is gone"
    );
}

#[tokio::test]
async fn a_door_that_nobody_uses_gives_up() {
    let directory = tempfile::tempdir().unwrap();
    let door = Door::open(directory.path()).unwrap();
    let taken = door
        .handover(Access::Open, Duration::from_millis(100))
        .await;
    assert!(matches!(taken, Err(Error::NotHandedOver { .. })));
}
