//! The pool of secrets, with real files and real programs.

use std::{
    error::Error,
    fs,
    os::unix::fs::{PermissionsExt, chown, symlink},
    path::PathBuf,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::{FileError, HostEnv, SandboxFile, env, pairs};

/// A configuration with an entry of `env` for every secret `A`, `B`, `C`, in a directory of its own.
struct Project {
    directory: TempDir,
}

impl Project {
    fn new(secrets: &str) -> Self {
        let project = Self {
            directory: TempDir::new().unwrap(),
        };
        project.write(
            "sandbox.yaml",
            &format!("{VARIABLES}secrets: {secrets}\n"),
            0o644,
        );
        project
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: &str, mode: u32) {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    async fn variables(&self, host: &HostEnv) -> Result<String, FileError> {
        let file = SandboxFile::read(&self.path("sandbox.yaml"))?;
        let resolved = file.resolve(host).await?;
        let shown = pairs(&resolved.env).into_iter();
        Ok(Vec::from_iter(shown.map(|(name, value)| format!("{name}={value:?}"))).join(" "))
    }

    /// The message, its cause and its hint, without the directory's name.
    async fn refused(&self, host: &HostEnv) -> (String, String, String) {
        let error = self.variables(host).await.unwrap_err();
        let without = |text: String| {
            let directory = format!("{}/", self.directory.path().display());
            text.replace(&directory, "")
        };
        (
            without(error.to_string()),
            without(error.source().map(ToString::to_string).unwrap_or_default()),
            without(error.hint().unwrap_or_default()),
        )
    }
}

const VARIABLES: &str = "env: {A: !secret? A, B: !secret? B, C: !secret? C}\n";

#[tokio::test]
async fn the_environment_is_asked_first_then_the_file_then_the_command() {
    let project = Project::new(
        "{environment: true, file: pool.yaml, command: [sh, -c, 'echo command-$0', '{name}']}",
    );
    project.write("pool.yaml", "A: file-a\nB: file-b\n", 0o600);
    let shown = project.variables(&env(&[("A", "host-a")])).await.unwrap();
    assert_eq!(shown, r#"A="host-a" B="file-b" C="command-C""#);
}

#[tokio::test]
async fn only_listed_variables_are_secrets() {
    let host = env(&[("A", "host-a"), ("B", "host-b")]);
    for (sources, expected) in [
        ("{environment: [B]}", r#"B="host-b""#),
        ("{environment: false}", ""),
        ("{}", ""),
    ] {
        assert_eq!(
            Project::new(sources).variables(&host).await.unwrap(),
            expected
        );
    }
}

#[tokio::test]
async fn a_missing_secret_is_named_with_where_it_was_looked_for() {
    for (sources, searched) in [
        ("{}", "anywhere, because `secrets` names no source"),
        (
            "{environment: [A, B]}",
            "among the variables that secrets.environment lists (A, B)",
        ),
        (
            "{environment: true, file: pool.yaml, command: ['true', '{name}']}",
            "in the environment or in pool.yaml or with true",
        ),
    ] {
        let project = Project::new(sources);
        project.write("pool.yaml", "A: ''\n", 0o400);
        let text = format!("env:\n  A: !secret A\nsecrets: {sources}\n");
        project.write("sandbox.yaml", &text, 0o644);
        let (message, _, _) = project.refused(&HostEnv::default()).await;
        assert_eq!(
            message,
            format!("sandbox.yaml:2:6: env.A: there is no secret `A` {searched}")
        );
    }
}

#[tokio::test]
async fn a_secrets_file_that_others_can_read_is_refused() {
    let project = Project::new("{file: 'my pool.yaml'}");
    for mode in [0o644, 0o640, 0o660, 0o700, 0o4600] {
        project.write("my pool.yaml", "A: x\n", mode);
        let (message, _, hint) = project.refused(&HostEnv::default()).await;
        assert_eq!(
            message,
            format!(
                "sandbox.yaml:2:17: the mode of my pool.yaml is {mode:04o}, and must be 0600 or 0400"
            )
        );
        assert_eq!(hint, "type `chmod 600 'my pool.yaml'`");
    }
    for mode in [0o600, 0o400] {
        project.write("my pool.yaml", "A: x\n", mode);
        let shown = project.variables(&HostEnv::default()).await.unwrap();
        assert_eq!(shown, r#"A="x""#);
    }
}

#[tokio::test]
async fn a_secrets_file_of_another_user_is_refused() {
    let user = rustix::process::geteuid().as_raw();
    // Root can give a file away; everybody else has one of root's at hand.
    let (project, path, owner) = if user == 0 {
        let project = Project::new("{file: pool.yaml}");
        project.write("pool.yaml", "A: x\n", 0o600);
        chown(project.path("pool.yaml"), Some(4321), None).unwrap();
        (project, "pool.yaml", 4321)
    } else {
        (Project::new("{file: /etc/passwd}"), "/etc/passwd", 0)
    };
    let (message, _, hint) = project.refused(&HostEnv::default()).await;
    assert_eq!(
        message,
        format!(
            "sandbox.yaml:2:17: {path} belongs to user {owner}, and must belong to user {user}"
        )
    );
    assert_eq!(hint, format!("type `sudo chown {user} {path}`"));
}

#[tokio::test]
async fn a_secrets_file_that_is_no_file_is_refused_at_once() {
    let project = Project::new("{file: pool.yaml}");
    let (message, cause, _) = project.refused(&HostEnv::default()).await;
    assert_eq!(
        message,
        "sandbox.yaml:2:17: cannot read the secrets in pool.yaml"
    );
    assert_eq!(cause, "No such file or directory (os error 2)");

    rustix::fs::mknodat(
        rustix::fs::CWD,
        project.path("pool.yaml"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let (_, cause, _) = project.refused(&HostEnv::default()).await;
    assert_eq!(cause, "it is not a regular file");
}

#[tokio::test]
async fn mistakes_in_a_secrets_file_are_named_with_their_place_and_without_values() {
    let project = Project::new("{file: pool.yaml}");
    for (text, expected) in [
        (
            "A: !hunter2\n",
            "pool.yaml:1:4: A has a tag that means nothing here",
        ),
        (
            "A: x\nB: [hunter2]\n",
            "pool.yaml:2:4: B must be a string, a number or a boolean, not a list",
        ),
        (
            "A: x\nA: hunter2\n",
            "pool.yaml:2:1: the key `A` stands here twice",
        ),
        (
            "hunter2\n",
            "pool.yaml:1:1: the secrets file must be a map of names to values, not a string",
        ),
    ] {
        project.write("pool.yaml", text, 0o600);
        let (message, _, hint) = project.refused(&HostEnv::default()).await;
        assert_eq!(message, expected);
        assert!(!hint.is_empty() && !hint.contains("hunter2"));
    }
}

#[tokio::test]
async fn a_secrets_file_is_opened_only_when_a_secret_is_asked_for() {
    let project = Project::new("{file: not-there.yaml}");
    project.write(
        "sandbox.yaml",
        "env: {A: b}\nsecrets: {file: not-there.yaml}\n",
        0o644,
    );
    assert_eq!(
        project.variables(&HostEnv::default()).await.unwrap(),
        r#"A="b""#
    );
}

#[tokio::test]
async fn a_path_below_home_is_found_there() {
    let project = Project::new("{file: ~/pool.yaml}");
    project.write("pool.yaml", "A: x\n", 0o600);
    let home = HostEnv::from_iter([("HOME", project.directory.path())]);
    assert_eq!(project.variables(&home).await.unwrap(), r#"A="x""#);
    let file = SandboxFile::read(&project.path("sandbox.yaml")).unwrap();
    let resolved = file.resolve(&home).await.unwrap();
    assert_eq!(resolved.secrets_file, Some(project.path("pool.yaml")));

    let (message, _, _) = project.refused(&HostEnv::default()).await;
    assert_eq!(
        message,
        "sandbox.yaml:2:17: secrets.file begins with `~/`, and HOME is not set"
    );
}

#[tokio::test]
async fn what_a_command_writes_loses_one_line_break_and_no_more() {
    for (written, expected) in [
        ("value", r#"A="value""#),
        ("value\\n", r#"A="value""#),
        ("value\\r\\n", r#"A="value""#),
        ("value\\n\\n", r#"A="value\n""#),
        (" value ", r#"A=" value ""#),
        ("\\n", ""),
        ("", ""),
    ] {
        let project = Project::new(&format!(
            "{{command: [sh, -c, 'test $0 != A || printf \"{written}\"', '{{name}}']}}"
        ));
        assert_eq!(
            project.variables(&HostEnv::default()).await.unwrap(),
            expected,
            "{written}"
        );
    }
}

#[tokio::test]
async fn a_command_gets_the_environment_and_runs_once_for_each_secret() {
    let project = Project::new("{}");
    project.write(
        "sandbox.yaml",
        "env: {A: !secret A, B: !secret A}\n\
         secrets: {command: [./manager, -c, 'echo asked >> $LOG; echo $0 $MANAGER_SESSION', 'item/{name}']}\n",
        0o644,
    );
    // A path with a slash is looked for beside the configuration.
    symlink("/bin/sh", project.path("manager")).unwrap();
    let log = project.path("log");
    let host = env(&[("MANAGER_SESSION", "open"), ("LOG", log.to_str().unwrap())]);
    let shown = project.variables(&host).await.unwrap();
    assert_eq!(shown, r#"A="item/A open" B="item/A open""#);
    assert_eq!(fs::read_to_string(log).unwrap(), "asked\n");
}

#[tokio::test]
async fn a_command_that_refuses_means_that_there_is_no_such_secret() {
    let command = "{command: [sh, -c, 'echo no item $0 >&2; exit 3', '{name}']}";
    let project = Project::new(command);
    assert_eq!(project.variables(&HostEnv::default()).await.unwrap(), "");
    project.write(
        "sandbox.yaml",
        &format!("env:\n  A: !secret A\nsecrets: {command}\n"),
        0o644,
    );
    let (message, cause, _) = project.refused(&HostEnv::default()).await;
    assert_eq!(
        message,
        "sandbox.yaml:2:6: env.A: the command for the secret `A` failed"
    );
    assert_eq!(cause, "sh ended with exit status: 3: no item A");
}

#[tokio::test]
async fn a_command_that_cannot_work_is_an_error_even_for_an_optional_secret() {
    for (command, cause) in [
        (
            "[no-such-program, '{name}']",
            "cannot start no-such-program",
        ),
        (
            "[sh, -c, 'exec sleep 20', '{name}']",
            "sh did not finish within 1 s",
        ),
    ] {
        let project = Project::new(&format!("{{command: {command}, timeout: 1}}"));
        let begin = Instant::now();
        let (message, found, _) = project.refused(&HostEnv::default()).await;
        assert_eq!(
            message,
            "sandbox.yaml:1:10: env.A: the command for the secret `A` failed"
        );
        assert_eq!(found, cause);
        assert!(begin.elapsed() < Duration::from_secs(15));
    }
    let project = Project::new(r"{command: [printf, '\377%.0s', '{name}']}");
    let (message, _, _) = project.refused(&HostEnv::default()).await;
    assert_eq!(
        message,
        "sandbox.yaml:1:10: env.A: what the command wrote for the secret `A` is not UTF-8"
    );
}

#[tokio::test]
async fn a_command_from_a_file_that_others_can_change_is_not_run() {
    let project = Project::new("{command: [sh, -c, 'touch $RAN', '{name}']}");
    let (path, ran) = (project.path("sandbox.yaml"), project.path("ran"));
    let host = HostEnv::from_iter([("RAN", &ran)]);
    for mode in [0o646, 0o666, 0o777] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let (message, _, hint) = project.refused(&host).await;
        assert_eq!(
            message,
            "sandbox.yaml:2:20: secrets.command is not run, because other users can change sandbox.yaml"
        );
        assert!(hint.contains("chmod o-w sandbox.yaml"), "{hint}");
        assert!(!ran.exists());
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o664)).unwrap();
    project.variables(&host).await.unwrap();
    assert!(ran.exists());
    project.write("sandbox.yaml", "env: {A: b}\n", 0o666);
    assert!(project.variables(&host).await.is_ok());
}

#[test]
fn a_configuration_that_cannot_be_read_is_an_error() {
    let project = Project::new("{}");
    let missing = SandboxFile::read(&project.path("other.yaml")).unwrap_err();
    assert!(
        missing
            .to_string()
            .ends_with("other.yaml: the file cannot be read")
    );
    assert_eq!(missing.position(), None);
    assert!(missing.source().is_some());

    let directory = SandboxFile::read(project.directory.path()).unwrap_err();
    assert_eq!(
        directory.source().unwrap().to_string(),
        "it is not a regular file"
    );

    project.write("large.yaml", &"# large\n".repeat(200_000), 0o644);
    let large = SandboxFile::read(&project.path("large.yaml")).unwrap_err();
    assert_eq!(large.source().unwrap().to_string(), "file too large");
}
