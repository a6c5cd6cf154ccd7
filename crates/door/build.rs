//! Compiles `cordon-init` as a static executable, so that the crate can embed it.

#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::expect_used,
    reason = "a build script runs the compiler, and stops the build when that fails"
)]

use std::{
    env, fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::PathBuf,
    process::Command,
};

fn main() {
    println!("cargo::rerun-if-changed=init");
    println!("cargo::rerun-if-changed=build.rs");

    let output = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let program = output.join("cordon-init");
    let target = env::var("TARGET").expect("cargo sets TARGET");
    let status = Command::new(env::var_os("RUSTC").expect("cargo sets RUSTC"))
        .args(["--edition", "2024", "--crate-name", "cordon_init"])
        .args(["--target", &target])
        .args(["-C", "target-feature=+crt-static"])
        .args(["-C", "panic=abort", "-C", "strip=symbols"])
        .args(["-C", "opt-level=z", "-C", "lto=fat"])
        .arg("-o")
        .arg(&program)
        .arg("init/main.rs")
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("compiling cordon-init: rustc ended with {status}"),
        Err(error) => panic!("compiling cordon-init: {error}"),
    }

    let mut tag = DefaultHasher::new();
    fs::read(&program).expect("rustc wrote it").hash(&mut tag);
    println!("cargo::rustc-env=CORDON_INIT_TAG={:016x}", tag.finish());
}
