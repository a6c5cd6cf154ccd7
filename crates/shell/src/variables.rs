//! Variables that change which code programs run, or what a shell does with a line.

use crate::{Reason, Refusal, known::in_table};

/// Judges a variable that a command, or a line, would set.
///
/// # Errors
///
/// When it changes which code programs run.
pub fn judge_variable(name: &str) -> Result<(), Refusal> {
    let harmless = HARMLESS.iter().any(|prefix| name.starts_with(prefix));
    let refused = NAMES.iter().any(|table| in_table(table, name))
        || PREFIXES
            .split_ascii_whitespace()
            .any(|prefix| name.starts_with(prefix))
            && !harmless;
    if refused {
        return Err(Refusal::new(Reason::Variable, name, None));
    }
    Ok(())
}

/// Variables that a group's prefix covers, and that only say who wrote something.
const HARMLESS: &[&str] = &["GIT_AUTHOR_", "GIT_COMMITTER_"];

/// Beginnings of variables that loaders, shells, interpreters and build tools obey.
const PREFIXES: &str = "\
    BASH BUN_ BUNDLE_ CARGO_ CMAKE_ COMP_ DENO_ DYLD_ EPOCH GEM_ GIT_ HIST KSH_ LD_ LESS LUA_ MAIL MALLOC_ \
    NPM_CONFIG_ OPENSSL_ PERL PHP PKG_CONFIG PROMPT PYTHON READLINE_ RUBY RUSTC RUSTDOC RUSTUP_ SSH_ SUDO_ XDG_ \
    npm_config_";

const NAMES: &[&str] = &[PLACES, OWN, STARTED, OPTIONS];

/// What is found where.
const PLACES: &str = "\
    PATH path CDPATH cdpath FPATH fpath MANPATH manpath module_path HOME PWD OLDPWD SHELL ZDOTDIR GCONV_PATH \
    LOCPATH NLSPATH GLIBC_TUNABLES HOSTALIASES LIBRARY_PATH COMPILER_PATH GCC_EXEC_PREFIX CPATH";

/// What a shell does with a line. Assigning to its own counters evaluates arithmetic, which can run commands.
const OWN: &str = "\
    ENV IFS PS0 PS1 PS2 PS3 PS4 SHELLOPTS POSIXLY_CORRECT GLOBIGNORE EXECIGNORE FIGNORE FUNCNEST FUNCNAME \
    DIRSTACK GROUPS PIPESTATUS RANDOM SRANDOM SECONDS LINENO OPTIND OPTERR OPTARG UID EUID PPID TMOUT TIMEFORMAT \
    IGNOREEOF INPUTRC FCEDIT CHILD_MAX HOSTFILE COPROC MAPFILE REPLY argv psvar status";

/// What other programs start.
const STARTED: &str = "\
    EDITOR VISUAL PAGER MANPAGER BROWSER SYSTEMD_PAGER SYSTEMD_EDITOR RSYNC_RSH RSYNC_CONNECT_PROG CVS_RSH \
    SVN_SSH SVN_EDITOR HGEDITOR HGRCPATH VIMINIT EXINIT VIM VIMRUNTIME EMACSLOADPATH";

/// Options and code for interpreters and tools.
const OPTIONS: &str = "\
    NODE_OPTIONS NODE_PATH NODE_REPL_EXTERNAL_MODULE JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS JAVA_OPTS \
    JAVA_HOME CLASSPATH MAVEN_OPTS MAVEN_ARGS GRADLE_OPTS GRADLE_USER_HOME GOFLAGS GOROOT GOPATH GOENV GOTOOLDIR \
    GOTOOLCHAIN GOPROXY GOCACHEPROG RUSTFLAGS CC CXX CPP LD AR AS CFLAGS CXXFLAGS CPPFLAGS LDFLAGS MAKEFLAGS \
    GNUMAKEFLAGS MFLAGS MAKEFILES MAKESHELL TAR_OPTIONS GREP_OPTIONS GZIP XZ_OPT XZ_DEFAULTS ZIPOPT UNZIP \
    RIPGREP_CONFIG_PATH WGETRC CURL_HOME AWKPATH AWKLIBPATH PSQLRC PGSERVICEFILE TEXMFCNF POSIX_ME_HARDER \
    DOCKER_HOST DOCKER_CONFIG CONTAINER_HOST KUBECONFIG";
