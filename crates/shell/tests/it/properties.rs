//! What holds for any text.

use cordon_shell::{Programs, Reason};
use proptest::{collection::vec, prelude::*, sample::select};

use super::{programs, workspace};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_text_makes_the_judge_panic(line in any::<String>()) {
        let _ = programs().judge_line(&line, workspace());
        let _ = programs().judge_argv(&[line], workspace());
    }

    #[test]
    fn no_soup_of_shell_makes_the_judge_panic(line in soup()) {
        if let Ok(script) = programs().judge_line(&line, workspace()) {
            let again = programs().judge_line(script.as_str(), workspace()).unwrap();
            prop_assert_eq!(script, again);
        }
    }

    #[test]
    fn without_a_list_nothing_but_assignments_and_redirections_is_let_through(line in soup()) {
        let none = Programs::default();
        if let Ok(script) = none.judge_line(&line, workspace()) {
            let bare = script.as_str().lines().all(|line| !line.starts_with('\''));
            prop_assert!(bare, "{} from {:?}", script, line);
        }
    }

    #[test]
    fn a_substitution_that_the_shell_would_see_is_never_let_through(before in soup(), after in soup()) {
        for inner in ["$(rm x)", "`rm x`", "\"$(rm x)\"", "<(rm x)", "$((x))"] {
            let line = format!("{before} {inner} {after}");
            if let Ok(script) = programs().judge_line(&line, workspace()) {
                // Quotes of its own, a comment or a here-document may make text of it.
                let text = ["'", "\"", "#", "<<", "\\"];
                prop_assert!(text.iter().any(|mark| before.contains(mark)), "{} from {:?}", script, line);
            }
        }
    }

    #[test]
    fn a_name_that_is_not_listed_is_refused_however_it_is_quoted(
        name in "[a-z]{1,8}",
        quotes in vec(select(&["", "'", "\"", "\\"]), 8),
    ) {
        let listed = programs().judge_argv(&[&name], workspace());
        prop_assume!(listed.is_err_and(|refusal| refusal.reason == Reason::NotListed));
        let mut line = String::new();
        for (character, quote) in name.chars().zip(quotes) {
            let close = if quote == "\\" { "" } else { quote };
            line.push_str(&format!("{quote}{character}{close}"));
        }
        prop_assert!(programs().judge_line(&line, workspace()).is_err(), "{}", line);
    }
}

/// Pieces of shell in any order.
fn soup() -> impl Strategy<Value = String> {
    let pieces = select(
        &[
            "ls",
            "echo",
            "rm",
            "x",
            " ",
            " ",
            " ",
            "\n",
            ";",
            "&&",
            "||",
            "|",
            "&",
            "(",
            ")",
            "{ ",
            "; }",
            "'",
            "\"",
            "\\",
            "$",
            "${",
            "}",
            "$x",
            "<",
            "<<",
            "<<-",
            "<<'E'",
            "E",
            "\nE\n",
            ">",
            ">&",
            ">|",
            "2",
            "&>",
            "if ",
            "; then ",
            "; fi",
            "for i in ",
            "; do ",
            "; done",
            "case a in ",
            " esac",
            ";;",
            "while ",
            "[ ",
            " ]",
            "[[",
            "((",
            "))",
            "#",
            "!",
            "=",
            "a=",
            "~",
            "*",
            "?",
            "[a]",
            "é",
            "\t",
            "-",
            ",",
            "{a,b}",
            "$'",
            "@(",
            "function ",
        ][..],
    );
    vec(pieces, 0..30).prop_map(|pieces| pieces.concat())
}
