//! One run: every load on every contender in turn, round after round, then the comparison.

mod contender;
mod table;

use std::{env, fs, path::Path, process::ExitCode};

use anyhow::{Context, Result};

use crate::{load::Report, tell};

use contender::{Contender, Cpu, Origin};
use table::{Key, Table};

/// Compares and says whether every limit is kept. Rounds and seconds of one window come from
/// `BENCH_ROUNDS` and `BENCH_SECONDS`.
pub(crate) fn run(mitmdump: &Path, addon: &Path) -> Result<ExitCode> {
    let (rounds, seconds) = (number("BENCH_ROUNDS", 5)?, number("BENCH_SECONDS", 3)?);
    let directory = tempfile::tempdir()?;
    let directory = directory.path();
    let origin = Origin::start(directory)?;
    let contenders = [
        Contender::direct(&origin, directory),
        Contender::cordon(&origin, directory)?,
        Contender::with_secrets(&origin, directory)?,
        Contender::mitmproxy(&origin, directory, mitmdump, addon)?,
    ];
    let mut table = Table::default();
    for contender in &contenders {
        contender.load(&origin, "h1", 1)?;
        if let Some(memory) = contender.memory()? {
            table.add(contender.name, Key::IdleMemory, memory);
        }
    }
    for round in 1..=rounds {
        progress(&format!("round {round} of {rounds}"));
        for (kind, amount) in loads(seconds) {
            for contender in &contenders {
                measure(&mut table, contender, &origin, kind, amount)?;
            }
        }
    }
    for contender in &contenders {
        if let Some(memory) = memory_under_load(contender, &origin)? {
            table.add(contender.name, Key::BusyMemory, memory);
        }
    }
    table.say(&tell);
    Ok(if table.limits_kept() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn loads(seconds: u64) -> [(&'static str, u64); 9] {
    [
        ("h1", seconds),
        ("h2", seconds),
        ("alone", seconds),
        ("connect", seconds),
        ("event", 20),
        ("down-h1", GIB),
        ("down-h2", GIB),
        ("up-h1", GIB),
        ("up-h2", GIB),
    ]
}

fn measure(
    table: &mut Table,
    contender: &Contender,
    origin: &Origin,
    kind: &'static str,
    amount: u64,
) -> Result<()> {
    let before = Cpu::now(contender.pid())?;
    let Report {
        count,
        seconds,
        p50,
        p99,
    } = contender.load(origin, kind, amount)?;
    let used = Cpu::now(contender.pid())?.since(&before);
    let mut add = |key, value| table.add(contender.name, key, value);
    add(Key::Rate(kind), count as f64 / seconds);
    if p50 > 0.0 {
        add(Key::P50(kind), p50);
        add(Key::P99(kind), p99);
    }
    if contender.pid().is_some() {
        add(Key::Cost(kind), used.own / count as f64);
        add(Key::Others, used.others / seconds);
    }
    Ok(())
}

fn memory_under_load(contender: &Contender, origin: &Origin) -> Result<Option<f64>> {
    let mut holder = contender.spawn_load(origin, "hold", CONNECTIONS)?;
    holder
        .line()
        .with_context(|| format!("{} and {CONNECTIONS} connections", contender.name))?;
    contender.memory()
}

fn number(name: &str, default: u64) -> Result<u64> {
    match env::var(name) {
        Ok(text) => text.parse().with_context(|| format!("{name} is no number")),
        Err(_) => Ok(default),
    }
}

#[expect(
    clippy::print_stderr,
    reason = "a run takes minutes; people want to see it move"
)]
fn progress(line: &str) {
    eprintln!("{line}");
}

const GIB: u64 = 1 << 30;
const CONNECTIONS: u64 = 1000;

/// Where the load of this machine is to be read.
fn proc_file(path: &str) -> Result<String> {
    fs::read_to_string(Path::new("/proc").join(path)).with_context(|| path.to_owned())
}
