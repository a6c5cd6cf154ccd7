//! What `sed` may be asked for when it is listed without a `!`.
//!
//! A script of `sed` can run commands and write files anywhere. Those that only select, print, delete, insert and
//! replace are told by reading the whole script; the rest is refused.

use std::{iter::Peekable, str::Chars};

use crate::{Reason, Refusal, word::Word};

/// Judges the words behind `sed`.
pub(super) fn judge(words: &[Word]) -> Result<(), Refusal> {
    super::all_clear(words)?;
    let mut script_given = false;
    let mut operands = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.text().unwrap_or_default();
        match argument(&text) {
            Argument::Operand => operands.push(word),
            Argument::Flags => {}
            Argument::Script => {
                script_given = true;
                let Some(script) = words.next() else {
                    return Err(word.refuse(Reason::Argument));
                };
                judge_script(script)?;
            }
            Argument::Unknown => return Err(word.refuse(Reason::Argument)),
        }
    }
    match operands.first() {
        Some(script) if !script_given => judge_script(script),
        _ => Ok(()),
    }
}

/// Nothing where a script is more than plain.
type Plain = Option<()>;

enum Argument {
    Operand,
    Flags,
    Script,
    Unknown,
}

fn argument(text: &str) -> Argument {
    if LONG.contains(&text) {
        return Argument::Flags;
    }
    let Some(bundle) = text.strip_prefix('-').filter(|bundle| !bundle.is_empty()) else {
        return Argument::Operand;
    };
    let rest = bundle.trim_start_matches(|c| "nErsuz".contains(c));
    let suffix = |suffix: &str| {
        suffix
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '~')
    };
    match rest {
        "" => Argument::Flags,
        "e" => Argument::Script,
        _ if rest.strip_prefix('i').is_some_and(suffix) => Argument::Flags,
        _ => Argument::Unknown,
    }
}

fn judge_script(word: &Word) -> Result<(), Refusal> {
    let text = word
        .text()
        .ok_or_else(|| word.refuse(Reason::UnclearArgument))?;
    match script(&mut text.chars().peekable()) {
        Some(()) => Ok(()),
        None => Err(word.refuse(Reason::Argument)),
    }
}

/// Reads a script to its end, or as far as it is plain.
fn script(rest: &mut Peekable<Chars<'_>>) -> Plain {
    loop {
        while rest.next_if(|c| " \t\n;{}".contains(*c)).is_some() {}
        if rest.peek().is_none() {
            return Some(());
        }
        address(rest)?;
        if rest.next_if_eq(&',').is_some() {
            rest.next_if(|c| "+~".contains(*c));
            address(rest)?;
        }
        while rest.next_if(|c| " \t!".contains(*c)).is_some() {}
        match rest.next()? {
            '{' => continue,
            'p' | 'P' | 'd' | 'D' | 'q' | '=' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | 'l' => {}
            's' => {
                delimited(rest, 2)?;
                while rest
                    .next_if(|c| "gpiI".contains(*c) || c.is_ascii_digit())
                    .is_some()
                {}
            }
            'y' => delimited(rest, 2)?,
            // Text up to the end of the line, which is the last one.
            'a' | 'i' | 'c' => return rest.all(|c| c != '\n').then_some(()),
            _ => return None,
        }
        while rest.next_if(|c| " \t".contains(*c)).is_some() {}
        if rest.peek().is_some_and(|c| !";}\n".contains(*c)) {
            return None;
        }
    }
}

fn address(rest: &mut Peekable<Chars<'_>>) -> Plain {
    if rest.next_if_eq(&'$').is_some() {
        return Some(());
    }
    if rest.peek() == Some(&'/') {
        delimited(rest, 1)?;
        rest.next_if_eq(&'I');
        return Some(());
    }
    while rest.next_if(|c| c.is_ascii_digit() || *c == '~').is_some() {}
    Some(())
}

/// Reads a delimiter, and on to its `count`th return. Versions of `sed` differ about one inside of brackets.
fn delimited(rest: &mut Peekable<Chars<'_>>, count: usize) -> Plain {
    let delimiter = rest
        .next()
        .filter(|c| c.is_ascii_punctuation() && *c != '\\')?;
    for _ in 0..count {
        let mut bracket = false;
        loop {
            match rest.next()? {
                '\n' => return None,
                '\\' => {
                    rest.next().filter(|c| *c != '\n')?;
                }
                c if c == delimiter && bracket => return None,
                c if c == delimiter => break,
                // A bracket that begins with `]` goes on in some versions, and ends in others.
                '[' => {
                    bracket = true;
                    rest.next_if_eq(&'^');
                    if rest.peek() == Some(&']') {
                        return None;
                    }
                }
                ']' => bracket = false,
                _ => {}
            }
        }
    }
    Some(())
}

const LONG: &[&str] = &[
    "--quiet",
    "--silent",
    "--regexp-extended",
    "--in-place",
    "--separate",
    "--unbuffered",
    "--null-data",
    "--posix",
    "--sandbox",
    "--version",
];
