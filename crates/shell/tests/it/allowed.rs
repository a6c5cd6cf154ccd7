//! Lines that are let through, and what is run in their place.

use super::{programs, workspace};

/// A line, and what it is printed as.
const ALLOWED: &[(&str, &str)] = &[
    // Commands and their joints.
    ("ls", "'ls'\n"),
    ("  ls\t-l   src ", "'ls' '-l' 'src'\n"),
    ("ls; cat a", "'ls'\n'cat' 'a'\n"),
    ("ls;", "'ls'\n"),
    ("ls\ncat a\n", "'ls'\n'cat' 'a'\n"),
    (
        "ls && cat a || echo no",
        "'ls' && 'cat' 'a' || 'echo' 'no'\n",
    ),
    ("ls | grep x | wc -l", "'ls' | 'grep' 'x' | 'wc' '-l'\n"),
    ("! grep -q x f", "! 'grep' '-q' 'x' 'f'\n"),
    ("tool & wait", "'tool' &\n'wait'\n"),
    ("tool &", "'tool' &\n"),
    ("(ls; cat a) | wc", "( 'ls'\n'cat' 'a'\n) | 'wc'\n"),
    ("{ ls; cat a; } > out", "{ 'ls'\n'cat' 'a'\n} >'out'\n"),
    ("ls # and no more; rm -rf /", "'ls'\n"),
    ("ls #'", "'ls'\n"),
    ("echo a#b", "'echo' 'a#b'\n"),
    ("l\\\ns -l", "'ls' '-l'\n"),
    ("ls \\\n  -l", "'ls' '-l'\n"),
    ("/usr/bin/wc -l f", "'/usr/bin/wc' '-l' 'f'\n"),
    ("./configure --prefix=x", "'./configure' '--prefix=x'\n"),
    // Compound commands.
    (
        "if test -f a; then cat a; fi",
        "if 'test' '-f' 'a'\nthen 'cat' 'a'\nfi\n",
    ),
    (
        "if ls; then ls; elif cat a; then ls; else echo; fi",
        "if 'ls'\nthen 'ls'\nelse if 'cat' 'a'\nthen 'ls'\nelse 'echo'\nfi\nfi\n",
    ),
    (
        "for f in a b *.c; do wc -l \"$f\"; done",
        "for f in 'a' 'b' *'.c'\ndo 'wc' '-l' \"${f}\"\ndone\n",
    ),
    ("while ls; do break; done", "while 'ls'\ndo 'break'\ndone\n"),
    (
        "until ls; do continue 2; done < in",
        "until 'ls'\ndo 'continue' '2'\ndone <'in'\n",
    ),
    (
        "case $x in a|b) ls;; (*) cat a;; esac",
        "case ${x} in\n'a'|'b') 'ls'\n;;\n*) 'cat' 'a'\n;;\nesac\n",
    ),
    ("case a in b) ;; esac", "case 'a' in\n'b') \n;;\nesac\n"),
    (
        "if ls; then ls; fi | cat",
        "if 'ls'\nthen 'ls'\nfi | 'cat'\n",
    ),
    // Quotes.
    ("echo 'a b' \"c d\" e\\ f", "'echo' 'a b' 'c d' 'e f'\n"),
    ("echo 'it'\\''s'", "'echo' 'it'\\''s'\n"),
    ("echo \"it's\"", "'echo' 'it'\\''s'\n"),
    ("echo '$(id) `id` ${x:-y}'", "'echo' '$(id) `id` ${x:-y}'\n"),
    ("echo \\$\\(id\\)", "'echo' '$(id)'\n"),
    (
        "echo \"\\$x \\`id\\` \\\\ \\\" \\n\"",
        "'echo' '$x `id` \\ \" \\n'\n",
    ),
    ("echo \"a\\\nb\"", "'echo' 'ab'\n"),
    ("echo ''", "'echo' ''\n"),
    ("echo \"\"", "'echo' ''\n"),
    ("echo 'two\nlines'", "'echo' 'two\nlines'\n"),
    ("'ls' -l", "'ls' '-l'\n"),
    ("l's'", "'ls'\n"),
    ("\"l\"s", "'ls'\n"),
    ("\\ls", "'ls'\n"),
    ("echo 'ünïcödé' 語", "'echo' 'ünïcödé' '語'\n"),
    ("echo $ a$ \"$\"", "'echo' '$' 'a$' '$'\n"),
    ("echo !! !x", "'echo' '!!' '!x'\n"),
    ("echo if then", "'echo' 'if' 'then'\n"),
    ("echo {} a{b} HEAD@{1}", "'echo' '{}' 'a{b}' 'HEAD@{1}'\n"),
    ("echo a=b --x=~ a~", "'echo' 'a=b' '--x=~' 'a~'\n"),
    ("echo '{a,b}' \"~\"", "'echo' '{a,b}' '~'\n"),
    // A program that is called like a reserved word, which quotes make a name.
    ("'if' x", "'if' 'x'\n"),
    // Variables and file patterns, where they are data.
    ("echo $x ${y} \"$z/a\"", "'echo' ${x} ${y} \"${z}\"'/a'\n"),
    ("echo $? $$ \"$#\" $!", "'echo' $? $$ \"$#\" $!\n"),
    ("x=1 y='a b' tool", "x='1' y='a b' 'tool'\n"),
    ("x=1; echo $x", "x='1' \n'echo' ${x}\n"),
    ("x= tool", "x= 'tool'\n"),
    (
        "GIT_AUTHOR_NAME=me git commit -m x",
        "GIT_AUTHOR_NAME='me' 'git' 'commit' '-m' 'x'\n",
    ),
    (
        "ls *.c src/?.h [a-z]x [!a]",
        "'ls' *'.c' 'src/'?'.h' [a-z]'x' [!a]\n",
    ),
    ("ls '*'\"?\"\\[a]", "'ls' '*?[a]'\n"),
    ("tool *", "'tool' *\n"),
    // Redirections in the workspace.
    ("ls > out", "'ls' >'out'\n"),
    ("ls >> sub/out 2>&1", "'ls' >>'sub/out' 2>&1\n"),
    ("ls >out 2>err <in", "'ls' >'out' 2>'err' <'in'\n"),
    ("ls >| out", "'ls' >|'out'\n"),
    ("cat <> f", "'cat' <>'f'\n"),
    (
        "ls > /dev/null 2> /dev/null",
        "'ls' >'/dev/null' 2>'/dev/null'\n",
    ),
    ("ls > /work/project/out", "'ls' >'/work/project/out'\n"),
    ("ls > ./a/./b", "'ls' >'./a/./b'\n"),
    ("ls > 'a b'", "'ls' >'a b'\n"),
    ("> out", " >'out'\n"),
    ("ls 2>&- 3<&0 <&-", "'ls' 2>&- 3<&0 <&-\n"),
    ("ls 1>&2", "'ls' 1>&2\n"),
    ("cat < .git/HEAD", "'cat' <'.git/HEAD'\n"),
    // Here-documents.
    ("cat <<EOF\nplain\nEOF", "'cat' <<'END'\nplain\nEND\n"),
    (
        "cat <<'EOF'\nit's $(id) `id` \\\nEOF\nls",
        "'cat' <<'END'\nit's $(id) `id` \\\nEND\n'ls'\n",
    ),
    (
        "cat <<\\EOF | wc\n$x\nEOF",
        "'cat' <<'END' | 'wc'\n$x\nEND\n",
    ),
    ("cat <<-'EOF'\n\tin\n\tEOF", "'cat' <<'END'\nin\nEND\n"),
    (
        "cat <<A <<B\n1\nA\n2\nB",
        "'cat' <<'END' <<'END'\n1\nEND\n2\nEND\n",
    ),
    ("cat <<'X'\nEND\nX", "'cat' <<'END_'\nEND\nEND_\n"),
    ("cat <<'X'\nX", "'cat' <<'END'\nEND\n"),
    (
        "cat > f <<'E' && ls\n<<INNER\n(((\nE",
        "'cat' >'f' <<'END' && 'ls'\n<<INNER\n(((\nEND\n",
    ),
    (
        "if cat <<E; then ls; fi\nx\nE",
        "if 'cat' <<'END'\nx\nEND\nthen 'ls'\nfi\n",
    ),
    ("(cat <<E)\nx\nE", "( 'cat' <<'END'\nx\nEND\n)\n"),
    // Programs of which some uses are let through.
    (
        "find . -name '*.rs' -print",
        "'find' '.' '-name' '*.rs' '-print'\n",
    ),
    ("find src/* -type f", "'find' 'src/'* '-type' 'f'\n"),
    ("tar czf a.tgz src", "'tar' 'czf' 'a.tgz' 'src'\n"),
    (
        "tar -x -f a.tar -C out",
        "'tar' '-x' '-f' 'a.tar' '-C' 'out'\n",
    ),
    ("git status --short", "'git' 'status' '--short'\n"),
    (
        "git --no-pager log -n 3 --oneline",
        "'git' '--no-pager' 'log' '-n' '3' '--oneline'\n",
    ),
    (
        "git -C sub diff --stat HEAD~1",
        "'git' '-C' 'sub' 'diff' '--stat' 'HEAD~1'\n",
    ),
    (
        "git commit -m 'std::fs and `x`'",
        "'git' 'commit' '-m' 'std::fs and `x`'\n",
    ),
    ("git diff --text", "'git' 'diff' '--text'\n"),
    ("sed -n '10,20p' f", "'sed' '-n' '10,20p' 'f'\n"),
    (
        "sed -i 's/a\\/b/c/g; /x/d' f",
        "'sed' '-i' 's/a\\/b/c/g; /x/d' 'f'\n",
    ),
    (
        "sed -E -e 's|[0-9]+|n|' -e '$!d' f",
        "'sed' '-E' '-e' 's|[0-9]+|n|' '-e' '$!d' 'f'\n",
    ),
    ("sort -k2 f", "'sort' '-k2' 'f'\n"),
    ("rg -n --glob '*.rs' x", "'rg' '-n' '--glob' '*.rs' 'x'\n"),
    ("make -j2 \"$TARGET\"", "'make' '-j2' \"${TARGET}\"\n"),
    // Commands of the shell that are harmless where they are clear.
    ("cd sub && ls", "'cd' 'sub' && 'ls'\n"),
    ("cd /work/project/sub", "'cd' '/work/project/sub'\n"),
    (
        "[ \"$x\" = y ] || exit 1",
        "'[' \"${x}\" '=' 'y' ']' || 'exit' '1'\n",
    ),
    ("[ ! -d a ] && ls", "'[' '!' '-d' 'a' ']' && 'ls'\n"),
    ("tool; [ $? -eq 0 ]", "'tool'\n'[' $? '-eq' '0' ']'\n"),
    ("printf '%s\\n' \"$x\"", "'printf' '%s\\n' \"${x}\"\n"),
    (": && true || false", "':' && 'true' || 'false'\n"),
];

#[test]
fn lines_of_listed_programs_are_let_through() {
    let mut wrong = Vec::new();
    for (line, expected) in ALLOWED {
        match programs().judge_line(line, workspace()) {
            Ok(script) if script.as_str() == *expected => {}
            Ok(script) => wrong.push(format!("{line:?} is printed as {:?}", script.as_str())),
            Err(refusal) => wrong.push(format!("{line:?} is refused: {refusal}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_tables_hold_at_least_150_lines() {
    let count = ALLOWED.len() + super::refused::REFUSED.len();
    assert!(count >= 150, "{count}");
}
