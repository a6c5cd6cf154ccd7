//! `--clone`: what the workload gets, and what it does not.

use std::{fs, path::PathBuf};

use crate::{
    rules::{git, own},
    setup::{DEBIAN, Ended, Run, Setup, on_every_engine},
};

on_every_engine! {
    fn a_run_works_on_a_clone_and_says_where_it_is(setup) {
        let (source, run) = project(setup);
        let script = "git config --global safe.directory '*'; git config -l --show-origin; ls -A .git; cat file; \
            git log --format=%s; echo more >> file; git -c user.name=a -c user.email=a@b commit -qam two";
        let ended = run.clone().flags(["--clone"]).flags([source.path("")]).sh(script).succeed();
        let place = named(&ended);
        assert!(place.parent().unwrap().ends_with("cordon/clones"), "{ended:?}");
        assert!(ended.stdout.contains("committed\n"), "{ended:?}");
        for word in ["hooks", "alternates", "from-the-host", "include"] {
            assert!(!ended.stdout.contains(word), "{word}: {ended:?}");
        }
        // What was done is in the clone and nowhere else.
        assert_eq!(git(setup, &source, &["log", "--format=%s"]), "one\n");
        let at = place.to_str().unwrap();
        assert_eq!(git(setup, &source, &["-C", at, "log", "--format=%s"]), "two\none\n");
        git(setup, &source, &["-C", at, "fsck", "--strict"]);
        assert!(!run.path("ran").exists(), "no hook or filter of the host or of the source ran");
        let another = run.flags(["--clone"]).flags([source.path("")]).sh("git log --format=%s").succeed();
        assert_ne!(named(&another), place);
        // The ordinary user's clones are in a home that outlives the test.
        for place in [place, named(&another)] {
            drop(fs::remove_dir_all(place));
        }
    }

    fn a_ref_and_a_place_can_be_chosen(setup) {
        let (source, run) = project(setup);
        git(setup, &source, &["branch", "topic"]);
        fs::write(source.path("file"), "changed\n").unwrap();
        git(setup, &source, &["commit", "-qam", "two"]);
        let place = run.path("here");
        let run = run.flags(["--clone".to_owned(), format!("{}#topic", source.path("").display())]).flags(["--clone-dir"]).flags([&place]);
        let run = run.sh("cat file; ls -A");
        let ended = run.succeed();
        assert_eq!(ended.stdout.lines().next(), Some("committed"), "{ended:?}");
        assert_eq!(named(&ended), place);
        // It is there now.
        let again = run.end();
        assert_eq!(again.code, 125, "{again:?}");
        assert!(again.stderr.contains("is there already"), "{again:?}");
        assert!(place.join("file").exists());
    }

    fn rules_come_from_where_one_stands_unless_the_clone_is_trusted(setup) {
        let (source, run) = project(setup);
        fs::create_dir(source.path(".cordon")).unwrap();
        fs::write(source.path(".cordon/sandbox.yaml"), "env: { A: of-the-clone }\n").unwrap();
        own(setup, &source.path(""));
        git(setup, &source, &["add", "--all"]);
        git(setup, &source, &["commit", "-qm", "two"]);
        fs::create_dir(run.path(".cordon")).unwrap();
        fs::write(run.path(".cordon/sandbox.yaml"), "env: { A: of-mine }\n").unwrap();
        let run = run.flags(["--clone"]).flags([source.path("")]).sh("echo $A; echo x > .cordon/sandbox.yaml; true");
        let mine = run.clone().flags(["--clone-dir"]).flags([run.path("first")]).succeed();
        assert_eq!(mine.stdout, "of-mine\n", "{mine:?}");
        let trusting = run.clone().flags(["--config-ref", "HEAD", "--clone-dir"]).flags([run.path("second")]).succeed();
        assert_eq!(trusting.stdout, "of-the-clone\n", "{trusting:?}");
    }
}

#[test]
fn a_clone_that_cannot_be_had_says_why_and_leaves_nothing() {
    let (source, run) = project(Setup::Podman);
    for (from, words) in [
        (
            format!("{}#nothing", source.path("").display()),
            vec!["cannot clone", "nothing"],
        ),
        (
            "/nowhere".to_owned(),
            vec!["neither a directory nor the address"],
        ),
        (
            "http://git.example.com/a".to_owned(),
            vec!["`http` is not a way to clone", "https or ssh"],
        ),
        (
            "ext::touch ran".to_owned(),
            vec!["neither a directory nor the address"],
        ),
        (
            "https://u:s3cret@127.0.0.1:1/a".to_owned(),
            vec!["cannot clone https://127.0.0.1:1/a"],
        ),
    ] {
        let ended = run.clone().flags(["--clone", &from]).sh("echo ran").end();
        assert_eq!((ended.code, ended.stdout.as_str()), (125, ""), "{ended:?}");
        for word in words {
            assert!(ended.stderr.contains(word), "{from}: {ended:?}");
        }
        assert!(!ended.stderr.contains("s3cret"), "{ended:?}");
        let left = fs::read_dir(run.path("state/cordon/clones"))
            .into_iter()
            .flatten()
            .count();
        assert_eq!(left, 0, "{from}");
    }
    let place = run.path("place");
    let taken = run
        .flags(["--clone"])
        .flags([source.path("")])
        .flags(["--clone-dir"])
        .flags([&place]);
    let taken = taken
        .flags(["--mount", ".:/workspace"])
        .sh("echo ran")
        .end();
    assert_eq!(taken.code, 125, "{taken:?}");
    assert!(
        taken.stderr.contains("both a clone and a mount"),
        "{taken:?}"
    );
    assert!(!place.exists());
}

/// A repository with hooks and settings of its own, and a run with a host's configuration that would be felt.
fn project(setup: Setup) -> (Run, Run) {
    let source = Run::new(setup);
    let run = Run::new(setup).image(DEBIAN).env("CORDON_IMAGE", "");
    fs::write(source.path("file"), "committed\n").unwrap();
    fs::write(source.path(".gitattributes"), "* filter=trap\n").unwrap();
    own(setup, &source.path(""));
    git(setup, &source, &["init", "-q", "-b", "main"]);
    git(setup, &source, &["add", "--all"]);
    git(setup, &source, &["commit", "-qm", "one"]);
    let trap = format!("touch {}; cat", run.path("ran").display());
    for key in [
        "filter.trap.smudge",
        "uploadpack.packObjectsHook",
        "core.fsmonitor",
    ] {
        git(setup, &source, &["config", key, &trap]);
    }
    let home = run.path("home");
    fs::create_dir_all(home.join("template/hooks")).unwrap();
    let settings = format!(
        "[user]\n\tname = from-the-host\n[init]\n\ttemplateDir = {0}/template\n[filter \"trap\"]\n\tsmudge = {trap}\n[core]\n\thooksPath = {0}/template/hooks\n",
        home.display()
    );
    fs::write(home.join(".gitconfig"), settings).unwrap();
    let hook = home.join("template/hooks/post-checkout");
    fs::write(&hook, format!("#!/bin/sh\n{trap}\n")).unwrap();
    fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    own(setup, &run.path(""));
    let state = run.path("state");
    let config = home.join(".gitconfig");
    let run = run
        .env("XDG_STATE_HOME", state.to_str().unwrap())
        .env("GIT_CONFIG_GLOBAL", config.to_str().unwrap())
        .env("GIT_TEMPLATE_DIR", home.join("template").to_str().unwrap());
    (source, run)
}

fn named(ended: &Ended) -> PathBuf {
    let line = ended
        .stderr
        .lines()
        .find_map(|line| line.strip_prefix("cordon: the clone is in "));
    assert!(line.is_some(), "{ended:?}");
    line.unwrap().into()
}
