//! Removing old images, and archives of them.

use std::time::{Duration, Instant};

use cordon_image::{Entrypoint, Layer, Loaded};

use crate::engines::{Bench, on_each_engine, recipe};

on_each_engine! {
    async fn pruning_removes_what_is_too_old_and_nothing_else(bench: &Bench) {
        let (old, _) = bench.ensure(&bench.images(), &recipe("prune-old")).await;
        tokio::time::sleep(Duration::from_millis(2100)).await;
        let between = Instant::now();
        let (new, _) = bench.ensure(&bench.images(), &recipe("prune-new")).await;

        // Older than the new one by a second at least, however long that took to build.
        let age = between.elapsed() + Duration::from_secs(1);
        let pruned = bench.aged(age).prune().await.unwrap();
        let removed: Vec<_> = pruned.removed.iter().map(|(tag, _)| tag).collect();
        assert_eq!(removed, [&old.tags.overlay, &old.tags.repo]);
        assert!(pruned.kept.is_empty(), "{pruned:?}");
        assert!(bench.engine.image(&old.tags.repo).await.unwrap().is_none());
        assert!(bench.engine.image(&new.tags.repo).await.unwrap().is_some());
        assert!(bench.engine.image(crate::engines::BUSYBOX).await.unwrap().is_some());
    }

    async fn an_image_in_use_survives_pruning_and_is_named(bench: &Bench) {
        let (ensured, _) = bench.ensure(&bench.images(), &recipe("in-use")).await;
        let mut spec = bench.spec(&ensured.tags.overlay, &["true"]);
        spec.remove = false;
        let container = bench.engine.create(&spec).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1100)).await;
        let pruned = bench.aged(Duration::from_secs(1)).prune().await.unwrap();
        bench.engine.remove(&container).await.unwrap();
        assert!(pruned.kept.iter().any(|(tag, _)| *tag == ensured.tags.overlay), "{pruned:?}");
    }

    async fn an_age_of_zero_prunes_nothing(bench: &Bench) {
        let (ensured, _) = bench.ensure(&bench.images(), &recipe("zero")).await;
        let pruned = bench.aged(Duration::ZERO).prune().await.unwrap();
        assert!(pruned.removed.is_empty());
        assert!(bench.engine.image(&ensured.tags.overlay).await.unwrap().is_some());
    }

    async fn a_saved_image_is_loaded_with_its_age(bench: &Bench) {
        let archives = bench.directory.path().join("archives");
        std::fs::create_dir(&archives).unwrap();
        let images = bench.images();
        let recipe = recipe("saved");
        let entrypoint = Entrypoint::passthrough();
        // Twice: an archive that is there is replaced.
        for _ in 0..2 {
            images.save(&recipe, &entrypoint, &archives, |_| {}).await.unwrap();
        }
        let (ensured, _) = bench.ensure(&images, &recipe).await;
        bench.engine.remove_image(&ensured.tags.overlay).await.unwrap();
        bench.engine.remove_image(&ensured.tags.repo).await.unwrap();

        let loaded = images.load(&archives).await.unwrap();
        assert_eq!(loaded, Loaded { repo: true, overlay: true });
        let (again, builds) = bench.ensure(&images, &recipe).await;
        assert_eq!(builds, []);
        assert!(matches!(again.repo, Layer::Reused(_)));
    }

    async fn a_cache_without_archives_loads_nothing(bench: &Bench) {
        let loaded = bench.images().load(bench.directory.path()).await.unwrap();
        assert_eq!(loaded, Loaded { repo: false, overlay: false });
    }

    async fn a_broken_archive_is_an_error(bench: &Bench) {
        std::fs::write(bench.directory.path().join("repo.tar"), "not a tar").unwrap();
        assert!(bench.images().load(bench.directory.path()).await.is_err());
    }
}
