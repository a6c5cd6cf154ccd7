//! What an event of an agent costs: a reply of 10,000 events beside one of 100,000, in processor time and in bytes.
//!
//! Both are measured in turn, round after round, so that a busy machine is busy for both.

use std::{fs, process::ExitCode};

use anyhow::{Context, Result};
use cordon_agents::{Agent, StreamEvent, parse_event};
use cordon_session::SessionStore;

use crate::tell;

pub(crate) fn run() -> Result<ExitCode> {
    let event = parse_event(EVENT).context("the event is none")?;
    let (mut few, mut many) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        few.push(record(&event, FEW)?);
        many.push(record(&event, MANY)?);
    }
    let (few, many) = (median(few)?, median(many)?);
    tell(&format!(
        "{:>10} {:>14} {:>14}",
        "events", "ns/event", "bytes/event"
    ));
    for (count, cost) in [(FEW, &few), (MANY, &many)] {
        tell(&format!(
            "{count:>10} {:>14.0} {:>14.2}",
            cost.time, cost.bytes
        ));
    }
    let (time, bytes) = (many.time / few.time, many.bytes / few.bytes);
    tell(&format!("{:>10} {time:>14.2} {bytes:>14.2}", "ratio"));
    let constant = time < TIME_RATIO_MAX && bytes < BYTES_RATIO_MAX;
    Ok(if constant {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// What one event of a reply cost, on average.
#[derive(Debug)]
struct Cost {
    /// Nanoseconds of processor time.
    time: f64,
    /// Bytes written, whatever the file.
    bytes: f64,
}

/// Records a reply of that many events, from its beginning to its end.
fn record(event: &StreamEvent, count: u32) -> Result<Cost> {
    let directory = tempfile::tempdir()?;
    let store = SessionStore::new(directory.path().join("context"));
    let writer = store.write("bench")?;
    let (time, bytes) = (processor_time()?, written()?);
    let mut recording = writer.begin_reply(Agent::Claude, Some("bench"))?;
    for _ in 0..count {
        recording.append(event)?;
    }
    recording.finish(cordon_session::ReplyUpdate::default())?;
    let spent = |after: u64, before: u64| (after - before) as f64 / f64::from(count);
    Ok(Cost {
        time: spent(processor_time()?, time),
        bytes: spent(written()?, bytes),
    })
}

fn median(mut costs: Vec<Cost>) -> Result<Cost> {
    costs.sort_by(|one, other| one.time.total_cmp(&other.time));
    let middle = costs.len() / 2;
    costs.into_iter().nth(middle).context("no rounds")
}

/// Nanoseconds that this process had a processor for.
fn processor_time() -> Result<u64> {
    let text = fs::read_to_string("/proc/self/schedstat")?;
    let first = text.split_whitespace().next().context("empty schedstat")?;
    Ok(first.parse()?)
}

/// Bytes that this process has written.
fn written() -> Result<u64> {
    let text = fs::read_to_string("/proc/self/io")?;
    let line = text.lines().find_map(|line| line.strip_prefix("wchar:"));
    Ok(line.context("no wchar")?.trim().parse()?)
}

const EVENT: &str = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"A line of some length, like those that agents write."}]}}"#;

const FEW: u32 = 10_000;

const MANY: u32 = 100_000;

const ROUNDS: usize = 5;

/// Ten times the events at a quarter more for each would not be constant any more.
const TIME_RATIO_MAX: f64 = 1.25;

/// The beginning and the end of a reply weigh less, the more events are between them.
const BYTES_RATIO_MAX: f64 = 1.001;
