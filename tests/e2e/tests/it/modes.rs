//! One interface over every mode, as programs use it.

use std::sync::{Arc, Mutex};

use cordon::{
    SandboxConfig,
    modes::{AgentSandbox, ExecRequest, Executors, Mode, SessionKey},
};
use tempfile::TempDir;

use crate::setup::BUSYBOX;

/// Executors, and what they have to say.
struct World {
    executors: Executors,
    said: Arc<Mutex<Vec<String>>>,
    workspace: TempDir,
}

impl World {
    fn new() -> Self {
        let said = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&said);
        let config = SandboxConfig {
            on_notice: Some(Arc::new(move |notice| {
                heard.lock().unwrap().push(notice.to_string());
            })),
            ..SandboxConfig::default()
        };
        let workspace = tempfile::Builder::new()
            .prefix("cordon-e2e-")
            .tempdir_in("/tmp")
            .unwrap();
        Self {
            executors: Executors::new(config),
            said,
            workspace,
        }
    }

    fn agent(&self, mode: Mode) -> AgentSandbox {
        AgentSandbox {
            mode,
            image: Some(BUSYBOX.into()),
            ..AgentSandbox::new("coder", self.workspace.path())
        }
    }

    fn said(&self, words: &str) -> bool {
        self.said
            .lock()
            .unwrap()
            .iter()
            .any(|notice| notice.contains(words))
    }
}

fn key(session: &str) -> SessionKey {
    SessionKey {
        agent: "coder".into(),
        session: session.into(),
    }
}

async fn runs_where_its_mode_says(mode: Mode) {
    let world = World::new();
    let executor = world.executors.of(&world.agent(mode)).await.unwrap();
    assert_eq!(executor.mode(), mode);
    let request = ExecRequest::shell("echo here > file; ls /sys/class/net; pwd");
    let output = executor.exec(&key("one"), &request).await.unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "lo\n/workspace\n",
        "{output:?}"
    );
    assert!(world.workspace.path().join("file").exists());
    assert!(executor.probe().await.ok);

    // Another agent that differs in nothing that matters has the same one.
    let mut other = world.agent(mode);
    other.agent = "other".into();
    other.commands = vec!["ls".into()];
    let shared = world.executors.of(&other).await.unwrap();
    assert!(Arc::ptr_eq(&executor, &shared));
    other.env.push(("A".into(), "b".into()));
    let apart = world.executors.of(&other).await.unwrap();
    assert!(!Arc::ptr_eq(&executor, &apart));

    assert!(executor.stop(&key("one")).await);
    assert!(!executor.stop(&key("one")).await);
    world.executors.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_podman_agent_runs_in_podman() {
    runs_where_its_mode_says(Mode::Podman).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_docker_agent_runs_in_docker() {
    runs_where_its_mode_says(Mode::Docker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn auto_takes_a_sandboxed_mode_and_says_which_and_why() {
    let world = World::new();
    let executor = world.executors.of(&world.agent(Mode::Auto)).await.unwrap();
    assert_eq!(executor.mode(), Mode::Podman);
    assert!(
        world.said("auto takes podman for coder: podman "),
        "{:?}",
        world.said
    );
    world.executors.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn off_is_refused_where_the_environment_does_not_allow_it() {
    assert!(std::env::var_os("CORDON_ALLOW_HOST_EXEC").is_none());
    let world = World::new();
    let mut agent = world.agent(Mode::Off);
    agent.commands = vec!["touch".into()];
    let executor = world.executors.of(&agent).await.unwrap();
    assert!(!executor.probe().await.ok);
    let request = ExecRequest::argv(["touch", "file"]);
    executor.exec(&key("one"), &request).await.unwrap_err();
    assert!(!world.workspace.path().join("file").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_without_an_image_is_an_error_and_runs_nowhere_else() {
    let world = World::new();
    let mut agent = world.agent(Mode::Podman);
    agent.image = None;
    let error = world.executors.of(&agent).await.unwrap_err();
    assert_eq!(error.to_string(), "no image is named for coder");
}
