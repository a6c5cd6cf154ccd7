//! What engines are asked for that do not run here: podman 5, a podman machine, Docker Desktop. Programs
//! stand in for them, record how they are called, and refuse when all has been asked for.

use cordon::{
    Allowlist, CommandSpec, EngineChoice, EngineKind, Network, NetworkSandbox, Notice, Sandbox,
    SandboxConfig, SandboxError, Streams, Topology, Wiring,
};

use crate::bridge::stand_in::{Notices, StandIn};

/// An engine that has no images and no networks, takes whatever it is given, and starts nothing.
const ENGINE: &str = r#"case "$1 $2" in
    "info "*) cat "@HOME@/info";;
    "image inspect") echo "Error: no such image: image not known" >&2; exit 1;;
    "network inspect") echo "Error: network not found" >&2; exit 1;;
    "start "*) echo "Error: this engine starts nothing" >&2; exit 125;;
    "create "*) echo 0123456789ab;;
    *) ;;
    esac"#;

const PODMAN_MACHINE: &str = r#"{"host": {"cgroupVersion": "v2", "cgroupControllers": ["cpu", "memory", "pids"],
    "ociRuntime": {"name": "crun"}, "security": {"rootless": true, "selinuxEnabled": true}, "serviceIsRemote": true},
    "version": {"Version": "5.5.2"}}"#;

const PODMAN_5: &str = r#"{"host": {"cgroupVersion": "v2", "cgroupControllers": ["cpu", "memory", "pids"],
    "ociRuntime": {"name": "crun"}, "security": {"rootless": false}, "serviceIsRemote": false},
    "version": {"Version": "5.5.2"}}"#;

const DOCKER_DESKTOP: &str = r#"{"ServerVersion": "28.3.2", "OperatingSystem": "Docker Desktop",
    "KernelVersion": "6.10.14-linuxkit", "DefaultRuntime": "runc", "CgroupVersion": "2",
    "MemoryLimit": true, "PidsLimit": true, "SecurityOptions": ["name=seccomp,profile=builtin"]}"#;

struct Asked {
    engine: StandIn,
    notices: Notices,
}

impl Asked {
    /// Has a command run behind a proxy container, as far as that engine lets it come.
    async fn of(kind: EngineKind, info: &str, topology: Topology) -> Self {
        let engine = StandIn::shell(kind.program(), ENGINE);
        std::fs::write(engine.path().join("info"), info).unwrap();
        let notices = Notices::default();
        let config = notices.config(engine.path());
        let proxy = cordon_door::install(&engine.path().join("init")).unwrap();
        let sandbox = Sandbox::new(SandboxConfig {
            engine: EngineChoice::Program(kind, engine.program.clone()),
            topology,
            // Any static program will do: nothing starts it.
            proxy_program: Some(proxy),
            ..config
        });
        sandbox.startup().await.unwrap();
        let task = sandbox
            .create_command_task(CommandSpec {
                network: Network::Sandboxed(NetworkSandbox {
                    allowlist: Allowlist::from_yaml("domains: [api.example.com]").unwrap(),
                    ..NetworkSandbox::default()
                }),
                ..CommandSpec::new("debian:12", ["true"])
            })
            .unwrap();
        let error = task.execute(Streams::captured()).await.unwrap_err();
        assert!(matches!(error, SandboxError::Engine(_)), "{error:?}");
        Self { engine, notices }
    }

    /// The calls that begin with those words, each on one line.
    fn calls(&self, words: &str) -> Vec<String> {
        let calls = self.engine.calls().into_iter();
        let calls = calls.map(|call| call.join(" "));
        calls.filter(|call| call.starts_with(words)).collect()
    }

    fn only(&self, words: &str) -> String {
        let mut calls = self.calls(words);
        assert_eq!(calls.len(), 1, "{words}: {calls:?}");
        calls.remove(0)
    }

    /// What must hold of every proxy container, whatever runs it.
    fn proxy_is_held(&self) {
        let create = self.only("create ");
        for words in [
            " --pull=never ",
            " --rm ",
            " --log-driver=none ",
            " --interactive ",
            " --entrypoint /cordon-proxy ",
            " --network cordon-egress ",
            " --user 65534:65534 ",
            " --cap-drop ALL ",
            " --security-opt no-new-privileges ",
            " --read-only ",
            " --sysctl net.ipv4.ip_forward=0 ",
            " --sysctl net.ipv6.conf.all.disable_ipv6=1 ",
            " --sysctl net.ipv6.conf.default.disable_ipv6=1 ",
            " --memory 536870912b --memory-swap 536870912b ",
            " --pids-limit 1024 ",
        ] {
            assert!(create.contains(words), "{words}: {create}");
        }
        for words in ["--cap-add", "--mount", "--volume", "--privileged", "--env"] {
            assert!(!create.contains(words), "{words}: {create}");
        }
    }

    /// Everything that was made has been taken away again.
    fn nothing_is_left(&self) {
        let create = self.only("create ");
        let words: Vec<_> = create.split(' ').collect();
        let at = words.iter().position(|word| *word == "--name").unwrap();
        let proxy = words[at + 1];
        let network = proxy.strip_suffix("-proxy").unwrap();
        assert!(self.calls("rm ").iter().any(|call| call.ends_with(proxy)));
        let removed = self.calls("network rm");
        assert!(
            removed.iter().any(|call| call.ends_with(network)),
            "{removed:?}"
        );
    }
}

#[tokio::test]
async fn a_podman_machine_gets_a_proxy_container_without_being_told() {
    let asked = Asked::of(EngineKind::Podman, PODMAN_MACHINE, Topology::Auto).await;
    let taken = Notice::TopologyTaken {
        wiring: Wiring::ProxyContainer,
        engine: EngineKind::Podman,
    };
    assert!(asked.notices.all().contains(&taken));
    asked.proxy_is_held();
    let egress = asked.calls("network create").remove(0);
    assert_eq!(
        egress,
        "network create --disable-dns --label cordon.egress=1 cordon-egress"
    );
    let sealed = asked.calls("network create").remove(1);
    assert!(sealed.starts_with("network create --internal --disable-dns --subnet "));
    let create = asked.only("create ");
    assert!(create.contains(" --http-proxy=false --read-only-tmpfs=false "));
    // Its client takes no runtime, on no call.
    assert!(
        !asked
            .engine
            .calls()
            .concat()
            .contains(&"--runtime".to_owned())
    );
    asked.nothing_is_left();
}

#[tokio::test]
async fn podman_5_is_asked_for_the_same() {
    let asked = Asked::of(EngineKind::Podman, PODMAN_5, Topology::ProxyContainer).await;
    asked.proxy_is_held();
    let sealed = asked.calls("network create").remove(1);
    assert!(sealed.starts_with("network create --internal --disable-dns --subnet "));
    let connect = asked.only("network connect");
    assert!(connect.starts_with("network connect --ip "));
    asked.nothing_is_left();
}

#[tokio::test]
async fn docker_desktop_gets_a_network_without_an_address_of_its_host() {
    let asked = Asked::of(EngineKind::Docker, DOCKER_DESKTOP, Topology::Auto).await;
    asked.proxy_is_held();
    let egress = asked.calls("network create").remove(0);
    assert_eq!(
        egress,
        "network create --opt com.docker.network.bridge.enable_icc=false \
         --label cordon.egress=1 cordon-egress"
    );
    let sealed = asked.calls("network create").remove(1);
    assert!(sealed.starts_with(
        "network create --internal --opt com.docker.network.bridge.gateway_mode_ipv4=isolated --subnet "
    ));
    let create = asked.only("create ");
    // These are podman's.
    assert!(!create.contains("--http-proxy") && !create.contains("--read-only-tmpfs"));
    asked.nothing_is_left();
}

#[tokio::test]
async fn an_engine_in_another_machine_is_never_given_the_door() {
    for (kind, info) in [
        (EngineKind::Podman, PODMAN_MACHINE),
        (EngineKind::Docker, DOCKER_DESKTOP),
    ] {
        let engine = StandIn::shell(kind.program(), ENGINE);
        std::fs::write(engine.path().join("info"), info).unwrap();
        let sandbox = Sandbox::new(SandboxConfig {
            engine: EngineChoice::Program(kind, engine.program.clone()),
            topology: Topology::Door,
            ..Notices::default().config(engine.path())
        });
        let error = sandbox.startup().await.unwrap_err();
        assert!(matches!(error, SandboxError::NotLocal { .. }), "{error:?}");
    }
}
