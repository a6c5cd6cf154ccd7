use std::{process::Stdio, thread, time::Duration};

use cordon_session::Error;

use super::{kill::Child, *};

#[test]
fn a_second_writer_on_the_same_context_gets_a_clear_error() {
    let scratch = tempfile::tempdir().unwrap();
    let store = store(scratch.path());
    let writer = store.write("c").unwrap();
    let error = store.write("c").unwrap_err();
    assert!(matches!(error, Error::InUse { pid: Some(pid), .. } if pid == std::process::id()));
    let text = error.to_string();
    assert!(
        text.ends_with(&format!("is in use by process {}", std::process::id())),
        "{text}"
    );
    drop(writer);
    store.write("c").unwrap();
}

#[test]
fn a_writer_in_another_process_keeps_us_out_until_it_dies() {
    let scratch = tempfile::tempdir().unwrap();
    let store = store(scratch.path());
    let mut child = Child::Sleep
        .command(store.dir())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while !store.is_in_use() {
        thread::sleep(Duration::from_millis(5));
    }
    assert!(matches!(store.write("ctx"), Err(Error::InUse { .. })));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!store.is_in_use());
    store.write("ctx").unwrap();
}

#[test]
fn asking_whether_a_context_is_in_use_never_keeps_a_writer_out() {
    let scratch = tempfile::tempdir().unwrap();
    let store = store(scratch.path());
    drop(store.write("c").unwrap());
    thread::scope(|scope| {
        let asker = scope.spawn(|| (0..20_000).filter(|_| store.is_in_use()).count());
        while !asker.is_finished() {
            drop(store.write("c").unwrap());
        }
    });
}

#[test]
fn contexts_do_not_get_in_each_others_way() {
    let scratch = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        for number in 0..8 {
            let store = SessionStore::new(scratch.path().join(number.to_string()));
            scope.spawn(move || {
                let id = format!("c-{number}");
                let mut writer = store.write(&id).unwrap();
                for _ in 0..5 {
                    writer = record(writer, "Hi", &[init(&id), says("x"), result(&id)]);
                }
                assert_eq!(store.session_id_for_resume().unwrap(), Some(id));
                assert_eq!(store.journal().read_all().unwrap().len(), 5);
            });
        }
    });
}
