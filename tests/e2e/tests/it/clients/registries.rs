//! Package managers, with the registries that this machine itself uses.
//!
//! No registry is named here: a first run may reach nothing and fails, and what it was refused is what
//! the next one may reach. Where the machine has a registry at an address of a private network, the log
//! says that too, and the entry is written accordingly. A machine that reaches no registry fails these tests.

use std::{collections::BTreeMap, env, fs, process::Command};

use crate::setup::{CLIENTS, Ended, Run, Setup};

/// Runs before anything new is refused: a client finds out about hosts one after the other, and about
/// each of them first its name and then its address is refused.
const ROUNDS: usize = 8;

#[test]
fn pip_installs_what_a_refused_run_asked_for() {
    let run = client(Setup::Rootless).sh("set -e; [ -d venv ] || python3 -m venv venv; \
        venv/bin/pip install --quiet --no-cache-dir --retries 0 six markupsafe; \
        venv/bin/python -c 'import six, markupsafe; print(\"installed\", markupsafe.escape(\"<\"))'");
    let ended = allow_what_is_refused(run, "Could not find a version that satisfies");
    assert_eq!(ended.stdout, "installed &lt;\n", "{ended:?}");
}

#[test]
fn npm_installs_what_a_refused_run_asked_for() {
    let run = client(Setup::Docker).sh(
        "npm install --no-save --no-audit --no-fund --fetch-retries 0 is-odd && \
         node -e 'console.log(\"installed\", require(\"is-odd\")(3))'",
    );
    let ended = allow_what_is_refused(run, "403 Blocked by the sandbox's network allowlist");
    assert!(ended.stdout.ends_with("installed true\n"), "{ended:?}");
}

#[test]
fn cargo_fetches_what_a_refused_run_asked_for() {
    let run = client(Setup::Podman).sh("cd project && cargo fetch && \
        cargo tree --offline --depth 1 --prefix none --format '{lib}'");
    fs::create_dir_all(run.path("project/src")).unwrap();
    fs::write(run.path("project/src/lib.rs"), "").unwrap();
    let manifest = "[package]\nname = \"project\"\nversion = \"0.1.0\"\n[dependencies]\nitoa = \"1\"\nfnv = \"1\"\n";
    fs::write(run.path("project/Cargo.toml"), manifest).unwrap();
    let ended = allow_what_is_refused(run, "blocked_by_network_allowlist");
    assert!(
        ended.stdout.contains("itoa") && ended.stdout.contains("fnv"),
        "{ended:?}"
    );
}

/// Runs it with nothing allowed, then with what it was refused, until nothing more is refused. In the
/// first, refused run a person must find `said` and what would allow it.
fn allow_what_is_refused(run: Run, said: &str) -> Ended {
    let mut hosts = BTreeMap::<String, bool>::new();
    let mut round = 0;
    loop {
        round += 1;
        assert!(round <= ROUNDS, "each run asked for more: {hosts:?}");
        fs::write(run.path("allowlist.yaml"), allowlist(&hosts)).unwrap();
        drop(fs::remove_file(run.path("network.jsonl")));
        let ended = run.end();
        let mut news = false;
        for request in run.requests() {
            let host = request["host"].as_str().unwrap_or_default().to_owned();
            news |= match request["denial"].as_str() {
                Some("host_not_listed") => hosts.insert(host, false).is_none(),
                Some("address_refused") => hosts.insert(host, true) == Some(false),
                _ => false,
            };
        }
        if round == 1 {
            refused(&ended, &hosts, said);
        }
        if !news {
            assert_eq!(
                ended.code,
                0,
                "this machine's registries could not be used: {ended:?}\n{}",
                run.network_log()
            );
            return ended;
        }
    }
}

/// A refused run fails, and says why and what to do.
fn refused(ended: &Ended, hosts: &BTreeMap<String, bool>, said: &str) {
    assert_ne!(ended.code, 0, "{ended:?}");
    assert!(!hosts.is_empty(), "nothing was asked for: {ended:?}");
    assert!(
        format!("{}{}", ended.stdout, ended.stderr).contains(said),
        "{ended:?}"
    );
    assert!(
        ended.stderr.contains("refused by the network allowlist"),
        "{ended:?}"
    );
    for host in hosts.keys() {
        assert!(
            ended.stderr.contains(&format!("--allow {host}")),
            "{ended:?}"
        );
    }
}

fn allowlist(hosts: &BTreeMap<String, bool>) -> String {
    let entry = |(host, private): (&String, &bool)| {
        format!("  - {{ host: \"{host}\", private_addresses: {private} }}\n")
    };
    match hosts.is_empty() {
        true => String::new(),
        false => format!("domains:\n{}", hosts.iter().map(entry).collect::<String>()),
    }
}

/// A run whose package managers look where this machine's look.
fn client(setup: Setup) -> Run {
    let run = Run::new(setup).image(CLIENTS);
    let (allowlist, log) = (run.path("allowlist.yaml"), run.path("network.log"));
    let mut run = run
        .flags(["--allowlist".as_ref(), allowlist.as_os_str()])
        .flags(["--network-log".as_ref(), log.as_os_str()]);
    for (name, value) in settings() {
        run = run.env(&name, &value).flags(["--pass-env", &name]);
    }
    if let Some(config) = cargo_config() {
        fs::create_dir_all(run.path(".cargo")).unwrap();
        fs::write(run.path(".cargo/config.toml"), config).unwrap();
    }
    run
}

/// Where this machine's pip and npm look for packages, and what its environment says to cargo.
fn settings() -> BTreeMap<String, String> {
    let mut settings: BTreeMap<_, _> = env::vars()
        .filter(|(name, _)| {
            let ours = ["PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"].contains(&name.as_str());
            ours || ["CARGO_REGISTRIES_", "CARGO_REGISTRY_", "CARGO_SOURCE_"]
                .iter()
                .any(|prefix| name.starts_with(prefix))
        })
        .collect();
    let asked = [
        (
            "PIP_INDEX_URL",
            ["pip", "config", "get", "global.index-url"],
        ),
        ("NPM_CONFIG_REGISTRY", ["npm", "config", "get", "registry"]),
    ];
    for (name, command) in asked {
        let Ok(output) = Command::new(command[0]).args(&command[1..]).output() else {
            continue;
        };
        let value = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        if output.status.success() && value.starts_with("http") {
            settings.entry(name.to_owned()).or_insert(value);
        }
    }
    settings
}

/// What this machine's cargo is told.
fn cargo_config() -> Option<String> {
    let home = env::var_os("CARGO_HOME").map(Into::into);
    let home = home.or_else(|| Some(env::home_dir()?.join(".cargo")))?;
    fs::read_to_string(home.join("config.toml")).ok()
}
