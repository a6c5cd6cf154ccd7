//! `cordon clean`.

use cordon::{Cleaned, Kept, Sandbox, SandboxConfig};
use serde_json::{Value, json};

use crate::{args::Clean, exit::Exit, printer::Printer};

pub(crate) async fn run(args: Clean, printer: &Printer) -> anyhow::Result<Exit> {
    let cleaned = Sandbox::new(SandboxConfig::default()).clean().await;
    if args.json {
        printer.json(&document(&cleaned));
    } else {
        printer.cleaned(&cleaned);
    }
    Ok(Exit::Command(i32::from(!cleaned.kept.is_empty())))
}

/// What came of it for programs; docs/doctor.md describes it.
fn document(cleaned: &Cleaned) -> Value {
    let engines = cleaned.engines.iter().map(|engine| engine.to_string());
    let removed = cleaned.removed.iter().map(|gone| {
        json!({
            "kind": gone.kind.word(),
            "name": gone.name,
            "engine": gone.engine.map(|engine| engine.to_string()),
        })
    });
    let kept = |kept: &Kept| {
        let (what, why, hint) = (&kept.what, kept.reason(), kept.why.hint());
        json!({ "what": what, "why": why, "hint": hint })
    };
    json!({
        "schema": 1,
        "engines": engines.collect::<Value>(),
        "removed": removed.collect::<Value>(),
        "kept": cleaned.kept.iter().map(kept).collect::<Value>(),
        "unanswered": cleaned.unanswered.iter().map(kept).collect::<Value>(),
    })
}
