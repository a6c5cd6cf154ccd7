//! Argument lists, which run without a shell.

use cordon_shell::Reason;

use super::{programs, workspace};

#[test]
fn an_argument_list_is_judged_like_a_command() {
    let judge = |argv: &[&str]| {
        programs()
            .judge_argv(argv, workspace())
            .map_err(|refusal| refusal.reason)
    };
    assert_eq!(judge(&["ls", "-l", "$(id)", "; rm x", "a\0b"]), Ok(()));
    assert_eq!(judge(&["/usr/bin/wc", "-l"]), Ok(()));
    assert_eq!(judge(&["make", "all"]), Ok(()));
    assert_eq!(judge(&["git", "log", "--oneline"]), Ok(()));
    assert_eq!(judge(&[]), Err(Reason::Nothing));
    assert_eq!(judge(&["rm"]), Err(Reason::NotListed));
    assert_eq!(judge(&["/bin/ls"]), Err(Reason::NotListed));
    assert_eq!(judge(&["./ls"]), Err(Reason::NotListed));
    assert_eq!(judge(&["eval", "ls"]), Err(Reason::NotListed));
    assert_eq!(judge(&["sh", "-c", "id"]), Err(Reason::RunsCode));
    assert_eq!(judge(&["env", "ls"]), Err(Reason::RunsCode));
    assert_eq!(
        judge(&["find", ".", "-exec", "rm", "{}", "+"]),
        Err(Reason::Argument)
    );
    assert_eq!(judge(&["git", "-c", "x=y", "log"]), Err(Reason::Argument));
    assert_eq!(judge(&["sed", "1e id", "f"]), Err(Reason::Argument));
}
