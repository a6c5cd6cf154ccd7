use std::{
    fs::{self, Permissions},
    os::unix::{
        fs::{PermissionsExt, symlink},
        net::UnixListener,
    },
};

use proptest::prelude::*;

use super::*;

fn with(files: &[(&str, Entry)]) -> Recipe {
    let mut recipe = Recipe::new("FROM x\n");
    for (path, entry) in files {
        recipe.insert(path.parse().unwrap(), entry.clone()).unwrap();
    }
    recipe
}

#[test]
fn a_name_and_its_content_cannot_be_taken_for_each_other() {
    let one = with(&[("ab", Entry::file("c"))]);
    let other = with(&[("a", Entry::file("bc"))]);
    assert_ne!(one.digest(), other.digest());
}

#[test]
fn the_digest_covers_kind_name_mode_and_content() {
    let base = with(&[("a", Entry::file("x"))]).digest();
    for other in [
        with(&[("b", Entry::file("x"))]),
        with(&[("a", Entry::file("y"))]),
        with(&[("a", Entry::program("x"))]),
        with(&[("a", Entry::Link { target: "x".into() })]),
        with(&[("a", Entry::file("x")), ("b", Entry::file(""))]),
        with(&[]),
    ] {
        assert_ne!(other.digest(), base, "{other:?}");
    }
}

#[test]
fn the_order_of_files_does_not_matter() {
    let (a, b) = (("a", Entry::file("1")), ("b", Entry::file("2")));
    assert_eq!(
        with(&[a.clone(), b.clone()]).digest(),
        with(&[b, a]).digest()
    );
}

#[test]
fn conditions_are_part_of_the_digest_and_cannot_run_into_the_dockerfile() {
    let digests = [
        Recipe::new("ab").digest(),
        Recipe::new("ab").under("c").digest(),
        Recipe::new("a").under("bc").digest(),
        Recipe::new("").under("abc").digest(),
    ];
    let different: std::collections::HashSet<_> = digests.iter().collect();
    assert_eq!(different.len(), digests.len());
    assert_eq!(Recipe::new("ab").under("").digest(), digests[0]);
}

#[test]
fn the_digest_is_the_same_in_every_version() {
    // Changing it orphans every image that is out there; do so on purpose only.
    let recipe = with(&[("tools/run", Entry::program("#!/bin/sh\n"))]);
    assert_eq!(
        recipe.digest().to_string(),
        "712ee4a5bdbc87ac5b5aead726ed95f74f4698ea255a3280ca0f1247d1de2611"
    );
}

#[test]
fn a_path_is_a_file_or_a_directory() {
    let mut recipe = with(&[("a/b", Entry::file("")), ("c", Entry::file(""))]);
    for path in ["a", "c/d", "a/b/c"] {
        let refused = recipe.insert(path.parse().unwrap(), Entry::file(""));
        assert!(matches!(refused, Err(Error::Conflict { .. })), "{path}");
    }
    for path in ["a/c", "a.b", "cd"] {
        recipe
            .insert(path.parse().unwrap(), Entry::file(""))
            .unwrap();
    }
}

#[test]
fn a_directory_is_read_with_its_modes_links_and_sub_directories() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir_all(at("tools/deep")).unwrap();
    fs::create_dir(at("empty")).unwrap();
    fs::write(at("Dockerfile"), "FROM x\n").unwrap();
    fs::write(at("tools/deep/run"), "go").unwrap();
    fs::set_permissions(at("tools/deep/run"), Permissions::from_mode(0o750)).unwrap();
    symlink("deep/run", at("tools/link")).unwrap();
    fs::write(at("left-out"), "x").unwrap();
    fs::write(at(".dockerignore"), "left-out\n").unwrap();

    let recipe = Recipe::read(&at("Dockerfile"), directory.path()).unwrap();
    let names: Vec<_> = recipe.entries().keys().map(ContextPath::as_str).collect();
    assert_eq!(
        names,
        [
            ".dockerignore",
            "Dockerfile",
            "tools/deep/run",
            "tools/link"
        ]
    );
    let entry = |name: &str| &recipe.entries()[&name.parse::<ContextPath>().unwrap()];
    assert_eq!(
        *entry("tools/deep/run"),
        Entry::File {
            content: "go".into(),
            mode: 0o750
        }
    );
    assert_eq!(
        *entry("tools/link"),
        Entry::Link {
            target: "deep/run".into()
        }
    );
}

#[test]
fn what_is_no_file_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("Dockerfile"), "FROM x\n").unwrap();
    let _socket = UnixListener::bind(directory.path().join("socket")).unwrap();
    let error = Recipe::read(&directory.path().join("Dockerfile"), directory.path()).unwrap_err();
    assert!(error.to_string().contains("/socket is neither"), "{error}");
}

#[test]
fn a_context_that_is_too_large_is_refused_before_it_is_read() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("Dockerfile"), "FROM x\n").unwrap();
    let large = fs::File::create(directory.path().join("large")).unwrap();
    large.set_len(Recipe::MAX_BYTES + 1).unwrap();
    let error = Recipe::read(&directory.path().join("Dockerfile"), directory.path()).unwrap_err();
    assert!(matches!(error, Error::TooMuch { .. }), "{error}");
    assert!(error.hint().unwrap().contains(".dockerignore"));
}

#[test]
fn a_missing_dockerfile_is_named() {
    let error = Recipe::read("/nowhere/Dockerfile".as_ref(), "/nowhere".as_ref()).unwrap_err();
    assert_eq!(error.to_string(), "cannot read /nowhere/Dockerfile");
}

proptest! {
    #[test]
    fn different_recipes_have_different_digests(
        one in recipes(),
        other in recipes(),
    ) {
        prop_assert_eq!(one == other, one.digest() == other.digest());
    }
}

/// Few letters, so that concatenations that look alike are common.
fn recipes() -> impl Strategy<Value = Recipe> {
    let entry = prop_oneof![
        "[ab]{0,2}".prop_map(Entry::file),
        "[ab]{0,2}".prop_map(Entry::program),
        "[ab]{1,2}".prop_map(|target| Entry::Link {
            target: target.into()
        }),
    ];
    let files = prop::collection::btree_map("[ab]{1,2}", entry, 0..3);
    ("[ab]{0,2}", files).prop_map(|(dockerfile, files)| {
        let mut recipe = Recipe::new(dockerfile);
        for (path, entry) in files {
            recipe.insert(path.parse().unwrap(), entry).unwrap();
        }
        recipe
    })
}
