//! `cordon session`.

use std::{
    fs,
    io::{Read, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    process::{Child, Command, Output, Stdio},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{
    outside::Outside,
    setup::{DEBIAN, Run, Setup, cordon, eventually, on_every_engine, read_all},
};

/// No credential of anybody's.
const TOKEN: &str = "ghp_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R";

/// A session that was started on the command line. What is left of it is ended with the test.
struct Session {
    setup: Setup,
    name: String,
    pid: u32,
}

impl Session {
    fn start(run: &Run, setup: Setup) -> Self {
        let ended = run.end();
        assert_eq!(ended.code, 0, "{ended:?}");
        let name = ended.stdout.trim().to_owned();
        let mut session = Self {
            setup,
            name,
            pid: 0,
        };
        let listed = session.listed().unwrap();
        assert_eq!(listed["state"], "ready", "{listed}");
        assert_eq!(listed["engine"], setup.engine());
        session.pid = u32::try_from(listed["pid"].as_u64().unwrap()).unwrap();
        assert!(!setup.containers_of(session.pid).is_empty());
        session
    }

    fn command(&self, verb: &str) -> Command {
        let mut command = self.setup.command(cordon());
        command.args(["session", verb]);
        command.stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn exec(&self, flags: &[&str], script: &str) -> (i32, String, String) {
        let mut command = self.command("exec");
        command.arg(&self.name).args(flags);
        said(&command.args(["--", "sh", "-c", script]).output().unwrap())
    }

    fn begin(&self, script: &str) -> Child {
        let mut command = self.command("exec");
        command.arg(&self.name).args(["--", "sh", "-c", script]);
        command.stdin(Stdio::piped()).spawn().unwrap()
    }

    /// What `list` says of it.
    fn listed(&self) -> Option<Value> {
        let output = self.command("list").arg("--json").output().unwrap();
        let sessions: Value = serde_json::from_slice(&output.stdout).unwrap();
        let sessions = sessions.as_array().unwrap();
        sessions
            .iter()
            .find(|session| session["name"] == self.name.as_str())
            .cloned()
    }

    fn stop(&self) -> (i32, String, String) {
        said(&self.command("stop").arg(&self.name).output().unwrap())
    }

    fn kill(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.pid).unwrap()).unwrap();
        // It may have ended already.
        let _ = kill_process(pid, signal);
    }

    /// Waits until the session is over and nothing of it is left.
    fn leaves_nothing(&self) {
        eventually("the session is over", Duration::from_secs(30), || {
            self.listed().is_none() && self.setup.left_by(self.pid).is_empty()
        });
        let directory = self.setup.runtime().join("sessions");
        let files = fs::read_dir(directory).unwrap().flatten();
        let ours = |entry: &fs::DirEntry| {
            let file = entry.file_name().into_string().unwrap();
            file.starts_with(&self.name)
        };
        assert_eq!(files.filter(ours).count(), 0);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.pid != 0 {
            self.kill(Signal::TERM);
        }
    }
}

fn said(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code().unwrap(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

on_every_engine! {
    fn commands_share_a_container_and_nothing_else(setup) {
        let run = Run::session(setup).flags(["--env", "SHARED=by all"]);
        let session = Session::start(&run, setup);
        for number in 1..=20 {
            let script = format!("echo {number} >> /tmp/count; wc -l < /tmp/count");
            assert_eq!(session.exec(&[], &script), (0, format!("{number}\n"), String::new()));
        }
        let (code, stdout, stderr) = session.exec(&["--env", "OWN=once"], "mkdir below; echo $SHARED $OWN; echo no >&2; exit 7");
        assert_eq!((code, stdout.as_str(), stderr.as_str()), (7, "by all once\n", "no\n"));
        assert_eq!(session.exec(&["--workdir", "below"], "echo $SHARED $OWN; pwd").1, "by all\n/workspace/below\n");
        assert!(run.path("below").is_dir());
        assert_eq!(session.exec(&["--timeout", "1"], "sleep 60").0, 124);
        assert_eq!(session.exec(&["--workdir", "../etc"], "true").0, 125);
        assert_eq!(session.exec(&[], "kill -9 $$").0, 137);
        let missing = session.command("exec").args([&session.name, "--", "/no/such"]).output().unwrap();
        assert_eq!(missing.status.code(), Some(127));
        assert_eq!(setup.containers_of(session.pid).len(), 1);
        assert_eq!(session.stop().0, 0);
        session.leaves_nothing();
        let (code, _, stderr) = session.exec(&[], "true");
        assert_eq!(code, 125);
        assert!(stderr.contains("there is no session"), "{stderr}");
    }

    fn what_a_command_reads_and_writes_comes_through_whole(setup) {
        let session = Session::start(&Run::session(setup), setup);
        let mut child = session.begin("cat");
        let mut stdin = child.stdin.take().unwrap();
        let sent: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
        let copy = sent.clone();
        let writer = thread::spawn(move || stdin.write_all(&copy).unwrap());
        let mut received = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut received).unwrap();
        writer.join().unwrap();
        assert!(received == sent);
        assert!(child.wait().unwrap().success());
        // What stays behind holds nobody up.
        assert_eq!(session.exec(&[], "sleep 300 & echo over"), (0, "over\n".to_owned(), String::new()));
        assert_eq!(session.stop().0, 0);
        session.leaves_nothing();
    }

    fn signals_reach_the_command_and_it_ends_with_its_client(setup) {
        let run = Run::session(setup);
        let session = Session::start(&run, setup);
        let child = session.begin("trap 'echo asked; exit 9' TERM; touch up; while :; do sleep 0.1; done");
        eventually("it runs", Duration::from_secs(30), || run.path("up").exists());
        assert_eq!(session.listed().unwrap()["state"], "busy");
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        let (code, stdout, _) = said(&child.wait_with_output().unwrap());
        assert_eq!((code, stdout.as_str()), (9, "asked\n"));

        let mut child = session.begin("trap '' TERM; touch stubborn; (setsid sleep 299 &) ; setsid sleep 298 & while :; do sleep 0.1; done");
        eventually("it runs", Duration::from_secs(30), || run.path("stubborn").exists());
        kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
        child.wait().unwrap();
        eventually("its command is gone", Duration::from_secs(30), || {
            session.exec(&[], "ps -o args | grep -c '[s]leep 298\\|[s]tubborn'").1 == "0\n"
        });
        assert_eq!(session.stop().0, 0);
        session.leaves_nothing();
    }

    fn when_the_supervisor_is_killed_its_container_dies_and_the_next_start_sweeps(setup) {
        let run = Run::session(setup);
        let session = Session::start(&run, setup);
        let running = session.begin("trap '' TERM HUP; while :; do sleep 0.1; done");
        session.kill(Signal::KILL);
        eventually("its container is gone", Duration::from_secs(30), || setup.containers_of(session.pid).is_empty());
        assert_eq!(running.wait_with_output().unwrap().status.code(), Some(125));
        let again = Session::start(&run, setup);
        assert_eq!(again.name, session.name);
        assert_eq!(setup.left_by(session.pid), Vec::<String>::new());
        again.kill(Signal::TERM);
        again.leaves_nothing();
    }

    fn a_start_that_is_killed_leaves_no_session(setup) {
        let run = Run::session(setup);
        let directory = run.path("").canonicalize().unwrap();
        for delay in [0, 20, 60] {
            let starting = run.start();
            thread::sleep(Duration::from_millis(delay));
            starting.signal(Signal::KILL);
            starting.end();
            eventually("there is no session", Duration::from_secs(60), || {
                let listed = setup.command(cordon()).args(["session", "list"]).output().unwrap();
                let sessions = String::from_utf8(listed.stdout).unwrap();
                // One that starts has a lock, and no socket to ask what it is called.
                !sessions.contains(directory.to_str().unwrap()) && !sessions.contains("starting")
            });
        }
        let session = Session::start(&run, setup);
        assert_eq!(session.stop().0, 0);
        session.leaves_nothing();
    }

    fn a_session_whose_container_is_removed_behind_our_back_is_over(setup) {
        let session = Session::start(&Run::session(setup), setup);
        let running = session.begin("sleep 300");
        setup.ask(&["rm", "--force", &setup.containers_of(session.pid)[0]]);
        assert_eq!(running.wait_with_output().unwrap().status.code(), Some(125));
        session.leaves_nothing();
    }

    fn an_idle_session_ends_by_itself(setup) {
        let run = Run::session(setup).flags(["--idle", "2"]);
        let session = Session::start(&run, setup);
        assert_eq!(session.exec(&[], "sleep 4; echo done").1, "done\n");
        session.leaves_nothing();
    }

    fn a_session_is_started_once_and_found_by_its_name_alone(setup) {
        let run = Run::session(setup).flags(["--agent", "../ü \"'", "--session", &format!("{}{setup:?}", "x/".repeat(150))]);
        let session = Session::start(&run, setup);
        let again = run.end();
        assert_eq!(again.code, 125, "{again:?}");
        assert!(again.stderr.contains("runs already"), "{again:?}");
        assert_eq!(session.exec(&[], "echo still").1, "still\n");
        for name in ["", "..", "../sessions/x", "NAME"] {
            let refused = session.command("exec").args([name, "--", "true"]).output().unwrap();
            assert_eq!(refused.status.code(), Some(125), "{name}");
        }
        assert_eq!(session.stop().0, 0);
        session.leaves_nothing();
    }

    fn network_policy_holds_inside_a_session_in_both_topologies(setup) {
        for topology in ["door", "proxy-container"] {
            let outside = Outside::new(&["good.example", "bad.example"]);
            let run = Run::session(setup).image(DEBIAN).flags(["--topology", topology]).origin(&outside.origin, &["good.example"]);
            let session = Session::start(&run, setup);
            let curl = "curl -s -o /dev/null -w '%{http_code}\\n' --max-time 20";
            let address = outside.origin.address();
            let script = format!("{curl} https://good.example/; {curl} https://bad.example/; {curl} --max-time 2 http://{address}/");
            assert_eq!(session.exec(&[], &script).1, "200\n403\n000\n");
            assert_eq!(outside.origin.requests(), 1);
            assert_eq!(session.stop().0, 0);
            session.leaves_nothing();
            let log = run.network_log();
            assert!(log.contains("BLOCKED GET https://bad.example/ -> 403"), "{log}");
            assert!(log.contains("ALLOWED GET https://good.example/ -> 200"), "{log}");
        }
    }

    fn a_session_never_holds_a_real_secret(setup) {
        let outside = Outside::new(&["api.example.com"]);
        let run = Run::session(setup).image(DEBIAN).origin(&outside.origin, &["api.example.com"])
            .flags(["--config", "sandbox.yaml"]).env("REAL_TOKEN", TOKEN);
        let config = "masked_secrets:\n  GH_TOKEN:\n    value: !env REAL_TOKEN\n    scopes: [api.example.com]\n    headers: [Authorization]\n";
        fs::write(run.path("sandbox.yaml"), config).unwrap();
        let session = Session::start(&run, setup);
        let (code, stdout, stderr) = session.exec(&[], "env; curl -sS -H \"Authorization: Bearer $GH_TOKEN\" https://api.example.com/echo");
        assert_eq!(code, 0, "{stderr}");
        assert!(stdout.contains("GH_TOKEN=ghp_"), "{stdout}");
        assert_eq!(outside.origin.authorizations(), [format!("Bearer {TOKEN}")]);
        let mut seen = stdout + &stderr + &run.network_log();
        seen += &setup.ask(&["container", "inspect", &setup.containers_of(session.pid)[0]]);
        seen += &read_all(&setup.runtime().join(&setup.containers_of(session.pid)[0]));
        seen += &read_all(&setup.runtime().join("sessions"));
        assert!(!seen.contains(TOKEN), "{seen}");
        assert_eq!(session.stop().0, 0);
        session.leaves_nothing();
    }

    fn whatever_is_said_to_a_supervisor_its_session_goes_on(setup) {
        let session = Session::start(&Run::session(setup), setup);
        let socket = setup.runtime().join("sessions").join(format!("{}.sock", session.name));
        let framed = |text: &str| [&u32::try_from(text.len()).unwrap().to_le_bytes(), text.as_bytes()].concat();
        let junk = [
            Vec::new(),
            vec![0xff; 100_000],
            framed(""),
            framed("{}"),
            framed("not json"),
            framed(r#"{"verb":"exec"}"#),
            framed(r#"{"verb":"exec","argv":[[300]],"env":[]}"#),
            framed(r#"{"verb":"exec","argv":[],"env":[]}"#),
            framed(r#"{"verb":"exec","argv":[[116,0]],"env":[["A=","b"]]}"#),
            framed(&"[".repeat(100_000)),
        ];
        for said in junk {
            let mut stream = UnixStream::connect(&socket).unwrap();
            // It may hang up before it has heard all.
            let _ = stream.write_all(&said).and_then(|()| stream.shutdown(Shutdown::Write));
            let _ = stream.read_to_end(&mut Vec::new());
        }
        assert_eq!(session.exec(&[], "echo on").1, "on\n");
        assert_eq!(session.stop().0, 0);
        session.leaves_nothing();
    }

    fn a_commands_arguments_and_environment_are_in_no_record_of_the_engines(setup) {
        let run = Run::session(setup).flags(["--env", "GIVEN=value-of-all"]);
        let session = Session::start(&run, setup);
        let child = session.begin("echo word-of-the-command > up; cat");
        eventually("it runs", Duration::from_secs(30), || run.path("up").exists());
        assert_eq!(session.exec(&["--env", "OWN=value-of-one"], "echo $OWN").1, "value-of-one\n");
        let record = setup.ask(&["inspect", &setup.containers_of(session.pid)[0]]);
        assert!(record.contains("cordon.session"));
        for word in ["value-of-all", "value-of-one", "word-of-the-command"] {
            assert!(!record.contains(word), "{word}");
        }
        drop(child);
        assert_eq!(session.stop().0, 0);
        session.leaves_nothing();
    }
}
