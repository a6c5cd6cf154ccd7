//! Lines that are refused, each with its reason.

use cordon_shell::{InvalidProgram, Programs, Reason};

use super::{programs, workspace};

/// A line, and why it is refused.
pub(super) const REFUSED: &[(&str, Reason)] = &[
    // Not on the list.
    ("rm -rf /", Reason::NotListed),
    ("ls; rm x", Reason::NotListed),
    ("ls && rm x", Reason::NotListed),
    ("ls || rm x", Reason::NotListed),
    ("ls | rm x", Reason::NotListed),
    ("ls & rm x", Reason::NotListed),
    ("ls\nrm x", Reason::NotListed),
    ("! rm x", Reason::NotListed),
    ("(rm x)", Reason::NotListed),
    ("{ rm x; }", Reason::NotListed),
    ("if rm x; then ls; fi", Reason::NotListed),
    ("if ls; then rm x; fi", Reason::NotListed),
    ("if ls; then ls; else rm x; fi", Reason::NotListed),
    ("if ls; then ls; elif rm x; then ls; fi", Reason::NotListed),
    ("for i in a; do rm $i; done", Reason::NotListed),
    ("while rm x; do ls; done", Reason::NotListed),
    ("until ls; do rm x; done", Reason::NotListed),
    ("case a in a) rm x;; esac", Reason::NotListed),
    ("( ( { rm x; } ) )", Reason::NotListed),
    ("x=1 rm x", Reason::NotListed),
    (">out rm x", Reason::NotListed),
    ("r\\\nm x", Reason::NotListed),
    ("r''m x", Reason::NotListed),
    ("\\rm x", Reason::NotListed),
    ("/bin/ls", Reason::NotListed),
    ("./ls", Reason::NotListed),
    ("/usr/bin/../bin/wc", Reason::NotListed),
    ("configure", Reason::NotListed),
    ("../configure", Reason::NotListed),
    ("LS", Reason::NotListed),
    ("''", Reason::NotListed),
    ("'ls '", Reason::NotListed),
    ("ｌｓ", Reason::NotListed),
    ("lѕ", Reason::NotListed),
    ("ls\u{a0}-l", Reason::NotListed),
    ("ls\u{3000}x", Reason::NotListed),
    ("+x=1", Reason::NotListed),
    ("'x=1'", Reason::NotListed),
    ("1x=1 ls", Reason::NotListed),
    // Which program it is cannot be told.
    ("$cmd x", Reason::CommandWord),
    ("${cmd} x", Reason::CommandWord),
    ("\"$cmd\" x", Reason::CommandWord),
    ("l$x", Reason::CommandWord),
    ("x=1 $cmd", Reason::CommandWord),
    ("./* x", Reason::CommandWord),
    ("/bin/r? x", Reason::CommandWord),
    ("l[s]", Reason::CommandWord),
    // Substitutions and expansions.
    ("echo $(id)", Reason::Substitution),
    ("echo \"$(id)\"", Reason::Substitution),
    ("echo `id`", Reason::Substitution),
    ("echo \"`id`\"", Reason::Substitution),
    ("$(echo ls)", Reason::Substitution),
    ("`ls`", Reason::Substitution),
    ("x=$(id) ls", Reason::Substitution),
    ("x=$(id)", Reason::Substitution),
    ("ls > $(id)", Reason::Substitution),
    ("for i in $(id); do ls; done", Reason::Substitution),
    ("case $(id) in a) ls;; esac", Reason::Substitution),
    ("case a in $(id)) ls;; esac", Reason::Substitution),
    ("echo $((1+1))", Reason::Arithmetic),
    ("echo \"$((a[$(id)]))\"", Reason::Arithmetic),
    ("echo $[1+1]", Reason::Arithmetic),
    ("((x=1))", Reason::Arithmetic),
    ("((ls); ls)", Reason::Arithmetic),
    ("for ((i=0;i<3;i++)); do ls; done", Reason::Arithmetic),
    ("cat <(id)", Reason::ProcessSubstitution),
    ("ls > >(id)", Reason::ProcessSubstitution),
    ("cat<(id)", Reason::ProcessSubstitution),
    ("ls >>(id)", Reason::ProcessSubstitution),
    ("echo ${x:-$(id)}", Reason::Expansion),
    ("echo ${x:=y}", Reason::Expansion),
    ("echo \"${x@P}\"", Reason::Expansion),
    ("echo ${!x}", Reason::Expansion),
    ("echo ${#x}", Reason::Expansion),
    ("echo ${x[0]}", Reason::Expansion),
    ("echo ${x/a/b}", Reason::Expansion),
    ("echo ${x", Reason::Expansion),
    ("echo $@", Reason::Expansion),
    ("echo \"$*\"", Reason::Expansion),
    ("echo $1", Reason::Expansion),
    ("for i; do ls; done", Reason::Expansion),
    ("ls ~", Reason::Home),
    ("ls ~/x", Reason::Home),
    ("ls ~root", Reason::Home),
    ("~/ls", Reason::Home),
    ("x=~ ls", Reason::Home),
    ("x=a:~/b ls", Reason::Home),
    // What shells read differently.
    ("echo $'\\x41'", Reason::Differs),
    ("$'\\x72m' x", Reason::Differs),
    ("echo $\"x\"", Reason::Differs),
    ("echo {a,b}", Reason::Differs),
    ("{rm,x}", Reason::Differs),
    ("echo {1..3}", Reason::Differs),
    ("echo {a,\"b\"}", Reason::Differs),
    ("ls &> out", Reason::Differs),
    ("ls &>> out", Reason::Differs),
    ("ls >& out", Reason::Differs),
    ("ls >& $x", Reason::Differs),
    ("ls >&1-", Reason::Differs),
    ("ls 2>& -", Reason::Differs),
    ("ls |& cat", Reason::Differs),
    ("cat <<< x", Reason::Differs),
    ("{fd}> out ls", Reason::Differs),
    ("ls 10> out", Reason::Differs),
    ("[[ -f x ]]", Reason::Differs),
    ("[[ a == b ]] && ls", Reason::Differs),
    ("! ! ls", Reason::Differs),
    ("ls && ! \\\n ! ls", Reason::Differs),
    ("coproc ls", Reason::Differs),
    ("select x in a; do ls; done", Reason::Differs),
    ("x+=1 ls", Reason::Differs),
    ("x=(a b)", Reason::Differs),
    ("x[0]=1", Reason::Differs),
    ("x[ ls ]=1", Reason::Differs),
    ("ls @(a|b)", Reason::Differs),
    ("ls !(a)", Reason::Differs),
    ("ls [[:alpha:]]", Reason::Differs),
    ("ls [^a]", Reason::Differs),
    ("ls *(e:id:)", Reason::Differs),
    ("case a in a) ls;& b) ls;; esac", Reason::Differs),
    ("case a in a) ls;;& b) ls;; esac", Reason::Differs),
    // Programs and commands that run others.
    ("bash -c id", Reason::RunsCode),
    ("sh -c id", Reason::RunsCode),
    ("sh script.sh", Reason::RunsCode),
    ("/bin/sh -c id", Reason::RunsCode),
    ("busybox sh", Reason::RunsCode),
    ("env rm x", Reason::RunsCode),
    ("env -i PATH=/x rm", Reason::RunsCode),
    ("ls | xargs rm", Reason::RunsCode),
    ("sudo rm x", Reason::RunsCode),
    ("nohup rm x", Reason::RunsCode),
    ("timeout 1 rm x", Reason::RunsCode),
    ("time rm x", Reason::RunsCode),
    ("time ls", Reason::RunsCode),
    ("\\time ls", Reason::RunsCode),
    ("nice rm x", Reason::RunsCode),
    ("ssh host rm x", Reason::RunsCode),
    ("python3 -c 'import os'", Reason::RunsCode),
    ("python3 script.py", Reason::RunsCode),
    ("python3.11 -m x", Reason::RunsCode),
    ("echo 'x' | python3", Reason::RunsCode),
    ("perl -e 'system(1)'", Reason::RunsCode),
    ("node -e 1", Reason::RunsCode),
    ("awk 'BEGIN{system(\"id\")}'", Reason::RunsCode),
    ("eval ls", Reason::Builtin),
    ("exec ls", Reason::Builtin),
    ("exec > out", Reason::Builtin),
    (". ./x", Reason::Builtin),
    ("source x", Reason::Builtin),
    ("trap ls EXIT", Reason::Builtin),
    ("command ls", Reason::Builtin),
    ("builtin echo", Reason::Builtin),
    ("alias ls=rm", Reason::Builtin),
    ("unalias ls", Reason::Builtin),
    ("export PATH=/x", Reason::Builtin),
    ("readonly x=1", Reason::Builtin),
    ("set -- rm", Reason::Builtin),
    ("read PATH", Reason::Builtin),
    ("unset PATH", Reason::Builtin),
    ("hash -p /bin/rm ls", Reason::Builtin),
    ("enable -f x ls", Reason::Builtin),
    ("declare x=1", Reason::Builtin),
    ("typeset x", Reason::Builtin),
    ("local x", Reason::Builtin),
    ("let x=1", Reason::Builtin),
    ("getopts a PATH", Reason::Builtin),
    ("mapfile -C rm x", Reason::Builtin),
    ("jobs -x rm", Reason::Builtin),
    ("compgen -C id", Reason::Builtin),
    ("'eval' ls", Reason::Builtin),
    ("e\\val ls", Reason::Builtin),
    ("f() { ls; }", Reason::Function),
    ("ls() { rm x; }; ls", Reason::Function),
    ("ls () { rm x; }", Reason::Function),
    ("function ls { rm x; }", Reason::Function),
    // Arguments that make a listed program run others.
    ("find . -exec rm {} +", Reason::Argument),
    ("find . -execdir rm {} \\;", Reason::Argument),
    ("find . -ok rm {} \\;", Reason::Argument),
    ("find . -okdir rm {} \\;", Reason::Argument),
    ("find . -delete", Reason::Argument),
    ("find . -fprintf x y", Reason::Argument),
    ("find . '-ex'ec rm", Reason::Argument),
    ("find . $x rm {} +", Reason::UnclearArgument),
    ("find . \"$x\"", Reason::UnclearArgument),
    ("find *", Reason::UnclearArgument),
    ("find . -$x", Reason::UnclearArgument),
    ("find .$x", Reason::UnclearArgument),
    ("tar xf a --to-command=rm", Reason::Argument),
    ("tar xf a --to-c=rm", Reason::Argument),
    (
        "tar cf a --checkpoint=1 --checkpoint-action=exec=rm",
        Reason::Argument,
    ),
    ("tar cf a -I rm x", Reason::Argument),
    ("tar cIf rm a x", Reason::Argument),
    ("tar xf host:a", Reason::Argument),
    ("gtar --use-compress-program=rm xf a", Reason::Argument),
    ("tar $x", Reason::UnclearArgument),
    ("git -c core.pager=rm log", Reason::Argument),
    ("git -ccore.pager=rm log", Reason::Argument),
    ("git --exec-path=/x log", Reason::Argument),
    ("git --config-env=a=b log", Reason::Argument),
    ("git --git-dir=x log", Reason::Argument),
    ("git -C /etc log", Reason::Argument),
    ("git -C ../x log", Reason::Argument),
    ("git config alias.x '!rm'", Reason::Argument),
    ("git myalias", Reason::Argument),
    ("git rebase -x rm HEAD~1", Reason::Argument),
    ("git bisect run rm", Reason::Argument),
    ("git submodule foreach rm", Reason::Argument),
    ("git clone ext::rm", Reason::Argument),
    ("git fetch --upload-pack=rm", Reason::Argument),
    ("git push host", Reason::Argument),
    ("git difftool -x rm", Reason::Argument),
    ("git grep -Orm x", Reason::Argument),
    ("git grep --open-files-in-pager=rm x", Reason::Argument),
    ("git diff --ext-diff", Reason::Argument),
    ("git diff --ext", Reason::Argument),
    ("git init --template=x", Reason::Argument),
    ("git $x", Reason::UnclearArgument),
    ("git log \"$x\"", Reason::UnclearArgument),
    ("git diff *", Reason::UnclearArgument),
    ("sed '1e id' f", Reason::Argument),
    ("sed 's/x/id/e' f", Reason::Argument),
    ("sed 's/x/y/w out' f", Reason::Argument),
    ("sed 'w /tmp/x' f", Reason::Argument),
    ("sed -f script f", Reason::Argument),
    ("sed p f -f script", Reason::Argument),
    ("sed -n -e p -e e f", Reason::Argument),
    ("sed --expression=e f", Reason::Argument),
    ("sed 's/[/]x/y/e;s/]/b/' f", Reason::Argument),
    ("sed 's/[]/]/;s/e/w/' f", Reason::Argument),
    ("sed 'a\\\nx\ne id' f", Reason::Argument),
    ("sed -i/tmp/x p f", Reason::Argument),
    ("sed \"$x\" f", Reason::UnclearArgument),
    ("sed \"s/$x/y/\" f", Reason::UnclearArgument),
    ("sort --compress-program=rm f", Reason::Argument),
    ("sort --comp rm f", Reason::Argument),
    ("split --filter=rm f", Reason::Argument),
    ("rg --pre rm x", Reason::Argument),
    ("fd -x rm", Reason::Argument),
    ("fd -HX rm", Reason::Argument),
    ("wget --use-askpass=rm x", Reason::Argument),
    ("wget -qe x", Reason::Argument),
    // Commands of the shell that would evaluate what they are given.
    ("[ -v 'a[$(id)]' ]", Reason::UnclearArgument),
    ("x=-v; [ $x 'a[$(id)]' ]", Reason::UnclearArgument),
    ("x=-v; [ \"$x\" 'a[$(id)]' ]", Reason::UnclearArgument),
    ("test -R x", Reason::UnclearArgument),
    ("[ 'a[$(id)]' -eq 0 ]", Reason::UnclearArgument),
    ("[ $x = y ]", Reason::UnclearArgument),
    ("[ a -o -v x ]", Reason::UnclearArgument),
    ("[ a", Reason::Syntax),
    ("printf -v PATH /x", Reason::Argument),
    ("printf -vPATH /x", Reason::Argument),
    ("printf \"$x\" PATH /x", Reason::UnclearArgument),
    ("exit 'a[$(id)]'", Reason::Argument),
    ("break $x", Reason::Argument),
    ("wait -p PATH", Reason::Argument),
    ("cd", Reason::Redirection),
    ("cd -", Reason::Redirection),
    ("cd /", Reason::Redirection),
    ("cd ..", Reason::Redirection),
    ("cd a/../..", Reason::Redirection),
    ("cd $x", Reason::Redirection),
    ("cd /work/projects", Reason::Redirection),
    ("cd -P a", Reason::Argument),
    ("cd .git && ls", Reason::Protected),
    // Variables.
    ("PATH=/x ls", Reason::Variable),
    ("PATH=/x; ls", Reason::Variable),
    ("PATH=/x", Reason::Variable),
    ("path=/x ls", Reason::Variable),
    ("for PATH in /x; do ls; done", Reason::Variable),
    ("for IFS in a; do ls; done", Reason::Variable),
    ("LD_PRELOAD=x ls", Reason::Variable),
    ("LD_LIBRARY_PATH=x ls", Reason::Variable),
    ("DYLD_INSERT_LIBRARIES=x ls", Reason::Variable),
    ("DYLD_LIBRARY_PATH=x ls", Reason::Variable),
    ("NODE_OPTIONS=x ls", Reason::Variable),
    ("BUN_OPTIONS=x ls", Reason::Variable),
    ("BASH_ENV=x ls", Reason::Variable),
    ("ENV=x ls", Reason::Variable),
    ("IFS=x ls", Reason::Variable),
    ("PS4=x ls", Reason::Variable),
    ("SECONDS='a[$(id)]'", Reason::Variable),
    ("OPTIND=x", Reason::Variable),
    ("PYTHONPATH=x ls", Reason::Variable),
    ("PYTHONSTARTUP=x ls", Reason::Variable),
    ("PERL5OPT=x ls", Reason::Variable),
    ("RUBYOPT=x ls", Reason::Variable),
    ("GIT_SSH_COMMAND=x git log", Reason::Variable),
    ("GIT_EXTERNAL_DIFF=x git diff", Reason::Variable),
    ("GIT_CONFIG_COUNT=1 git diff", Reason::Variable),
    ("HOME=. git log", Reason::Variable),
    ("EDITOR=x git commit", Reason::Variable),
    ("TAR_OPTIONS=x tar xf a", Reason::Variable),
    ("MAKEFLAGS=x make", Reason::Variable),
    ("ls; x=1 PATH=/x y=2 ls", Reason::Variable),
    // Redirections.
    ("ls > /etc/passwd", Reason::Redirection),
    ("ls >> /tmp/x", Reason::Redirection),
    ("cat < /etc/passwd", Reason::Redirection),
    ("ls > ../x", Reason::Redirection),
    ("ls > a/../../x", Reason::Redirection),
    ("ls > a/../b", Reason::Redirection),
    ("ls > /work/project/../x", Reason::Redirection),
    ("ls > /work/projects/x", Reason::Redirection),
    ("ls > //etc/x", Reason::Redirection),
    ("ls > $x", Reason::Redirection),
    ("ls > \"$x\"", Reason::Redirection),
    ("ls > a$x", Reason::Redirection),
    ("ls > *", Reason::Redirection),
    ("ls > ''", Reason::Redirection),
    ("ls > ~/x", Reason::Home),
    ("ls > '/etc/passwd'", Reason::Redirection),
    ("ls 2> /dev/stderr", Reason::Redirection),
    ("cat < /dev/tcp/host/80", Reason::Redirection),
    ("ls > /dev/tcp/host/80", Reason::Redirection),
    ("ls >| /etc/x", Reason::Redirection),
    ("cat <> /etc/x", Reason::Redirection),
    ("> /etc/x", Reason::Redirection),
    ("{ ls; } > /etc/x", Reason::Redirection),
    ("(ls) > /etc/x", Reason::Redirection),
    ("if ls; then ls; fi > /etc/x", Reason::Redirection),
    ("while ls; do ls; done > /etc/x", Reason::Redirection),
    ("for i in a; do ls; done > /etc/x", Reason::Redirection),
    ("case a in a) ls;; esac > /etc/x", Reason::Redirection),
    ("ls > .git/hooks/pre-commit", Reason::Protected),
    ("ls > .GIT/config", Reason::Protected),
    ("ls >> sub/.git/config", Reason::Protected),
    ("ls > .cordon/sandbox.yaml", Reason::Protected),
    // Here-documents.
    ("cat <<EOF\n$(id)\nEOF", Reason::HereDocument),
    ("cat <<EOF\n$x\nEOF", Reason::HereDocument),
    ("cat <<EOF\n`id`\nEOF", Reason::HereDocument),
    ("cat <<EOF\na\\\nEOF", Reason::HereDocument),
    ("cat <<EOF\nno end", Reason::HereDocument),
    ("cat <<EOF", Reason::HereDocument),
    ("cat <<'EOF'\nx\nEOF \nrm x", Reason::HereDocument),
    ("cat <<E$x\nE", Reason::HereDocument),
    ("cat <<'E'F\nEF", Reason::HereDocument),
    ("cat <<\"E F\"\nE F", Reason::HereDocument),
    ("cat <<", Reason::HereDocument),
    ("cat <<A <<'B'\nB\n$(id)\nA\nB", Reason::HereDocument),
    ("<<E$[\t\t", Reason::HereDocument),
    // What follows a here-document is judged like the rest.
    ("cat <<'EOF'\nx\nEOF\nrm x", Reason::NotListed),
    ("cat <<'EOF'; rm x\nx\nEOF", Reason::NotListed),
    ("cat <<-EOF\n\tx\n\tEOF\nrm x", Reason::NotListed),
    // Lines that are no lines.
    ("", Reason::Nothing),
    ("  \n\t\n", Reason::Nothing),
    ("# only words", Reason::Nothing),
    ("ls '", Reason::Syntax),
    ("ls \"", Reason::Syntax),
    ("ls \"a'", Reason::Syntax),
    ("ls |", Reason::Syntax),
    ("| ls", Reason::Syntax),
    ("ls &&", Reason::Syntax),
    ("ls ;; ls", Reason::Syntax),
    ("if ls; then", Reason::Syntax),
    ("if ls; fi", Reason::Syntax),
    ("(ls", Reason::Syntax),
    ("ls)", Reason::Syntax),
    ("{ ls", Reason::Syntax),
    ("ls >", Reason::Syntax),
    ("ls > | cat", Reason::Syntax),
    ("for 1x in a; do ls; done", Reason::Syntax),
    ("fi", Reason::Syntax),
    ("ls \\", Reason::Syntax),
    // Characters.
    ("ls\0rm x", Reason::Character),
    ("ls\r\nrm x", Reason::Character),
    ("ls\rrm x", Reason::Character),
    ("echo '\u{1b}[2J'", Reason::Character),
    ("ls \u{202e}x", Reason::Character),
    ("l\u{200b}s", Reason::Character),
    ("\u{feff}ls", Reason::Character),
    ("ls\u{7f}", Reason::Character),
    ("ls \u{85}rm", Reason::Character),
];

#[test]
fn lines_that_cannot_be_judged_are_refused_with_the_reason() {
    let mut wrong = Vec::new();
    for (line, reason) in REFUSED {
        match programs().judge_line(line, workspace()) {
            Ok(script) => wrong.push(format!("{line:?} is let through as {script}")),
            Err(refusal) if refusal.reason != *reason => {
                wrong.push(format!(
                    "{line:?} is refused for {:?}: {refusal}",
                    refusal.reason
                ));
            }
            Err(refusal) => {
                assert!(!refusal.hint().is_empty());
                assert!(
                    refusal.at.is_none_or(|at| at <= line.chars().count()),
                    "{line:?}"
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_refusal_shows_what_and_where() {
    let said = |line: &str| {
        programs()
            .judge_line(line, workspace())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        said("ls; rm x"),
        "`rm` is not an allowed program (at character 5)"
    );
    assert_eq!(
        said("echo $(id)"),
        "`$(id)` would run commands inside a word (at character 6)"
    );
    assert_eq!(
        said("ls > /etc/passwd"),
        "the redirection `> /etc/passwd` leads out of the workspace, or may (at character 4)"
    );
    let refusal = programs()
        .judge_line("python3 x.py", workspace())
        .unwrap_err();
    assert_eq!(
        refusal.hint(),
        "add `python3!` to the agent's `commands`, if it may run any code"
    );
}

#[test]
fn a_line_is_bounded_in_length_and_depth() {
    let reason = |line: String| {
        programs()
            .judge_line(&line, workspace())
            .unwrap_err()
            .reason
    };
    assert_eq!(
        reason(format!("echo {}", "x".repeat(200_000))),
        Reason::TooLong
    );
    assert_eq!(reason("ls;".repeat(5_000)), Reason::TooDeep);
    for open in [
        "( ",
        "{ ",
        "if ",
        "while ",
        "for i in a; do ",
        "case a in a) ",
        "time ",
    ] {
        assert_eq!(reason(open.repeat(3_000)), Reason::TooDeep, "{open}");
    }
    // Hidden from a reader who takes the wrong things for comments, quotes or bodies.
    for hidden in ["ls ># ", "x[ # ", "ls \\\n# '\n", "cat <<'E' #\nE\n"] {
        assert!(
            programs()
                .judge_line(&format!("{hidden}{}", "( ".repeat(3_000)), workspace())
                .is_err()
        );
    }
    // A long file in a here-document is none of that.
    let file = format!(
        "cat > f <<'EOF'\n{}EOF\n",
        "if ((x)); then y; fi;\n".repeat(4_000)
    );
    assert!(programs().judge_line(&file, workspace()).is_ok());
}

#[test]
fn entries_that_can_be_no_program_are_refused() {
    for entry in [
        "", "!", "a b", "a;b", "$x", "*", "ls!!", "bin/", "a\nb", "~/x",
    ] {
        assert_eq!(
            Programs::parse([entry]),
            Err(InvalidProgram::Name(entry.into())),
            "{entry:?}"
        );
    }
    for entry in ["eval", "exec!", ".", "source", "export!"] {
        let name = entry.trim_end_matches('!').to_owned();
        assert_eq!(
            Programs::parse([entry]),
            Err(InvalidProgram::Builtin(name)),
            "{entry:?}"
        );
    }
}

#[test]
fn a_mark_lets_a_program_run_code_and_nothing_else() {
    let programs = Programs::parse(["python3!", "find!", "git!", "ls"]).unwrap();
    let judge = |line: &str| programs.judge_line(line, workspace());
    assert!(judge("python3 -c 'print(1)'").is_ok());
    assert!(judge("find . -name x -exec rm {} +").is_ok());
    assert!(judge("git -c core.pager=cat fetch").is_ok());
    assert_eq!(
        judge("python3 -c \"$(id)\"").unwrap_err().reason,
        Reason::Substitution
    );
    assert_eq!(
        judge("python3 x > /etc/x").unwrap_err().reason,
        Reason::Redirection
    );
    assert_eq!(judge("python x").unwrap_err().reason, Reason::NotListed);
    assert_eq!(
        judge("PYTHONPATH=x python3 x").unwrap_err().reason,
        Reason::Variable
    );
}
