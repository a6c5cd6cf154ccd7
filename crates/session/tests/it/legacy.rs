use std::fs;

use cordon_session::{Warning, Writer};

use super::*;

/// A file as older programs wrote it, with its events inside.
pub(crate) fn old_file(id_field: &str, replies: usize) -> String {
    let replies: Vec<_> = (0..replies)
        .map(|number| {
            json!({
                "session_id": if number == 0 { String::new() } else { format!("old-{number}") },
                "timestamp": "2025-11-02T10:20:30.123456+00:00",
                "duration_ms": 10, "total_cost_usd": 0.25, "num_turns": 1, "is_error": false,
                "usage": {"input_tokens": 1, "service_tier": "standard"},
                "request_text": format!("request {number}"), "response_text": format!("response {number}"),
                "events": [
                    {"type": "system", "subtype": "init", "session_id": format!("old-{number}")},
                    {"type": "assistant", "message": {"content": [{"type": "text", "text": "x"}]}}
                ]
            })
        })
        .collect();
    json!({id_field: "old-name", "model": "opus", "replies": replies}).to_string()
}

pub(crate) fn assert_taken_over(store: &SessionStore, writer: &Writer, name: &str, old: &str) {
    let metadata = writer.metadata();
    assert_eq!(metadata.execution_context_id, "ctx");
    assert_eq!(metadata.model.as_deref(), Some("opus"));
    let ids: Vec<_> = metadata.replies[..3]
        .iter()
        .map(|reply| reply.session_id.as_str())
        .collect();
    assert_eq!(ids, ["old-0", "old-1", "old-2"]);
    assert_eq!(metadata.replies[0].usage.extra["service_tier"], "standard");
    for index in 0..3 {
        let events = store.reply_events(index).unwrap();
        assert_eq!(events.len(), 2, "reply {index}");
        assert_eq!(events[0], init(&format!("old-{index}")));
    }
    assert!(store.journal().read_all().unwrap().len() >= 3);
    let kept = store.dir().join(format!("{name}.before-v1"));
    assert_eq!(
        fs::read_to_string(kept).unwrap(),
        old,
        "the original is kept"
    );
    assert!(!store.dir().join("session.json").exists());
}

#[test]
fn older_files_are_taken_over_with_their_events() {
    for (name, id_field) in [
        ("session.json", "conversation_id"),
        ("session.json", "task_id"),
        ("context.json", "execution_context_id"),
    ] {
        let scratch = tempfile::tempdir().unwrap();
        let store = store(scratch.path());
        fs::create_dir(store.dir()).unwrap();
        let old = old_file(id_field, 3);
        fs::write(store.dir().join(name), &old).unwrap();

        let loaded = store.load().unwrap();
        assert_eq!(
            loaded.metadata.unwrap().replies.len(),
            3,
            "readers need no takeover"
        );
        assert_eq!(
            store.session_id_for_resume().unwrap().as_deref(),
            Some("old-2")
        );

        let writer = store.write("ctx").unwrap();
        assert!(matches!(writer.warnings(), [Warning::TakenOver { .. }]));
        assert_taken_over(&store, &writer, name, &old);
        drop(writer);
        assert_eq!(
            store.last_successful_response().unwrap().as_deref(),
            Some("response 2")
        );
        let reply = &store.load().unwrap().metadata.unwrap().replies[0];
        assert_eq!(reply.timestamp.to_string(), "2025-11-02T10:20:30.123456Z");
    }
}

#[test]
fn a_journal_that_is_in_the_way_of_a_takeover_is_set_aside() {
    let scratch = tempfile::tempdir().unwrap();
    let store = store(scratch.path());
    fs::create_dir(store.dir()).unwrap();
    fs::write(store.dir().join("session.json"), old_file("task_id", 3)).unwrap();
    fs::write(store.journal().path(), "{\"type\":\"foreign\"}\n").unwrap();
    let writer = store.write("ctx").unwrap();
    let Warning::SetAside { moved_to, .. } = &writer.warnings()[0] else {
        panic!("{:?}", writer.warnings());
    };
    assert_eq!(
        fs::read_to_string(moved_to).unwrap(),
        "{\"type\":\"foreign\"}\n"
    );
    assert_eq!(store.journal().read_all().unwrap().len(), 3);
}

#[test]
fn a_second_original_does_not_overwrite_the_first() {
    let scratch = tempfile::tempdir().unwrap();
    let store = store(scratch.path());
    fs::create_dir(store.dir()).unwrap();
    let old = store.dir().join("session.json");
    fs::write(&old, old_file("task_id", 3)).unwrap();
    drop(store.write("ctx").unwrap());
    fs::write(&old, "another").unwrap();
    drop(store.write("ctx").unwrap());
    let first = fs::read_to_string(store.dir().join("session.json.before-v1")).unwrap();
    assert_eq!(first, old_file("task_id", 3));
    let second = fs::read_to_string(store.dir().join("session.json.before-v1-2")).unwrap();
    assert_eq!(second, "another");
}
