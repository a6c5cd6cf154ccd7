use super::*;

/// Runs a file of this name and text; returns what was printed and whether all went well.
fn outcome(name: &str, text: &str) -> (String, bool) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(name);
    fs::write(&file, text).unwrap();
    let mut out = Vec::new();
    let passed = run(&[file], &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    let out = out.replace(&format!("{}/", directory.path().display()), "");
    (out, passed)
}

fn glob(fields: &str) -> String {
    format!(r#"[{{"id": "g-1", "kind": "path", "pattern": "/a*", "value": "/ab", {fields}}}]"#)
}

#[test]
fn a_case_that_holds_passes() {
    let (out, passed) = outcome(
        "glob.json",
        &glob(r#""expect": true, "note": "n", "source": "s""#),
    );
    assert_eq!((out.as_str(), passed), ("1 passed, 0 failed\n", true));
}

#[test]
fn a_case_that_does_not_hold_fails_with_its_id() {
    let (out, passed) = outcome("glob.json", &glob(r#""expect": false"#));
    let expected = "failed g-1: \n  expected false\n  got      true\n0 passed, 1 failed\n";
    assert_eq!((out.as_str(), passed), (expected, false));
}

#[test]
fn the_safer_value_wins() {
    let (_, passed) = outcome(
        "glob.json",
        &glob(r#""expect": false, "safer_expect": true"#),
    );
    assert!(passed);
    let (_, passed) = outcome(
        "glob.json",
        &glob(r#""expect": true, "safer_expect": false"#),
    );
    assert!(!passed);
}

#[test]
fn a_difference_is_skipped_with_its_reason() {
    let case = r#"[{"id": "y-1", "yaml": {"utf8": "extra: 1"}, "expect": {"domains": [], "url_patterns": []}}]"#;
    let (out, passed) = outcome("allowlist_yaml.json", case);
    assert!(
        out.starts_with("skipped y-1: the schema is strict"),
        "{out}"
    );
    assert!(out.ends_with("\n0 passed, 0 failed, 1 skipped\n"), "{out}");
    assert!(passed);
}

#[test]
fn what_is_not_known_fails() {
    for (name, text, why) in [
        (
            "other.json",
            glob(r#""expect": true"#),
            "failed other.json: no kind of case has this file name",
        ),
        (
            "glob.json",
            glob(r#""expect": true, "flag": 1"#),
            "failed g-1: the field `flag` is not known",
        ),
        (
            "glob.json",
            glob(r#""expected": true"#),
            "failed g-1: the field `expect` is missing",
        ),
        (
            "glob.json",
            "[]".to_owned(),
            "failed glob.json: the file is not a list of cases",
        ),
        (
            "glob.json",
            "{}".to_owned(),
            "failed glob.json: the file is not a list of cases",
        ),
        (
            "glob.json",
            "[1]".to_owned(),
            "failed glob: the field `case` has a shape that is not known",
        ),
        (
            "glob.json",
            "[{".to_owned(),
            "failed glob.json: EOF while parsing",
        ),
    ] {
        let (out, passed) = outcome(name, &text);
        assert!(out.starts_with(why), "{out}");
        assert!(out.ends_with("\n0 passed, 1 failed\n") && !passed, "{out}");
    }
    assert!(!run(&[PathBuf::from("/missing/glob.json")], &mut Vec::new()).unwrap());
    assert!(!run(&[], &mut Vec::new()).unwrap());
}

#[test]
fn every_kind_has_samples_that_pass() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    for name in Kind::names() {
        let mut out = Vec::new();
        let passed = run(&[samples.join(name).with_extension("json")], &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(passed && !out.contains("skipped"), "{name}: {out}");
    }
}

#[test]
fn bytes_have_three_spellings() {
    let read = |text: &str| case::bytes(&serde_json::from_str(text).unwrap());
    assert_eq!(read(r#"{"utf8": "aé"}"#), Some("aé".into()));
    assert_eq!(read(r#"{"hex": "00fF"}"#), Some(vec![0, 255]));
    assert_eq!(read(r#"{"fill": "x", "len": 3}"#), Some(b"xxx".to_vec()));
    for other in [
        r#"{"hex": "0"}"#,
        r#"{"hex": "0g"}"#,
        r#"{"utf8": "a", "hex": "00"}"#,
        r#""a""#,
        "{}",
    ] {
        assert_eq!(read(other), None, "{other}");
    }
}

#[test]
fn every_difference_names_a_known_file_and_a_reason() {
    let differences = Differences::read().unwrap();
    for (file, reason) in differences.all() {
        assert!(Kind::names().any(|name| file.matches(name)), "{file:?}");
        assert!(reason.len() > 20, "{reason}");
    }
}
