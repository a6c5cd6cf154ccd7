use std::fs;

use cordon_secrets::{Redactor, SecretReplacements};

use super::*;

fn redacting(dir: &Path, secrets: &[&str]) -> SessionStore {
    let redactor = Redactor::new(&SecretReplacements::default());
    store(dir).with_redactor(redactor.and(secrets.iter().copied()))
}

#[test]
fn a_secret_reaches_no_file() {
    let scratch = tempfile::tempdir().unwrap();
    let secrets = [
        "hunter2-hunter2",
        "-----BEGIN KEY-----\nabc\"def\n-----END KEY-----",
    ];
    let store = redacting(scratch.path(), &secrets);
    let spoken = format!("I found {} and {}.", secrets[0], secrets[1]);
    let mut writer = record(
        store.write("c").unwrap(),
        &format!("Use {}", secrets[0]),
        &[init("hunter2-hunter2"), says(&spoken), result("s")],
    );
    writer.set_model(Some("hunter2-hunter2")).unwrap();
    drop(writer);
    for entry in fs::read_dir(store.dir()).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        for piece in ["hunter2", "BEGIN KEY", "abc"] {
            assert!(!text.contains(piece), "{piece} in {}", path.display());
        }
    }
    let events = store.reply_events(0).unwrap();
    assert_eq!(
        events[1].spoken().as_deref(),
        Some("I found [redacted] and [redacted].")
    );
    assert_eq!(store.load().unwrap().warnings, []);
}

#[test]
fn a_secret_that_looks_like_json_does_not_break_the_files() {
    let scratch = tempfile::tempdir().unwrap();
    let secrets = ["null", "true", "1234", "\"result\""];
    let store = redacting(scratch.path(), &secrets);
    let odd = event(
        json!({"type": "assistant", "seen": 1234, "none": null, "message": {"content": [
            {"type": "text", "text": "null true 1234"}
        ]}}),
    );
    record(store.write("c").unwrap(), "null", &[odd, result("s")]);
    let metadata = store.load().unwrap().metadata.unwrap();
    assert_eq!(
        metadata.replies[0].request_text.as_deref(),
        Some("[redacted]")
    );
    let events = store.reply_events(0).unwrap();
    assert_eq!(events.len(), 2);
    assert_eq!(
        events[0].spoken().as_deref(),
        Some("[redacted] [redacted] [redacted]")
    );
    assert!(!events[0].raw().contains("1234"));
}

#[test]
fn a_redacted_request_is_still_the_same_request() {
    let scratch = tempfile::tempdir().unwrap();
    let store = redacting(scratch.path(), &["hunter2-hunter2"]);
    for _ in 0..2 {
        store
            .update_or_add_reply("c", Some("Use hunter2-hunter2"), ReplyUpdate::default())
            .unwrap();
    }
    assert_eq!(store.load().unwrap().metadata.unwrap().replies.len(), 1);
}
