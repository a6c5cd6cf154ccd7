//! The judge of shell lines, against a table of cases, against chance, and against real shells.

#![expect(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod allowed;
mod argv;
mod properties;
mod real;
mod refused;

use std::path::Path;

use cordon_shell::Programs;

/// The list of most tests. `tool` stands for any program that nothing is known of.
fn programs() -> Programs {
    Programs::parse([
        "ls",
        "cat",
        "grep",
        "echo",
        "printf",
        "test",
        "[",
        "cd",
        "true",
        "false",
        ":",
        "exit",
        "wait",
        "git",
        "find",
        "tar",
        "sed",
        "sort",
        "rg",
        "fd",
        "split",
        "wget",
        "wc",
        "head",
        "tool",
        "make!",
        "python3",
        "bash",
        "sh",
        "env",
        "xargs",
        "sudo",
        "awk",
        "perl",
        "node",
        "nohup",
        "timeout",
        "time",
        "nice",
        "ssh",
        "./configure",
        "/usr/bin/wc",
        "/bin/sh",
        "busybox",
        "if",
        "gtar",
        "python3.11",
        "break",
        "continue",
    ])
    .unwrap()
}

fn workspace() -> &'static Path {
    Path::new("/work/project")
}
