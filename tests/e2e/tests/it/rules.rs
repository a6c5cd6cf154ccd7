//! What a workload cannot do about its own rules, from the working tree and from a commit.

use std::{fs, path::Path, process::Command};

use origin::Origin;

use crate::setup::{DEBIAN, Run, Setup, on_every_engine};

on_every_engine! {
    fn an_agent_that_rewrites_its_rules_changes_nothing_in_this_run_or_the_next(setup) {
        let world = Origin::start(&["*.example.com"]);
        let run = project(setup);
        let outside = world.address().to_string();
        let run = run
            .flags(["--upstream-dns", &outside])
            .flags(["--upstream-ca".as_ref(), world.authority().as_os_str()]);
        let attack = run.clone().sh(&format!("{REWRITE}; {PROBE}"));
        let first = attack.succeed();
        assert_eq!(first.stdout, "image: theirs, variable: one, reached: one.example.com\n", "{first:?}");
        let second = run.sh(PROBE).succeed();
        assert_eq!(second.stdout, first.stdout, "{second:?}");
        assert!(!second.stderr.contains("building"), "{second:?}");
    }

    fn rules_of_a_commit_stand_against_whoever_rewrites_its_repository(setup) {
        let world = Origin::start(&["*.example.com"]);
        let run = project(setup);
        let hash = git(setup, &run, &["rev-parse", "HEAD"]);
        let run = run
            .flags(["--config-ref", hash.trim()])
            .flags(["--upstream-dns", &world.address().to_string()])
            .flags(["--upstream-ca".as_ref(), world.authority().as_os_str()]);
        let first = run.clone().sh(&format!("{REWRITE_GIT}; {PROBE}")).succeed();
        assert!(first.stdout.ends_with("image: theirs, variable: one, reached: one.example.com\n"), "{first:?}");
        assert!(first.stdout.starts_with("moved\n"), "the attack works: {first:?}");
        let second = run.clone().sh(PROBE).succeed();
        assert_eq!(second.stdout, "image: theirs, variable: one, reached: one.example.com\n", "{second:?}");
        assert!(!second.stderr.contains("can move"), "{second:?}");

        // With forged objects the next run is refused, and not under other rules.
        run.clone().sh(FORGE).succeed();
        let third = run.sh(PROBE).end();
        assert_eq!((third.code, third.stdout.as_str()), (125, ""), "{third:?}");
        assert!(third.stderr.contains("forged"), "{third:?}");
    }

    fn a_repository_out_of_reach_gives_the_rules_by_name(setup) {
        let run = project(setup);
        let mirror = Run::new(setup);
        let bare = mirror.path("mirror.git");
        git(setup, &run, &["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
        let run = run.flags(["--config-ref", "main", "--config-repo"]).flags([&bare]);
        let probe = "cat /theirs; echo $A";
        let first = run.clone().sh(&format!("{REWRITE_GIT}; {probe}")).succeed();
        assert!(first.stdout.ends_with("theirs\none\n"), "{first:?}");
        let second = run.sh(probe).succeed();
        assert_eq!((second.stdout.as_str(), second.stderr.contains("can move")), ("theirs\none\n", false), "{second:?}");
    }

    fn a_name_that_can_be_moved_from_inside_is_said_and_runs_nothing_here(setup) {
        let run = project(setup).flags(["--config-ref", "main"]).sh("echo $A");
        let said = run.succeed();
        assert_eq!(said.stdout, "one\n", "{said:?}");
        assert!(said.stderr.contains("what runs here can move `main`"), "{said:?}");

        let trap = "secrets:\n  command: [touch, 'ran-{name}']\nmasked_secrets:\n  X: { value: !secret X, scopes: [a.example.com], headers: [X] }\n";
        fs::write(run.path(".cordon/sandbox.yaml"), trap).unwrap();
        git(setup, &run, &["commit", "-q", "-a", "-m", "trap"]);
        let refused = run.end();
        assert_eq!(refused.code, 125, "{refused:?}");
        assert!(refused.stderr.contains("would run a command on this host"), "{refused:?}");
        assert!(!run.path("ran-X").exists());
    }

    fn a_hostile_git_directory_runs_nothing_here(setup) {
        let run = project(setup).flags(["--config-ref", "main"]);
        let place = run.path("");
        let poison = format!(
            "cd /workspace; printf '#!/bin/sh\\ntouch {0}ran\\n' > evil; chmod 755 evil; \
             for key in core.fsmonitor core.sshCommand core.pager core.editor core.askPass core.gitProxy core.hooksPath \
                 core.alternateRefsCommand diff.external credential.helper gpg.program uploadpack.packObjectsHook \
                 remote.origin.uploadpack alias.cat-file filter.x.smudge filter.x.process diff.x.textconv; do \
                 git config $key {0}evil; done; git config include.path {0}evil; echo '* filter=x diff=x' > .git/info/attributes; \
             git config extensions.partialClone origin; git config remote.origin.promisor true; git config remote.origin.url {0}; \
             mkdir -p .git/hooks; for hook in post-checkout post-index-change reference-transaction; do cp evil .git/hooks/$hook; done",
            place.display()
        );
        run.clone().image(DEBIAN).sh(&format!("git config --global safe.directory '*'; {poison}; echo done")).succeed();
        assert!(run.path("evil").exists());
        let ended = run.clone().sh("echo $A").succeed();
        assert_eq!(ended.stdout, "one\n", "{ended:?}");
        assert!(!run.path("ran").exists());
    }
}

#[test]
fn a_ref_or_a_repository_that_is_none_says_what_to_do() {
    let run = project(Setup::Podman).sh("echo ran");
    for (flags, words) in [
        (
            vec!["--config-ref", "nothing"],
            vec!["no ref `nothing`", "show-ref"],
        ),
        (
            vec!["--config-ref", "main~1"],
            vec!["neither the name of a ref nor a full hash"],
        ),
        (
            vec!["--config-ref", "main", "--config", "none.yaml"],
            vec!["cannot read none.yaml"],
        ),
        (
            vec!["--config-ref", "main", "--allowlist", "none.yaml"],
            vec!["cannot read the allowlist none.yaml"],
        ),
        (
            vec!["--config-ref", "main", "--config-repo", "/nowhere"],
            vec!["not in a git repository"],
        ),
        (
            vec!["--config-ref", "main", "--context-dir", "link"],
            vec!["`link` is a symbolic link at `main`"],
        ),
    ] {
        // What is only in the working tree does not count.
        fs::write(run.path("none.yaml"), "").unwrap();
        let ended = run.clone().flags(&flags).end();
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (125, ""),
            "{flags:?} {ended:?}"
        );
        for word in words {
            assert!(ended.stderr.contains(word), "{flags:?} {ended:?}");
        }
    }
}

/// A project whose rules are committed: an image with a file of its own, a variable, and one host.
fn project(setup: Setup) -> Run {
    let run = Run::new(setup).env("CORDON_IMAGE", "");
    let rules = run.path(".cordon");
    fs::create_dir_all(rules.join("container")).unwrap();
    fs::write(rules.join("sandbox.yaml"), "env: { A: one }\n").unwrap();
    fs::write(
        rules.join("network-allowlist.yaml"),
        "domains:\n  - { host: one.example.com, private_addresses: true }\n",
    )
    .unwrap();
    let dockerfile = format!("FROM {DEBIAN}\nCOPY theirs /theirs\n");
    fs::write(rules.join("container/Dockerfile"), dockerfile).unwrap();
    fs::write(rules.join("container/theirs"), "theirs\n").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", run.path("link")).unwrap();
    own(setup, &run.path(""));
    git(setup, &run, &["init", "-q", "-b", "main"]);
    git(setup, &run, &["add", "--all"]);
    git(setup, &run, &["commit", "-q", "-m", "rules"]);
    run
}

/// Gives a directory to the set-up's user.
pub(crate) fn own(setup: Setup, directory: &Path) {
    if setup == Setup::Rootless {
        let done = Command::new("chown")
            .args(["-Rh", "cordon-test:"])
            .arg(directory)
            .status()
            .unwrap();
        assert!(done.success());
    }
}

/// What git answers in a run's directory, as the set-up's user.
pub(crate) fn git(setup: Setup, run: &Run, arguments: &[&str]) -> String {
    let output = setup
        .command("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@example.com"])
        .args(arguments)
        .current_dir(run.path(""))
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?} {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Says which image, which settings and which allowlist are in force.
const PROBE: &str = "reached=; for host in one two; do \
        curl -sS -m 20 -o /dev/null -w '%{http_code}' https://$host.example.com/ 2>/dev/null | grep -q 200 && reached=\"$reached$host.example.com\"; done; \
    echo \"image: $(cat /theirs 2>/dev/null || echo ours), variable: $A, reached: $reached\"";

/// Other rules, written over the ones in force by every way there is.
const REWRITE: &str = "{ new='domains:\\n  - { host: two.example.com, private_addresses: true }\\n'; \
    for dir in .cordon .cordon/container; do rm -rf $dir; mv $dir /tmp/away; mkdir -p $dir; done; \
    printf \"$new\" > .cordon/network-allowlist.yaml; printf 'env: { A: two }\\n' > .cordon/sandbox.yaml; \
    printf 'FROM scratch\\n' > .cordon/container/Dockerfile; echo ours > .cordon/container/theirs; \
    mv .cordon .cordon.old; ln -s /tmp .cordon; mount --bind /tmp .cordon; mount -o remount,rw .cordon; } >/dev/null 2>&1";

/// Other rules as the newest commit of every ref, and as what replaces the old one.
const REWRITE_GIT: &str = "{ export HOME=/tmp; git config --global safe.directory '*'; git config --global user.name x; \
    git config --global user.email x@example.com; old=$(git rev-parse HEAD); mkdir -p /tmp/new/.cordon/container; \
    printf 'domains:\\n  - { host: two.example.com, private_addresses: true }\\n' > /tmp/new/.cordon/network-allowlist.yaml; \
    printf 'env: { A: two }\\n' > /tmp/new/.cordon/sandbox.yaml; printf 'FROM scratch\\n' > /tmp/new/.cordon/container/Dockerfile; \
    (cd /tmp/new; export GIT_DIR=/workspace/.git GIT_WORK_TREE=/tmp/new; git add --all; git commit -m moved); \
    git tag -f $old; git update-ref refs/heads/$old HEAD; git replace -f $old HEAD; git pack-refs --all; } >/dev/null 2>&1; \
    git show HEAD:.cordon/sandbox.yaml | grep -q two && echo moved";

/// The content of other objects under the names of those that hold the rules.
const FORGE: &str = "export HOME=/tmp GIT_NO_REPLACE_OBJECTS=1; git config --global safe.directory '*'; \
    cd .git/objects; evil=$(echo 'network_sandbox: false' | git hash-object -w --stdin); \
    for object in $(git rev-list --all --objects | cut -d' ' -f1); do \
        test \"$(git cat-file -t $object)\" = blob || continue; file=$(echo $object | cut -c1-2)/$(echo $object | cut -c3-); \
        test -f $file && rm -f $file && cp $(echo $evil | cut -c1-2)/$(echo $evil | cut -c3-) $file; done; true";
