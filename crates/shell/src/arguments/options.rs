//! Programs of which some options run other programs.

use crate::{Reason, Refusal, known, word::Word};

/// Refuses the options of known programs that run other programs.
pub(super) fn judge(name: &str, words: &[Word]) -> Result<(), Refusal> {
    if known::is_one_of(name, &["find"]) {
        super::all_clear(words)?;
        return refuse_where(words, |text| {
            FIND.iter().any(|action| text.starts_with(action))
        });
    }
    let Some(guard) = GUARDS
        .iter()
        .find(|guard| known::is_one_of(name, guard.names))
    else {
        return Ok(());
    };
    super::all_clear(words)?;
    refuse_where(words, |text| guard.refuses(text))?;
    if known::is_one_of(name, TAR) {
        return judge_tar(words);
    }
    Ok(())
}

/// The first word of `tar` is a bundle of options even without a dash, and a colon names another machine.
fn judge_tar(words: &[Word]) -> Result<(), Refusal> {
    let bundle = |text: &str| !text.starts_with('-') && text.contains(['I', 'F']);
    refuse_where(&words[..words.len().min(1)], bundle)?;
    refuse_where(words, |text| text.contains(':'))
}

/// Options of one program.
struct Guard {
    names: &'static [&'static str],
    /// Long options, of which any beginning is understood.
    long: &'static [&'static str],
    /// Letters that may not be in a bundle.
    short: &'static str,
}

impl Guard {
    fn refuses(&self, text: &str) -> bool {
        match text.strip_prefix("--") {
            Some("") => false,
            Some(option) => is_beginning(option, self.long),
            None => text
                .strip_prefix('-')
                .is_some_and(|bundle| bundle.contains(|c| self.short.contains(c))),
        }
    }
}

/// Whether a long option is one of those, or an abbreviation of one.
pub(super) fn is_beginning(option: &str, known: &[&str]) -> bool {
    let option = option.split('=').next().unwrap_or(option);
    !option.is_empty() && known.iter().any(|known| known.starts_with(option))
}

/// Refuses the first word whose text is of that kind, and words whose beginning is.
pub(super) fn refuse_where(words: &[Word], refused: impl Fn(&str) -> bool) -> Result<(), Refusal> {
    for word in words {
        if word.text().is_some_and(|text| refused(&text)) {
            return Err(word.refuse(Reason::Argument));
        }
    }
    Ok(())
}

const TAR: &[&str] = &["tar", "bsdtar"];

const FIND: &[&str] = &["-exec", "-ok", "-delete", "-fprint", "-fls"];

const GUARDS: &[Guard] = &[
    Guard {
        names: TAR,
        long: &[
            "checkpoint-action",
            "info-script",
            "new-volume-script",
            "rmt-command",
            "rsh-command",
            "to-command",
            "use-compress-program",
        ],
        short: "IF",
    },
    Guard {
        names: &["sort"],
        long: &["compress-program"],
        short: "",
    },
    Guard {
        names: &["split"],
        long: &["filter"],
        short: "",
    },
    Guard {
        names: &["rg"],
        long: &["pre", "hostname-bin"],
        short: "",
    },
    Guard {
        names: &["fd", "fdfind"],
        long: &["exec", "exec-batch"],
        short: "xX",
    },
    Guard {
        names: &["wget"],
        long: &["config", "execute", "use-askpass"],
        short: "e",
    },
    Guard {
        names: &["zip"],
        long: &["test-command", "unzip-command"],
        short: "T",
    },
    Guard {
        names: &["cpio"],
        long: &["rsh-command"],
        short: "",
    },
    Guard {
        names: &["install"],
        long: &["strip-program"],
        short: "",
    },
    Guard {
        names: &["ar", "nm", "ranlib"],
        long: &["plugin"],
        short: "",
    },
];
