//! What runs that died have left.

use std::path::Path;

use cordon_engine::Engine;

use super::{Action, Code, Finding, Fix};
use crate::leftovers::{self, Cleaned, Leftover};

/// What is to be said, and what was removed.
pub(super) async fn check(engine: &Engine, runtime: &Path, fix: Fix) -> (Finding, Vec<Action>) {
    let kind = engine.kind();
    match (leftovers::find(engine, runtime).await, fix) {
        (Err(error), _) => {
            let message = format!("cannot tell what is left with {kind}: {error}");
            let finding = Finding::warning(Code::LeftoversKept, message);
            (finding.hint(format!("{kind} ps --all")), Vec::new())
        }
        (Ok(found), _) if found.is_empty() => {
            let message = format!("nothing is left of dead runs with {kind}");
            (Finding::ok(Code::Leftovers, message), Vec::new())
        }
        (Ok(found), Fix::No) => {
            let message = format!("dead runs have left {} with {kind}", listed(&found));
            let finding = Finding::warning(Code::LeftoversFound, message);
            (finding.hint("cordon clean"), Vec::new())
        }
        (Ok(_), Fix::Yes) => mend(engine, runtime).await,
    }
}

async fn mend(engine: &Engine, runtime: &Path) -> (Finding, Vec<Action>) {
    let kind = engine.kind();
    let mut cleaned = Cleaned::default();
    cleaned.sweep(engine, runtime).await;
    let actions = cleaned.removed.iter().map(|gone| Action {
        agent: None,
        message: format!("removed the {} {}", gone.kind.word(), gone.name),
    });
    let kept: Vec<_> = cleaned.kept.iter().chain(&cleaned.unanswered).collect();
    let finding = match kept.as_slice() {
        [] => Finding::ok(
            Code::Leftovers,
            format!("nothing is left of dead runs with {kind}"),
        ),
        [kept, ..] => {
            let message = format!("cannot remove {}: {}", kept.what, kept.reason());
            let finding = Finding::error(Code::LeftoversKept, message);
            match kept.why.hint() {
                Some(hint) => finding.hint(hint),
                None => finding,
            }
        }
    };
    (finding, actions.collect())
}

/// As many as a person reads.
fn listed(found: &[Leftover]) -> String {
    let names: Vec<_> = found
        .iter()
        .take(SHOWN)
        .map(|leftover| format!("the {} {}", leftover.kind.word(), leftover.name))
        .collect();
    let rest = match found.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{rest}", names.join(", "))
}

const SHOWN: usize = 2;
