//! `cordon image`.

use std::{fs, path::Path, time::Duration};

use anyhow::Context;
use cordon::{
    Allowlist, BuildMode, BuildNetwork, BuildSandbox, ConfigSource, Entrypoint, ImageTags,
    MaxImageAge, Progress, PrunedImages, Recipe, Sandbox, SandboxConfig, StoredImage,
};
use serde_json::{Value, json};

use crate::{
    args::{Form, From, Image, ImageCommand, Store},
    commands::{interrupts::Interrupts, surroundings, tend::Watched, workspace},
    exit::Exit,
    printer::{Hinted, Printer},
};

pub(crate) async fn run(args: Image, printer: &Printer) -> anyhow::Result<Exit> {
    let mut interrupts = Interrupts::new()?;
    tokio::select! {
        done = work(args.command, printer) => done,
        number = interrupts.next() => Ok(Exit::Signal(number)),
    }
}

async fn work(command: ImageCommand, printer: &Printer) -> anyhow::Result<Exit> {
    let entrypoint = Entrypoint::passthrough();
    match command {
        ImageCommand::Hash { from, form } => {
            let Wanted { recipe, network } = wanted(&from).await?;
            named(
                &Sandbox::image_tags(&network, &recipe, &entrypoint),
                &form,
                printer,
            );
        }
        ImageCommand::Build { from, store, form } => {
            let Wanted { recipe, network } = wanted(&from).await?;
            let sandbox = started(&store, printer).await?;
            let progress = |progress: Progress<'_>| printer.build(progress);
            sandbox
                .ensure_image_on(&network, &recipe, &entrypoint, progress)
                .await?;
            named(
                &Sandbox::image_tags(&network, &recipe, &entrypoint),
                &form,
                printer,
            );
        }
        ImageCommand::List { store, form } => {
            let images = started(&store, printer).await?.images().await?;
            listed(&images, &form, printer);
        }
        ImageCommand::Save {
            directory,
            from,
            store,
        } => {
            let Wanted { recipe, network } = wanted(&from).await?;
            let sandbox = started(&store, printer).await?;
            fs::create_dir_all(&directory)
                .with_context(|| format!("cannot make {}", directory.display()))?;
            let progress = |progress: Progress<'_>| printer.build(progress);
            let saved = sandbox.save_image(&network, &recipe, &entrypoint, &directory, progress);
            printer.info(format_args!("saved {}", saved.await?.overlay));
        }
        ImageCommand::Load {
            directory,
            store,
            form,
        } => {
            let sandbox = started(&store, printer).await?;
            let loaded = sandbox.load_images(&directory).await?;
            if form.json {
                printer.answer(json!({ "repo": loaded.repo, "overlay": loaded.overlay }));
            } else if !loaded.repo && !loaded.overlay {
                printer.warning(format_args!("nothing was saved in {}", directory.display()));
            }
        }
        ImageCommand::Prune { store, form } => {
            let pruned = started(&store, printer).await?.prune_images().await?;
            removed(&pruned, &form, printer);
        }
    }
    Ok(Exit::Command(0))
}

/// An image as a run would have it.
struct Wanted {
    recipe: Recipe,
    network: BuildNetwork,
}

async fn wanted(from: &From) -> anyhow::Result<Wanted> {
    let rules = match &from.config_ref {
        Some(reference) => {
            workspace::rules_at(reference, from.config_repo.as_deref(), None).await?
        }
        None => ConfigSource::Worktree,
    };
    let default = Path::new(surroundings::DEFAULT_DOCKERFILE);
    let dockerfile = from.dockerfile.as_deref().unwrap_or(default);
    if from.dockerfile.is_none() && !rules.has(default).await? {
        let hint = format!("name one with --dockerfile, or write {}", default.display());
        return Err(Hinted::new("no Dockerfile to build from", hint).into());
    }
    let context = surroundings::build_context(from.context_dir.as_deref(), dockerfile);
    Ok(Wanted {
        recipe: rules.recipe(dockerfile, context).await?,
        network: network(from, &rules).await?,
    })
}

/// What the build may reach, from the flags and the settings together.
async fn network(from: &From, rules: &ConfigSource) -> anyhow::Result<BuildNetwork> {
    let file = surroundings::config_file(from.config.as_deref(), rules).await?;
    let mode = from.build_network.or_else(|| file.build_network());
    let mode = mode.unwrap_or_default();
    let allowlist = if mode == BuildMode::Sandboxed {
        let named = from.allowlist.as_deref();
        let (path, must_exist) = surroundings::allowlist_path(named, file.allowlist());
        let text = surroundings::allowlist_text(rules, &path, must_exist).await?;
        let hosts = from.allow.clone();
        surroundings::allowlist(&Watched { path, hosts }, &text)?
    } else {
        Allowlist::default()
    };
    Ok(surroundings::build_network(mode, || BuildSandbox {
        allowlist,
        ..BuildSandbox::default()
    }))
}

async fn started(store: &Store, printer: &Printer) -> anyhow::Result<Sandbox> {
    let hours = |hours| MaxImageAge(Duration::from_secs(hours * 3600));
    let sandbox = Sandbox::new(SandboxConfig {
        engine: store.engine.clone(),
        max_image_age: store.max_image_age.map_or_else(MaxImageAge::default, hours),
        on_notice: Some(printer.notices()),
        ..SandboxConfig::default()
    });
    sandbox.startup().await?;
    Ok(sandbox)
}

/// The image to run; the one that it stands on is for programs.
fn named(tags: &ImageTags, form: &Form, printer: &Printer) {
    if form.json {
        printer.answer(json!({ "image": tags.overlay, "repo": tags.repo }));
    } else {
        printer.answer(&tags.overlay);
    }
}

fn listed(images: &[StoredImage], form: &Form, printer: &Printer) {
    if form.json {
        let described = images.iter().map(|image| {
            let age = image.age.map(|age| age.0.as_secs());
            json!({ "image": image.tag, "id": image.id, "age_seconds": age })
        });
        printer.answer(Value::from_iter(described));
        return;
    }
    for image in images {
        let age = image.age.map(|age| age.to_string()).unwrap_or_default();
        printer.answer(format_args!("{age:>10}  {}", image.tag));
    }
}

fn removed(pruned: &PrunedImages, form: &Form, printer: &Printer) {
    if form.json {
        let removed: Vec<_> = pruned.removed.iter().map(|(tag, _)| tag).collect();
        let kept: Vec<_> = pruned.kept.iter().map(|(tag, _)| tag).collect();
        printer.answer(json!({ "removed": removed, "kept": kept }));
    } else {
        for (tag, _) in &pruned.removed {
            printer.answer(tag);
        }
    }
    for (tag, error) in &pruned.kept {
        printer.warning(format_args!("{tag} stays: {error}"));
    }
}
