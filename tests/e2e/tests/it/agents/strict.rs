//! The real agents under the strict profile, and the clients of the library that use nothing else.

use std::{fs, os::unix::fs::MetadataExt, path::Path, time::Duration};

use cordon::{
    Agent, Allowlist, EngineChoice, EngineKind, HardenedConfig, HostPattern, MaskedSecret,
    NamePattern, Outcome, Prompt, Pull, SandboxConfig, SandboxError, SandboxedExecutor,
    SandboxedLlmClient, Secret, Upstream, read_ca_bundle,
};

use tokio::runtime::Runtime;

use super::{
    api::Api,
    bench::{Bench, CLAUDE_KEY},
};
use crate::setup::{AGENTS, BUSYBOX, Setup, on_every_engine};

on_every_engine! {
    fn claude_works_under_strict_and_its_files_belong_to_the_caller(setup) {
        let bench = Bench::new(setup, "claude");
        let workspace = bench.run().path("");
        let caller = fs::metadata(&workspace).unwrap();
        let strict = ["--profile", "strict"];
        let answer = bench.ask_with(&strict, "remember: walrus\nscenario: tool\nrun: mkdir made && touch made/file; touch /x; id -u > uid");
        answer.text();
        for name in ["made", "made/file", "uid"] {
            let written = fs::metadata(workspace.join(name)).unwrap();
            assert_eq!((written.uid(), written.gid()), (caller.uid(), caller.gid()), "{name}");
        }
        let resumed = bench.ask_with(&["--profile", "strict", "--continue"], "scenario: recall");
        assert_eq!(resumed.text(), "I recall: walrus");
    }
}

#[test]
fn codex_and_gemini_work_under_strict() {
    for agent in ["codex", "gemini"] {
        let bench = Bench::new(Setup::Podman, agent);
        let answer = bench.ask_with(&["--profile", "strict"], "remember: walrus");
        answer.text();
    }
}

#[test]
fn a_prompt_is_sent_once_egress_was_seen_from_inside() {
    with_api(async |api| {
        for kind in [EngineKind::Podman, EngineKind::Docker] {
            let root = tempfile::tempdir().unwrap();
            let config = HardenedConfig {
                allowed_egress: Some(Allowlist::from_yaml(&Api::allowlist()).unwrap()),
                ..config(kind, api, root.path())
            };
            let client = SandboxedLlmClient::start(Agent::Claude, config)
                .await
                .unwrap();
            let result = client
                .execute(Prompt::new("remember: walrus"), root.path(), keys())
                .await
                .unwrap();
            assert_eq!(result.outcome, Outcome::Success, "{result:?}");
            assert!(api.credentials().iter().all(|key| key == CLAUDE_KEY));
            client.shutdown().await;
        }
    });
}

#[test]
fn a_prompt_is_not_sent_where_more_is_reached_than_should_be() {
    with_api(async |api| {
        let root = tempfile::tempdir().unwrap();
        let everything =
            "domains: [{ host: '*.cordon.test', schemes: [http], private_addresses: true }]";
        let config = HardenedConfig {
            allowed_egress: Some(Allowlist::from_yaml(everything).unwrap()),
            ..config(EngineKind::Podman, api, root.path())
        };
        let client = SandboxedLlmClient::start(Agent::Claude, config)
            .await
            .unwrap();
        let refused = client
            .execute(Prompt::new("remember: walrus"), root.path(), keys())
            .await;
        assert!(
            matches!(refused, Err(SandboxError::EgressNotConfigured { .. })),
            "{refused:?}"
        );
        assert!(api.requests().is_empty());
    });
}

#[test]
fn a_command_of_the_executor_has_no_network_and_bounded_output() {
    with_api(async |api| {
        for kind in [EngineKind::Podman, EngineKind::Docker] {
            let root = tempfile::tempdir().unwrap();
            let config = HardenedConfig {
                output_limit: 1000,
                executor_timeout: Duration::from_secs(20),
                ..config(kind, api, root.path())
            };
            let executor = SandboxedExecutor::start(config).await.unwrap();
            let sh = |script: &'static str| ["sh", "-c", script];
            let seen = executor
            .run(
                sh("ls /sys/class/net; cat /proc/net/tcp | wc -l; printf '\\033[31mred\\033[0m'"),
                root.path(),
            )
            .await
            .unwrap();
            assert_eq!(String::from_utf8_lossy(&seen.stdout), "lo\n1\nred");
            let long = executor
                .run(sh("yes é | head -c 100000; exit 3"), root.path())
                .await
                .unwrap();
            assert!(long.truncated && long.exit_code == 3 && long.stdout.len() < 1100);
            let text = String::from_utf8(long.stdout).unwrap();
            assert!(text.contains("[output cut after "), "{text}");
            let slow = executor.run(sh("sleep 300"), root.path()).await.unwrap();
            assert_eq!((slow.timed_out, slow.exit_code), (true, -1));
        }
    });
}

#[test]
fn workspaces_outside_the_roots_are_refused_and_roots_are_mandatory() {
    with_api(async |api| {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let executor = SandboxedExecutor::start(config(EngineKind::Podman, api, root.path()))
            .await
            .unwrap();
        let link = root.path().join("link");
        std::os::unix::fs::symlink(outside.path(), &link).unwrap();
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        for refused in [outside.path(), &link, &file, &root.path().join("missing")] {
            let result = executor.run(["true"], refused).await;
            assert!(matches!(result, Err(SandboxError::Mount(_))), "{result:?}");
        }
        let mut without = config(EngineKind::Podman, api, root.path());
        without.allowed_workdir_roots.clear();
        let refused = SandboxedExecutor::start(without).await;
        assert!(
            matches!(refused, Err(SandboxError::NoWorkdirRoots)),
            "{refused:?}"
        );
    });
}

/// Runs a claim about the library beside the stand-in.
fn with_api(claim: impl AsyncFnOnce(&Api)) {
    let api = Api::start();
    Runtime::new().unwrap().block_on(claim(&api));
}

fn config(kind: EngineKind, api: &Api, root: &Path) -> HardenedConfig {
    let root = fs::canonicalize(root).unwrap();
    HardenedConfig {
        sandbox: SandboxConfig {
            engine: EngineChoice::Kind(kind),
            pull: Pull::Never,
            upstream: Upstream {
                dns_servers: vec![(api.address(), 53).into()],
                extra_roots: read_ca_bundle(&api.authority()).unwrap(),
                ..Upstream::default()
            },
            ..SandboxConfig::default()
        },
        ..HardenedConfig::new(AGENTS, BUSYBOX, [root])
    }
}

fn keys() -> Vec<MaskedSecret> {
    vec![MaskedSecret::new(
        "ANTHROPIC_API_KEY",
        Secret::new(CLAUDE_KEY.to_owned()),
        vec![HostPattern::parse("api.anthropic.com").unwrap()],
        vec![NamePattern::new("x-api-key")],
    )]
}
