//! The example gateway, as its own head tells people to run it.

use std::{
    env, fs,
    io::Write,
    path::Path,
    process::{Command, Output, Stdio},
};

use super::{
    api::Api,
    bench::{CLAUDE_KEY, unique},
};
use crate::setup::{AGENTS, read_all};

#[test]
fn the_gateway_answers_goes_on_and_recovers() {
    let api = Api::start();
    let scratch = tempfile::tempdir().unwrap();
    let repository = scratch.path().join("repository");
    let container = repository.join(".cordon/container");
    fs::create_dir_all(&container).unwrap();
    fs::write(container.join("Dockerfile"), format!("FROM {AGENTS}\n")).unwrap();
    let allowlist = repository.join(".cordon/network-allowlist.yaml");
    fs::write(allowlist, Api::allowlist()).unwrap();
    let conversation = scratch.path().join(unique());
    let ask = |message: &str| ask(&api, &repository, &conversation, message);

    assert_eq!(said(&ask("remember: walrus")), "Hello from the stand-in.\n");
    assert_eq!(said(&ask("scenario: recall")), "I recall: walrus\n");

    // The session has become too long; a fresh one gets the last reply and the message.
    let recovered = ask("scenario: later-too-long\nsay: here I am again");
    assert_eq!(said(&recovered), "here I am again\n");
    let told = String::from_utf8_lossy(&recovered.stderr).into_owned();
    assert!(
        told.contains("prompt_too_long; trying again in a fresh session"),
        "{told}"
    );
    let context = fs::read_to_string(conversation.join("context.json")).unwrap();
    assert!(
        context.contains("Your last reply in it was:\\n\\nI recall: walrus"),
        "{context}"
    );

    // What came before the fresh session is gone; the fresh session itself goes on.
    assert_eq!(said(&ask("scenario: recall")), "I recall: nothing\n");
    let refused = ask("scenario: 403");
    assert!(
        said(&refused).starts_with("My key is refused: "),
        "{refused:?}"
    );

    assert!(api.credentials().iter().all(|key| key == CLAUDE_KEY));
    assert!(!read_all(&conversation).contains(CLAUDE_KEY));
}

fn ask(api: &Api, repository: &Path, conversation: &Path, message: &str) -> Output {
    let target = env::current_exe().unwrap();
    let program = target.ancestors().nth(2).unwrap().join("examples/gateway");
    assert!(
        program.exists(),
        "build it: cargo build -p cordon --examples"
    );
    let mut child = Command::new(program)
        .args([repository, conversation])
        .env("ANTHROPIC_API_KEY", CLAUDE_KEY)
        .env("UPSTREAM_DNS", api.address().to_string())
        .env("UPSTREAM_CA", api.authority())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(message.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
