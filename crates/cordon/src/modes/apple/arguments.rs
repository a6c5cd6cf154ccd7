//! The arguments of Apple's `container`, as its version 1.2 takes them.
//!
//! Its parsers split values at separators without any way to quote them, so whatever would be split is
//! refused here.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt as _,
    path::{Component, Path, PathBuf},
};

use cordon_engine::Tmpfs;

use super::AppleError;
use crate::{
    Mount, Profile, ResourceLimits, SandboxError,
    leftovers::OWNER,
    modes::{AppleNetwork, ExecCommand},
};

/// A container that keeps a session's machine alive for as long as its standard input is open.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub(super) name: &'a str,
    pub(super) owner: &'a str,
    pub(super) image: &'a str,
    pub(super) mounts: &'a [Mount],
    pub(super) workdir: &'a str,
    pub(super) limits: &'a ResourceLimits,
    pub(super) profile: Profile,
    /// Who everything runs as; the image's user if `None`.
    pub(super) user: Option<User>,
    pub(super) network: AppleNetwork,
    /// What it prints once it is up.
    pub(super) marker: &'a str,
}

/// Somebody by number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct User {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// A command in a session's machine.
#[derive(Debug)]
pub(super) struct Exec<'a> {
    pub(super) container: &'a str,
    pub(super) workdir: &'a str,
    pub(super) env: &'a BTreeMap<String, String>,
    pub(super) input: Input,
    pub(super) command: &'a ExecCommand,
    /// What is written to standard error before the command begins.
    pub(super) marker: &'a str,
}

/// Whether a command reads something.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Input {
    Closed,
    Open,
}

impl Run<'_> {
    pub(super) fn arguments(&self) -> Result<Vec<OsString>, AppleError> {
        let mut arguments = Arguments::of("run");
        arguments.flags(&["--interactive", "--rm", "--init"]);
        arguments.pair("--progress", "none");
        arguments.pair("--name", self.name);
        arguments.pair("--label", &format!("{OWNER}={}", self.owner));
        match self.network {
            AppleNetwork::None => {
                arguments.pair("--network", "none");
                arguments.flags(&["--no-dns"]);
            }
            AppleNetwork::Unrestricted => {}
        }
        arguments.pair("--cap-drop", "ALL");
        for capability in self.profile.capabilities() {
            arguments.pair("--cap-add", &capability);
        }
        if self.profile.read_only() {
            arguments.flags(&["--read-only"]);
        }
        for tmpfs in self.profile.tmpfs() {
            arguments.tmpfs(&tmpfs);
        }
        if let Some(User { uid, gid }) = self.user {
            arguments.pair("--user", &format!("{uid}:{gid}"));
        }
        if let (Some(pids), true) = (self.limits.pids, counts(self.user)) {
            let count = pids.count();
            arguments.pair("--ulimit", &format!("nproc={count}:{count}"));
        }
        if let Some(cpus) = self.limits.cpus {
            arguments.pair("--cpus", &whole(cpus.cores()).to_string());
        }
        if let Some(memory) = self.limits.memory {
            let mebibytes = memory.bytes() >> 20;
            if mebibytes < LEAST_MEMORY {
                return Err(AppleError::LittleMemory {
                    least: LEAST_MEMORY,
                });
            }
            arguments.pair("--memory", &format!("{mebibytes}M"));
        }
        for mount in self.mounts {
            arguments.mount(mount)?;
        }
        arguments.pair("--workdir", self.workdir);
        arguments.pair("--entrypoint", SHELL);
        if self.image.is_empty() || self.image.starts_with('-') {
            return Err(AppleError::ImageName {
                image: self.image.to_owned(),
            });
        }
        arguments.flags(&[self.image, "-c", KEEP, self.marker]);
        Ok(arguments.0)
    }
}

impl Exec<'_> {
    pub(super) fn arguments(&self) -> Vec<OsString> {
        let mut arguments = Arguments::of("exec");
        if self.input == Input::Open {
            arguments.flags(&["--interactive"]);
        }
        arguments.pair("--workdir", self.workdir);
        for (name, value) in self.env {
            if is_of_everybody(name) {
                arguments.pair("--env", &format!("{name}={value}"));
            } else {
                arguments.pair("--env", name);
            }
        }
        // What an image sets stays in the environment beside what a command sets, and programs disagree
        // about which counts. A shell in between leaves the later one alone.
        arguments.flags(&[self.container, SHELL, "-c", BEGIN, self.marker]);
        match self.command {
            ExecCommand::Argv(argv) => arguments.0.extend(argv.iter().cloned()),
            // A login shell knows the image's paths.
            ExecCommand::Shell(line) => arguments.flags(&[SHELL, "-lc", line]),
        }
        arguments.0
    }

    /// The variables that the program itself must have, to hand them on by name.
    pub(super) fn inherited(&self) -> impl Iterator<Item = (&String, &String)> {
        self.env.iter().filter(|(name, _)| !is_of_everybody(name))
    }
}

/// The variables of a command: later ones count, and none may turn the program itself.
pub(super) fn environment<'a>(
    profile: Profile,
    variables: impl IntoIterator<Item = &'a (String, String)>,
) -> Result<BTreeMap<String, String>, AppleError> {
    let mut merged = BTreeMap::from([("IS_SANDBOX".to_owned(), "1".to_owned())]);
    if let Some(home) = profile.home() {
        merged.insert("HOME".to_owned(), home.to_owned());
    }
    for (name, value) in variables {
        let invalid = name.is_empty()
            || name.starts_with('-')
            || name.contains(['=', '\0'])
            || value.contains('\0');
        if invalid || is_of_the_program(name) {
            return Err(AppleError::Variable { name: name.clone() });
        }
        merged.insert(name.clone(), value.clone());
    }
    Ok(merged)
}

/// Where in the container a directory of the workspace is.
pub(super) fn inside(workspace: &Path, cwd: &Path) -> Result<String, SandboxError> {
    let outside = || SandboxError::Cwd {
        path: cwd.to_owned(),
    };
    let relative = if cwd.is_absolute() {
        let below = cwd.strip_prefix(workspace);
        below
            .or_else(|_| cwd.strip_prefix(WORKSPACE))
            .map_err(|_| outside())?
    } else {
        cwd
    };
    let mut path = PathBuf::from(WORKSPACE);
    for component in relative.components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(outside());
            }
        }
    }
    let path = path.into_os_string().into_string();
    let plain = path.ok().filter(|path| !path.contains('\0'));
    plain.ok_or_else(outside)
}

/// Which of the limits a machine cannot be held to.
pub(super) fn unheld(limits: &ResourceLimits, user: Option<User>) -> Vec<&'static str> {
    let mut unheld = Vec::new();
    if limits.pids.is_some() && !counts(user) {
        unheld.push("pids");
    }
    if limits.cpus.is_some_and(|cpus| cpus.cores() < 1.0) {
        unheld.push("cpus below 1");
    }
    unheld
}

/// Whether the kernel counts that user's processes: root's it does not.
fn counts(user: Option<User>) -> bool {
    user.is_some_and(|user| user.uid != 0)
}

/// A machine has whole cores; rather less than allowed, but one.
fn whole(cores: f64) -> u32 {
    let mut whole = 1;
    while f64::from(whole + 1) <= cores {
        whole += 1;
    }
    whole
}

/// Variables that the program needs as they are. Their values are written out, because no secret is ever
/// in one of them.
fn is_of_everybody(name: &str) -> bool {
    ["PATH", "HOME", "USER", "LOGNAME", "TMPDIR"].contains(&name)
}

/// Variables by which the program, its loader or its libraries would be turned.
fn is_of_the_program(name: &str) -> bool {
    const PREFIXES: &[&str] = &[
        "CONTAINER_",
        "DYLD_",
        "LD_",
        "MALLOC",
        "OBJC_",
        "OS_ACTIVITY_",
        "SWIFT_",
        "XPC_",
        "__",
        "CFNETWORK_",
        "CFFIXED_",
        "NSUNBUFFERED",
        "NSZOMBIE",
    ];
    let upper = name.to_ascii_uppercase();
    upper == "SSH_AUTH_SOCK" || PREFIXES.iter().any(|prefix| upper.starts_with(prefix))
}

struct Arguments(Vec<OsString>);

impl Arguments {
    fn of(verb: &str) -> Self {
        Self(vec![verb.into()])
    }

    fn flags(&mut self, flags: &[&str]) {
        self.0.extend(flags.iter().map(Into::into));
    }

    fn pair(&mut self, flag: &str, value: &str) {
        self.flags(&[flag, value]);
    }

    /// The program has no word for most of the options.
    fn tmpfs(&mut self, tmpfs: &Tmpfs) {
        let mut value = format!("type=tmpfs,target={}", tmpfs.target);
        for option in tmpfs.options.split(',') {
            if option.starts_with("size=") || option.starts_with("mode=") {
                value.push(',');
                value.push_str(option);
            }
        }
        self.pair("--mount", &value);
    }

    fn mount(&mut self, mount: &Mount) -> Result<(), AppleError> {
        let holds = |separators: &[u8]| {
            let bytes = |text: &OsStr| text.as_bytes().iter().any(|byte| separators.contains(byte));
            bytes(mount.host_path.as_os_str()) || bytes(mount.container_path.as_ref())
        };
        let mut value = OsString::new();
        if !holds(b":") {
            value.push(&mount.host_path);
            value.push(":");
            value.push(&mount.container_path);
            if mount.read_only {
                value.push(":ro");
            }
            self.flags(&["--volume"]);
        } else if !holds(b",=") {
            value.push("type=bind,source=");
            value.push(&mount.host_path);
            value.push(",target=");
            value.push(&mount.container_path);
            if mount.read_only {
                value.push(",readonly");
            }
            self.flags(&["--mount"]);
        } else {
            return Err(AppleError::MountPath {
                path: mount.host_path.clone(),
            });
        }
        self.0.push(value);
        Ok(())
    }
}

/// Where the workspace is in a container.
pub(super) const WORKSPACE: &str = "/workspace";

const SHELL: &str = "/bin/sh";

/// Says that the machine is up, and lives until standard input ends: with the client, and with us.
const KEEP: &str = r#"printf '%s\n' "$0"; read -r _"#;

/// Says that the command begins, and becomes it.
const BEGIN: &str = r#"printf '%s\n' "$0" >&2; exec "$@""#;

/// The program refuses to start a machine with less, in MiB.
const LEAST_MEMORY: u64 = 200;

#[cfg(test)]
mod tests;
