//! `cordon doctor` finds what is wrong, its hints work when they are typed, and `--fix` mends what it says.

mod machine;
mod registry;

use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::PermissionsExt,
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use origin::Origin;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::setup::{BUSYBOX, Run, Setup, cordon, on_every_engine};
use machine::{FreshUser, typed};
use registry::Registry;

/// How long somebody else may be faster.
const PATIENCE: Duration = Duration::from_secs(120);

/// A check-up, put together step by step.
struct Doctor {
    setup: Setup,
    command: Command,
}

/// What a check-up found.
#[derive(Debug)]
struct Report {
    pid: u32,
    code: i32,
    document: Value,
}

impl Doctor {
    fn new(setup: Setup) -> Self {
        let mut command = setup.command(cordon());
        command
            .args(["doctor", "--json"])
            .env_remove("XDG_CACHE_HOME");
        Self { setup, command }
    }

    /// On the set-up's engine only.
    fn on_its_engine(self) -> Self {
        let engine = self.setup.engine();
        self.args(&["--engine", engine])
    }

    fn args(mut self, args: &[&str]) -> Self {
        self.command.args(args);
        self
    }

    fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    fn report(mut self) -> Report {
        let child = self
            .command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id();
        Report {
            pid,
            ..Report::read(&child.wait_with_output().unwrap())
        }
    }
}

impl Report {
    fn read(output: &Output) -> Self {
        let stdout = String::from_utf8_lossy(&output.stdout);
        let document = serde_json::from_str(&stdout);
        assert!(document.is_ok(), "{output:?}");
        Self {
            pid: 0,
            code: output.status.code().unwrap(),
            document: document.unwrap(),
        }
    }

    /// The one finding of that code.
    fn finding(&self, code: &str) -> &Value {
        let all = self.document["findings"].as_array().unwrap();
        let found: Vec<_> = all
            .iter()
            .filter(|finding| finding["code"] == code)
            .collect();
        assert_eq!(found.len(), 1, "`{code}`: {self:#?}");
        found[0]
    }

    fn level(&self, code: &str) -> &str {
        self.finding(code)["level"].as_str().unwrap()
    }

    fn hint(&self, code: &str) -> &str {
        self.finding(code)["hints"][0].as_str().unwrap()
    }

    /// What was mended for an agent; leftovers of others may have been removed besides.
    fn done_for(&self, agent: &str) -> Vec<String> {
        let actions = self.document["actions"].as_array().unwrap().iter();
        let own = actions.filter(|action| action["agent"] == agent);
        own.map(|action| action["message"].as_str().unwrap().to_owned())
            .collect()
    }

    fn has(&self, code: &str) -> bool {
        let all = self.document["findings"].as_array().unwrap();
        all.iter().any(|finding| finding["code"] == code)
    }
}

/// A directory with an agents file in it, and a workspace beside it.
struct Agents(Run);

impl Agents {
    fn new(setup: Setup, keys: &str) -> Self {
        let run = Run::new(setup);
        fs::create_dir(run.path("work")).unwrap();
        fs::set_permissions(run.path("work"), fs::Permissions::from_mode(0o777)).unwrap();
        let mode = setup.engine();
        let text =
            format!("agents:\n  coder:\n    mode: {mode}\n    workspace: work\n    {keys}\n");
        fs::write(run.path("agents.yaml"), text).unwrap();
        Self(run)
    }

    fn file(&self) -> String {
        self.0.path("agents.yaml").to_str().unwrap().to_owned()
    }
}

on_every_engine! {
    fn a_good_machine_is_said_to_be_and_proves_it(setup) {
        let origin = Origin::start(&["*.example.com"]);
        let report = Doctor::new(setup).on_its_engine()
            .args(&["--upstream-dns", &origin.address().to_string()])
            .args(&["--upstream-ca", origin.authority().to_str().unwrap()])
            .report();
        assert_eq!(report.code, 0, "{report:#?}");
        assert_eq!(report.document["ok"], true);
        for code in ["engine", "isolation", "dns", "certificates"] {
            assert_eq!(report.level(code), "ok", "{report:#?}");
        }
        assert_eq!(report.has("rootless"), setup == Setup::Rootless, "{report:#?}");
        // Nothing of it is left: no container, no image, no directory.
        let images = setup.ask(&["images", "--format", "{{.Repository}}:{{.Tag}}"]);
        let mark = format!("-{}-", report.pid);
        assert!(!images.lines().any(|image| image.contains("cordon-doctor") && image.contains(&mark)), "{images}");
        assert_eq!(setup.left_by(report.pid), Vec::<String>::new());
        assert_eq!(origin.requests(), 0);
    }

    fn an_image_that_is_there_is_proven_in(setup) {
        let agents = Agents::new(setup, &format!("image: {BUSYBOX}"));
        let report = Doctor::new(setup).args(&["--agents", &agents.file(), "--agent", "coder"]).report();
        assert_eq!(report.level("image"), "ok", "{report:#?}");
        let proof = report.finding("isolation");
        assert_eq!(proof["level"], "ok", "{report:#?}");
        assert_eq!(proof["agent"], "coder");
        assert_eq!(report.document["attempted"], 1);
        assert!(proof["message"].as_str().unwrap().contains(BUSYBOX));
    }

    fn an_image_that_cannot_be_had_is_an_error_with_the_key_to_change(setup) {
        let agents = Agents::new(setup, "image: localhost/no-such-image:1");
        let report = Doctor::new(setup).args(&["--agents", &agents.file()]).report();
        assert_eq!(report.code, 1, "{report:#?}");
        let finding = report.finding("image-unavailable");
        assert_eq!(finding["config"], "agents.coder.image");
        assert_eq!(report.hint("image-unavailable"), format!("{} images", setup.engine()));
        assert!(typed(setup, report.hint("image-unavailable")).status.success());
    }

    fn an_image_that_is_not_built_yet_is_built_by_the_hint(setup) {
        // A label of its own, so that no other test has built it before.
        let agents = Agents::new(setup, "dockerfile: image/Dockerfile");
        let image = agents.0.path("image");
        fs::create_dir(&image).unwrap();
        let mark = agents.file().replace(['/', '.'], "-");
        fs::write(image.join("Dockerfile"), format!("FROM {BUSYBOX}\nLABEL mark={mark}\n")).unwrap();
        fs::set_permissions(&image, fs::Permissions::from_mode(0o755)).unwrap();
        let report = Doctor::new(setup).args(&["--agents", &agents.file()]).report();
        assert_eq!(report.level("image-missing"), "warning", "{report:#?}");
        assert_eq!(report.hint("image-missing"), "cordon doctor --fix");
        let report = Doctor::new(setup).args(&["--agents", &agents.file(), "--fix"]).report();
        assert_eq!(report.level("image"), "ok", "{report:#?}");
        assert_eq!(report.done_for("coder").len(), 1, "{report:#?}");
        assert!(report.done_for("coder")[0].starts_with("built the image of "));
        assert_eq!(report.level("isolation"), "ok");
        let report = Doctor::new(setup).args(&["--agents", &agents.file(), "--fix"]).report();
        assert_eq!(report.done_for("coder"), Vec::<String>::new(), "{report:#?}");
    }

    fn a_registry_that_does_not_answer_is_said_in_the_engines_words(setup) {
        let agents = Agents::new(setup, "image: 127.0.0.1:9/cordon/none:1");
        let file = agents.file();
        let report = Doctor::new(setup).args(&["--agents", &file]).report();
        assert_eq!(report.level("image-missing"), "warning", "{report:#?}");
        let report = Doctor::new(setup).args(&["--agents", &file, "--fix"]).report();
        assert_eq!(report.code, 1, "{report:#?}");
        let message = report.finding("image-unavailable")["message"].as_str().unwrap().to_owned();
        assert!(message.contains("refused"), "{message}");
        assert_eq!(report.hint("image-unavailable"), format!("{} pull 127.0.0.1:9/cordon/none:1", setup.engine()));
    }

    fn what_a_killed_run_left_is_found_and_the_hint_removes_it(setup) {
        Corner::of(setup).after_a_kill(|corner, pid, mark| {
            let report = corner.doctor().on_its_engine().report();
            let found = report.document.to_string().contains(mark) && !corner.left_by(pid).is_empty();
            if !found {
                return false;
            }
            assert_eq!(report.level("leftovers-found"), "warning", "{report:#?}");
            assert_eq!(report.hint("leftovers-found"), "cordon clean");
            let cleaned = corner.command(cordon()).args(["clean", "--json"]).output().unwrap();
            let document: Value = serde_json::from_slice(&cleaned.stdout).unwrap();
            assert_eq!(corner.left_by(pid), Vec::<String>::new());
            document["removed"].to_string().contains(mark)
        });
    }

    fn with_fix_what_a_killed_run_left_is_removed(setup) {
        Corner::of(setup).after_a_kill(|corner, pid, mark| {
            let report = corner.doctor().on_its_engine().args(&["--fix"]).report();
            assert_eq!(report.level("leftovers"), "ok", "{report:#?}");
            assert_eq!(corner.left_by(pid), Vec::<String>::new());
            report.document["actions"].to_string().contains(mark)
        });
    }

    fn an_image_that_a_dead_check_up_left_is_removed(setup) {
        let image = format!("localhost/cordon-doctor:00000000-{}-1", std::process::id());
        setup.ask(&["tag", BUSYBOX, &image]);
        let cleaned = setup.command(cordon()).arg("clean").output().unwrap();
        assert!(cleaned.status.success(), "{cleaned:?}");
        let images = setup.ask(&["images", "--format", "{{.Repository}}:{{.Tag}}"]);
        assert!(!images.contains(&image), "{images}");
        // The same image under another name is somebody's.
        assert!(images.contains(BUSYBOX), "{images}");
    }

    fn what_a_living_run_uses_is_not_cleaned(setup) {
        let running = Run::new(setup).start_script("sleep 60");
        let cleaned = setup.command(cordon()).arg("clean").output().unwrap();
        assert!(cleaned.status.success(), "{cleaned:?}");
        assert_eq!(setup.containers_of(running.pid()).len(), 1);
        running.signal(Signal::TERM);
        assert_eq!(running.end().code, 143);
    }

    fn a_workspace_that_is_not_there_is_made_by_the_hint(setup) {
        let agents = Agents::new(setup, &format!("image: {BUSYBOX}"));
        fs::remove_dir(agents.0.path("work")).unwrap();
        let report = Doctor::new(setup).args(&["--agents", &agents.file()]).report();
        assert_eq!(report.code, 1, "{report:#?}");
        assert_eq!(report.finding("workspace-unusable")["config"], "agents.coder.workspace");
        assert!(typed(setup, report.hint("workspace-unusable")).status.success());
        let report = Doctor::new(setup).args(&["--agents", &agents.file()]).report();
        assert!(!report.has("workspace-unusable"), "{report:#?}");
    }

    fn without_a_terminal_the_report_is_plain_and_fits_a_screen(setup) {
        let mut command = setup.command(cordon());
        command.args(["doctor", "--engine", setup.engine(), "--upstream-dns", "127.0.0.1:9"]);
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.is_ascii(), "{text}");
        assert!(text.contains("  ok      ") && text.contains("  error   "), "{text}");
        assert!(text.contains("      try: cordon doctor\n"), "{text}");
        assert!(text.lines().count() <= 24, "{text}");
    }
}

/// Where runs of other tests remove nothing: a place of its own for what lives as long as a run. Podman
/// without root keeps its own things there too, so that others have to be put up with.
struct Corner {
    setup: Setup,
    own: Option<TempDir>,
}

impl Corner {
    fn of(setup: Setup) -> Self {
        let own = (setup != Setup::Rootless).then(|| tempfile::tempdir().unwrap());
        Self { setup, own }
    }

    fn runtime(&self) -> Option<&str> {
        let own = self.own.as_ref()?;
        Some(own.path().to_str().unwrap())
    }

    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.setup.command(program);
        command.envs(self.runtime().map(|own| ("XDG_RUNTIME_DIR", own)));
        command
    }

    fn doctor(&self) -> Doctor {
        let doctor = Doctor::new(self.setup);
        match self.runtime() {
            Some(own) => doctor.env("XDG_RUNTIME_DIR", own),
            None => doctor,
        }
    }

    fn left_by(&self, pid: u32) -> Vec<String> {
        match &self.own {
            Some(own) => self.setup.left_in(&own.path().join("cordon"), pid),
            None => self.setup.left_by(pid),
        }
    }

    /// Leaves the directory of a run behind, whose owner is dead, and lets it be looked at until nobody
    /// else removed it first.
    fn after_a_kill(&self, look: impl Fn(&Self, u32, &str) -> bool) {
        let begun = Instant::now();
        loop {
            let mut run = Run::new(self.setup);
            if let Some(own) = self.runtime() {
                run = run.env("XDG_RUNTIME_DIR", own);
            }
            let running = run.start_script("sleep 60");
            let pid = running.pid();
            running.signal(Signal::KILL);
            running.end();
            if look(self, pid, &format!("-{pid}-")) {
                return;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "somebody else was always faster"
            );
        }
    }
}

/// Docker alone asks a registry on loopback without TLS.
#[test]
fn an_image_that_a_registry_has_is_fetched_by_the_fix() {
    let registry = Registry::with(BUSYBOX);
    let image = registry.image();
    let agents = Agents::new(Setup::Docker, &format!("image: {image}"));
    let report = Doctor::new(Setup::Docker)
        .args(&["--agents", &agents.file()])
        .report();
    assert_eq!(report.level("image-missing"), "warning", "{report:#?}");
    assert_eq!(report.hint("image-missing"), format!("docker pull {image}"));
    let report = Doctor::new(Setup::Docker)
        .args(&["--agents", &agents.file(), "--fix"])
        .report();
    assert_eq!(report.level("image"), "ok", "{report:#?}");
    assert_eq!(report.done_for("coder"), [format!("fetched {image}")]);
    assert_eq!(report.level("isolation"), "ok", "{report:#?}");
    Setup::Docker.ask(&["rmi", &image]);
    // The hint does the same.
    assert!(
        typed(Setup::Docker, &format!("docker pull {image}"))
            .status
            .success()
    );
    Setup::Docker.ask(&["rmi", &image]);
}

#[test]
fn no_engine_at_all_is_an_error_that_says_what_to_install() {
    let nothing = tempfile::tempdir().unwrap();
    let path = nothing.path().to_str().unwrap().to_owned();
    let report = Doctor::new(Setup::Podman).env("PATH", &path).report();
    assert_eq!(report.code, 1, "{report:#?}");
    assert_eq!(report.level("engine-missing"), "error");
    let hint = report.hint("engine-missing");
    let packages = hint.strip_prefix("sudo apt-get install ").unwrap();
    // The words of the hint are packages that this distribution has.
    let mut simulated = Command::new("apt-get");
    simulated
        .args(["install", "--simulate", "--quiet"])
        .args(packages.split(' '));
    assert!(simulated.output().unwrap().status.success(), "{hint}");
}

#[test]
fn the_engine_of_an_agent_that_is_not_installed_is_an_error_of_that_agent() {
    let nothing = tempfile::tempdir().unwrap();
    let path = nothing.path().to_str().unwrap().to_owned();
    let agents = Agents::new(Setup::Docker, &format!("image: {BUSYBOX}"));
    let report = Doctor::new(Setup::Docker)
        .args(&["--agents", &agents.file()])
        .env("PATH", &path)
        .report();
    assert_eq!(report.code, 1, "{report:#?}");
    assert_eq!(
        report.hint("engine-missing"),
        "sudo apt-get install docker.io"
    );
    assert_eq!(
        report.finding("mode-unavailable")["config"],
        "agents.coder.mode"
    );
}

#[test]
fn a_daemon_that_is_down_is_an_error_and_the_hint_brings_the_client_home() {
    let down = |command: Doctor| command.args(&["--engine", "docker"]);
    let report = down(Doctor::new(Setup::Docker))
        .env("DOCKER_HOST", "unix:///nowhere/docker.sock")
        .report();
    assert_eq!(report.code, 1, "{report:#?}");
    assert_eq!(report.level("engine-not-answering"), "error");
    let hint = report.hint("engine-not-answering");
    assert_eq!(hint, "unset DOCKER_HOST");
    let again = format!(
        "{hint} && {} doctor --json --engine docker",
        cordon().display()
    );
    let output = Command::new("sh")
        .args(["-c", &again])
        .env("DOCKER_HOST", "unix:///nowhere/docker.sock")
        .output()
        .unwrap();
    assert_eq!(Report::read(&output).level("engine"), "ok");
}

#[test]
fn auto_says_which_mode_it_takes_and_why() {
    let run = Run::new(Setup::Podman);
    fs::create_dir(run.path("work")).unwrap();
    let text = format!("agents:\n  coder: {{ workspace: work, image: {BUSYBOX} }}\n");
    fs::write(run.path("agents.yaml"), text).unwrap();
    let file = run.path("agents.yaml");
    let report = Doctor::new(Setup::Podman)
        .args(&["--agents", file.to_str().unwrap()])
        .report();
    let finding = report.finding("mode");
    assert_eq!(finding["level"], "info", "{report:#?}");
    let message = finding["message"].as_str().unwrap();
    assert!(
        message.starts_with("auto takes podman for coder: podman "),
        "{message}"
    );
}

#[test]
fn a_name_server_that_does_not_answer_is_an_error_and_the_hint_asks_another() {
    let report = Doctor::new(Setup::Podman)
        .on_its_engine()
        .args(&["--upstream-dns", "127.0.0.1:9"])
        .report();
    assert_eq!(report.code, 1, "{report:#?}");
    assert_eq!(report.level("dns-unreachable"), "error");
    assert!(
        report.finding("dns-unreachable")["message"]
            .as_str()
            .unwrap()
            .contains("127.0.0.1:9")
    );
    assert_eq!(
        report.level("isolation"),
        "ok",
        "the rest is looked at all the same"
    );
}

#[test]
fn certificates_that_are_none_stop_the_check_up() {
    let directory = tempfile::tempdir().unwrap();
    let bundle = directory.path().join("ca.pem");
    fs::write(&bundle, "no certificate").unwrap();
    let output = Command::new(cordon())
        .args(["doctor", "--upstream-ca"])
        .arg(&bundle)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("ca.pem"));
}

#[test]
fn an_agents_file_with_a_mistake_stops_the_check_up_at_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("agents.yaml");
    fs::write(&file, "agents:\n  coder:\n    workspcae: w\n").unwrap();
    let output = Command::new(cordon())
        .args(["doctor", "--agents"])
        .arg(&file)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        stderr.contains("agents.yaml:3:5: unknown key `workspcae`"),
        "{stderr}"
    );
    assert!(
        stderr.contains("hint: did you mean `workspace`?"),
        "{stderr}"
    );
}

#[test]
fn a_user_without_ranges_is_told_what_to_type_and_has_them_then() {
    let user = FreshUser::make();
    let report = Report::read(&user.run(&["doctor", "--json", "--engine", "podman"]));
    assert_eq!(report.code, 1, "{report:#?}");
    for code in ["subuid-missing", "subgid-missing"] {
        assert_eq!(report.level(code), "error", "{report:#?}");
        // The second half of the hint is for a user who has run podman before.
        let (first, rest) = report.hint(code).split_once(" && ").unwrap();
        let done = typed(Setup::Podman, first.strip_prefix("sudo ").unwrap());
        assert!(done.status.success(), "{first}: {done:?}");
        assert_eq!(rest, "podman system migrate");
    }
    let report = Report::read(&user.run(&["doctor", "--json", "--engine", "podman"]));
    assert!(
        !report.has("subuid-missing") && !report.has("subgid-missing"),
        "{report:#?}"
    );
    assert_eq!(report.level("rootless"), "ok", "{report:#?}");
}

#[test]
fn host_mode_is_never_called_good() {
    let run = Run::new(Setup::Podman);
    fs::create_dir(run.path("work")).unwrap();
    fs::write(
        run.path("agents.yaml"),
        "agents:\n  coder: { workspace: work, mode: off, commands: [ls] }\n",
    )
    .unwrap();
    let file = run.path("agents.yaml");
    let doctor = || Doctor::new(Setup::Podman).args(&["--agents", file.to_str().unwrap()]);
    let report = doctor().report();
    assert_eq!(report.code, 1, "{report:#?}");
    assert_eq!(report.level("host-mode-locked"), "error");
    let report = doctor().env("CORDON_ALLOW_HOST_EXEC", "1").report();
    assert_eq!(report.level("host-mode"), "warning", "{report:#?}");
    assert!(!report.has("isolation"), "{report:#?}");
}
