//! Whatever ends a run, its container ends with it, and nothing is left.

use std::{
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::setup::{Run, Setup, eventually, on_every_engine};

/// A command that does not care for signals.
const STUBBORN: &str = "trap '' TERM INT HUP; while :; do sleep 0.1; done";

on_every_engine! {
    fn when_the_host_process_is_killed_the_container_dies_within_two_seconds(setup) {
        // From before the engine's client has started to well into the run.
        for delay in [0, 15, 30, 60, 90, 120, 160, 200, 250, 300, 400, 600, 1000] {
            let running = Run::new(setup).sh(STUBBORN).start();
            let pid = running.pid();
            thread::sleep(Duration::from_millis(delay));
            running.signal(Signal::KILL);
            let killed = Instant::now();
            running.end();
            // A container that is only now being made has to come and go within the time too.
            eventually(format!("gone after kill at {delay} ms"), Duration::from_secs(2), || {
                killed.elapsed() > Duration::from_millis(700) && setup.containers_of(pid).is_empty()
            });
        }
    }

    fn what_a_killed_run_left_is_removed_by_the_next(setup) {
        let running = Run::new(setup).start_script(STUBBORN);
        let pid = running.pid();
        running.signal(Signal::KILL);
        running.end();
        eventually("its container is gone", Duration::from_secs(2), || setup.containers_of(pid).is_empty());
        Run::new(setup).command(["true"]).succeed();
        assert_eq!(setup.left_by(pid), Vec::<String>::new());
    }

    fn a_dead_owners_container_is_removed_and_a_living_ones_is_not(setup) {
        let living = Run::new(setup).start_script("sleep 60");
        let image = crate::setup::BUSYBOX;
        // As a run of an earlier boot would have left it, had its engine been killed too.
        setup.ask(&["create", "--label", "cordon.owner=00000000-1-1", "--name", &format!("cordon-00000000-1-1-{setup:?}").to_lowercase(), image, "true"]);
        forget_the_sweep(setup);
        Run::new(setup).command(["true"]).succeed();
        assert!(!setup.ask(&["ps", "--all"]).contains("cordon-00000000-1-1-"));
        assert_eq!(setup.containers_of(living.pid()).len(), 1);
        living.signal(Signal::TERM);
        assert_eq!(living.end().code, 128 + 15);
    }

    fn sigterm_and_sigint_end_the_container_and_leave_nothing(setup) {
        for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
            let run = Run::new(setup).sh("trap 'echo bye; exit 0' TERM; touch ready; while :; do sleep 0.1; done");
            let running = run.start();
            eventually("it listens to signals", Duration::from_secs(120), || run.path("ready").exists());
            let pid = running.pid();
            running.signal(signal);
            let ended = running.end();
            assert_eq!(ended.code, code, "{ended:?}");
            assert_eq!(ended.stdout, "bye\n", "the command is asked before it is killed");
            assert_eq!(setup.left_by(pid), Vec::<String>::new());
        }
    }

    fn a_stubborn_command_is_killed_after_five_seconds(setup) {
        let running = Run::new(setup).start_script(STUBBORN);
        let pid = running.pid();
        let asked = Instant::now();
        running.signal(Signal::TERM);
        assert_eq!(running.end().code, 143);
        assert!(asked.elapsed() > Duration::from_secs(4));
        assert_eq!(setup.left_by(pid), Vec::<String>::new());
    }

    fn a_timeout_is_124_and_ends_the_container_with_all_its_children(setup) {
        let run = Run::new(setup).flags(["--timeout", "5"]).sh("echo early; (sleep 300 &); sleep 300");
        let ended = run.end();
        assert_eq!(ended.code, 124, "{ended:?}");
        assert_eq!(ended.stdout, "early\n");
        assert!(ended.stderr.contains("the command was ended after 5 s"), "{ended:?}");
        assert_eq!(setup.left_by(ended.pid), Vec::<String>::new());
    }

    fn children_in_the_background_end_with_the_command(setup) {
        let begun = Instant::now();
        Run::new(setup).sh("sleep 300 & exit 0").succeed();
        assert!(begun.elapsed() < Duration::from_secs(30));
    }

    fn a_container_killed_behind_our_back_is_137(setup) {
        let running = Run::new(setup).start_script("sleep 60");
        let pid = running.pid();
        let name = setup.containers_of(pid).remove(0);
        setup.ask(&["kill", &name]);
        assert_eq!(running.end().code, 137);
        assert_eq!(setup.left_by(pid), Vec::<String>::new());
    }

    fn twenty_runs_side_by_side_do_not_touch_each_other(setup) {
        let runs: Vec<_> = (0..20).map(|n| {
            let run = Run::new(setup).sh(&format!("echo {n} > number; sleep 1; cat number"));
            let running = run.start();
            (n, run, running)
        }).collect();
        for (n, run, running) in runs {
            let pid = running.pid();
            let ended = running.end();
            assert_eq!((ended.code, ended.stdout.as_str()), (0, format!("{n}\n").as_str()), "{ended:?}");
            assert_eq!(setup.left_by(pid), Vec::<String>::new());
            drop(run);
        }
    }
}

/// Makes the next start look for containers of dead owners, as the first one after a boot does.
fn forget_the_sweep(setup: Setup) {
    let stamp = setup.runtime().join("swept");
    drop(std::fs::remove_file(stamp));
}
