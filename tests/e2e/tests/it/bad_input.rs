//! Bad input gets its own message, a hint and the right code, and leaves nothing.

use std::{fs, os::unix::fs::PermissionsExt, process::Command};

use crate::setup::{Ended, Run, Setup, cordon};

/// A run that must fail in a certain way.
fn refused(run: &Run, code: i32, words: &[&str]) -> Ended {
    let ended = run.end();
    assert_eq!(ended.code, code, "{ended:?}");
    for word in words {
        assert!(
            ended.stderr.contains(word),
            "`{word}` is missing: {}",
            ended.stderr
        );
    }
    assert_eq!(ended.stdout, "");
    assert_eq!(Setup::Podman.left_by(ended.pid), Vec::<String>::new());
    ended
}

fn run() -> Run {
    Run::new(Setup::Podman).command(["true"])
}

#[test]
fn an_engine_that_is_not_installed() {
    let nothing = tempfile::tempdir().unwrap();
    let run = run().env("PATH", nothing.path().to_str().unwrap());
    refused(
        &run,
        125,
        &[
            "error: podman is not installed",
            "hint: install it with `apt-get install podman",
        ],
    );
}

#[test]
fn an_engine_that_does_not_answer() {
    let run = Run::new(Setup::Docker)
        .env("DOCKER_HOST", "unix:///nowhere/docker.sock")
        .command(["true"]);
    refused(
        &run,
        125,
        &["error: docker does not answer", "hint: start it with"],
    );
}

#[test]
fn an_image_that_is_not_there() {
    for setup in [Setup::Podman, Setup::Rootless, Setup::Docker] {
        let ended = Run::new(setup)
            .image("localhost/no-such-image:1")
            .command(["true"])
            .end();
        assert_eq!(ended.code, 125, "{ended:?}");
        assert!(
            ended
                .stderr
                .contains("error: image `localhost/no-such-image:1` is not in"),
            "{ended:?}"
        );
        assert!(
            ended.stderr.contains("hint: list what is there with"),
            "{ended:?}"
        );
        assert_eq!(setup.left_by(ended.pid), Vec::<String>::new());
    }
}

#[test]
fn no_image_at_all() {
    let run = run().env("CORDON_IMAGE", "");
    refused(&run, 125, &["hint: name one with --image"]);
}

#[test]
fn a_mount_of_nothing() {
    let run = run().flags(["--mount", "no-such-directory:/data"]);
    refused(
        &run,
        125,
        &["error: cannot mount no-such-directory", "No such file"],
    );
}

#[test]
fn mounts_that_would_give_the_machine_away() {
    refused(
        &run().flags(["--mount", "/:/host"]),
        125,
        &["the host's root directory cannot be mounted"],
    );
    let socket = run().flags(["--mount", "/run/docker.sock:/docker.sock"]);
    refused(&socket, 125, &["container engine's socket"]);
    refused(
        &run().flags(["--mount", "/run:/host-run"]),
        125,
        &["error:"],
    );
}

#[test]
fn a_mount_through_a_symbolic_link() {
    let run = run().flags(["--mount", "link:/data"]);
    std::os::unix::fs::symlink("/etc", run.path("link")).unwrap();
    refused(
        &run,
        125,
        &[
            "goes through a symbolic link to /etc",
            "hint: say /etc instead",
        ],
    );
}

#[test]
fn mounts_that_are_not_written_like_mounts() {
    for mount in ["nonsense", "a:b", ":/x", "a:/b:rx"] {
        refused(
            &run().flags(["--mount", mount]),
            2,
            &["error: invalid value"],
        );
    }
    refused(
        &run().flags(["--mount", ".:/etc/hosts"]),
        125,
        &["where the sandbox puts its own files"],
    );
    refused(
        &run().flags(["--mount", ".:/a/../b"]),
        125,
        &["is not a path in the container"],
    );
    refused(
        &run().flags(["--mount", ".:/a", "--mount", ".:/a"]),
        125,
        &["two mounts at `/a`"],
    );
}

#[test]
fn an_allowlist_with_a_string_where_a_list_belongs() {
    let run = run().flags(["--allowlist", "list.yaml"]);
    fs::write(
        run.path("list.yaml"),
        "# hosts\ndomains: \"*.example.com\"\n",
    )
    .unwrap();
    refused(&run, 125, &["list.yaml:2:"]);
}

#[test]
fn an_allowlist_with_an_unknown_key() {
    let run = run().flags(["--allowlist", "list.yaml"]);
    fs::write(
        run.path("list.yaml"),
        "domains: []\nurl_prefixes:\n  - host: a.example\n    method: [GET]\n",
    )
    .unwrap();
    refused(&run, 125, &["list.yaml:4:", "method"]);
}

#[test]
fn an_allowlist_that_is_not_there() {
    refused(
        &run().flags(["--allowlist", "nowhere.yaml"]),
        125,
        &["cannot read the allowlist nowhere.yaml", "No such file"],
    );
}

#[test]
fn limits_that_are_none() {
    for flags in [
        ["--memory", "10x"],
        ["--memory", "1k"],
        ["--cpus", "none"],
        ["--pids", "0"],
        ["--timeout", "0"],
    ] {
        refused(&run().flags(flags), 2, &["error: invalid value"]);
    }
}

#[test]
fn a_name_server_that_is_none() {
    refused(
        &run().flags(["--upstream-dns", "dns.example"]),
        2,
        &["a name server is written as its address"],
    );
}

#[test]
fn certificates_that_are_none() {
    let run = run().flags(["--upstream-ca", "ca.pem"]);
    refused(&run, 125, &["ca.pem"]);
    fs::write(run.path("ca.pem"), "not a certificate").unwrap();
    refused(&run, 125, &["ca.pem"]);
}

#[test]
fn a_user_that_is_not_in_the_image() {
    let ended = run().flags(["--user", "nobody-of-that-name"]).end();
    assert_eq!(ended.code, 125, "{ended:?}");
    assert!(
        ended.stderr.contains("hint: name a user of the image"),
        "{ended:?}"
    );
}

#[test]
fn no_command() {
    let run = Run::new(Setup::Podman);
    refused(&run, 2, &["error:", "COMMAND"]);
}

#[test]
fn a_home_directory_is_not_a_workspace_by_accident() {
    let run = run();
    let here = run
        .path("")
        .to_str()
        .unwrap()
        .trim_end_matches('/')
        .to_owned();
    refused(
        &run.env("HOME", &here),
        125,
        &[
            "as a whole would be the command's workspace",
            "hint: change into a project",
        ],
    );
}

/// An engine whose containers never hand over their sockets: it starts, and hangs.
#[test]
fn a_door_that_is_never_handed_over() {
    let run = run().flags(["--start-limit", "2"]);
    let directory = run.path("bin");
    fs::create_dir(&directory).unwrap();
    let real = Command::new("sh")
        .args(["-c", "command -v podman"])
        .output()
        .unwrap();
    let real = String::from_utf8(real.stdout).unwrap();
    let script = format!(
        "#!/bin/sh\ncase \"$1\" in run) echo 'waiting for something' >&2; exec sleep 60;; *) exec {} \"$@\";; esac\n",
        real.trim()
    );
    let fake = directory.join("podman");
    fs::write(&fake, script).unwrap();
    fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", directory.display(), std::env::var("PATH").unwrap());
    let run = run.env("PATH", &path);
    refused(
        &run,
        125,
        &[
            "error: the container did not start",
            "did not hand over its sockets within 2 s",
            "waiting for something",
            "hint:",
        ],
    );
}

#[test]
fn a_full_disk_for_the_log_is_said_and_the_run_goes_on() {
    let ended = run()
        .flags(["--network-log", "/dev/full"])
        .sh("nslookup example.com >/dev/null; echo ran")
        .end();
    assert_eq!(ended.stdout, "ran\n", "{ended:?}");
    assert!(
        ended.stderr.contains("the network log is incomplete"),
        "{ended:?}"
    );
}

#[test]
fn a_log_that_cannot_be_made_stops_the_run_before_it_starts() {
    let ended = run()
        .flags(["--network-log", "no/such/directory/net.log"])
        .sh("echo ran")
        .end();
    assert_eq!((ended.code, ended.stdout.as_str()), (125, ""), "{ended:?}");
    assert!(
        ended.stderr.contains("no/such/directory/net.log"),
        "{ended:?}"
    );
}

#[test]
fn help_is_short_and_shows_examples() {
    let output = Command::new(cordon())
        .args(["run", "--help"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("Examples:") && text.contains("Exit code:"),
        "{text}"
    );
}
