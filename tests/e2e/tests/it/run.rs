//! What the program promises about running a command: its streams, its code, its surroundings.

use std::{fs, os::unix::fs::PermissionsExt, process::Command};

use crate::setup::{BUSYBOX, DEBIAN, Run, SCRATCH, Setup, cordon, on_every_engine};

on_every_engine! {
    fn the_exit_code_is_the_commands(setup) {
        let ended = Run::new(setup).sh("exit 42").end();
        assert_eq!(ended.code, 42, "{ended:?}");
        assert_eq!(setup.left_by(ended.pid), Vec::<String>::new());
    }

    fn a_signal_is_128_and_its_number(setup) {
        assert_eq!(Run::new(setup).sh("kill -USR1 $$").end().code, 128 + 10);
    }

    fn a_command_that_is_not_there_is_127(setup) {
        let ended = Run::new(setup).command(["no-such-command"]).end();
        assert_eq!(ended.code, 127, "{ended:?}");
        assert!(ended.stderr.contains("`no-such-command` is not in the image"), "{ended:?}");
    }

    fn a_command_that_cannot_be_executed_is_126(setup) {
        let ended = Run::new(setup).command(["/etc"]).end();
        assert_eq!(ended.code, 126, "{ended:?}");
    }

    fn streams_pass_byte_for_byte(setup) {
        let input: Vec<u8> = (0..1_000_003_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let ended = Run::new(setup).flags(["--quiet"]).input(input.clone()).sh("cat; echo to stderr >&2").succeed();
        assert_eq!(ended.bytes, input);
        assert_eq!(ended.stderr, "to stderr\n");
    }

    fn the_current_directory_is_the_workspace(setup) {
        let run = Run::new(setup).sh("pwd; cat given; echo made > made");
        fs::write(run.path("given"), "given\n").unwrap();
        assert_eq!(run.succeed().stdout, "/workspace\ngiven\n");
        assert_eq!(fs::read_to_string(run.path("made")).unwrap(), "made\n");
    }

    fn a_read_only_workspace_cannot_be_written(setup) {
        let run = Run::new(setup).flags(["--mount", ".:/workspace:ro"]).sh("echo made > made");
        let ended = run.end();
        assert_ne!(ended.code, 0);
        assert!(ended.stderr.contains("Read-only file system"), "{ended:?}");
    }

    fn a_mount_is_where_it_was_asked_for(setup) {
        let run = Run::new(setup).flags(["--mount", "data:/in put:ro"]).sh("cat '/in put/file'");
        fs::create_dir(run.path("data")).unwrap();
        fs::write(run.path("data/file"), "content\n").unwrap();
        assert_eq!(run.succeed().stdout, "content\n");
    }

    fn variables_are_set_and_passed(setup) {
        let run = Run::new(setup)
            .flags(["--env", "GIVEN=a b=c", "--pass-env", "PASSED", "--env", "PATH=/bin:/extra"])
            .env("PASSED", "two\nlines")
            .sh("echo \"$GIVEN|$PASSED|$PATH|$IS_SANDBOX\"");
        assert_eq!(run.succeed().stdout, "a b=c|two\nlines|/bin:/extra|1\n");
    }

    fn a_variable_that_is_not_set_is_said(setup) {
        let ended = Run::new(setup).flags(["--pass-env", "NOT_SET_HERE"]).command(["true"]).succeed();
        assert!(ended.stderr.contains("NOT_SET_HERE is not set here"), "{ended:?}");
    }

    fn values_of_variables_are_in_no_argument_list_and_not_with_the_engine(setup) {
        let value = "value-that-nobody-sees-5e1f";
        let running = Run::new(setup)
            .flags(["--pass-env", "QUIET"])
            .env("QUIET", value)
            .start_script("sleep 60");
        let name = setup.containers_of(running.pid()).remove(0);
        let inspected = setup.ask(&["container", "inspect", &name]);
        assert!(!inspected.contains(value));
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let arguments = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            assert!(!String::from_utf8_lossy(&arguments).contains(value), "{entry:?}");
        }
        running.signal(rustix::process::Signal::TERM);
        assert_eq!(running.end().code, 128 + 15);
    }

    fn an_image_without_shell_or_libc_works_as_any_user(setup) {
        for user in [None, Some("4321:4321")] {
            let mut run = Run::new(setup).image(SCRATCH).command(["/probe", "exit", "7"]);
            if let Some(user) = user {
                run = run.flags(["--user", user]);
            }
            let ended = run.end();
            assert_eq!(ended.code, 7, "{user:?} {ended:?}");
        }
    }

    fn the_user_is_the_one_asked_for(setup) {
        let ended = Run::new(setup).flags(["--user", "1234:5678"]).sh("id -u; id -g").succeed();
        assert_eq!(ended.stdout, "1234\n5678\n");
    }

    fn a_terminal_is_passed_on_when_there_is_one(setup) {
        let line = format!(
            "{} run --engine {} --image {BUSYBOX} --no-pull -- sh -c 'sleep 1; tty; stty size'",
            cordon().display(),
            setup.engine(),
        );
        let directory = tempfile::Builder::new().prefix("cordon-e2e-").tempdir_in("/tmp").unwrap();
        let mut command = Command::new("script");
        command.args(["-qec", &format!("stty rows 33 cols 77; {}", as_user(setup, &line)), "/dev/null"]);
        let output = command.current_dir(directory.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{output:?}");
        assert!(said.contains("/dev/pts/0") && said.contains("33 77"), "{said}");
    }

    fn the_processes_of_the_host_cannot_be_seen(setup) {
        let ended = Run::new(setup).sh("ls -d /proc/[0-9]* | wc -l; cat /proc/1/comm").succeed();
        let (count, first) = ended.stdout.split_once('\n').unwrap();
        assert!(count.trim().parse::<u32>().unwrap() < 8, "{ended:?}");
        assert!(first.starts_with("init") || first.starts_with("cordon-init"), "{ended:?}");
    }

    fn the_command_cannot_look_into_pid_one(setup) {
        let ended = Run::new(setup).sh("ls /proc/1/fd 2>&1; cat /proc/1/environ 2>&1 | head -c 99").end();
        assert!(ended.stdout.contains("ermission denied"), "{ended:?}");
    }

    fn orphans_are_reaped(setup) {
        let script = "for i in 1 2 3 4 5; do (sleep 0.05 &) ; done; sleep 0.5; ps | grep -c '[Z]ombie\\|[s]leep\\b.*Z' || true; \
                      grep -l '^State:.*Z' /proc/[0-9]*/status | wc -l";
        let ended = Run::new(setup).sh(script).succeed();
        assert!(ended.stdout.ends_with("0\n"), "{ended:?}");
    }

    fn a_debian_image_runs(setup) {
        let ended = Run::new(setup).image(DEBIAN).sh("cat /etc/debian_version").succeed();
        assert!(ended.stdout.starts_with("12"), "{ended:?}");
    }
}

/// As crun is on hosts with hybrid control groups: it is there, and cannot start anything.
#[test]
fn a_runtime_that_cannot_start_is_replaced_and_that_is_said() {
    let run = Run::new(Setup::Podman).flags(["--verbose"]).sh("echo ran");
    let broken = run.path("broken");
    fs::write(
        &broken,
        "#!/bin/sh\necho 'broken: cgroups in hybrid mode not supported' >&2\nexit 1\n",
    )
    .unwrap();
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).unwrap();
    let settings = run.path("containers.conf");
    let text = format!(
        "[engine]\nruntime = \"broken\"\n[engine.runtimes]\nbroken = [{broken:?}]\nrunc = [\"/usr/sbin/runc\", \"/usr/bin/runc\"]\n"
    );
    fs::write(&settings, text).unwrap();
    let run = run.env("CONTAINERS_CONF", settings.to_str().unwrap());
    let ended = run.succeed();
    assert_eq!(ended.stdout, "ran\n", "{ended:?}");
    assert!(
        ended.stderr.contains("cannot start containers here"),
        "{ended:?}"
    );
    let again = run.succeed();
    assert!(
        !again.stderr.contains("cannot start containers"),
        "it is remembered: {again:?}"
    );
}

#[test]
fn an_image_is_built_from_a_dockerfile_and_found_again() {
    for setup in [Setup::Podman, Setup::Rootless, Setup::Docker] {
        let run = Run::new(setup)
            .env("CORDON_IMAGE", "")
            .command(["cat", "/etc/made"]);
        fs::create_dir_all(run.path(".cordon/container/sub")).unwrap();
        let dockerfile =
            format!("FROM {BUSYBOX}\nCOPY sub/made /etc/made\nRUN echo built >> /etc/made\n");
        fs::write(run.path(".cordon/container/Dockerfile"), dockerfile).unwrap();
        fs::write(
            run.path(".cordon/container/sub/made"),
            format!("{}\n", std::process::id()),
        )
        .unwrap();
        let first = run.succeed();
        assert_eq!(
            first.stdout,
            format!("{}\nbuilt\n", std::process::id()),
            "{first:?}"
        );
        assert!(first.stderr.contains("building cordon"), "{first:?}");
        let second = run.succeed();
        assert!(!second.stderr.contains("building"), "{second:?}");
    }
}

fn as_user(setup: Setup, line: &str) -> String {
    let root = env!("CARGO_MANIFEST_DIR");
    match setup {
        Setup::Podman | Setup::Docker => line.to_owned(),
        Setup::Rootless => format!("{root}/../../scripts/as-rootless {line}"),
    }
}

#[test]
fn running_out_of_memory_gets_a_hint() {
    for setup in [Setup::Podman, Setup::Docker] {
        let ended = Run::new(setup)
            .image(DEBIAN)
            .flags(["--memory", "64m"])
            .command(["python3", "-c", "x = bytearray(512 << 20)"])
            .end();
        assert_eq!(ended.code, 137, "{setup:?} {ended:?}");
        assert!(
            ended.stderr.contains("give it more with --memory"),
            "{setup:?} {ended:?}"
        );
    }
}

#[test]
fn limits_that_cannot_be_enforced_are_said() {
    let ended = Run::new(Setup::Rootless)
        .flags(["--memory", "64m", "--pids", "10"])
        .command(["true"])
        .succeed();
    let version_two = fs::metadata("/sys/fs/cgroup/cgroup.controllers").is_ok();
    assert_eq!(
        ended
            .stderr
            .contains("podman cannot enforce memory, cpus, pids here"),
        !version_two,
        "{ended:?}"
    );
}

#[test]
fn processes_are_limited() {
    for setup in [Setup::Podman, Setup::Docker] {
        let script = "for i in $(seq 40); do sleep 2 & done; wait";
        let ended = Run::new(setup).flags(["--pids", "20"]).sh(script).end();
        assert!(ended.stderr.contains("an't fork"), "{setup:?} {ended:?}");
    }
}
