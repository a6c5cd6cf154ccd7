//! Every target for about a second: its seeds, the seeds with a few bytes changed, and random bytes.

#![expect(clippy::unwrap_used, reason = "a test that cannot run must fail")]

use std::time::{Duration, Instant};

use fuzz_targets::TARGETS;
use proptest::{
    collection::vec,
    prelude::{Strategy, any},
    sample::Index,
    strategy::ValueTree,
    test_runner::TestRunner,
};

const TIME: Duration = Duration::from_secs(1);

fn run(name: &str) {
    let (_, target, seeds) = TARGETS.iter().find(|(known, ..)| *known == name).unwrap();
    seeds.iter().for_each(|seed| target(seed));
    let mut runner = TestRunner::default();
    let change = (any::<Index>(), any::<u8>(), 0..3_u8);
    let broken = (any::<Index>(), vec(change, 1..6));
    let random = vec(any::<u8>(), 0..300);
    let start = Instant::now();
    while start.elapsed() < TIME {
        let (seed, changes) = broken.new_tree(&mut runner).unwrap().current();
        let mut bytes = seed.get(seeds).to_vec();
        for (place, byte, kind) in changes {
            change_one(&mut bytes, place, byte, kind);
        }
        judge(name, *target, &bytes);
        judge(
            name,
            *target,
            &random.new_tree(&mut runner).unwrap().current(),
        );
    }
}

fn change_one(bytes: &mut Vec<u8>, place: Index, byte: u8, kind: u8) {
    if bytes.is_empty() || kind == 0 {
        bytes.insert(place.index(bytes.len() + 1), byte);
    } else if kind == 1 {
        bytes.remove(place.index(bytes.len()));
    } else {
        let place = place.index(bytes.len());
        bytes[place] = byte;
    }
}

/// Says which bytes they were, so that they can become a seed.
fn judge(name: &str, target: fn(&[u8]), bytes: &[u8]) {
    let judged = std::panic::catch_unwind(|| target(bytes));
    assert!(judged.is_ok(), "{name}: b\"{}\"", bytes.escape_ascii());
}

macro_rules! short_runs {
    ($($name:ident)*) => {
        $(#[test] fn $name() { run(stringify!($name)); })*

        #[test]
        fn no_target_is_left_out() {
            let names = [$(stringify!($name)),*];
            assert!(TARGETS.iter().map(|(name, ..)| *name).eq(names));
        }
    };
}

short_runs! { allowlist host target dns client_hello http1 http2 aws_chunked sigv4 scrubber }
