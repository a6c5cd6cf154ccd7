use std::{fs, io::Write};

use cordon_session::NetworkLog;

#[test]
fn whole_lines_come_once_and_half_lines_wait() {
    let scratch = tempfile::tempdir().unwrap();
    let log = NetworkLog::new(scratch.path().join("network-sandbox.log"));
    assert!(!log.exists());
    assert_eq!(log.read_raw().unwrap(), "");
    fs::write(log.path(), "ALLOW a\nBLOCK").unwrap();
    let first = log.tail(0).unwrap();
    assert_eq!((first.items, first.offset), (vec!["ALLOW a".to_owned()], 8));
    let mut file = fs::File::options().append(true).open(log.path()).unwrap();
    file.write_all(b" b\n").unwrap();
    let second = log.tail(8).unwrap();
    assert_eq!(
        (second.items, second.offset),
        (vec!["BLOCK b".to_owned()], 16)
    );
    assert_eq!(log.read_raw().unwrap(), "ALLOW a\nBLOCK b\n");
}
