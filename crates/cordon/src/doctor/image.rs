//! Whether an agent's image is named and there, and how it is got where it is not.

use std::path::Path;

use cordon_engine::Engine;
use cordon_image::{Entrypoint, Recipe};

use super::{Action, Code, Finding, Fix, quiet};
use crate::{
    Pull, SandboxConfig, SandboxError, build, error::with_causes, file::shell_word,
    modes::AgentSandbox,
};

/// What is to be said of an agent's image.
pub(super) struct Checked {
    pub(super) finding: Finding,
    pub(super) actions: Vec<Action>,
    /// The image's reference, where it is there.
    pub(super) present: Option<String>,
}

pub(super) async fn check(
    config: &SandboxConfig,
    engine: &Engine,
    agent: &AgentSandbox,
    fix: Fix,
) -> Checked {
    let checks = Checks {
        config,
        engine,
        agent,
        fix,
    };
    match (&agent.image, &agent.dockerfile) {
        (Some(image), _) => checks.named(image).await,
        (None, Some(dockerfile)) => checks.built(dockerfile).await,
        (None, None) => checks.missing_key(),
    }
}

struct Checks<'a> {
    config: &'a SandboxConfig,
    engine: &'a Engine,
    agent: &'a AgentSandbox,
    fix: Fix,
}

impl Checks<'_> {
    fn missing_key(&self) -> Checked {
        let agent = &self.agent.agent;
        let message = format!("no image is named for {agent}");
        let hint = format!("add `image:` or `dockerfile:` to agents.{agent} or agents.defaults");
        self.absent(
            Finding::error(Code::ImageNotConfigured, message).hint(hint),
            "image",
        )
    }

    async fn named(&self, image: &str) -> Checked {
        let kind = self.engine.kind();
        match self.engine.image(image).await {
            Err(error) => self.unavailable(&error.to_string(), error.hint(), "image"),
            Ok(Some(_)) => self.there(image, format!("{image} is there"), "image"),
            Ok(None) => {
                let local = image.starts_with("localhost/");
                let missing = format!("{image} is not in {kind}'s store");
                match self.fix {
                    _ if local || self.config.pull == Pull::Never => {
                        let hint = format!("{kind} images");
                        self.unavailable(&missing, Some(hint), "image")
                    }
                    Fix::No => {
                        let message = format!("{missing}; the first run fetches it");
                        let finding = Finding::warning(Code::ImageMissing, message)
                            .hint(format!("{kind} pull {}", shell_word(image)))
                            .hint("cordon doctor --fix");
                        self.absent(finding, "image")
                    }
                    Fix::Yes => self.pull(image).await,
                }
            }
        }
    }

    async fn pull(&self, image: &str) -> Checked {
        match self
            .engine
            .pull(image, |line| tracing::info!("{line}"))
            .await
        {
            Ok(()) => {
                let mut checked = self.there(image, format!("{image} is there"), "image");
                checked
                    .actions
                    .push(self.action(format!("fetched {image}")));
                checked
            }
            Err(error) => {
                let hint = format!("{} pull {}", self.engine.kind(), shell_word(image));
                self.unavailable(&error.to_string(), Some(hint), "image")
            }
        }
    }

    async fn built(&self, dockerfile: &Path) -> Checked {
        match self.ensure(dockerfile).await {
            Ok(checked) => checked,
            Err(error) => {
                let message = with_causes(&error);
                self.unavailable(&message, error.hint(), "dockerfile")
            }
        }
    }

    async fn ensure(&self, dockerfile: &Path) -> Result<Checked, SandboxError> {
        let context = dockerfile.parent().unwrap_or_else(|| Path::new("."));
        let recipe = Recipe::read(dockerfile, context)?;
        let entrypoint = Entrypoint::passthrough();
        let network = &self.config.build_network;
        let name = dockerfile.display();
        let there = format!("the image of {name} is there");
        let sandbox = quiet(self.config, self.engine, Some(self.agent)).await?;
        let ready = build::ready(sandbox.shared(), network, &recipe, &entrypoint);
        if let Some(image) = ready.await? {
            return Ok(self.there(&image, there, "dockerfile"));
        }
        if self.fix == Fix::No {
            let message = format!("the image of {name} is not built yet; the first run builds it");
            let finding = Finding::warning(Code::ImageMissing, message).hint("cordon doctor --fix");
            return Ok(self.absent(finding, "dockerfile"));
        }
        let image = sandbox.ensure_image(&recipe, &entrypoint, |_| {}).await?;
        let mut checked = self.there(&image, there, "dockerfile");
        let done = format!("built the image of {name}");
        checked.actions.push(self.action(done));
        Ok(checked)
    }

    fn there(&self, image: &str, message: String, key: &str) -> Checked {
        Checked {
            finding: Finding::ok(Code::Image, message).of(&self.agent.agent, key),
            actions: Vec::new(),
            present: Some(image.to_owned()),
        }
    }

    fn absent(&self, finding: Finding, key: &str) -> Checked {
        Checked {
            finding: finding.of(&self.agent.agent, key),
            actions: Vec::new(),
            present: None,
        }
    }

    fn unavailable(&self, message: &str, hint: Option<String>, key: &str) -> Checked {
        let finding = Finding::error(Code::ImageUnavailable, message);
        let finding = match hint {
            Some(hint) => finding.hint(hint),
            None => finding,
        };
        self.absent(finding, key)
    }

    fn action(&self, message: String) -> Action {
        Action {
            agent: Some(self.agent.agent.clone()),
            message,
        }
    }
}
