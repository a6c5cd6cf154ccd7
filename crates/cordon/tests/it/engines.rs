//! What engines are asked for that do not run here: podman 5, a podman machine, Docker Desktop. Programs
//! stand in for them, record how they are called, and refuse when all has been asked for.

use cordon::{
    Allowlist, CommandSpec, EngineChoice, EngineKind, Network, NetworkSandbox, Notice, Sandbox,
    SandboxConfig, SandboxError, Streams, Topology, Wiring,
    modes::{self, AgentSandbox, Mode},
};

use crate::bridge::stand_in::{Notices, StandIn};

/// An engine that has no images and no networks, takes whatever it is given, starts what stands for a proxy
/// that is ready, and no workload.
const ENGINE: &str = r#"case "$1 $2" in
    "info "*) cat "@HOME@/info";;
    "volume inspect") echo /var/lib/engine/volumes/it/_data;;
    "image inspect") echo "Error: no such image: image not known" >&2; exit 1;;
    "network inspect") echo "Error: network not found" >&2; exit 1;;
    "start "*) echo ready; exec cat > /dev/null;;
    "run "*) echo "Error: this engine runs nothing" >&2; exit 125;;
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

    /// How the proxy container was asked for.
    fn proxy(&self) -> String {
        let mut calls = self.calls("create ");
        calls.retain(|call| call.contains(" --entrypoint /cordon-proxy "));
        assert_eq!(calls.len(), 1, "{calls:?}");
        calls.remove(0)
    }

    /// What must hold of every proxy container, whatever runs it.
    fn proxy_is_held(&self) {
        let create = self.proxy();
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
        let proxy = after(&self.proxy(), "--name");
        let network = proxy.strip_suffix("-proxy").unwrap();
        assert!(self.calls("rm ").iter().any(|call| call.ends_with(&proxy)));
        let removed = self.calls("network rm");
        assert!(
            removed.iter().any(|call| call.ends_with(network)),
            "{removed:?}"
        );
    }
}

impl Asked {
    /// What must hold of a workload whose engine sees nothing of this machine: its files come from a
    /// volume that was filled over the engine's own connection, and it is kept through its proxy.
    fn needs_nothing_of_this_machine(&self, file: impl Fn(&str, &str) -> String) {
        let run = self.only("run ");
        let name = after(&run, "--name");
        assert!(self.only("volume create").ends_with(&name));
        let mut creates = self.calls("create ");
        creates.retain(|call| after(call, "--name") == format!("{name}-files"));
        assert_eq!(creates.len(), 1);
        let whole = format!(" --mount type=volume,source={name},target=/files ");
        assert!(creates[0].contains(&whole), "{creates:?}");
        assert!(creates[0].contains(" --network none "), "{creates:?}");
        assert_eq!(self.only("cp "), format!("cp - {name}-files:/files"));
        for (file_name, target) in [
            ("init", "/.cordon/init"),
            ("token", "/.cordon/door/token"),
            ("ca.pem", "/.cordon/door/ca.pem"),
            ("resolv.conf", "/etc/resolv.conf"),
            ("hosts", "/etc/hosts"),
            ("ca.pem", "/etc/ssl/certs/ca-certificates.crt"),
        ] {
            let mount = format!(
                " --mount {} ",
                file(file_name, target).replace("NAME", &name)
            );
            assert!(run.contains(&mount), "{mount}: {run}");
        }
        let home = self.engine.path().to_str().unwrap();
        assert!(!run.contains(home), "{run}");
        let (_, command) = run.split_once(" debian:12 ").unwrap();
        let words: Vec<_> = command.split(' ').collect();
        assert!(words[1].ends_with(":7700"), "{command}");
        assert_eq!((words[0], words[2]), ("far", "/.cordon/door/token"));
        let removed = self.calls("volume rm");
        assert_eq!(removed, [format!("volume rm {name}")]);
    }
}

/// The word behind another one.
fn after(call: &str, flag: &str) -> String {
    let mut words = call.split(' ').skip_while(|word| *word != flag);
    words.nth(1).unwrap_or_default().to_owned()
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
    let create = asked.proxy();
    assert!(create.contains(" --http-proxy=false --read-only-tmpfs=false "));
    // Its client takes no runtime, on no call.
    assert!(
        !asked
            .engine
            .calls()
            .concat()
            .contains(&"--runtime".to_owned())
    );
    asked.needs_nothing_of_this_machine(|name, target| {
        format!("type=bind,source=/var/lib/engine/volumes/it/_data/{name},target={target},readonly")
    });
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
    // It sees the files of this machine.
    assert_eq!(asked.calls("volume"), Vec::<String>::new());
    let run = asked.only("run ");
    assert!(run.ends_with(" debian:12 /.cordon/door/s shut"), "{run}");
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
    let create = asked.proxy();
    // These are podman's.
    assert!(!create.contains("--http-proxy") && !create.contains("--read-only-tmpfs"));
    // A path of its own machine would be taken for one of this.
    asked.needs_nothing_of_this_machine(|name, target| {
        format!("type=volume,source=NAME,target={target},volume-subpath={name},readonly")
    });
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

#[tokio::test]
async fn an_engine_in_another_machine_is_no_mode_for_sessions_and_says_why() {
    for (mode, kind, info) in [
        (Mode::Podman, EngineKind::Podman, PODMAN_MACHINE),
        (Mode::Docker, EngineKind::Docker, DOCKER_DESKTOP),
    ] {
        let engine = StandIn::shell(kind.program(), ENGINE);
        std::fs::write(engine.path().join("info"), info).unwrap();
        let config = SandboxConfig {
            engine: EngineChoice::Program(kind, engine.program.clone()),
            ..Notices::default().config(engine.path())
        };
        let agent = AgentSandbox::new("coder", "/srv");
        let probe = modes::probe(&agent, mode, &config).await;
        assert!(!probe.ok, "{probe:?}");
        assert!(
            probe.message.contains("no session can be held"),
            "{probe:?}"
        );
        assert!(!probe.hints.is_empty(), "{probe:?}");
    }
}
