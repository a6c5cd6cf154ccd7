//! How far containers are closed, and whose the files are that they write.

use std::{
    fs,
    os::unix::fs::{MetadataExt, symlink},
    path::Path,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

use crate::setup::{DEBIAN, Run, Setup, on_every_engine};

on_every_engine! {
    fn strict_leaves_nothing_to_write_but_the_workspace_and_memory(setup) {
        let script = "
            for place in / /etc /usr /var /root /opt /srv /usr/local; do
                touch $place/x 2>/dev/null && echo wrote $place
            done
            touch /workspace/x /tmp/x /home/x && echo $HOME
            printf '#!/bin/sh\\necho ran' > /tmp/run && chmod +x /tmp/run && /tmp/run
            df -k /tmp /home | awk 'NR > 1 { print $1, $2, $6 }'";
        let ended = Run::new(setup).image(DEBIAN).sh(script).succeed();
        assert_eq!(
            ended.stdout,
            "/home\nran\ntmpfs 1048576 /tmp\ntmpfs 102400 /home\n",
            "{ended:?}"
        );
    }

    fn strict_keeps_no_capability_and_the_engines_own_filters(setup) {
        let script = "grep -E '^(CapEff|CapPrm|CapBnd|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status
            for file in /proc/kcore /proc/timer_list; do
                head -c 1 $file 2>/dev/null | grep -q . && echo $file is read
            done
            for file in /proc/sysrq-trigger /proc/sys/kernel/hostname /proc/sys/kernel/core_pattern; do
                (echo x >$file) 2>/dev/null && echo $file is written
            done
            true";
        let ended = Run::new(setup).image(DEBIAN).command(["bash", "-c", script]).succeed();
        let none = "0000000000000000";
        assert_eq!(
            ended.stdout,
            format!("CapPrm:\t{none}\nCapEff:\t{none}\nCapBnd:\t{none}\nCapAmb:\t{none}\nNoNewPrivs:\t1\nSeccomp:\t2\n")
        );
    }

    fn strict_limits_what_nobody_limited(setup) {
        // Without root the older control groups cannot be had; that is said, and tested elsewhere.
        if setup == Setup::Rootless && fs::metadata("/sys/fs/cgroup/cgroup.controllers").is_err() {
            let ended = Run::new(setup).command(["true"]).succeed();
            assert!(ended.stderr.contains("cannot enforce memory, cpus, pids"), "{ended:?}");
            return;
        }
        let script = "cd /sys/fs/cgroup
            cat memory.max memory/memory.limit_in_bytes pids.max pids/pids.max cpu.max cpu/cpu.cfs_quota_us 2>/dev/null";
        let ended = Run::new(setup).sh(script).end();
        let lines: Vec<_> = ended.stdout.lines().collect();
        assert_eq!(lines[..2], ["4294967296", "256"], "{ended:?}");
        assert!(lines[2].starts_with("200000"), "{ended:?}");
    }

    fn standard_is_root_with_five_capabilities(setup) {
        let script = "id -u; touch /x && grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status";
        let ended = Run::new(setup).flags(["--profile", "standard"]).sh(script).succeed();
        // CHOWN, DAC_OVERRIDE, FOWNER, SETGID, SETUID: bits 0, 1, 3, 6, 7.
        assert_eq!(ended.stdout, "0\nCapEff:\t00000000000000cb\nCapBnd:\t00000000000000cb\nNoNewPrivs:\t1\n");
    }

    fn what_a_command_writes_belongs_to_the_caller(setup) {
        for profile in ["strict", "standard"] {
            let run = Run::new(setup).flags(["--profile", profile]).sh("mkdir made && touch made/file");
            let caller = fs::metadata(run.path("")).unwrap();
            run.succeed();
            for name in ["made", "made/file"] {
                let written = fs::metadata(run.path(name)).unwrap();
                assert_eq!((written.uid(), written.gid()), (caller.uid(), caller.gid()), "{profile} {name}");
            }
        }
    }

    fn a_variable_names_another_user(setup) {
        let ended = Run::new(setup).env("CORDON_CONTAINER_USER", "1234:5678").sh("id -u; id -g").succeed();
        assert_eq!(ended.stdout, "1234\n5678\n");
    }

    fn without_a_network_there_is_not_even_a_door(setup) {
        let script = "cat /proc/net/tcp | wc -l; cat /proc/net/udp | wc -l; ls /sys/class/net";
        let ended = Run::new(setup).flags(["--no-network"]).sh(script).succeed();
        assert_eq!(ended.stdout, "1\n1\nlo\n", "{ended:?}");
    }

    fn a_workspace_swapped_while_it_is_mounted_shows_nothing_from_outside_its_roots(setup) {
        let run = Run::new(setup);
        let outside = tempfile::Builder::new().prefix("cordon-outside-").tempdir_in("/tmp").unwrap();
        fs::write(outside.path().join("secret"), "from outside").unwrap();
        fs::create_dir(run.path("work")).unwrap();
        symlink(outside.path(), run.path("trap")).unwrap();
        let mount = format!("{}:/workspace", run.path("work").display());
        let run = run.flags(["--mount", &mount]).sh("cat /workspace/secret 2>/dev/null; ls -a /workspace");

        let (done, swaps) = (AtomicBool::new(false), AtomicUsize::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    exchange(&run.path("work"), &run.path("trap"));
                    swaps.fetch_add(1, Ordering::Relaxed);
                }
            });
            let mut tries = 0;
            while tries < 12 || swaps.load(Ordering::Relaxed) < 10_000 {
                let ended = run.end();
                assert!(!ended.stdout.contains("secret"), "{ended:?}");
                assert!(!ended.stdout.contains("outside"), "{ended:?}");
                tries += 1;
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn gvisor_runs_what_needs_no_network_and_refuses_the_rest() {
    let gvisor = |flags: &[&str]| {
        Run::new(Setup::Podman)
            .flags(["--runtime", "runsc"])
            .flags(flags)
            .sh("uname -r; touch /workspace/made; exit 3")
    };
    let run = gvisor(&["--no-network"]);
    let ended = run.end();
    // The kernel that gVisor says it is.
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (3, "4.4.0\n"),
        "{ended:?}"
    );
    assert!(run.path("made").exists());
    assert!(ended.stderr.contains("cannot be verified"), "{ended:?}");

    let ended = gvisor(&[]).end();
    assert_eq!(ended.code, 125, "{ended:?}");
    assert!(ended.stderr.contains("--no-network"), "{ended:?}");
}

#[test]
fn a_runtime_that_is_not_there_is_an_error() {
    for setup in [Setup::Podman, Setup::Docker] {
        let ended = Run::new(setup)
            .flags(["--runtime", "no-such-runtime"])
            .command(["true"])
            .end();
        assert_eq!(ended.code, 125, "{ended:?}");
        assert!(ended.stderr.contains("no-such-runtime"), "{ended:?}");
    }
}

fn exchange(one: &Path, other: &Path) {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
}
