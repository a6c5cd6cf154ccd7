//! Stand-ins for the APIs of Claude Code, Codex and Gemini CLI, for people to try things with.
//!
//! Takes root, for the ports 443 and 53. Says where it is and which certificate authority to trust, in
//! words that a shell understands, and ends when its input does.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "it starts a program and talks to a person"
)]

use std::{
    io::{self, Read},
    process::Command,
};

use origin::Program;

fn main() -> io::Result<()> {
    let apis = Program::start(&HOSTS, |post| {
        let mut command = Command::new("python3");
        command.arg(STAND_IN).args(["--port", "443"]);
        command.args(["--address", &post.address.to_string()]);
        command.arg("--cert").arg(post.certificate);
        command.arg("--key").arg(post.key);
        command
    });
    println!(
        "export UPSTREAM_DNS={} UPSTREAM_CA={}",
        apis.address(),
        apis.authority().display()
    );
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

const HOSTS: [&str; 3] = [
    "api.anthropic.com",
    "api.openai.com",
    "generativelanguage.googleapis.com",
];

const STAND_IN: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../crates/agents/tests/standin/standin.py"
);
