//! Engines in another machine. There is none here, but a client that knows its engine over a network only
//! does with it what it would do then; and the podman that is called so cannot see this user's runtime
//! and cache directories, so that no file and no socket there is of any use to its containers.

use std::{
    fs::{self, Permissions},
    io,
    net::{Shutdown, TcpListener, TcpStream},
    os::unix::{fs::PermissionsExt as _, net::UnixStream},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use rustix::process::Signal;

use crate::outside::Outside;
use crate::setup::{DEBIAN, Run, Setup, eventually};

/// Makes three tests of one function: `name::podman`, `name::rootless` and `name::docker`.
macro_rules! on_engines_elsewhere {
    ($(fn $name:ident($far:ident) $body:block)*) => {
        $(mod $name {
            use super::*;

            fn claim($far: &Far) $body

            #[test]
            fn podman() { claim(&Far::podman()); }

            #[test]
            fn rootless() { claim(&Far::rootless()); }

            #[test]
            fn docker() { claim(&Far::docker()); }
        })*
    };
}

on_engines_elsewhere! {
    fn an_allowed_host_is_reached_and_recorded_from_another_machine(far) {
        let outside = Outside::new(&["api.example.com"]);
        let run = far.run().image(DEBIAN).origin(&outside.origin, &["api.example.com"])
            .sh("curl -sS -o /dev/null -w '%{http_code}\\n' https://api.example.com/echo; openssl s_client -brief -connect api.example.com:443 </dev/null 2>&1 | grep -c 'Verification: OK'; cat /etc/hosts | head -1");
        let ended = run.end();
        assert_eq!((ended.code, ended.stdout.as_str()), (0, "200\n1\n127.0.0.1 localhost\n"), "{ended:?} {}", run.network_log());
        assert!(ended.stderr.contains("connected by a proxy container"), "{ended:?}");
        let log = run.network_log();
        assert!(log.contains("ALLOWED GET https://api.example.com/echo -> 200"), "{log}");
        assert_eq!(far.left_by(ended.pid), Vec::<String>::new());
    }

    fn a_host_that_is_not_listed_is_refused_and_recorded_from_another_machine(far) {
        let outside = Outside::new(&["evil.example.com"]);
        let run = far.run().image(DEBIAN).origin(&outside.origin, &["api.example.com"])
            .sh("curl -sS -o /dev/null -w '%{http_code}\\n' https://evil.example.com/steal");
        let ended = run.end();
        assert_eq!(ended.stdout, "403\n", "{ended:?}");
        assert_eq!(outside.origin.connections(), 0);
        assert!(run.network_log().contains("BLOCKED GET https://evil.example.com/steal -> 403"), "{}", run.network_log());
    }

    fn input_output_and_exit_code_pass_from_another_machine(far) {
        let run = far.run().flags(["--profile", "strict"]).input("from here").sh("cat; echo there >&2; exit 42");
        let ended = run.end();
        assert_eq!((ended.code, ended.stdout.as_str()), (42, "from here"), "{ended:?}");
        assert!(ended.stderr.ends_with("there\n"), "{ended:?}");
        assert_eq!(far.left_by(ended.pid), Vec::<String>::new());
    }

    fn when_the_host_process_is_killed_containers_in_another_machine_die_and_the_next_run_cleans_up(far) {
        let running = far.run().start_script("trap '' TERM INT HUP; while :; do sleep 0.1; done");
        let pid = running.pid();
        assert_eq!(far.engine.containers_of(pid).len(), 2);
        assert!(far.left_by(pid).iter().any(|left| left.starts_with("volume ")));
        running.signal(Signal::KILL);
        running.end();
        eventually("both containers are gone", Duration::from_secs(30), || far.engine.containers_of(pid).is_empty());
        let next = far.run().command(["true"]).end();
        assert_eq!(next.code, 0, "{next:?}");
        assert_eq!(far.left_by(pid), Vec::<String>::new());
        assert_eq!(far.left_by(next.pid), Vec::<String>::new());
    }

    fn a_run_in_another_machine_whose_proxy_is_lost_fails_and_its_command_ends(far) {
        let running = far.run().start_script("sleep 300");
        let pid = running.pid();
        let names = far.engine.containers_of(pid);
        let name = names.iter().find(|name| name.ends_with("-proxy")).unwrap();
        far.engine.ask(&["kill", name]);
        let ended = running.end();
        assert_eq!(ended.code, 125, "{ended:?}");
        assert!(ended.stderr.contains("the proxy container was lost"), "{ended:?}");
        assert_eq!(far.left_by(pid), Vec::<String>::new());
    }

    fn stop_and_timeout_leave_nothing_in_another_machine(far) {
        let ended = far.run().flags(["--timeout", "4"]).sh("trap '' TERM; while :; do sleep 1; done").end();
        assert_eq!(ended.code, 124, "{ended:?}");
        assert_eq!(far.left_by(ended.pid), Vec::<String>::new());
        let running = far.run().start_script("sleep 300");
        let pid = running.pid();
        running.signal(Signal::TERM);
        assert_eq!(running.end().code, 143);
        assert_eq!(far.left_by(pid), Vec::<String>::new());
    }

    fn nobody_in_the_workload_takes_the_keepers_place(far) {
        let script = r#"
import ctypes, errno, os, socket, subprocess
proxy = open("/etc/resolv.conf").read().split()[1]
token = open("/.cordon/door/token", "rb").read()
assert len(token) == 32
for attempt in range(20):
    try:
        with socket.create_connection((proxy, 7700), timeout=2) as s:
            s.sendall(token + b"\x02E\x00\x00\x00\x00\x00\x00\x00\x00")
            print("taken")
    except OSError as error:
        print(type(error).__name__)
    if attempt == 0:
        print(subprocess.run(["/.cordon/init", "far", f"{proxy}:7700", "/.cordon/door/token"], stderr=subprocess.DEVNULL).returncode)
libc = ctypes.CDLL(None, use_errno=True)
init = os.pidfd_open(1)
for descriptor in range(3, 10):
    taken = libc.syscall(438, init, descriptor, 0) # pidfd_getfd
    print("got it" if taken >= 0 else errno.errorcode[ctypes.get_errno()])
"#;
        let run = far.run().image(DEBIAN).sh("python3 -c \"$0\" | sort | uniq -c | sed 's/^ *//'; exit 7").command_with(&[script]);
        let ended = run.end();
        assert_eq!((ended.code, ended.stdout.as_str()), (7, "1 125\n20 ConnectionRefusedError\n7 EPERM\n"), "{ended:?}");
    }

    fn what_needs_sockets_or_pipes_handed_over_is_refused_with_a_hint_in_another_machine(far) {
        let refused = far.run().flags(["--topology", "door"]).command(["true"]).end();
        assert_eq!(refused.code, 125, "{refused:?}");
        assert!(refused.stderr.contains("the door cannot be opened"), "{refused:?}");
        assert!(refused.stderr.contains("hint: use --topology proxy-container"), "{refused:?}");

        let refused = far.session().end();
        assert_ne!(refused.code, 0, "{refused:?}");
        assert!(refused.stderr.contains("no session can be held"), "{refused:?}");
        assert!(refused.stderr.contains("hint: run each command by itself"), "{refused:?}");

        let run = far.run().flags(["--config", "sandbox.yaml"]).command(["true"]);
        fs::write(run.path("sandbox.yaml"), "network_sandbox: false\n").unwrap();
        let refused = run.end();
        assert_eq!(refused.code, 125, "{refused:?}");
        assert!(refused.stderr.contains("one without a network policy cannot be kept"), "{refused:?}");
        assert!(refused.stderr.contains("hint: leave `network_sandbox` on"), "{refused:?}");
        assert_eq!(far.left_by(refused.pid), Vec::<String>::new());
    }

    fn without_a_network_nobody_answers_in_another_machine(far) {
        let script = r#"
import concurrent.futures, ipaddress, socket, subprocess
own = ipaddress.ip_address(subprocess.check_output(["hostname", "-I"], text=True).split()[0])
net = ipaddress.ip_network((int(own) & ~15, 28))
targets = [(str(host), port) for host in net.hosts() for port in (22, 53, 80, 443, 2375, 7700, 8080)]
targets += [("198.18.0.1", 80), ("1.1.1.1", 53), ("169.254.169.254", 80), ("10.88.0.1", 53), ("172.17.0.1", 53)]
def probe(target):
    try:
        socket.create_connection(target, timeout=2).close()
        return target
    except OSError:
        return None
with concurrent.futures.ThreadPoolExecutor(64) as pool:
    for found in filter(None, pool.map(probe, targets)):
        print("open", found)
try:
    print(socket.getaddrinfo("example.com", 80))
except OSError:
    print("no names")
"#;
        let run = far.run().image(DEBIAN).flags(["--no-network"]).sh("python3 -c \"$0\"; exit 6").command_with(&[script]);
        let ended = run.end();
        assert_eq!((ended.code, ended.stdout.as_str()), (6, "no names\n"), "{ended:?}");
        assert!(ended.stderr.contains("nobody answers there"), "{ended:?}");
        assert_eq!(far.left_by(ended.pid), Vec::<String>::new());
    }
}

/// An engine that is called over TCP.
struct Far {
    /// As it is asked on its own machine.
    engine: Setup,
    address: String,
    service: Option<Child>,
}

impl Far {
    fn podman() -> Self {
        let port = free_port();
        let address = format!("tcp://127.0.0.1:{port}");
        let hidden = [Setup::Podman.runtime(), "/var/cache/cordon".into()];
        for directory in &hidden {
            fs::create_dir_all(directory).unwrap();
        }
        // Others use podman at the same time, and must see the networks of its containers: those are mounted
        // below a directory that is shared between namespaces once `ip` has used it.
        let name = format!("cordon-e2e-{port}");
        for verb in ["add", "del"] {
            let done = Command::new("ip").args(["netns", verb, &name]).status();
            assert!(done.unwrap().success());
        }
        let script = "for hidden in \"$1\" \"$2\"; do \
                      mount --make-private \"$(findmnt -n -o TARGET --target \"$hidden\")\" && \
                      mount -t tmpfs none \"$hidden\" || exit; done; \
                      exec podman --runtime runc system service --time 0 \"$0\"";
        let service = Command::new("unshare")
            .args(["--mount", "--propagation", "unchanged", "sh", "-c", script])
            .arg(&address)
            .args(&hidden)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        serves(port);
        Self {
            engine: Setup::Podman,
            address,
            service: Some(service),
        }
    }

    /// Podman as an ordinary user, which is what a podman machine has: on it, that user is another one.
    fn rootless() -> Self {
        let port = free_port();
        let address = format!("tcp://127.0.0.1:{port}");
        let service = Setup::Rootless
            .command("podman")
            .args(["--runtime", "runc", "system", "service", "--time", "0"])
            .arg(&address)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        serves(port);
        Self {
            engine: Setup::Rootless,
            address,
            service: Some(service),
        }
    }

    fn docker() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("tcp://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let daemon = UnixStream::connect("/var/run/docker.sock").unwrap();
                let (mut from, mut to) = (client.try_clone().unwrap(), daemon.try_clone().unwrap());
                thread::spawn(move || {
                    drop(io::copy(&mut from, &mut to));
                    to.shutdown(Shutdown::Write)
                });
                let (mut from, mut to) = (daemon, client);
                thread::spawn(move || {
                    drop(io::copy(&mut from, &mut to));
                    to.shutdown(Shutdown::Write)
                });
            }
        });
        Self {
            engine: Setup::Docker,
            address,
            service: None,
        }
    }

    /// A run on it.
    fn run(&self) -> Run {
        self.aim(Run::new(self.caller()))
    }

    /// The start of a session on it.
    fn session(&self) -> Run {
        self.aim(Run::session(self.caller()))
    }

    fn aim(&self, run: Run) -> Run {
        // Its users are not those of this machine.
        fs::set_permissions(run.path(""), Permissions::from_mode(0o777)).unwrap();
        let variable = match self.engine {
            Setup::Podman | Setup::Rootless => "CONTAINER_HOST",
            Setup::Docker => "DOCKER_HOST",
        };
        run.env(variable, &self.address)
    }

    /// Who calls it from here.
    fn caller(&self) -> Setup {
        match self.engine {
            Setup::Podman | Setup::Rootless => Setup::Podman,
            Setup::Docker => Setup::Docker,
        }
    }

    /// Everything that the process with this id left, networks and volumes among it.
    fn left_by(&self, pid: u32) -> Vec<String> {
        let mark = format!("-{pid}-");
        let mut left = self.caller().left_by(pid);
        left.extend(self.engine.containers_of(pid));
        for kind in ["network", "volume"] {
            let listed = self.engine.ask(&[kind, "ls", "--format", "{{.Name}}"]);
            let names = listed.lines().filter(|name| name.contains(&mark));
            left.extend(names.map(|name| format!("{kind} {name}")));
        }
        left
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        if let Some(service) = &mut self.service {
            service.kill().unwrap();
            service.wait().unwrap();
        }
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn serves(port: u16) {
    eventually("podman serves", Duration::from_secs(20), || {
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
}
