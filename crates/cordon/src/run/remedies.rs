//! What may help a container that did not start.

use cordon_engine::Engine;

use super::{Plan, last_line};
use crate::{Notice, Pull, SandboxError, sandbox::Shared};

/// What has been tried after a container did not start.
#[derive(Default)]
pub(super) struct Remedies {
    pulled: bool,
    runtime: bool,
    refreshed: bool,
}

impl Remedies {
    /// Does what may help, or gives the error back.
    pub(super) async fn apply(
        &mut self,
        shared: &Shared,
        mut engine: Engine,
        plan: &Plan<'_>,
        error: SandboxError,
    ) -> Result<Engine, SandboxError> {
        let SandboxError::Engine(refusal) = &error else {
            return Err(error);
        };
        match refusal {
            cordon_engine::Error::NoSuchImage { image, .. } => {
                let fetch = shared.config.pull == Pull::Missing && !image.starts_with("localhost/");
                if !fetch || std::mem::replace(&mut self.pulled, true) {
                    return Err(error);
                }
                shared.notice(&Notice::Pulling {
                    image: plan.spec.image.clone(),
                });
                engine
                    .pull(&plan.spec.image, |line| tracing::info!("{line}"))
                    .await?;
                return Ok(engine);
            }
            cordon_engine::Error::Rejected { stderr, .. } if blames_the_runtime(stderr) => {
                if let (false, Some(runtime)) = (self.runtime, engine.other_runtime()) {
                    self.runtime = true;
                    shared.notice(&Notice::RuntimeReplaced {
                        from: engine.facts().default_runtime.clone(),
                        to: runtime.clone(),
                        reason: last_line(stderr),
                    });
                    engine.use_runtime(runtime);
                    shared.replace_engine(engine.clone());
                    return Ok(engine);
                }
            }
            _ => {}
        }
        if std::mem::replace(&mut self.refreshed, true) {
            return Err(error);
        }
        let believed = engine.facts().clone();
        engine.refresh().await?;
        if *engine.facts() == believed {
            return Err(error);
        }
        shared.replace_engine(engine.clone());
        Ok(engine)
    }
}

/// Signs in what engines say that it is the OCI runtime which cannot work here.
fn blames_the_runtime(stderr: &str) -> bool {
    ["OCI runtime", "cgroups in hybrid mode", "crun:", "runc:"]
        .iter()
        .any(|sign| stderr.contains(sign))
}
