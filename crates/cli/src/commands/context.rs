//! `cordon context`.

use std::{
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use cordon::{
    ContextEntry, PrunedContexts, Retention, SandboxError, SessionError, contexts, prune_contexts,
};
use serde_json::{Value, json};

use crate::{
    args::{Context, ContextCommand, ContextPrune},
    commands::state,
    exit::Exit,
    printer::Printer,
};

pub(crate) fn run(args: &Context, printer: &Printer) -> anyhow::Result<Exit> {
    let root = state::contexts()?;
    match &args.command {
        ContextCommand::List { json } => list(&root, *json, printer),
        ContextCommand::Prune(args) => prune(&root, args, printer),
    }
}

fn list(root: &Path, json: bool, printer: &Printer) -> anyhow::Result<Exit> {
    let entries = contexts(root).map_err(SandboxError::from)?;
    if json {
        printer.answer(Value::from_iter(entries.iter().map(described)));
        return Ok(Exit::Command(0));
    }
    let now = SystemTime::now();
    for entry in &entries {
        let idle = now.duration_since(entry.last_activity).unwrap_or_default();
        let state = if entry.in_use { "in use" } else { "" };
        let line = format!("{:<40}  {:>8}  {state}", name(entry), ago(idle));
        printer.answer(line.trim_end());
    }
    Ok(Exit::Command(0))
}

fn prune(root: &Path, args: &ContextPrune, printer: &Printer) -> anyhow::Result<Exit> {
    let limits = Retention {
        keep: Some(args.keep),
        max_idle: Some(Duration::from_secs(args.idle * DAY)),
    };
    let pruned = if args.dry_run {
        would_prune(root, limits)
    } else {
        prune_contexts(root, &limits, SystemTime::now())
    };
    let pruned = pruned.map_err(SandboxError::from)?;
    if args.json {
        printer.answer(json!({
            "dry_run": args.dry_run,
            "removed": shown(&pruned.removed),
            "in_use": shown(&pruned.in_use),
            "errors": pruned.errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
        }));
    } else {
        for path in &pruned.removed {
            printer.answer(path.display());
        }
    }
    for path in &pruned.in_use {
        printer.info(format_args!("{} is in use and stays", path.display()));
    }
    for error in &pruned.errors {
        printer.warning(with_cause(error));
    }
    Ok(Exit::Command(i32::from(!pruned.errors.is_empty())))
}

/// What a removal would come to.
fn would_prune(root: &Path, limits: Retention) -> Result<PrunedContexts, SessionError> {
    let beyond = limits.beyond(contexts(root)?, SystemTime::now());
    let (in_use, removed): (Vec<_>, Vec<_>) = beyond.partition(|entry| entry.in_use);
    let directories = |entries: Vec<ContextEntry>| entries.into_iter().map(|entry| entry.dir);
    Ok(PrunedContexts {
        removed: directories(removed).collect(),
        in_use: directories(in_use).collect(),
        errors: Vec::new(),
    })
}

fn described(entry: &ContextEntry) -> Value {
    let since = entry.last_activity.duration_since(SystemTime::UNIX_EPOCH);
    json!({
        "context": name(entry),
        "directory": entry.dir.display().to_string(),
        "last_activity": since.unwrap_or_default().as_secs(),
        "in_use": entry.in_use,
    })
}

/// The directory's name where the context's own file cannot be read.
fn name(entry: &ContextEntry) -> String {
    entry.execution_context_id.clone().unwrap_or_else(|| {
        let name = entry.dir.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    })
}

fn shown(paths: &[PathBuf]) -> Vec<String> {
    paths
        .iter()
        .map(|path| path.display().to_string())
        .collect()
}

fn with_cause(error: &SessionError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Days, hours, minutes or seconds, whichever tells most.
fn ago(idle: Duration) -> String {
    match idle.as_secs() {
        seconds if seconds >= DAY => format!("{} d", seconds / DAY),
        seconds if seconds >= 3600 => format!("{} h", seconds / 3600),
        seconds if seconds >= 60 => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}

const DAY: u64 = 24 * 60 * 60;
