//! Real shells judge the judge: what is let through runs no program that is not listed, and does what was written.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use cordon_shell::{Programs, Reason};
use proptest::{
    collection::vec, prelude::*, sample::select, strategy::ValueTree, test_runner::TestRunner,
};
use tempfile::TempDir;

/// Programs that the lines may run.
const LISTED: &[&str] = &[
    "ls", "cat", "tool", "true", "false", "echo", "[", "break", "make!", "git", "find", "printf",
];

/// Programs that they may not.
const UNLISTED: &[&str] = &["rm", "evil", "id", "sh", "eval", "env", "x"];

const SHELLS: &[&[&str]] = &[
    &["/bin/sh"],
    &["dash"],
    &["bash"],
    &["bash", "--posix"],
    &["busybox", "ash"],
];

#[test]
fn what_is_let_through_runs_no_program_that_is_not_listed() {
    let world = World::new();
    for (line, script) in world.let_through(300) {
        for shell in SHELLS {
            let ran = world.run(shell, &script);
            ran.assert_only_listed(&format!("{line:?} as {script} by {shell:?}: {ran:?}"));
        }
    }
}

#[test]
fn what_is_printed_does_what_was_written() {
    let world = World::new();
    for (line, script) in world.let_through(150) {
        // What runs at the same time writes in any order.
        if line.replace("&&", "").contains('&') {
            continue;
        }
        for shell in [&["dash"][..], &["bash", "--posix"]] {
            let (written, printed) = (world.run(shell, &line), world.run(shell, &script));
            assert_eq!(
                written.sorted(),
                printed.sorted(),
                "{line:?} as {script} by {shell:?}"
            );
            assert_eq!(
                written.stdout, printed.stdout,
                "{line:?} as {script} by {shell:?}"
            );
        }
    }
}

/// What runs where lines are taken at their first words; the reason for all this.
#[test]
fn tricks_that_real_shells_fall_for_are_refused() {
    let tricks = [
        ("dash", "ls; evil", Reason::NotListed),
        ("dash", "ls $(evil)", Reason::Substitution),
        ("dash", "echo \"`evil`\"", Reason::Substitution),
        ("dash", "cat <<E\n$(evil)\nE", Reason::HereDocument),
        ("dash", "ls &>/dev/null evil", Reason::Differs),
        ("dash", "trap evil EXIT", Reason::Builtin),
        ("dash", "eval evil", Reason::Builtin),
        ("dash", "$c", Reason::CommandWord),
        ("dash", "ls() { evil; }; ls", Reason::Function),
        ("dash", "ev\\\nil", Reason::NotListed),
        ("bash", "[ -v 'a[$(evil)]' ]", Reason::UnclearArgument),
        ("bash", "p=-v; [ $p 'a[$(evil)]' ]", Reason::UnclearArgument),
        ("bash", "[ \"$e\" \"$f\" ]", Reason::UnclearArgument),
        ("bash", "printf -v 'a[$(evil)]' x", Reason::Argument),
        ("bash", "{evil,x}", Reason::Differs),
        ("bash", "$'\\x65vil'", Reason::Differs),
        ("bash", "cat <(evil)", Reason::ProcessSubstitution),
        ("bash", "((a[$(evil)]))", Reason::Arithmetic),
        ("bash", "[[ 'a[$(evil)]' -eq 0 ]]", Reason::Differs),
        ("bash", "mapfile -C evil -c 1 < in", Reason::Builtin),
    ];
    let world = World::new();
    for (shell, line, reason) in tricks {
        let refusal = world
            .programs
            .judge_line(line, &world.workspace)
            .unwrap_err();
        assert_eq!(refusal.reason, reason, "{line:?}: {refusal}");
        let ran = world.run(&[shell], &format!("echo x > in; {line}"));
        let fell = ran.records.iter().any(|record| record.starts_with("evil"));
        assert!(fell, "{shell} does not fall for {line:?}: {ran:?}");
    }
}

/// An empty workspace, and a search path of programs that write down how they are called.
struct World {
    programs: Programs,
    _root: TempDir,
    workspace: PathBuf,
    bin: PathBuf,
    record: PathBuf,
}

#[derive(Debug)]
struct Ran {
    records: Vec<String>,
    stdout: String,
    stderr: String,
    around: Vec<String>,
}

impl World {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let [workspace, bin] = ["workspace", "bin"].map(|name| root.path().join(name));
        fs::create_dir(&workspace).unwrap();
        fs::create_dir(&bin).unwrap();
        let record = root.path().join("record");
        let text = "#!/bin/sh\nl=${0##*/}\nfor a; do l=\"$l<$a>\"; done\nprintf '%s\\n' \"$l\" >> \"$RECORD\"\n";
        for name in LISTED.iter().chain(UNLISTED) {
            let path = bin.join(name.trim_end_matches('!'));
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self {
            programs: Programs::parse(LISTED).unwrap(),
            _root: root,
            workspace,
            bin,
            record,
        }
    }

    /// Lines that the judge lets through, with what it prints.
    fn let_through(&self, count: usize) -> Vec<(String, String)> {
        let mut runner = TestRunner::deterministic();
        let lines = std::iter::repeat_with(|| line().new_tree(&mut runner).unwrap().current());
        let judged = lines.take(400 * count).filter_map(|line| {
            let script = self.programs.judge_line(&line, &self.workspace).ok()?;
            Some((line, script.to_string()))
        });
        let judged: Vec<_> = judged.take(count).collect();
        assert_eq!(judged.len(), count, "too few lines are let through");
        judged
    }

    #[expect(clippy::disallowed_methods, reason = "tests drive real programs")]
    fn run(&self, shell: &[&str], script: &str) -> Ran {
        let _ = fs::remove_file(&self.record);
        fs::remove_dir_all(&self.workspace).unwrap();
        fs::create_dir(&self.workspace).unwrap();
        let output = Command::new(which(shell[0]))
            .args(&shell[1..])
            .args(["-c", script])
            .current_dir(&self.workspace)
            .env_clear()
            .env("PATH", &self.bin)
            .env("RECORD", &self.record)
            .envs([
                ("a", "rm"),
                ("b", "; evil"),
                ("c", "evil"),
                ("d", "$(evil)"),
                ("e", "-v"),
                ("f", "a[$(evil)]"),
            ])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let records = fs::read_to_string(&self.record).unwrap_or_default();
        let around = fs::read_dir(self.workspace.parent().unwrap()).unwrap();
        Ran {
            records: records.lines().map(str::to_owned).collect(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            around: around
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect(),
        }
    }
}

impl Ran {
    fn assert_only_listed(&self, context: &str) {
        for record in &self.records {
            let name = record.split('<').next().unwrap();
            let listed = LISTED
                .iter()
                .any(|listed| listed.trim_end_matches('!') == name);
            assert!(listed || !UNLISTED.contains(&name), "{context}");
        }
        assert!(!self.stderr.contains("not found"), "{context}");
        assert!(!self.stderr.to_lowercase().contains("syntax"), "{context}");
        assert!(
            self.around
                .iter()
                .all(|name| ["workspace", "bin", "record"].contains(&name.as_str())),
            "{context}"
        );
    }

    fn sorted(&self) -> Vec<&String> {
        let mut records: Vec<_> = self.records.iter().collect();
        records.sort();
        records
    }
}

fn which(program: &str) -> PathBuf {
    if Path::new(program).is_absolute() {
        return program.into();
    }
    let found = ["/bin", "/usr/bin"]
        .iter()
        .map(|directory| Path::new(directory).join(program));
    found.into_iter().find(|path| path.exists()).unwrap()
}

/// Lines that are mostly shell, with something hostile here and there.
fn line() -> impl Strategy<Value = String> {
    let command = vec(word(), 0..4).prop_flat_map(|words| {
        let name = prop_oneof![
            12 => select(&["ls", "cat", "tool", "true", "false", "echo", "make"][..]),
            2 => select(&["git status", "find . -name", "[ a = b ]", "printf %s"][..]),
            1 => select(&["rm", "evil", "eval", "sh -c", "env", "$c", "l''s", "x=1 ls", "exec", "PATH=. ls", "x=$d ls"][..]),
        ];
        name.prop_map(move |name| format!("{name} {}", words.join(" ")))
    });
    let redirected = (command, redirection())
        .prop_map(|(command, redirection)| format!("{command}{redirection}"));
    let compound = redirected.prop_recursive(3, 12, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            (
                two.clone(),
                select(&["; ", " && ", " || ", " | ", " & ", "\n"][..])
            )
                .prop_map(|((a, b), joint)| format!("{a}{joint}{b}")),
            inner.clone().prop_map(|a| format!("({a})")),
            inner.clone().prop_map(|a| format!("{{ {a}; }}")),
            inner.clone().prop_map(|a| format!("! {a}")),
            two.clone()
                .prop_map(|(a, b)| format!("if {a}; then {b}; else {a}; fi")),
            (word(), inner.clone()).prop_map(|(w, a)| format!("for i in 1 {w}; do {a}; done")),
            (word(), two)
                .prop_map(|(w, (a, b))| format!("case {w} in a*|{w}) {a};; *) {b};; esac")),
            inner
                .clone()
                .prop_map(|a| format!("while true; do {a}; break; done")),
            inner.prop_map(|a| format!("until false; do {a}; break; done > out")),
        ]
    });
    (compound, select(&["", "", "", " # '", ";", " &", "\n"][..]))
        .prop_map(|(line, tail)| format!("{line}{tail}"))
}

fn word() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => "[a-z./-]{1,4}",
        2 => "'[ a-z$`(;\"\\\\|*{}~]{0,6}'",
        2 => "\"[ a-z;'|*{}~]{0,6}\"",
        2 => "\\\\[ $`;'\"*|&~{#]",
        3 => select(&["$a", "${b}", "\"$d\"", "\"$e$f\"", "$e", "\"${f}\"", "$?", "*", "?", "[ab]", "é", "#", "=", "{}", "!", "$"][..]).prop_map(str::to_owned),
        1 => select(&["$(evil)", "`evil`", "${a:-`evil`}", "$((1))", "{a,b}", "~", "$'a'", "<(evil)", "$@", "\\\n"][..]).prop_map(str::to_owned),
    ];
    vec(piece, 1..3).prop_map(|pieces| pieces.concat())
}

fn redirection() -> impl Strategy<Value = String> {
    prop_oneof![
        10 => Just(String::new()),
        2 => select(&[" > out", " >> out", " 2>&1", " < /dev/null", " 2>/dev/null", " > 'a b'"][..]).prop_map(str::to_owned),
        1 => select(&[" > ../up", " > /tmp/x", " > $a", " &> x", " > .git/x", " >&x", " <<< x"][..]).prop_map(str::to_owned),
        1 => "[a-z$`' ()]{0,8}".prop_map(|body| format!(" <<'E'\n{body}\nE\n")),
        1 => "[a-z$`' ()]{0,8}".prop_map(|body| format!(" <<E\n{body}\nE\n")),
    ]
}
