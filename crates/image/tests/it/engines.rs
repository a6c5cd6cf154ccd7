//! A prefix of its own for every test, whose images are removed whatever happens.

use std::{
    process::Command,
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use cordon_engine::{Choice, ContainerSpec, Engine, Kind, Network};
use cordon_image::{Config, Ensured, Entrypoint, Error, Images, Progress, Recipe, Why};
use tempfile::TempDir;

pub(crate) const BUSYBOX: &str = "localhost/cordon-test-busybox:1";
pub(crate) const SCRATCH: &str = "localhost/cordon-test-scratch:1";

/// Declares one test for each engine.
macro_rules! on_each_engine {
    ($($(#[$doc:meta])* async fn $name:ident($bench:ident: &Bench) $body:block)*) => {$(
        mod $name {
            use super::*;

            async fn body($bench: &Bench) $body

            #[tokio::test]
            async fn podman() {
                body(&Bench::new(cordon_engine::Kind::Podman).await).await;
            }

            #[tokio::test]
            async fn docker() {
                body(&Bench::new(cordon_engine::Kind::Docker).await).await;
            }
        }
    )*};
}
pub(crate) use on_each_engine;

/// One engine, and a name space for one test.
pub(crate) struct Bench {
    pub(crate) engine: Engine,
    pub(crate) directory: TempDir,
    prefix: String,
}

impl Bench {
    pub(crate) async fn new(kind: Kind) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::find(Choice::Kind(kind), directory.path())
            .await
            .expect("the engine works; `scripts/setup test` sets it up");
        Self {
            engine,
            directory,
            prefix: format!("it{}-{number}", std::process::id()),
        }
    }

    pub(crate) fn config(&self) -> Config {
        Config {
            prefix: self.prefix.parse().unwrap(),
            ..Config::new(self.directory.path())
        }
    }

    pub(crate) fn aged(&self, max_age: Duration) -> Images<'_> {
        Images::new(
            &self.engine,
            Config {
                max_age,
                ..self.config()
            },
        )
    }

    pub(crate) fn images(&self) -> Images<'_> {
        Images::new(&self.engine, self.config())
    }

    pub(crate) async fn ensure(&self, images: &Images<'_>, recipe: &Recipe) -> (Ensured, Vec<Why>) {
        let (ensured, why) = try_ensure(images, recipe).await;
        (ensured.unwrap(), why)
    }

    pub(crate) async fn id(&self, tag: &str) -> String {
        self.engine.image(tag).await.unwrap().unwrap().id
    }

    /// What a command in the image prints.
    pub(crate) async fn output(&self, image: &str, command: &[&str]) -> String {
        let output = self.engine.run(&self.spec(image, command)).await.unwrap();
        assert!(output.status.success(), "{}", output.stderr);
        String::from_utf8(output.stdout).unwrap()
    }

    /// What the engine's own client prints.
    #[expect(clippy::disallowed_methods, reason = "tests drive real programs")]
    pub(crate) fn call(&self, arguments: &[&str]) -> String {
        let output = Command::new(self.engine.program()).args(arguments).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    }

    pub(crate) fn spec(&self, image: &str, command: &[&str]) -> ContainerSpec {
        let mut spec = ContainerSpec {
            command: command.iter().map(Into::into).collect(),
            network: Network::None,
            remove: true,
            ..ContainerSpec::new(image)
        };
        spec.limits.rlimits = self.engine.facts().rlimits();
        spec
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        for name in [self.prefix.clone(), format!("{}-repo", self.prefix)] {
            let filter = format!("reference={name}:*");
            for id in self
                .call(&["images", "--quiet", "--filter", &filter])
                .lines()
            {
                self.call(&["rmi", "--force", id]);
            }
        }
    }
}

/// Ensures a pass-through image, and tells which builds began.
pub(crate) async fn try_ensure(
    images: &Images<'_>,
    recipe: &Recipe,
) -> (Result<Ensured, Error>, Vec<Why>) {
    let builds = Mutex::new(Vec::new());
    let note = |progress: Progress<'_>| {
        if let Progress::Building { why, .. } = progress {
            builds.lock().unwrap().push(why);
        }
    };
    let ensured = images
        .ensure(recipe, &Entrypoint::passthrough(), note)
        .await;
    (ensured, builds.into_inner().unwrap())
}

/// A recipe on the busybox image; `mark` makes it one of its own.
pub(crate) fn recipe(mark: &str) -> Recipe {
    Recipe::new(format!("FROM {BUSYBOX}\nRUN echo {mark} >/mark\n"))
}
