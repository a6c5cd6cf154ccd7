//! Commands in a container that is held.

use std::{
    fs::File,
    io::{Read, Write},
    os::unix::ffi::OsStringExt,
    thread,
};

use cordon_door::{Begun, Exec, Holder, Report, Running};
use tempfile::TempDir;

use super::*;

struct Held {
    child: Child,
    holder: Holder,
    _directory: TempDir,
}

impl Held {
    async fn start() -> Self {
        let contained = Contained::start(Access::Shut).await;
        let go = Go {
            before: &[],
            command: &[],
            environment: &[
                ("GIVEN".to_owned(), "to all".to_owned()),
                ("OWN".to_owned(), "nobody".to_owned()),
            ],
            mounts: &[],
        };
        let Contained {
            child,
            keeper,
            _directory,
            ..
        } = contained;
        Self {
            child,
            holder: keeper.hold(go).await.unwrap(),
            _directory,
        }
    }

    async fn begin(&self, script: &str) -> Running {
        let command = ["sh", "-c", script].map(OsString::from);
        self.running(Exec {
            command: &command,
            environment: &[],
            directory: None,
        })
        .await
    }

    async fn running(&self, exec: Exec<'_>) -> Running {
        match self.holder.exec(exec).await.unwrap() {
            Begun::Running(running) => running,
            other => panic!("{other:?}"),
        }
    }
}

/// Closes standard input, reads both streams to their ends and waits.
async fn output(running: Running) -> (Option<Ended>, String, String) {
    let Running {
        stdin,
        stdout,
        stderr,
        mut end,
        ..
    } = running;
    drop(stdin);
    let [stdout, stderr] = [stdout, stderr].map(reader);
    let report = end.ended().await;
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        report.map(|report| report.ended),
        text(stdout.join().unwrap()),
        text(stderr.join().unwrap()),
    )
}

fn reader(pipe: impl Into<File>) -> thread::JoinHandle<Vec<u8>> {
    let mut pipe = pipe.into();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).unwrap();
        bytes
    })
}

#[tokio::test]
async fn each_command_has_its_own_streams_environment_directory_and_end() {
    let held = Held::start().await;
    let script = "cat; echo \"$GIVEN $OWN $PWD\" >/dev/stderr; exit 7";
    let command = ["sh", "-c", script].map(OsString::from);
    let mut running = held
        .running(Exec {
            command: &command,
            environment: &[("OWN".to_owned(), "its own".to_owned())],
            directory: Some("/usr"),
        })
        .await;
    let mut stdin = File::from(running.stdin.try_clone().unwrap());
    stdin.write_all(b"read").unwrap();
    drop(stdin);
    assert_eq!(
        running.end.ended().now().await,
        None,
        "its input is still open"
    );
    assert_eq!(
        output(running).await,
        (
            Some(exited(7)),
            "read".to_owned(),
            "to all its own /usr\n".to_owned()
        )
    );
    // The next one sees nothing of it.
    let next = held.begin("echo \"$GIVEN $OWN\"; kill -9 $$").await;
    assert_eq!(
        output(next).await,
        (
            Some(Ended::Status(ExitStatus::from_raw(9))),
            "to all nobody\n".to_owned(),
            String::new()
        )
    );
}

/// What a future gives without being waited for.
trait Now: Future + Sized {
    async fn now(self) -> Option<Self::Output> {
        tokio::time::timeout(Duration::from_millis(200), self)
            .await
            .ok()
    }
}

impl<F: Future> Now for F {}

#[tokio::test]
async fn a_hundred_commands_at_once_do_not_mix() {
    let held = Held::start().await;
    let mut all = Vec::new();
    for number in 0..100 {
        all.push(
            held.begin(&format!("cat; echo {number}; exit {number}"))
                .await,
        );
    }
    for (number, running) in all.into_iter().enumerate().rev() {
        let code = i32::try_from(number).unwrap();
        assert_eq!(
            output(running).await,
            (Some(exited(code)), format!("{number}\n"), String::new())
        );
    }
}

#[tokio::test]
async fn arguments_are_taken_as_they_are() {
    let held = Held::start().await;
    let hostile: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        b"-n".to_vec(),
        b"two words".to_vec(),
        b"$(id) `id` ; id | id & \n\t\"'".to_vec(),
        (1..=255).collect(),
        "snowman ☃ and \u{202e}more".into(),
        vec![b'x'; 100_000],
    ];
    let mut command = ["printf", "%s\\0"].map(OsString::from).to_vec();
    command.extend(hostile.iter().cloned().map(OsString::from_vec));
    let running = held
        .running(Exec {
            command: &command,
            environment: &[],
            directory: None,
        })
        .await;
    let printed = reader(running.stdout).join().unwrap();
    let mut expected = hostile.join(&0);
    expected.push(0);
    assert!(printed == expected);
}

#[tokio::test]
async fn what_cannot_be_started_says_why_and_the_container_stays() {
    let held = Held::start().await;
    let begin = async |program: &str, directory| {
        held.holder
            .exec(Exec {
                command: &[program.into()],
                environment: &[],
                directory,
            })
            .await
            .unwrap()
    };
    let begun = begin("/no/such/program", None).await;
    assert!(matches!(begun, Begun::NotStarted { errno: 2 }), "{begun:?}");
    let begun = begin("true", Some("/no/such/directory")).await;
    assert!(
        matches!(begun, Begun::NoDirectory { errno: 2 }),
        "{begun:?}"
    );
    let begun = begin("true", Some("/etc/passwd")).await;
    assert!(
        matches!(begun, Begun::NoDirectory { errno: 20 }),
        "{begun:?}"
    );
    let begun = held
        .holder
        .exec(Exec {
            command: &[],
            environment: &[],
            directory: None,
        })
        .await
        .unwrap();
    assert!(matches!(begun, Begun::NotStarted { .. }), "{begun:?}");
    assert_eq!(output(held.begin("true").await).await.0, Some(exited(0)));
}

#[tokio::test]
async fn signals_and_kills_reach_one_command_with_all_its_own() {
    let held = Held::start().await;
    let other = held.begin("echo up; cat; echo still there").await;
    let asked = held
        .begin("trap 'exit 4' TERM; echo up; while :; do sleep 0.05; done")
        .await;
    let mut up = [0; 3];
    let mut asked_stdout = File::from(asked.stdout.try_clone().unwrap());
    asked_stdout.read_exact(&mut up).unwrap();
    drop(asked_stdout);
    held.holder.signal(asked.id, 15).await.unwrap();
    assert_eq!(output(asked).await.0, Some(exited(4)));

    // One descendant in a session of its own, one that ignores everything it may.
    let stubborn = held
        .begin("trap '' TERM HUP; setsid sh -c 'sleep 300' & sh -c 'sleep 300; :' & echo up; wait")
        .await;
    let mut stdout = File::from(stubborn.stdout.try_clone().unwrap());
    stdout.read_exact(&mut up).unwrap();
    held.holder.kill(stubborn.id).await.unwrap();
    // Its streams end only when the last of its descendants is gone.
    drop(stdout);
    assert_eq!(
        output(stubborn).await.0,
        Some(Ended::Status(ExitStatus::from_raw(9)))
    );
    assert_eq!(
        output(other).await,
        (
            Some(exited(0)),
            "up\nstill there\n".to_owned(),
            String::new()
        )
    );
}

#[tokio::test]
async fn a_command_that_is_gone_takes_no_orders_and_what_it_left_stays() {
    let held = Held::start().await;
    let first = held.begin("sleep 300 >/dev/null 2>&1 & echo $!").await;
    let id = first.id;
    let (ended, left, _) = output(first).await;
    let left = left.trim();
    assert_eq!(ended, Some(exited(0)));
    held.holder.kill(id).await.unwrap();
    held.holder.signal(id, 9).await.unwrap();
    let look = held.begin(&format!("kill -0 {left}")).await;
    assert_eq!(output(look).await.0, Some(exited(0)));
    held.holder.kill_all().await.unwrap();
    let gone = format!("while kill -0 {left} 2>/dev/null; do sleep 0.05; done");
    assert_eq!(output(held.begin(&gone).await).await.0, Some(exited(0)));
}

#[tokio::test]
async fn whoever_waits_learns_that_the_container_is_gone() {
    let mut held = Held::start().await;
    let mut running = held.begin("sleep 300").await;
    held.holder.close().await;
    assert_eq!(running.end.ended().await, None::<Report>);
    held.holder.gone().await;
    assert!(held.holder.is_gone());
    let refused = held
        .holder
        .exec(Exec {
            command: &["true".into()],
            environment: &[],
            directory: None,
        })
        .await;
    assert!(matches!(refused, Err(Error::Connection(_))), "{refused:?}");
    assert_eq!(held.child.wait().unwrap().code(), Some(137));
}

#[tokio::test]
async fn a_held_container_ends_when_its_holder_is_gone() {
    let Held {
        mut child, holder, ..
    } = Held::start().await;
    drop(holder);
    assert_eq!(child.wait().unwrap().code(), Some(137));
}

#[tokio::test]
async fn a_container_is_not_held_where_a_mount_was_moved_or_making_ready_failed() {
    let contained = Contained::start(Access::Shut).await;
    let directory = tempfile::tempdir().unwrap();
    let mut moved = mounted(directory.path());
    moved.inode += 1;
    let go = Go {
        before: &[],
        command: &[],
        environment: &[],
        mounts: &[moved],
    };
    let refused = contained.keeper.hold(go).await.unwrap_err();
    let Error::NotHeld {
        report: Some(report),
    } = refused
    else {
        panic!("{refused:?}");
    };
    assert_eq!(report.ended, Ended::MountMoved { index: 0 });

    let contained = Contained::start(Access::Shut).await;
    let go = Go {
        before: &[Before {
            where_exists: String::new(),
            command: vec!["false".into()],
        }],
        command: &[],
        environment: &[],
        mounts: &[],
    };
    let refused = contained.keeper.hold(go).await.unwrap_err();
    assert!(
        matches!(refused, Error::NotHeld { report: Some(Report { ended, .. }) } if ended == exited(1)),
        "{refused:?}"
    );
}
