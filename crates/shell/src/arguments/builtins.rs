//! Commands that the shell runs itself, and that mean more there than as programs.

use std::path::Path;

use crate::{Reason, Refusal, line::path, word::Word};

/// Judges a command of the shell that may be listed.
pub(super) fn judge(name: &str, words: &[Word], workspace: &Path) -> Result<(), Refusal> {
    match name {
        "cd" => change_directory(words, workspace),
        "test" => test(words),
        "[" => match words.split_last() {
            Some((last, words)) if last.text().as_deref() == Some("]") => test(words),
            _ => Err(Refusal::new(Reason::Syntax, "`[` without `]`", None)),
        },
        // `-v` of bash assigns to a variable, and evaluates its subscript.
        "printf" => match words.first() {
            Some(word) if word.may_be_option() || !word.is_one() => {
                Err(word.refuse(Reason::UnclearArgument))
            }
            Some(word) if word.text().is_some_and(|text| text.starts_with("-v")) => {
                Err(word.refuse(Reason::Argument))
            }
            _ => Ok(()),
        },
        // Some shells evaluate the number.
        "exit" | "break" | "continue" => match words.iter().find(|word| !word.is_number()) {
            Some(word) => Err(word.refuse(Reason::Argument)),
            None => Ok(()),
        },
        // `-p` of bash assigns to a variable.
        "wait" => match words.first() {
            Some(word) => Err(word.refuse(Reason::Argument)),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn change_directory(words: &[Word], workspace: &Path) -> Result<(), Refusal> {
    match words {
        [word] => match word.text() {
            Some(text) if path::is_protected(&text) => Err(word.refuse(Reason::Protected)),
            Some(text) if !text.starts_with('-') && path::is_inside(&text, workspace) => Ok(()),
            _ => Err(word.refuse(Reason::Redirection)),
        },
        [] => Err(Refusal::new(Reason::Redirection, "cd", None)),
        [_, second, ..] => Err(second.refuse(Reason::Argument)),
    }
}

/// In some shells `-v` and `-R` evaluate the subscripts of the name that they are given, and comparisons of numbers
/// evaluate what is none. Only forms with known operators at known places are let through.
fn test(words: &[Word]) -> Result<(), Refusal> {
    let is = |word: &Word, known: &[&str]| {
        word.text()
            .is_some_and(|text| known.contains(&text.as_str()))
    };
    let words = match words {
        [first, rest @ ..] if !rest.is_empty() && is(first, &["!"]) => rest,
        words => words,
    };
    if let Some(word) = words
        .iter()
        .find(|word| !word.is_one() && !word.is_number())
    {
        return Err(word.refuse(Reason::UnclearArgument));
    }
    match words {
        [] | [_] => Ok(()),
        [operator, _] if is(operator, UNARY) => Ok(()),
        [_, operator, _] if is(operator, BINARY) => Ok(()),
        [left, operator, right]
            if is(operator, NUMERIC) && left.is_number() && right.is_number() =>
        {
            Ok(())
        }
        [first, ..] => Err(first.refuse(Reason::UnclearArgument)),
    }
}

const UNARY: &[&str] = &[
    "-b", "-c", "-d", "-e", "-f", "-g", "-h", "-k", "-L", "-n", "-p", "-r", "-S", "-s", "-u", "-w",
    "-x", "-z",
];

const BINARY: &[&str] = &["=", "!=", "-nt", "-ot", "-ef"];

const NUMERIC: &[&str] = &["-eq", "-ne", "-gt", "-ge", "-lt", "-le"];
