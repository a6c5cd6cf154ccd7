//! What docs/configuration.md shows is what is read.

use cordon_policy::Allowlist;

use super::{
    super::schema::{KEYS, LIMIT_KEYS, MASKED_KEYS, NETWORK_KEYS, SIGNING_KEYS, SOURCE_KEYS},
    GITHUB, HostEnv, KEY_ID, SECRET_KEY, SandboxFile, parse,
};

const PAGE: &str = include_str!("../../../../../docs/configuration.md");

/// The YAML of the page, in order.
fn examples() -> Vec<&'static str> {
    let blocks = PAGE.split("```yaml\n").skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap())
        .collect()
}

#[tokio::test]
async fn the_documented_files_can_be_used() {
    let [sandbox, allowlist] = examples()[..] else {
        panic!("{}", examples().len())
    };
    Allowlist::from_yaml(allowlist).unwrap();

    // Nobody's home directory and password manager are asked.
    let (settings, _) = sandbox.split_once("\nsecrets:").unwrap();
    parse(sandbox);
    let host = HostEnv::from_iter([
        ("LANG", "C"),
        ("NPM_TOKEN", "npm_value-of-the-token"),
        ("GH_TOKEN", GITHUB),
        ("AWS_ACCESS_KEY_ID", KEY_ID),
        ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
    ]);
    let resolved = parse(settings).resolve(&host).await.unwrap();
    assert_eq!(resolved.prepare().unwrap().env.len(), 6);
}

#[test]
fn every_key_is_documented() {
    let keys = [
        KEYS,
        MASKED_KEYS,
        SIGNING_KEYS,
        NETWORK_KEYS,
        LIMIT_KEYS,
        SOURCE_KEYS,
    ];
    for key in keys.concat() {
        let is_shown = |line: &str| line.trim_start().starts_with(&format!("{key}:"));
        assert!(examples()[0].lines().any(is_shown), "{key}");
    }
}

#[test]
fn the_documented_message_is_the_real_one() {
    let text = "\n\n\n\n\n\nmasked_secrets:\n  GH_TOKEN:\n    scope: [a.test]\n";
    let error = SandboxFile::parse(text, ".cordon/sandbox.yaml").unwrap_err();
    assert!(PAGE.contains(&format!(
        "error: {error}\nhint: {}\n",
        error.hint().unwrap()
    )));
}
