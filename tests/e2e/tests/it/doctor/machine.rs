//! What a test does to the machine, and undoes.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    process::{Command, Output},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::setup::{Setup, cordon};

/// A hint, typed as it is by the set-up's user.
pub(super) fn typed(setup: Setup, hint: &str) -> Output {
    setup.command("sh").args(["-c", hint]).output().unwrap()
}

/// An ordinary user who has nothing yet; removed in the end, with the home.
pub(super) struct FreshUser {
    name: String,
    home: TempDir,
}

impl FreshUser {
    pub(super) fn make() -> Self {
        let home = tempfile::Builder::new()
            .prefix("cordon-fresh-")
            .tempdir_in("/tmp")
            .unwrap();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let name = format!("cordon-fresh-{}", std::process::id());
        // A system user, because useradd gives no ranges to those.
        let made = Command::new("useradd")
            .args(["--system", "--no-create-home", "--home-dir"])
            .arg(home.path())
            .arg(&name)
            .status()
            .unwrap();
        assert!(made.success());
        let program = home.path().join("cordon");
        fs::copy(cordon(), &program).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let owned = Command::new("chown")
            .arg(format!("{name}:"))
            .arg(home.path())
            .status()
            .unwrap();
        assert!(owned.success());
        Self { name, home }
    }

    /// Runs the program under test as that user.
    pub(super) fn run(&self, arguments: &[&str]) -> Output {
        let home = self.home.path();
        Command::new("setpriv")
            .args([
                "--reuid",
                &self.name,
                "--regid",
                &self.name,
                "--clear-groups",
                "--",
            ])
            .arg(home.join("cordon"))
            .args(arguments)
            .current_dir(home)
            .env_clear()
            .envs([("HOME", home), ("XDG_RUNTIME_DIR", home)])
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("USER", &self.name)
            .output()
            .unwrap()
    }
}

impl Drop for FreshUser {
    fn drop(&mut self) {
        // Podman leaves a process behind that holds the user's namespaces for its next call.
        let held = fs::read_to_string(self.home.path().join("libpod/tmp/pause.pid"));
        let held = held.ok().and_then(|pid| pid.trim().parse().ok());
        if let Some(pid) = held.and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
        let removed = Command::new("userdel")
            .args(["--force", &self.name])
            .output();
        drop(removed);
    }
}
