//! Runs files of cases against the real code: `vectors <file.json>…`.
//!
//! A file is known by its name and each case by its fields; what is not known fails. Ends with one line,
//! `N passed, N failed`, and with status 1 where anything failed. What differs on purpose stands in `differences.json`
//! with its reason, is listed as skipped, and counts as neither.

mod case;
mod differences;
mod kinds;
mod report;
mod world;

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use case::{Case, Check, Unreadable};
use differences::Differences;
use kinds::Kind;
use report::Report;
use serde_json::Value;

fn main() -> ExitCode {
    let files: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    match run(&files, &mut io::stdout().lock()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        // Whoever reads has gone; there is nobody left to tell.
        Err(_) => ExitCode::FAILURE,
    }
}

/// Runs every file; true where every case passed or is skipped for a reason.
fn run(files: &[PathBuf], out: &mut impl Write) -> io::Result<bool> {
    let differences = match Differences::read() {
        Ok(differences) => differences,
        Err(error) => {
            writeln!(out, "differences.json: {error}")?;
            return Ok(false);
        }
    };
    let mut report = Report::default();
    for file in files {
        match cases(file) {
            Ok((kind, cases)) => {
                for case in cases {
                    judge(kind, case, &differences, &mut report, out)?;
                }
            }
            Err(error) => report.fail(out, &file.display(), &error)?,
        }
    }
    if files.is_empty() {
        report.fail(out, &"usage", &"vectors <file.json>…")?;
    }
    report.finish(out)
}

/// Reads the cases of a file and finds out what they are cases of.
fn cases(file: &Path) -> Result<(Kind, Vec<Value>), Unreadable> {
    let name = file
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or_default();
    let kind = Kind::of(name).ok_or(Unreadable::File)?;
    let text = fs::read_to_string(file)?;
    match serde_json::from_str(&text)? {
        Value::Array(cases) if !cases.is_empty() => Ok((kind, cases)),
        _ => Err(Unreadable::NoCases),
    }
}

fn judge(
    kind: Kind,
    case: Value,
    differences: &Differences,
    report: &mut Report,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut case = match Case::new(case) {
        Ok(case) => case,
        Err(error) => return report.fail(out, &kind.name(), &error),
    };
    let id = case.id().to_owned();
    let check = match kind
        .check(&mut case)
        .and_then(|check| case.finish().map(|()| check))
    {
        Ok(check) => check,
        Err(error) => return report.fail(out, &id, &error),
    };
    if check.passes() {
        report.pass();
        return Ok(());
    }
    match differences.reason(kind.name(), &id, &check) {
        Some(reason) => report.skip(out, &id, reason),
        None => report.fail(out, &id, &check),
    }
}

#[cfg(test)]
mod tests;
