//! A container has a loopback interface and the door, and nothing else.

use std::sync::atomic::Ordering;

use rustix::process::Signal;

use crate::host::{host_addresses, host_service};
use crate::setup::{DEBIAN, Run, on_every_engine};

/// Tries every address and port it is given over TCP and UDP, and says what did not fail.
const PROBE: &str = r#"
import socket, sys
for target in sys.argv[1:]:
    host, _, port = target.rpartition("@")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(2)
        try:
            s.connect((host, int(port)))
            print("tcp open", target)
        except OSError as e:
            pass
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        try:
            s.sendto(b"probe", (host, int(port)))
            print("udp sent", target)
        except OSError as e:
            pass
print("done")
"#;

on_every_engine! {
    fn the_container_has_no_interface_but_loopback(setup) {
        let ended = Run::new(setup).sh("tail -n +3 /proc/net/dev | cut -d: -f1; cat /proc/net/route | tail -n +2").succeed();
        assert_eq!(ended.stdout.trim(), "lo", "{ended:?}");
    }

    fn raw_addresses_other_ports_and_udp_are_out_of_reach(setup) {
        let targets = [
            "198.51.100.7@80", "198.51.100.7@443", "198.51.100.7@53", "1.1.1.1@53", "8.8.8.8@443",
            "169.254.169.254@80", "10.0.0.1@443", "10.88.0.1@53", "172.17.0.1@80", "192.168.0.1@22",
            "255.255.255.255@67", "224.0.0.251@5353", "2001:db8::1@443", "fe80::1@80", "ff02::1@5353",
        ];
        let ended = Run::new(setup).image(DEBIAN).command(["python3", "-c", PROBE]).command_with(&targets).succeed();
        assert_eq!(ended.stdout, "done\n", "{ended:?}");
    }

    fn the_hosts_services_are_out_of_reach_on_every_address(setup) {
        let (port, heard) = host_service();
        let mut targets: Vec<_> = host_addresses().iter().map(|address| format!("{address}@{port}")).collect();
        // Loopback addresses are the container's own; nothing of the host listens there.
        targets.extend([format!("127.0.0.1@{port}"), format!("127.77.0.1@{port}"), format!("::1@{port}")]);
        let targets: Vec<_> = targets.iter().map(String::as_str).collect();
        let ended = Run::new(setup).image(DEBIAN).command(["python3", "-c", PROBE]).command_with(&targets).succeed();
        assert!(!ended.stdout.contains("tcp open"), "{ended:?}");
        assert_eq!(heard.load(Ordering::SeqCst), 0);
    }

    fn another_container_is_out_of_reach(setup) {
        let listener = "exec python3 -m http.server --bind 0.0.0.0 4242 >&2";
        let other = Run::new(setup).image(DEBIAN).start_script(listener);
        let targets: Vec<_> = (1..10).map(|n| format!("10.88.0.{n}@4242")).chain((1..10).map(|n| format!("172.17.0.{n}@4242")))
            .chain(["127.0.0.1@4242".into(), "127.77.0.1@4242".into()]).collect();
        let targets: Vec<_> = targets.iter().map(String::as_str).collect();
        let ended = Run::new(setup).image(DEBIAN).command(["python3", "-c", PROBE]).command_with(&targets).succeed();
        assert!(!ended.stdout.contains("tcp open"), "{ended:?}");
        other.signal(Signal::TERM);
        other.end();
    }

    fn no_name_server_answers_but_the_door(setup) {
        let script = "for server in 1.1.1.1 127.0.0.11 10.88.0.1 172.17.0.1; do dig +time=1 +tries=1 @$server example.com A >/dev/null && echo $server answers; done; \
                      dig +short example.com A; dig +tcp +short example.org A; dig +short example.com AAAA; dig +short example.com HTTPS; cat /etc/resolv.conf";
        let ended = Run::new(setup).image(DEBIAN).sh(script).succeed();
        assert_eq!(ended.stdout, "127.77.0.1\n127.77.0.1\nnameserver 127.77.0.1\n", "{ended:?}");
    }

    fn the_workload_may_use_loopback_for_itself(setup) {
        let script = "python3 -m http.server --bind 127.0.0.1 8000 >/dev/null 2>&1 & for i in $(seq 50); do curl -sf http://127.0.0.1:8000/ >/dev/null && echo served && exit; sleep 0.1; done";
        let ended = Run::new(setup).image(DEBIAN).sh(script).end();
        assert_eq!(ended.stdout, "served\n", "{ended:?}");
    }
}
