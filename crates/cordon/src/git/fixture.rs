//! Repositories for tests, made and judged by the real program.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

/// A repository with one commit of rules on `main`, and a file that nobody may write.
pub(crate) struct Fixture {
    directory: TempDir,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(init: &[&str]) -> Self {
        let fixture = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(fixture.path()).unwrap();
        fixture.git(&[&["init", "-q", "-b", "main"], init].concat());
        fixture.write(".cordon/sandbox.yaml", "env: { A: one }\n");
        fixture.write(
            ".cordon/network-allowlist.yaml",
            "domains: [one.example.com]\n",
        );
        fixture.write(
            ".cordon/container/Dockerfile",
            "FROM scratch\nCOPY tool /tool\n",
        );
        fixture.write(".cordon/container/tool", "#!/bin/sh\n");
        fixture.write(".cordon/container/deep/er/file", "deep\n");
        fixture.write(".cordon/container/left-out", "no\n");
        fixture.write(".cordon/container/.dockerignore", "left-out\n");
        let tool = fixture.path().join(".cordon/container/tool");
        fs::set_permissions(tool, fs::Permissions::from_mode(0o755)).unwrap();
        fixture.commit("one");
        fixture
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("repository")
    }

    pub(crate) fn git_dir(&self) -> PathBuf {
        self.path().join(".git")
    }

    /// Beside the repository.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn commit(&self, message: &str) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.git(&["rev-parse", "HEAD"])
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        git(&self.path(), arguments)
    }

    /// A program that leaves a trace, for a repository to name wherever git would run it.
    pub(crate) fn evil(&self) -> PathBuf {
        let path = self.beside("evil");
        let trace = self.trace();
        fs::write(
            &path,
            format!("#!/bin/sh\necho \"$0 $*\" >> {}\n", trace.display()),
        )
        .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn trace(&self) -> PathBuf {
        self.beside("trace")
    }

    /// What the program left.
    pub(crate) fn ran(&self) -> String {
        fs::read_to_string(self.trace()).unwrap_or_default()
    }

    /// Names the evil program in every key that can, and puts it in place of every hook.
    pub(crate) fn poison(&self) {
        let evil = self.evil().display().to_string();
        let included = self.beside("included");
        fs::write(
            &included,
            format!("[core]\n\tfsmonitor = {evil}\n\tpager = {evil}\n"),
        )
        .unwrap();
        let mut config = fs::read_to_string(self.git_dir().join("config")).unwrap();
        config += &format!("[include]\n\tpath = {}\n", included.display());
        for key in KEYS {
            let (section, name) = key.rsplit_once('.').unwrap();
            let head = match section.split_once('.') {
                Some((section, part)) => format!("[{section} \"{part}\"]"),
                None => format!("[{section}]"),
            };
            let value = if name == "path" {
                included.display().to_string()
            } else {
                evil.clone()
            };
            config += &format!("{head}\n\t{name} = {value}\n");
        }
        fs::write(self.git_dir().join("config"), config).unwrap();
        fs::create_dir_all(self.git_dir().join("hooks")).unwrap();
        for hook in HOOKS {
            fs::copy(&evil, self.git_dir().join("hooks").join(hook)).unwrap();
        }
        fs::write(
            self.git_dir().join("info/attributes"),
            "* filter=evil diff=evil merge=evil\n",
        )
        .unwrap();
    }
}

pub(crate) fn git(directory: &Path, arguments: &[&str]) -> String {
    let (success, text) = ask_git(directory, arguments);
    assert!(success, "git {arguments:?}: {text}");
    text
}

/// Whether it went well, and all it said.
#[expect(clippy::disallowed_methods, reason = "tests drive real programs")]
pub(crate) fn ask_git(directory: &Path, arguments: &[&str]) -> (bool, String) {
    let output = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@example.com"])
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&text).trim().to_owned(),
    )
}

/// Everything in a repository's configuration that git may take for a program, or for another file of settings.
const KEYS: &[&str] = &[
    "alias.cat-file",
    "alias.upload-pack",
    "core.alternateRefsCommand",
    "core.askPass",
    "core.editor",
    "core.fsmonitor",
    "core.gitProxy",
    "core.pager",
    "core.sshCommand",
    "credential.helper",
    "diff.evil.command",
    "diff.evil.textconv",
    "diff.external",
    "filter.evil.clean",
    "filter.evil.process",
    "filter.evil.smudge",
    "gpg.program",
    "gpg.ssh.program",
    "includeIf.gitdir:/.path",
    "interactive.diffFilter",
    "merge.evil.driver",
    "pager.cat-file",
    "receive.procReceiveRefs",
    "remote.origin.receivepack",
    "remote.origin.uploadpack",
    "remote.origin.vcs",
    "sequence.editor",
    "ssh.variant",
    "uploadpack.packObjectsHook",
];

const HOOKS: &[&str] = &[
    "post-checkout",
    "post-index-change",
    "pre-receive",
    "proc-receive",
    "post-update",
    "reference-transaction",
    "fsmonitor-watchman",
    "post-merge",
    "pre-push",
    "query-watchman",
];
