//! Builds of images: with the host's network, with none, and behind the door.

use std::{fs, process::Command, sync::atomic::Ordering, time::Duration};

use origin::Origin;
use rustix::process::Signal;

use crate::host::{host_addresses, host_service};
use crate::setup::{BUSYBOX, DEBIAN, Ended, Run, Setup, eventually};

/// Makes two tests of one function: `name::podman` and `name::rootless`.
macro_rules! on_podman {
    ($($(#[$meta:meta])* fn $name:ident($setup:ident) $body:block)*) => {
        $(mod $name {
            use super::*;

            $(#[$meta])*
            fn claim($setup: Setup) $body

            #[test]
            fn podman() { claim(Setup::Podman); }

            #[test]
            fn rootless() { claim(Setup::Rootless); }
        })*
    };
}

/// Tries every address and port that it is given, and says what answers.
const PROBE: &str = r#"
import socket, sys
for target in sys.argv[1:]:
    host, _, port = target.rpartition("@")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        try:
            s.sendto(b"probe", (host, int(port)))
        except OSError:
            pass
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(2)
        try:
            s.connect((host, int(port)))
            print("open", target)
        except OSError:
            pass
print("done")
"#;

on_podman! {
    fn a_sandboxed_build_reaches_what_the_allowlist_names_and_nothing_else(setup) {
        let origin = Origin::start(&["*.example.com"]);
        let (port, heard) = host_service();
        let mut targets = vec!["198.51.100.7@443".to_owned(), "1.1.1.1@53".into(), "169.254.169.254@80".into(), "10.88.0.1@53".into(),
            "fe80::1@80".into(), "127.77.0.1@22".into(), format!("127.0.0.1@{port}"), format!("::1@{port}")];
        targets.extend(host_addresses().iter().map(|address| format!("{address}@{port}")));
        let build = Build::new(setup, &origin, &["api.example.com"], &format!(
            "FROM {DEBIAN}\nCOPY probe /probe\n\
             RUN curl -sS -o /dev/null -w '%{{http_code}}\\n' https://api.example.com/one >> /found\n\
             RUN curl -sS -o /dev/null -w '%{{http_code}}\\n' https://evil.example.com/two >> /found\n\
             RUN dig +short api.example.com >> /found; cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' ' >> /found\n\
             RUN python3 /probe {} >> /found\n", targets.join(" ")));
        let ended = build.run.clone().command(["cat", "/found"]).succeed();
        assert_eq!(ended.stdout, "200\n403\n127.77.0.1\nlo\ndone\n", "{ended:?}");
        assert_eq!(heard.load(Ordering::SeqCst), 0);
        assert_eq!(origin.requests(), 1);
        let log = build.run.network_log();
        assert!(log.contains("ALLOWED GET https://api.example.com/one -> 200"), "{log}");
        assert!(log.contains("BLOCKED GET https://evil.example.com/two -> 403"), "{log}");
        let again = build.run.clone().command(["cat", "/found"]).succeed();
        assert!(!again.stderr.contains("building"), "{again:?}");
        build.remove(&ended);
    }

    fn what_the_engine_fetches_for_a_sandboxed_build_goes_through_the_door(setup) {
        let origin = Origin::start(&["*.example.com"]);
        let build = Build::new(setup, &origin, &["api.example.com"], &format!("FROM {BUSYBOX}\nADD https://api.example.com/added /added\n"));
        let ended = build.run.clone().command(["test", "-s", "/added"]).succeed();
        let log = build.run.network_log();
        assert!(log.contains("ALLOWED GET https://api.example.com/added -> 200"), "{log}");
        build.remove(&ended);

        // No address of the host, no unlisted host, and no registry but a listed one.
        let (port, heard) = host_service();
        let before = origin.requests();
        for line in [format!("FROM {BUSYBOX}\nADD http://127.0.0.1:{port}/x /x"), format!("FROM {BUSYBOX}\nADD https://evil.example.com/x /x"),
            "FROM registry.example.com/some/image:1".to_owned()] {
            let ended = Build::new(setup, &origin, &["api.example.com"], &line).run.command(["true"]).end();
            assert_eq!(ended.code, 125, "{line}: {ended:?}");
            assert_eq!(setup.left_by(ended.pid), Vec::<String>::new());
        }
        assert_eq!((heard.load(Ordering::SeqCst), origin.requests()), (0, before));
    }

    fn a_sandboxed_build_gets_no_secret_and_no_look_alike(setup) {
        let origin = Origin::start(&["*.example.com"]);
        let build = Build::new(setup, &origin, &["api.example.com"], &format!("FROM {BUSYBOX}\nRUN env > /env; ls -a / /dev/.cordon > /files\n"));
        let config = "masked_secrets:\n  GH_TOKEN:\n    value: !env REAL_TOKEN\n    scopes: [api.example.com]\n    headers: [Authorization]\n";
        fs::write(build.run.path("sandbox.yaml"), config).unwrap();
        let run = build.run.clone().flags(["--config", "sandbox.yaml"]).env("REAL_TOKEN", TOKEN);
        let ended = run.command(["cat", "/env", "/files"]).succeed();
        assert!(!ended.stdout.contains("TOKEN") && !ended.stdout.contains("ghp_"), "{ended:?}");
        assert!(ended.stdout.contains("SSL_CERT_FILE=/dev/.cordon/ca.pem"), "{ended:?}");
        build.remove(&ended);
    }

    fn nothing_of_the_door_stays_in_an_image_that_was_built_behind_it(setup) {
        let origin = Origin::start(&["*.example.com"]);
        let dockerfile = format!("FROM {DEBIAN}\nENV SSL_CERT_FILE=/their/own\nRUN echo made > /made\nWORKDIR /srv\nRUN ls > /listing\n");
        let inside = Build::new(setup, &origin, &["api.example.com"], &dockerfile);
        let sandboxed = inside.run.clone().command(["true"]).succeed();
        let plain = Build::on(setup, "host", &dockerfile);
        let outside = plain.run.clone().command(["true"]).succeed();
        assert_ne!(image(&sandboxed), image(&outside));
        assert_eq!(contents(setup, &image(&sandboxed)), contents(setup, &image(&outside)));
        inside.remove(&sandboxed);
        plain.remove(&outside);
    }

    fn a_sandboxed_build_uses_no_layer_that_could_reach_anything(setup) {
        let origin = Origin::start(&["*.example.com"]);
        let dockerfile = format!("FROM {BUSYBOX}\nRUN cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' \\n' > /interfaces\n");
        let plain = Build::on(setup, "host", &dockerfile);
        let outside = plain.run.clone().command(["cat", "/interfaces"]).succeed();
        assert_ne!(outside.stdout, "lo", "{outside:?}");
        let inside = Build::new(setup, &origin, &[], &dockerfile);
        let sandboxed = inside.run.clone().command(["cat", "/interfaces"]).succeed();
        assert_eq!(sandboxed.stdout, "lo", "{sandboxed:?}");
        plain.remove(&outside);
        inside.remove(&sandboxed);
    }

    fn when_the_host_process_is_killed_a_sandboxed_build_ends_and_leaves_nothing(setup) {
        let origin = Origin::start(&["*.example.com"]);
        // The engine names what it works in after the base image.
        let base = format!("cordon-test-killed-{}-{setup:?}", std::process::id()).to_lowercase();
        setup.ask(&["tag", DEBIAN, &base]);
        for signal in [Signal::KILL, Signal::TERM] {
            let build = Build::new(setup, &origin, &["api.example.com"],
                &format!("FROM localhost/{base}\nRUN curl -sS https://api.example.com/begun && sleep 7919\nRUN echo second\n"));
            let running = build.run.clone().command(["true"]).start();
            let pid = running.pid();
            eventually("its step runs", Duration::from_secs(60), || build.run.network_log().contains("/begun -> 200"));
            assert!(setup.ask(&["ps", "--all", "--external"]).contains(&base));
            running.signal(signal);
            running.end();
            eventually("the engine cleared up", Duration::from_secs(30), || {
                !setup.ask(&["ps", "--all", "--external"]).contains(&base) && setup.containers_of(pid).is_empty()
            });
            let processes = Command::new("ps").args(["-eo", "args"]).output().unwrap();
            assert!(!String::from_utf8_lossy(&processes.stdout).lines().any(|line| line == "sleep 7919"));
            Run::new(setup).command(["true"]).succeed();
            assert_eq!(setup.left_by(pid), Vec::<String>::new());
        }
        setup.ask(&["rmi", &base]);
    }

    fn certificates_can_be_installed_in_a_sandboxed_build(setup) {
        let origin = Origin::start(&["*.example.com"]);
        let build = Build::new(setup, &origin, &["api.example.com"], &format!(
            "FROM {DEBIAN}\nRUN update-ca-certificates --fresh && curl -sSf https://api.example.com/ && \
             apt-config dump | grep -i https::CAInfo && \
             python3 -c 'import urllib.request as u; u.urlopen(\"https://api.example.com/\").read()' && echo reached > /reached\n"));
        let ended = build.run.clone().command(["cat", "/reached"]).succeed();
        assert_eq!(ended.stdout, "reached\n", "{ended:?}");
        build.remove(&ended);
    }
}

#[test]
fn an_engine_that_cannot_build_behind_the_door_refuses_and_builds_nothing() {
    let origin = Origin::start(&["*.example.com"]);
    let dockerfile = format!("FROM {BUSYBOX}\nRUN echo built > /made\n");
    let build = Build::new(Setup::Docker, &origin, &["api.example.com"], &dockerfile);
    let ended = build.run.command(["true"]).end();
    assert_eq!(ended.code, 125, "{ended:?}");
    assert!(
        ended.stderr.contains("docker cannot build behind the door"),
        "{ended:?}"
    );
    assert!(ended.stderr.contains("hint: use a podman"), "{ended:?}");
    assert!(!ended.stderr.contains("building"), "{ended:?}");
}

#[test]
fn the_commands_of_a_build_without_a_network_have_none() {
    for setup in [Setup::Podman, Setup::Rootless, Setup::Docker] {
        let dockerfile = format!(
            "FROM {BUSYBOX}\nRUN cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' \\n' > /interfaces\n"
        );
        let build = Build::on(setup, "none", &dockerfile);
        let ended = build.run.clone().command(["cat", "/interfaces"]).succeed();
        assert_eq!(ended.stdout, "lo", "{ended:?}");
        build.remove(&ended);
    }
}

/// A run whose image is built first.
struct Build {
    setup: Setup,
    run: Run,
}

impl Build {
    /// Built behind the door, with some hosts of the stand-in allowed.
    fn new(setup: Setup, origin: &Origin, hosts: &[&str], dockerfile: &str) -> Self {
        let build = Self::on(setup, "sandboxed", dockerfile);
        Self {
            run: build.run.origin(origin, hosts),
            ..build
        }
    }

    fn on(setup: Setup, network: &str, dockerfile: &str) -> Self {
        let run = Run::new(setup).env("CORDON_IMAGE", "");
        fs::create_dir_all(run.path(".cordon/container")).unwrap();
        fs::write(run.path(".cordon/container/probe"), PROBE).unwrap();
        // Images of earlier runs of the tests are not taken for this one's.
        let dockerfile = format!("{dockerfile}\n# {}\n", std::process::id());
        fs::write(run.path(".cordon/container/Dockerfile"), dockerfile).unwrap();
        Self {
            setup,
            run: run.flags(["--build-network", network]),
        }
    }

    /// Removes what was built.
    fn remove(&self, ended: &Ended) {
        for tag in tags(ended).iter().rev() {
            drop(
                self.setup
                    .command(self.setup.engine())
                    .args(["rmi", tag])
                    .output(),
            );
        }
    }
}

/// The two images that a run built, the repo image first.
fn tags(ended: &Ended) -> Vec<String> {
    let words = ended.stderr.split_whitespace();
    let named =
        words.filter(|word| word.starts_with("cordon-repo:") || word.starts_with("cordon:"));
    named
        .map(|word| word.trim_end_matches([',', '.', ':', ';']).to_owned())
        .collect()
}

/// The repo image that a run built.
fn image(ended: &Ended) -> String {
    let tags = tags(ended);
    let repo = tags.iter().find(|tag| tag.starts_with("cordon-repo:"));
    repo.cloned().unwrap()
}

/// Everything that can be said of an image but its times: settings, history, and the files of each layer.
fn contents(setup: Setup, image: &str) -> String {
    let said = setup.ask(&[
        "image",
        "inspect",
        image,
        "--format",
        "{{json .Config}}{{range .History}}\n{{.CreatedBy}}{{end}}",
    ]);
    let script = "set -e; d=$(mktemp -d); podman save --format docker-archive \"$1\" 2>/dev/null | tar -x -C $d; \
        for l in $d/*.tar; do tar --numeric-owner -tvf $l | sed -E 's/[0-9]{4}-[0-9-]+ [0-9:]+//'; done | sort; rm -r $d";
    let listed = setup
        .command("sh")
        .args(["-c", script, "sh", image])
        .output()
        .unwrap();
    assert!(listed.status.success(), "{listed:?}");
    said + &String::from_utf8_lossy(&listed.stdout)
}

/// No credential of anybody's.
const TOKEN: &str = "ghp_9z8Y7x6W5v4U3t2S1r0Q9p8O7n6M5l4K3j2I";
