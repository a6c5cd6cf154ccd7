//! When an image is built, and what is in it then.

use std::time::Duration;

use cordon_image::{Entry, Entrypoint, Error, Layer, Progress, Recipe, Tags, Why};

use crate::engines::{BUSYBOX, Bench, SCRATCH, on_each_engine, recipe, try_ensure};

on_each_engine! {
    async fn a_missing_image_is_built_once_and_then_reused(bench: &Bench) {
        let recipe = recipe("once");
        let (ensured, builds) = bench.ensure(&bench.images(), &recipe).await;
        assert_eq!(builds, [Why::Missing, Why::Missing]);
        assert_eq!(bench.output(&ensured.tags.overlay, &["cat", "/mark"]).await, "once\n");

        // Nothing is remembered but what the engine itself knows.
        let (again, builds) = bench.ensure(&bench.images(), &recipe).await;
        assert_eq!(builds, []);
        assert_eq!(again.tags, ensured.tags);
        assert!(matches!(again.overlay, Layer::Reused(_)));
    }

    async fn an_image_past_its_age_is_built_without_cache_and_its_overlay_too(bench: &Bench) {
        let recipe = recipe("stale");
        let (ensured, _) = bench.ensure(&bench.images(), &recipe).await;
        let before = bench.id(&ensured.tags.repo).await;
        tokio::time::sleep(Duration::from_millis(1100)).await;

        let (_, builds) = bench.ensure(&bench.aged(Duration::from_secs(1)), &recipe).await;
        assert_eq!(builds, [Why::Stale, Why::BaseChanged]);
        assert_ne!(bench.id(&ensured.tags.repo).await, before);
    }

    async fn an_age_of_zero_builds_every_time_and_leaves_no_nameless_images(bench: &Bench) {
        let recipe = recipe("always");
        let images = bench.aged(Duration::ZERO);
        let (ensured, builds) = bench.ensure(&images, &recipe).await;
        assert_eq!(builds, [Why::Missing, Why::Missing]);
        let before = [bench.id(&ensured.tags.repo).await, bench.id(&ensured.tags.overlay).await];

        let (_, builds) = bench.ensure(&images, &recipe).await;
        assert_eq!(builds, [Why::Always, Why::BaseChanged]);
        for id in before {
            assert!(bench.engine.image(&id).await.unwrap().is_none(), "{id} is still there");
        }
    }

    async fn a_dockerfile_of_one_line_is_not_as_old_as_its_base(bench: &Bench) {
        let recipe = Recipe::new(format!("FROM {BUSYBOX}\n"));
        let images = bench.aged(Duration::from_secs(60));
        bench.ensure(&images, &recipe).await;
        let (_, builds) = bench.ensure(&images, &recipe).await;
        assert_eq!(builds, []);
    }

    async fn what_an_old_cache_gives_is_built_anew_at_once(bench: &Bench) {
        let recipe = recipe("old-cache");
        let (ensured, _) = bench.ensure(&bench.images(), &recipe).await;
        let first = bench.id(&ensured.tags.repo).await;
        // Another name keeps the layers when ours is taken away.
        let keeper = cordon_image::Images::new(&bench.engine, cordon_image::Config {
            prefix: "it-keeper".parse().unwrap(),
            ..bench.config()
        });
        let (kept, _) = bench.ensure(&keeper, &recipe).await;
        bench.engine.remove_image(&ensured.tags.overlay).await.unwrap();
        bench.engine.remove_image(&ensured.tags.repo).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1100)).await;

        let (_, builds) = bench.ensure(&bench.aged(Duration::from_secs(1)), &recipe).await;
        let rebuilt = bench.id(&ensured.tags.repo).await;
        bench.engine.remove_image(&kept.tags.overlay).await.unwrap();
        bench.engine.remove_image(&kept.tags.repo).await.unwrap();
        assert_eq!(builds[..2], [Why::Missing, Why::Stale]);
        assert_ne!(rebuilt, first);
    }

    async fn an_overlay_left_on_an_earlier_repo_image_is_built_anew(bench: &Bench) {
        let recipe = recipe("cut-short");
        let (ensured, _) = bench.ensure(&bench.images(), &recipe).await;
        // As if a process had died between its two builds.
        let spec = cordon_engine::BuildSpec {
            context: bench.directory.path().join("context"),
            dockerfile: bench.directory.path().join("Dockerfile"),
            tag: ensured.tags.repo.clone(),
            labels: Vec::new(),
            cached: false,
            network: cordon_engine::BuildNetwork::Commands(cordon_engine::Network::None),
            limit: Duration::from_secs(60),
        };
        std::fs::create_dir(&spec.context).unwrap();
        std::fs::write(&spec.dockerfile, format!("FROM {BUSYBOX}\nRUN echo later >/mark\n")).unwrap();
        bench.engine.build(&spec, |_| {}).await.unwrap();

        let (_, builds) = bench.ensure(&bench.images(), &recipe).await;
        assert_eq!(builds, [Why::BaseChanged]);
        assert_eq!(bench.output(&ensured.tags.overlay, &["cat", "/mark"]).await, "later\n");
    }

    async fn context_files_keep_their_modes_and_directories(bench: &Bench) {
        let mut recipe = Recipe::new(format!("FROM {BUSYBOX}\nCOPY . /context/\n"));
        let odd = Entry::File { content: "o".into(), mode: 0o640 };
        for (path, entry) in [
            ("tools/deep/run", Entry::program("#!/bin/sh\necho ran\n")),
            ("tools/read", Entry::file("r")),
            ("odd", odd),
            ("link", Entry::Link { target: "tools/read".into() }),
        ] {
            recipe.insert(path.parse().unwrap(), entry).unwrap();
        }
        let (ensured, _) = bench.ensure(&bench.images(), &recipe).await;
        let image = &ensured.tags.overlay;
        let modes = ["stat", "-c", "%a %n", "tools", "tools/deep/run", "tools/read", "odd"];
        let mut spec = bench.spec(image, &modes);
        spec.workdir = Some("/context".into());
        let output = bench.engine.run(&spec).await.unwrap();
        assert_eq!(
            String::from_utf8(output.stdout).unwrap(),
            "755 tools\n755 tools/deep/run\n644 tools/read\n640 odd\n"
        );
        assert_eq!(bench.output(image, &["/context/tools/deep/run"]).await, "ran\n");
        assert_eq!(bench.output(image, &["readlink", "/context/link"]).await, "tools/read\n");
    }

    async fn an_image_without_a_shell_works(bench: &Bench) {
        let recipe = Recipe::new(format!("FROM {SCRATCH}\n"));
        let (ensured, _) = bench.ensure(&bench.images(), &recipe).await;
        let environment = bench.output(&ensured.tags.overlay, &["/probe", "env"]).await;
        assert!(environment.lines().any(|line| line == "IS_SANDBOX=1"), "{environment}");
    }

    async fn an_agent_s_overlay_starts_the_agent(bench: &Bench) {
        let recipe = Recipe::new(format!("FROM {SCRATCH}\n"));
        let entrypoint = Entrypoint::agent("/probe");
        let ensured = bench.images().ensure(&recipe, &entrypoint, |_| {}).await.unwrap();
        assert_eq!(bench.output(&ensured.tags.overlay, &["args", "a b"]).await, "a b\n");
    }

    async fn a_failed_build_shows_its_output_and_leaves_nothing(bench: &Bench) {
        let recipe = Recipe::new(format!("FROM {BUSYBOX}\nRUN echo so far so good; exit 73\n"));
        let mut lines = Vec::new();
        let note = |progress: Progress<'_>| {
            if let Progress::Line(line) = progress {
                lines.push(line.to_owned());
            }
        };
        let images = bench.images();
        let error = images.ensure(&recipe, &Entrypoint::passthrough(), note).await.unwrap_err();
        assert!(matches!(error, Error::Build { .. }), "{error}");
        assert!(error.build_output().unwrap().contains("so far so good"), "{error:?}");
        assert!(lines.iter().any(|line| line == "so far so good"), "{lines:?}");
        let tags = Tags::of(&bench.config().prefix, &recipe, &Entrypoint::passthrough());
        assert!(bench.engine.image(&tags.repo).await.unwrap().is_none());
        assert_eq!(bench.call(&["ps", "--all", "--quiet", "--filter", "exited=73"]), "");
    }

    async fn builds_of_one_image_wait_for_each_other_and_happen_once(bench: &Bench) {
        let recipe = recipe("together");
        let images: Vec<_> = (0..4).map(|_| bench.images()).collect();
        let (a, b, c, d) = tokio::join!(
            try_ensure(&images[0], &recipe),
            try_ensure(&images[1], &recipe),
            try_ensure(&images[2], &recipe),
            try_ensure(&images[3], &recipe),
        );
        let mut missing = 0;
        for (ensured, builds) in [a, b, c, d] {
            ensured.unwrap();
            missing += builds.iter().filter(|why| **why == Why::Missing).count();
        }
        assert_eq!(missing, 2, "one repo image and one overlay");
    }
}

/// Whatever goes wrong on the way into the namespace, there is no build outside it.
#[tokio::test]
async fn a_build_that_did_not_get_behind_the_door_is_refused() {
    let bench = Bench::new(cordon_engine::Kind::Podman).await;
    let file = |name: &str, text: &str| {
        let path = bench.directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let namespace = |pid: u32| cordon_engine::Namespace {
        pid,
        name_server: std::net::Ipv4Addr::LOCALHOST,
        resolver: file("resolv.conf", ""),
        hosts: file("hosts", ""),
        mount: cordon_engine::Mount::read_only(bench.directory.path(), "/dev/.cordon"),
        certificates: file("ca.pem", ""),
        environment: Vec::new(),
    };
    let context = bench.directory.path().join("context");
    std::fs::create_dir(&context).unwrap();
    // This process has the host's interfaces; the other one does not exist.
    for (pid, said) in [
        (std::process::id(), "behind the door"),
        (u32::MAX >> 2, "ns/net"),
    ] {
        let spec = cordon_engine::BuildSpec {
            context: context.clone(),
            dockerfile: file("Dockerfile", &format!("FROM {BUSYBOX}\nRUN true\n")),
            tag: "cordon-test-outside:1".to_owned(),
            labels: Vec::new(),
            cached: false,
            network: cordon_engine::BuildNetwork::Inside(namespace(pid)),
            limit: Duration::from_secs(60),
        };
        let refused = bench.engine.build(&spec, |_| {}).await.unwrap_err();
        assert!(refused.to_string().contains(said), "{refused}");
        assert!(bench.engine.image(&spec.tag).await.unwrap().is_none());
    }
}
