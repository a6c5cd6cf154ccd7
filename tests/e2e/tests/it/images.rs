//! `cordon image`: names, builds, archives.

use std::fs;

use serde_json::Value;

use crate::setup::{BUSYBOX, Ended, Run, Setup, on_every_engine};

on_every_engine! {
    fn an_image_is_named_built_listed_saved_and_loaded(setup) {
        let run = project(setup, "image");
        let engine = ["--engine", setup.engine()];
        let ask = |verb: &[&str]| {
            let ended = run.then(&[&["image"], verb].concat()).flags(engine).end();
            assert_eq!(ended.code, 0, "{verb:?} {ended:?}");
            ended
        };
        let hash = run.then(&["image", "hash", "--json"]).end();
        let (image, repo) = (json(&hash)["image"].clone(), json(&hash)["repo"].clone());
        let (image, repo) = (image.as_str().unwrap(), repo.as_str().unwrap());
        assert!(image.starts_with("cordon:") && repo.starts_with("cordon-repo:"), "{hash:?}");
        assert_eq!(run.then(&["image", "hash"]).end().stdout.trim(), image);

        let built = ask(&["build"]);
        assert_eq!(built.stdout.trim(), image);
        assert!(built.stderr.contains("building cordon"), "{built:?}");
        assert!(!ask(&["build", "--json"]).stderr.contains("building"));
        let listed = |name: &str| json(&ask(&["list", "--json"])).as_array().unwrap().iter().any(|entry| entry["image"] == name);
        assert!(listed(image) && listed(repo));

        let archive = run.path("archive");
        let archive = archive.to_str().unwrap();
        ask(&["save", archive]);
        setup.ask(&["rmi", image]);
        setup.ask(&["rmi", repo]);
        assert!(!listed(image) && !listed(repo));
        let loaded = ask(&["load", archive, "--json"]);
        assert_eq!(json(&loaded), serde_json::json!({ "repo": true, "overlay": true }));
        assert!(listed(image) && listed(repo));
        assert!(ask(&["load", run.path("none").to_str().unwrap()]).stderr.contains("nothing was saved"));
        // A century is young enough.
        assert_eq!(json(&ask(&["prune", "--max-image-age", "876000", "--json"]))["removed"], serde_json::json!([]));
        assert!(listed(image));
        setup.ask(&["rmi", image]);
        setup.ask(&["rmi", repo]);
    }
}

#[test]
fn a_name_changes_with_every_byte_and_a_commit_keeps_it() {
    let run = project(Setup::Podman, "hash");
    let git = |arguments: &[&str]| crate::rules::git(Setup::Podman, &run, arguments);
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "--all"]);
    git(&["commit", "-qm", "one"]);
    let hash = |flags: &[&str]| run.then(&[&["image", "hash"], flags].concat()).end().stdout;
    let first = hash(&[]);
    let made = fs::read(run.path(".cordon/container/made")).unwrap();
    assert_eq!(hash(&["--config-ref", "main"]), first);
    fs::write(run.path(".cordon/container/made"), "changed\n").unwrap();
    assert_ne!(hash(&[]), first);
    assert_eq!(hash(&["--config-ref", "main"]), first);
    // What the build may reach is part of the name, and the settings say it as well as the flag.
    let sandboxed = hash(&["--config-ref", "main", "--build-network", "sandboxed"]);
    assert!(sandboxed.starts_with("cordon:") && sandboxed != first);
    let other = hash(&[
        "--config-ref",
        "main",
        "--build-network",
        "sandboxed",
        "--allow",
        "a.example.com",
    ]);
    assert_ne!(other, sandboxed);
    fs::write(run.path("settings.yaml"), "build_network: sandboxed\n").unwrap();
    fs::write(run.path(".cordon/container/made"), &made).unwrap();
    assert_eq!(hash(&["--config", "settings.yaml"]), sandboxed);
}

#[test]
fn an_image_that_cannot_be_made_says_why() {
    let run = Run::plain(Setup::Podman, &["image", "hash"]);
    let ended = run.end();
    assert_eq!(ended.code, 125, "{ended:?}");
    assert!(
        ended.stderr.contains("no Dockerfile to build from")
            && ended.stderr.contains("--dockerfile"),
        "{ended:?}"
    );
    let run = project(Setup::Podman, "broken");
    fs::write(
        run.path(".cordon/container/Dockerfile"),
        format!("FROM {BUSYBOX}\nRUN echo so it is; exit 3\n"),
    )
    .unwrap();
    let ended = run.then(&["image", "build", "--engine", "podman"]).end();
    assert_eq!((ended.code, ended.stdout.as_str()), (125, ""), "{ended:?}");
    assert!(ended.stderr.contains("so it is"), "{ended:?}");
}

/// A Dockerfile whose image no other test has.
fn project(setup: Setup, name: &str) -> Run {
    let run = Run::new(setup).env("CORDON_IMAGE", "");
    fs::create_dir_all(run.path(".cordon/container")).unwrap();
    fs::write(
        run.path(".cordon/container/Dockerfile"),
        format!("FROM {BUSYBOX}\nCOPY made /etc/made\n"),
    )
    .unwrap();
    let unique = format!("{name} {setup:?} {}\n", std::process::id());
    fs::write(run.path(".cordon/container/made"), unique).unwrap();
    crate::rules::own(setup, &run.path(""));
    run
}

fn json(ended: &Ended) -> Value {
    let parsed = serde_json::from_str(&ended.stdout);
    assert!(parsed.is_ok(), "{ended:?}");
    parsed.unwrap()
}
