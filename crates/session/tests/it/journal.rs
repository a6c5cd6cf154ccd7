use std::{
    fs::{self, File},
    io::Write,
    thread,
};

use cordon_session::Journal;
use proptest::prelude::*;

use super::*;

fn journal(text: &[u8]) -> (tempfile::TempDir, Journal) {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("events.jsonl");
    fs::write(&path, text).unwrap();
    (scratch, Journal::new(path))
}

#[test]
fn replies_are_parted_by_blank_lines() {
    let text = "{\"type\":\"a\"}\n{\"type\":\"b\"}\n\n\n{\"type\":\"c\"}\n\n";
    let (_scratch, journal) = journal(text.as_bytes());
    let replies = journal.read_all().unwrap();
    let lines: Vec<_> = replies.iter().map(|reply| raws(reply)).collect();
    assert_eq!(
        lines,
        [
            vec![r#"{"type":"a"}"#, r#"{"type":"b"}"#],
            vec![r#"{"type":"c"}"#]
        ]
    );
    assert_eq!(raws(&journal.read_reply(1).unwrap()), [r#"{"type":"c"}"#]);
    assert_eq!(journal.read_reply(2).unwrap(), []);
}

#[test]
fn a_journal_that_is_not_there_is_empty() {
    let journal = Journal::new("/nonexistent/events.jsonl");
    assert!(journal.read_all().unwrap().is_empty());
    assert_eq!(journal.read_reply(0).unwrap(), []);
    let tail = journal.tail(7).unwrap();
    assert_eq!((tail.items, tail.offset), (Vec::new(), 7));
}

#[test]
fn a_torn_line_costs_itself_and_nothing_else() {
    let scratch = tempfile::tempdir().unwrap();
    let store = store(scratch.path());
    record(
        store.write("c").unwrap(),
        "one",
        &[init("s-1"), says("kept")],
    );
    let path = store.journal().path().to_owned();
    let mut file = File::options().append(true).open(&path).unwrap();
    file.write_all(b"{\"type\":\"assist").unwrap();
    record(store.write("c").unwrap(), "two", &[result("s-2")]);

    let replies = store.journal().read_all().unwrap();
    assert_eq!(
        replies,
        [vec![init("s-1"), says("kept")], vec![result("s-2")]]
    );
    assert_eq!(store.reply_events(0).unwrap(), replies[0]);
    assert_eq!(store.reply_events(1).unwrap(), replies[1]);
}

#[test]
fn a_line_that_lacks_only_its_end_is_kept() {
    let (_scratch, journal) = journal(b"{\"type\":\"a\"}\n{\"type\":\"b\"}");
    assert_eq!(journal.read_all().unwrap()[0].len(), 2);
    assert_eq!(
        journal.tail(0).unwrap().items.len(),
        1,
        "it may still be being written"
    );
}

#[test]
fn a_reply_without_events_has_none_of_its_neighbours() {
    let scratch = tempfile::tempdir().unwrap();
    let store = store(scratch.path());
    let mut writer = store.write("c").unwrap();
    for (request, events) in [
        ("one", vec![init("a")]),
        ("two", vec![]),
        ("three", vec![init("b")]),
    ] {
        writer = record(writer, request, &events);
    }
    for (index, count) in [(0, 1), (1, 0), (2, 1), (3, 0)] {
        assert_eq!(store.reply_events(index).unwrap().len(), count, "{index}");
    }
}

#[test]
fn a_monstrous_line_does_not_stop_the_tail() {
    let mut text = b"{\"type\":\"a\"}\n".to_vec();
    text.extend(std::iter::repeat_n(b'x', 20 * 1024 * 1024));
    text.extend(b"\n{\"type\":\"b\"}\n");
    let (_scratch, journal) = journal(&text);
    let mut follower = journal.follow(0);
    let mut names = Vec::new();
    loop {
        let events = follower.poll().unwrap();
        if events.is_empty() {
            break;
        }
        names.extend(events.iter().map(|event| event.type_name()));
    }
    assert_eq!(names, ["_unknown", "_oversized", "_unknown"]);
    assert_eq!(follower.offset(), text.len() as u64);
}

#[test]
fn readers_see_every_event_once_while_somebody_writes() {
    let scratch = tempfile::tempdir().unwrap();
    let store = store(scratch.path());
    let mut recording = store
        .write("c")
        .unwrap()
        .begin_reply(Agent::Claude, None)
        .unwrap();
    let count = 3000;
    thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut follower = store.journal().follow(0);
                    let mut seen = Vec::new();
                    while seen.len() < count {
                        seen.extend(follower.poll().unwrap());
                        assert!(store.load().unwrap().warnings.is_empty());
                    }
                    seen
                })
            })
            .collect();
        for number in 0..count {
            recording
                .append(&says(&format!("{number} {}", "x".repeat(number % 97))))
                .unwrap();
        }
        for reader in readers {
            let seen = reader.join().unwrap();
            for (number, event) in seen.iter().enumerate() {
                assert!(event.spoken().unwrap().starts_with(&format!("{number} ")));
            }
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_tail_neither_drops_nor_repeats_however_the_bytes_arrive(
        lines in proptest::collection::vec("[a-z]{0,12}", 1..12),
        cuts in proptest::collection::vec(0usize..400, 0..16),
    ) {
        let mut text = Vec::new();
        let mut expected = Vec::new();
        for line in &lines {
            if line.is_empty() {
                text.push(b'\n');
            } else {
                let event = says(line);
                text.extend(event.raw().as_bytes());
                text.push(b'\n');
                expected.push(event);
            }
        }
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();

        let (_scratch, journal) = journal(b"");
        let mut file = File::options().append(true).open(journal.path()).unwrap();
        let mut follower = journal.follow(0);
        let mut seen = Vec::new();
        for pair in cuts.windows(2) {
            file.write_all(&text[pair[0]..pair[1]]).unwrap();
            seen.extend(follower.poll().unwrap());
        }
        prop_assert_eq!(seen, expected);
        prop_assert_eq!(follower.offset(), text.len() as u64);
    }
}
