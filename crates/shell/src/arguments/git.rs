//! What `git` may be asked for when it is listed without a `!`.
//!
//! Only commands of git's own that neither reach other machines nor run what they are given; an alias cannot take
//! their names. Hooks and the repository's configuration can still name programs, which is why redirections into
//! `.git` are refused.

use std::path::Path;

use crate::{Reason, Refusal, known::in_table, line::path, word::Word};

use super::options::{is_beginning, refuse_where};

/// Judges the words behind `git`.
pub(super) fn judge(words: &[Word], workspace: &Path) -> Result<(), Refusal> {
    super::all_clear(words)?;
    let mut rest = words;
    let command = loop {
        let [word, behind @ ..] = rest else {
            return Ok(());
        };
        rest = behind;
        let text = word
            .text()
            .ok_or_else(|| word.refuse(Reason::UnclearArgument))?;
        match (text.as_str(), behind) {
            ("--no-pager" | "-P" | "--version" | "-v", _) => {}
            ("-C", [directory, behind @ ..]) => {
                let inside = |text: String| path::is_inside(&text, workspace);
                if !directory.text().is_some_and(inside) {
                    return Err(directory.refuse(Reason::Argument));
                }
                rest = behind;
            }
            _ if in_table(COMMANDS, &text) => break text,
            _ => return Err(word.refuse(Reason::Argument)),
        }
    };
    refuse_where(rest, |text| {
        let long = text
            .strip_prefix("--")
            .is_some_and(|option| is_beginning(option, LONG) && option != "text");
        // `grep -O` opens what it finds in a program, and `rebase -x` is not the only `-x`.
        let short = command == "grep"
            && text.starts_with('-')
            && !text.starts_with("--")
            && text.contains('O');
        long || short
    })
}

/// Long options that run programs, of any command.
const LONG: &[&str] = &[
    "exec",
    "ext-diff",
    "filters",
    "open-files-in-pager",
    "receive-pack",
    "remote",
    "template",
    "textconv",
    "upload-pack",
    "upload-archive",
];

const COMMANDS: &str = "\
    add annotate apply blame branch cat-file check-attr check-ignore checkout cherry cherry-pick clean commit \
    count-objects describe diff diff-files diff-index diff-tree for-each-ref format-patch fsck grep hash-object \
    init log ls-files ls-tree merge merge-base mv name-rev notes range-diff reflog reset restore rev-list \
    rev-parse revert rm shortlog show show-branch show-ref stash status switch symbolic-ref tag whatchanged \
    write-tree";
