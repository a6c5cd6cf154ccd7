//! Programs that stand in for others, and what is seen of them.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex},
    time::Duration,
};

use cordon::{Notice, SandboxConfig};

/// A program of a test's own making. Each call is recorded before it behaves.
pub(crate) struct StandIn {
    directory: tempfile::TempDir,
    pub(crate) program: PathBuf,
}

impl StandIn {
    /// A program with that text; `#!` and all.
    pub(crate) fn new(name: &str, text: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join(name);
        fs::create_dir(directory.path().join("calls")).unwrap();
        let home = directory.path().to_str().unwrap();
        fs::write(&program, text.replace("@HOME@", home)).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        settle(&program);
        Self { directory, program }
    }

    /// A shell script that records its arguments and then does what `body` says.
    pub(crate) fn shell(name: &str, body: &str) -> Self {
        let text = format!(
            "#!/bin/sh\n\
             [ \"$1\" = --settle ] && exit 0\n\
             record=$(mktemp \"@HOME@/calls/$(date +%s%N)-XXXXXX\")\n\
             printf '%s\\0' \"$@\" > \"$record\"\n\
             env > @HOME@/environment\n\
             {body}\n"
        );
        Self::new(name, &text)
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The arguments of every call so far, the oldest first.
    pub(crate) fn calls(&self) -> Vec<Vec<String>> {
        let mut records: Vec<_> = fs::read_dir(self.path().join("calls"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        records.sort();
        let read = |path: PathBuf| {
            let text = fs::read_to_string(path).unwrap();
            text.split_terminator('\0').map(str::to_owned).collect()
        };
        records.into_iter().map(read).collect()
    }

    /// The calls with that verb.
    pub(crate) fn calls_of(&self, verb: &str) -> Vec<Vec<String>> {
        let mut calls = self.calls();
        calls.retain(|call| call[0] == verb);
        calls
    }
}

/// Waits until a program can be executed: a process that another test started meanwhile may have inherited
/// the file while it was open for writing.
#[expect(clippy::disallowed_methods, reason = "tests drive real programs")]
fn settle(program: &Path) {
    let busy = |error: &std::io::Error| error.kind() == std::io::ErrorKind::ExecutableFileBusy;
    while let Err(error) = Command::new(program).arg("--settle").output() {
        assert!(busy(&error), "{error}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What was said to a person.
#[derive(Clone, Default)]
pub(crate) struct Notices(Arc<Mutex<Vec<Notice>>>);

impl Notices {
    pub(crate) fn all(&self) -> Vec<Notice> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn count(&self, wanted: impl Fn(&Notice) -> bool) -> usize {
        self.all().iter().filter(|notice| wanted(notice)).count()
    }

    /// A configuration whose directories are below `home`, and whose notices come here.
    pub(crate) fn config(&self, home: &Path) -> SandboxConfig {
        let notices = self.clone();
        SandboxConfig {
            directories: cordon::Directories {
                runtime: home.join("runtime"),
                cache: home.join("cache"),
            },
            on_notice: Some(Arc::new(move |notice| {
                notices.0.lock().unwrap().push(notice.clone());
            })),
            ..SandboxConfig::default()
        }
    }
}

/// Whether a process is there and no zombie.
pub(crate) fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// Returns once that holds. A machine that is loaded takes its time; one where it never holds fails by the
/// test runner's patience.
pub(crate) async fn until(holds: impl Fn() -> bool) {
    for _ in 0..6000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it does not come to hold");
}
