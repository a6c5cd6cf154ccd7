use std::{fs, os::unix::fs::PermissionsExt};

use cordon_session::{Error, Warning};

use super::*;

#[test]
fn nothing_is_known_of_a_context_that_never_was() {
    let scratch = tempfile::tempdir().unwrap();
    let store = store(scratch.path());
    assert_eq!(store.load().unwrap().metadata, None);
    assert_eq!(store.session_id_for_resume().unwrap(), None);
    assert_eq!(store.last_successful_response().unwrap(), None);
    assert_eq!(store.model().unwrap(), None);
    assert!(
        !scratch.path().join("ctx").exists(),
        "asking creates nothing"
    );
}

#[test]
fn a_reply_is_on_record_with_what_its_result_says() {
    let scratch = tempfile::tempdir().unwrap();
    let store = store(scratch.path());
    record(
        store.write("conv-1").unwrap(),
        "Hi",
        &[init("s-0"), says("Hello."), result("s-1")],
    );

    let metadata = store.load().unwrap().metadata.unwrap();
    assert_eq!(metadata.execution_context_id, "conv-1");
    let [reply] = metadata.replies.as_slice() else {
        panic!("one reply, not {}", metadata.replies.len());
    };
    assert_eq!(reply.session_id, "s-1", "the result names the session");
    assert_eq!((reply.duration_ms, reply.num_turns), (10, 2));
    assert_eq!(reply.usage.extra["service_tier"], "x");
    assert_eq!(reply.request_text.as_deref(), Some("Hi"));
    assert_eq!(reply.response_text.as_deref(), Some("Hello."));
    assert_eq!(reply.agent.as_deref(), Some("claude"));
    assert!(!reply.is_error);
    assert_eq!(
        store.session_id_for_resume().unwrap().as_deref(),
        Some("s-1")
    );
    assert_eq!(
        store.last_successful_response().unwrap().as_deref(),
        Some("Hello.")
    );
}

#[test]
fn the_version_is_the_first_field_and_times_are_utc() {
    let scratch = tempfile::tempdir().unwrap();
    let store = store(scratch.path());
    record(store.write("c").unwrap(), "Hi", &[result("s")]);
    let text = fs::read_to_string(store.dir().join("context.json")).unwrap();
    assert!(text.starts_with("{\n  \"version\": 1,\n"), "{text}");
    let value: Value = serde_json::from_str(&text).unwrap();
    let time = value["replies"][0]["timestamp"].as_str().unwrap();
    assert!(time.ends_with('Z') && time.contains('T'), "{time}");
}

#[test]
fn what_is_written_is_for_this_user_alone() {
    let scratch = tempfile::tempdir().unwrap();
    let store = store(scratch.path());
    record(store.write("c").unwrap(), "Hi", &[result("s")]);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(store.dir()), 0o700);
    for entry in fs::read_dir(store.dir()).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
}

#[test]
fn an_interrupted_reply_can_be_resumed_by_what_the_journal_knows() {
    let scratch = tempfile::tempdir().unwrap();
    let store = store(scratch.path());
    let writer = record(store.write("c").unwrap(), "one", &[result("s-1")]);
    let mut recording = writer.begin_reply(Agent::Claude, Some("two")).unwrap();
    recording.append(&init("s-2")).unwrap();
    drop(recording);

    assert_eq!(
        store.session_id_for_resume().unwrap().as_deref(),
        Some("s-2")
    );
    let replies = store.load().unwrap().metadata.unwrap().replies;
    assert!(replies[1].is_error);
    assert_eq!(replies[1].outcome, None);

    let recording = store
        .write("c")
        .unwrap()
        .begin_reply(Agent::Codex, Some("three"));
    drop(recording.unwrap());
    assert_eq!(
        store.session_id_for_resume().unwrap().as_deref(),
        Some("s-2"),
        "a reply without events does not hide the one before"
    );
}

#[test]
fn progress_is_visible_while_it_runs() {
    let scratch = tempfile::tempdir().unwrap();
    let store = store(scratch.path());
    let mut recording = store
        .write("c")
        .unwrap()
        .begin_reply(Agent::Claude, Some("Hi"))
        .unwrap();
    assert!(store.is_in_use());
    let mut follower = store.journal().follow(0);
    assert_eq!(follower.poll().unwrap(), []);
    recording.append(&says("Working.")).unwrap();
    assert_eq!(follower.poll().unwrap(), [says("Working.")]);
    assert_eq!(store.reply_events(0).unwrap(), [says("Working.")]);
    recording.finish(ReplyUpdate::default()).unwrap();
    assert!(!store.is_in_use());
}

#[test]
fn the_same_request_updates_the_last_reply_and_another_adds_one() {
    let scratch = tempfile::tempdir().unwrap();
    let store = store(scratch.path());
    let update = |text: &str| ReplyUpdate {
        response_text: Some(text.to_owned()),
        ..ReplyUpdate::default()
    };
    store
        .update_or_add_reply("c", Some("p1"), update("a"))
        .unwrap();
    store
        .update_or_add_reply("c", Some("p1"), update("b"))
        .unwrap();
    store
        .update_or_add_reply("c", Some("p2"), update("c"))
        .unwrap();
    store.update_or_add_reply("c", None, update("d")).unwrap();
    store.update_or_add_reply("c", None, update("e")).unwrap();
    let replies = store.load().unwrap().metadata.unwrap().replies;
    let texts: Vec<_> = replies
        .iter()
        .map(|reply| reply.response_text.as_deref().unwrap())
        .collect();
    assert_eq!(texts, ["b", "c", "e"]);
}

#[test]
fn two_runs_with_the_same_words_are_two_replies() {
    let scratch = tempfile::tempdir().unwrap();
    let store = store(scratch.path());
    let writer = record(store.write("c").unwrap(), "continue", &[result("s-1")]);
    record(writer, "continue", &[result("s-2")]);
    assert_eq!(store.load().unwrap().metadata.unwrap().replies.len(), 2);
}

#[test]
fn a_model_is_remembered() {
    let scratch = tempfile::tempdir().unwrap();
    let store = store(scratch.path());
    store.set_model("c", "opus").unwrap();
    assert_eq!(store.model().unwrap().as_deref(), Some("opus"));
    store.write("c").unwrap().set_model(None).unwrap();
    assert_eq!(store.model().unwrap(), None);
}

#[test]
fn a_torn_or_foreign_file_is_set_aside_and_never_overwritten() {
    for bytes in [
        &b"{\"version\": 1, \"execution_con"[..],
        b"",
        b"\xff\xfe",
        b"[]",
        b"{\"hello\": \"world\"}",
        b"{\"version\": 1, \"replies\": 7}",
        b"{\"version\": 0}",
    ] {
        let scratch = tempfile::tempdir().unwrap();
        let store = store(scratch.path());
        record(store.write("c").unwrap(), "one", &[init("s-1")]);
        let context = store.dir().join("context.json");
        fs::write(&context, bytes).unwrap();

        let loaded = store.load().unwrap();
        assert_eq!(loaded.metadata, None);
        assert!(matches!(loaded.warnings[..], [Warning::Unreadable { .. }]));
        assert_eq!(
            fs::read(&context).unwrap(),
            bytes,
            "reading changes nothing"
        );
        assert_eq!(
            store.session_id_for_resume().unwrap().as_deref(),
            Some("s-1"),
            "the journal still knows the session"
        );

        let writer = store.write("c").unwrap();
        let [Warning::SetAside { moved_to, .. }] = writer.warnings() else {
            panic!("{:?}", writer.warnings());
        };
        let name = moved_to.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("context.json.broken-"), "{name}");
        assert_eq!(fs::read(moved_to).unwrap(), bytes);
        record(writer, "two", &[result("s-2")]);
        assert_eq!(store.load().unwrap().metadata.unwrap().replies.len(), 1);
        assert_eq!(store.journal().read_all().unwrap().len(), 2);
    }
}

#[test]
fn a_file_of_a_newer_program_is_left_alone() {
    let scratch = tempfile::tempdir().unwrap();
    let store = store(scratch.path());
    store.set_model("c", "opus").unwrap();
    let context = store.dir().join("context.json");
    let newer = r#"{"version": 2, "anything": true}"#;
    fs::write(&context, newer).unwrap();
    for error in [store.load().unwrap_err(), store.write("c").unwrap_err()] {
        assert!(matches!(error, Error::Newer { found: 2, .. }), "{error}");
    }
    assert_eq!(fs::read_to_string(&context).unwrap(), newer);
}

#[test]
fn a_directory_belongs_to_one_context() {
    let scratch = tempfile::tempdir().unwrap();
    let store = store(scratch.path());
    store.set_model("mine", "opus").unwrap();
    assert!(matches!(
        store.write("yours"),
        Err(Error::OtherContext { .. })
    ));
}
