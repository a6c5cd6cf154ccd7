//! What is known of programs by their names.

/// Whether a name is a command of a shell that cannot be judged: it runs its arguments, or changes what later
/// commands, names or variables mean.
pub(crate) fn is_builtin(name: &str) -> bool {
    in_table(BUILTINS, name)
}

/// Whether a program runs other programs, or code that it is given, in most of its uses.
pub(crate) fn runs_code(name: &str) -> bool {
    let base = base(name);
    names(&base).any(|name| RUNNERS.iter().any(|table| in_table(table, name)))
}

/// Whether a program, by any of the names that it is installed under, is one of these.
pub(crate) fn is_one_of(name: &str, known: &[&str]) -> bool {
    let base = base(name);
    names(&base).any(|name| known.contains(&name))
}

/// The last part of a path, in lower case: some file systems do not tell the cases apart.
fn base(name: &str) -> String {
    name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase()
}

/// The name, the name without a version (`python3.11`), and both without the `g` of GNU tools on other systems.
fn names(base: &str) -> impl Iterator<Item = &str> {
    let plain = base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let plain = plain.trim_end_matches('-');
    [base, plain]
        .into_iter()
        .flat_map(|name| [Some(name), name.strip_prefix('g')])
        .flatten()
}

/// Whether a name stands in a table of names with blanks between.
pub(crate) fn in_table(table: &str, name: &str) -> bool {
    table.split_ascii_whitespace().any(|known| known == name)
}

/// Commands of dash, bash, ksh and zsh.
const BUILTINS: &str = "\
    . alias autoload bg bind bindkey builtin caller chdir command compgen complete compopt declare dirs disable \
    disown emulate enable eval exec export fc fg float functions getopts hash history integer jobs let limit \
    local logout mapfile nameref nocorrect noglob popd print pushd read readarray readonly return sched set \
    setopt shift shopt source suspend times trap ttyctl type typeset ulimit unalias unfunction unhash unlimit \
    unset unsetopt vared whence zcompile zle zmodload zparseopts zstyle";

const RUNNERS: &[&str] = &[
    SHELLS,
    WRAPPERS,
    ELSEWHERE,
    INTERPRETERS,
    EDITORS,
    BUILDS,
    OTHERS,
];

/// Shells.
const SHELLS: &str = "\
    ash bash busybox csh dash elvish fish ksh mksh nu oksh osh pdksh powershell pwsh rbash rc sh tcsh toybox \
    xonsh yash zsh";

/// Programs that run the program that they are given.
const WRAPPERS: &str = "\
    aa-exec at batch bwrap capsh cgexec choom chpst chroot chrt crontab daemonize dbus-run-session doas \
    dumb-init eatmydata entr env expect fakeroot faketime firejail flock gosu i386 ionice ip launchctl linux32 \
    linux64 logsave ltrace nice nohup nsenter numactl open osascript parallel perf pkexec prlimit proot rlwrap \
    run-parts runuser script service setarch setpriv setsid sg start-stop-daemon stdbuf strace su su-exec sudo \
    systemctl systemd-run taskset time timeout tini torsocks tsocks unbuffer unshare valgrind watch watchexec \
    x86_64 xargs xdg-open xvfb-run";

/// Other machines, containers, terminals.
const ELSEWHERE: &str = "\
    buildah container cordon crun ctr docker ftp ghcs kubectl lxc machinectl mosh nc ncat nerdctl netcat nmap \
    podman rlogin rsh rsync runc scp screen sftp socat ssh telnet tmux vagrant vibebox";

/// Interpreters.
const INTERPRETERS: &str = "\
    awk bc bun clojure dart dc deno dotnet elixir erl gawk gdb groovy guile iex irb java jjs jshell julia kotlin \
    lldb lua luajit m4 mawk mono mysql nawk nim node nodejs ocaml octave original-awk perl php psql pypy python \
    r racket rscript ruby runghc sbcl scala sqlite sqlite3 swift tclsh ts-node tsx wine wish";

/// Editors and pagers, which start shells.
const EDITORS: &str = "\
    ed emacs ex info less mail man mc more most mutt nano nvim pico rvim vi view vim vimdiff";

/// Builds, packages, compilers: they run what the project says.
const BUILDS: &str = "\
    ant apk apt apt-get bazel brew bundle bundler c++ cabal cargo cc clang clang++ cmake composer conda corepack \
    cpp ctest dnf dpkg eslint flatpak g++ gcc gem ghc go gradle gradlew hatch jest just ld make meson mix mocha \
    mvn mvnw ninja nix nix-shell nox npm npx pip pipx pnpm poetry pre-commit prettier pytest rake rpm rustc \
    rustup sbt snap stack task tox uv uvx vitest yarn yum zig";

/// Others that can start programs from what they read.
const OTHERS: &str = "\
    convert cvs fossil gs hg latex magick openssl patch pdflatex svn tex xelatex";
