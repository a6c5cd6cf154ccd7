//! The arrows of ARCHITECTURE.md, checked against the manifests and the sources.

#![expect(
    clippy::unwrap_used,
    reason = "a tree that cannot be read is a failed test"
)]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// The whole architecture: crate, then the workspace crates it may use.
const ARROWS: &[(&str, &[&str])] = &[
    ("cordon-yaml", &[]),
    ("cordon-policy", &["cordon-yaml"]),
    ("cordon-sigv4", &[]),
    ("cordon-secrets", &["cordon-policy"]),
    ("cordon-agents", &[]),
    (
        "cordon-proxy",
        &["cordon-policy", "cordon-secrets", "cordon-sigv4"],
    ),
    ("cordon-door", &[]),
    ("cordon-engine", &[]),
    ("cordon-image", &["cordon-engine"]),
    ("cordon-session", &["cordon-agents", "cordon-secrets"]),
    ("cordon-shell", &[]),
    (
        "cordon",
        &[
            "cordon-agents",
            "cordon-door",
            "cordon-engine",
            "cordon-image",
            "cordon-policy",
            "cordon-proxy",
            "cordon-secrets",
            "cordon-session",
            "cordon-shell",
            "cordon-sigv4",
            "cordon-yaml",
        ],
    ),
    ("cordon-cli", &["cordon"]),
    ("arrows", &[]),
    (
        "bench",
        &[
            "cordon-agents",
            "cordon-policy",
            "cordon-proxy",
            "cordon-secrets",
            "cordon-session",
        ],
    ),
    ("e2e", &[]),
    (
        "fuzz-targets",
        &[
            "cordon-policy",
            "cordon-proxy",
            "cordon-secrets",
            "cordon-sigv4",
        ],
    ),
    ("origin", &[]),
    (
        "vectors",
        &[
            "cordon-agents",
            "cordon-image",
            "cordon-policy",
            "cordon-proxy",
            "cordon-secrets",
            "cordon-session",
            "cordon-sigv4",
        ],
    ),
];

/// Crates that decide and never act: no socket, no process, no clock.
const PURE: &[&str] = &["yaml", "policy", "sigv4", "secrets", "agents", "shell"];

/// What a pure crate may not name.
const ACTS: &[&str] = &[
    "std::net::Tcp",
    "std::net::Udp",
    "std::os::unix::net",
    "std::process::Command",
    "tokio::",
    "SystemTime::now",
    "Instant::now",
];

#[test]
fn crates_depend_only_along_the_arrows() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    let ours: BTreeSet<_> = packages
        .iter()
        .map(|package| package["name"].as_str().unwrap())
        .collect();

    for package in packages {
        let name = package["name"].as_str().unwrap();
        let (_, allowed) = ARROWS
            .iter()
            .find(|(from, _)| *from == name)
            .unwrap_or_else(|| panic!("{name} has no line in the table of arrows"));
        for dependency in package["dependencies"].as_array().unwrap() {
            let to = dependency["name"].as_str().unwrap();
            let shipped = dependency["kind"].is_null();
            assert!(
                !shipped || !ours.contains(to) || allowed.contains(&to),
                "{name} -> {to} is not an allowed arrow; see ARCHITECTURE.md"
            );
        }
    }
}

#[test]
fn pure_crates_open_no_socket_and_spawn_nothing() {
    for name in PURE {
        for file in sources(&root().join("crates").join(name).join("src")) {
            let text = fs::read_to_string(&file).unwrap();
            for word in ACTS {
                assert!(
                    !text.contains(word),
                    "{} names {word}; {name} is a pure crate",
                    file.display()
                );
            }
        }
    }
}

#[test]
fn unsafe_code_stands_in_the_door_only() {
    for package in metadata()["packages"].as_array().unwrap() {
        let manifest = PathBuf::from(package["manifest_path"].as_str().unwrap());
        let text = fs::read_to_string(&manifest).unwrap();
        let inherits = text.contains("[lints]\nworkspace = true");
        assert!(
            inherits || package["name"] == "cordon-door",
            "{} does not inherit the lints that forbid unsafe code",
            manifest.display()
        );
    }
}

#[test]
fn every_test_that_the_documents_name_exists() {
    let tests = all_sources();
    for (document, at_least) in [("SECURITY.md", 30), ("docs/weaknesses.md", 50)] {
        let text = fs::read_to_string(root().join(document)).unwrap();
        let names: BTreeSet<_> = text.lines().flat_map(tests_of_row).collect();
        for name in &names {
            assert!(
                tests.contains(&format!("fn {name}(")),
                "{document}: there is no test `{name}`"
            );
        }
        let count = names.len();
        assert!(count > at_least, "{document} names {count} tests only");
    }
}

/// The names in the cells behind the first, which says what they show.
fn tests_of_row(row: &str) -> impl Iterator<Item = &str> {
    let cells = row.strip_prefix("| ").and_then(|row| row.split_once('|'));
    let (_, tests) = cells.unwrap_or_default();
    tests.split('`').skip(1).step_by(2)
}

#[test]
fn every_mode_says_of_every_promise_which_test_holds_it_or_no() {
    let text = fs::read_to_string(root().join("docs/modes.md")).unwrap();
    let tests = all_sources();
    let is_promise = |line: &&str| {
        let number = line
            .strip_prefix("| ")
            .and_then(|rest| rest.split('.').next());
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let rows: Vec<_> = text.lines().filter(is_promise).collect();
    assert_eq!(rows.len(), 15, "one row for each promise");
    for row in rows {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert_eq!(cells.len(), 5, "{row}");
        assert_eq!(cells[4], "no", "mode off promises nothing: {row}");
        for cell in &cells[1..] {
            if *cell == "no" {
                continue;
            }
            let names: Vec<_> = cell.split('`').skip(1).step_by(2).collect();
            assert!(!names.is_empty(), "neither a test nor no: {row}");
            for name in names {
                assert!(
                    tests.contains(&format!("fn {name}(")),
                    "there is no test `{name}`"
                );
            }
        }
    }
}

/// The text of every source and test.
fn all_sources() -> String {
    ["crates", "tests"]
        .iter()
        .flat_map(|directory| sources_and_tests(&root().join(directory)))
        .map(|file| fs::read_to_string(file).unwrap())
        .collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
        .to_owned()
}

/// What ships: tests may act, whatever crate they judge.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found = sources_and_tests(directory);
    found.retain(|path| {
        let tests = |part: &std::ffi::OsStr| part == "tests.rs" || part == "tests";
        !path.strip_prefix(directory).unwrap().iter().any(tests)
    });
    found
}

fn sources_and_tests(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources_and_tests(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

#[expect(
    clippy::disallowed_methods,
    reason = "cargo is asked what the manifests say"
)]
fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version=1", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}
