//! `cordon session list` and `cordon session stop`.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{
    desk::Desk,
    wire::{Answer, Request},
};
use crate::{
    args::{SessionList, SessionStop},
    exit::Exit,
    printer::{Hinted, Printer},
};

pub(super) async fn list(args: &SessionList, printer: &Printer) -> anyhow::Result<Exit> {
    let mut sessions = Vec::new();
    for desk in Desk::all()? {
        sessions.push(look(&desk).await);
    }
    if args.json {
        printer.answer(Value::Array(sessions));
    } else if !sessions.is_empty() {
        let head = ["NAME", "AGENT", "SESSION", "ENGINE", "AGE", "IDLE", "STATE"];
        let mut rows = vec![head.map(str::to_owned)];
        rows.extend(sessions.iter().map(row));
        for line in table(&rows) {
            printer.answer(line);
        }
    }
    Ok(Exit::Command(0))
}

pub(super) async fn stop(args: &SessionStop) -> anyhow::Result<Exit> {
    let desks = match &args.name {
        Some(name) => {
            let desk = Desk::of(name)?;
            // Says so where there is none.
            drop(desk.connect().await?);
            vec![desk]
        }
        None => Desk::all()?,
    };
    for desk in desks {
        // One that ends by itself meanwhile is what is wanted.
        if let Ok(mut stream) = desk.connect().await {
            drop(Request::Stop.send(&mut stream).await);
            drop(timeout(ANSWER_LIMIT, Answer::receive(&mut stream)).await);
        }
        let begun = Instant::now();
        while desk.is_alive() {
            if begun.elapsed() > STOP_LIMIT {
                let hint = "see whether its supervisor hangs; it ends with its container when it is killed";
                let what = format!("session {} does not end", desk.name());
                return Err(Hinted::new(what, hint).into());
            }
            sleep(LOOK_EVERY).await;
        }
    }
    Ok(Exit::Command(0))
}

/// What there is to know of a session.
async fn look(desk: &Desk) -> Value {
    let asked = timeout(ANSWER_LIMIT, async {
        let mut stream = desk.connect().await?;
        Request::State.send(&mut stream).await?;
        Answer::receive(&mut stream).await
    });
    let mut known = match asked.await {
        Ok(Ok(Answer::Said(known))) => known,
        Ok(Ok(Answer::Runs(_)) | Err(_)) | Err(_) => json!({}),
    };
    let state = match known["running"].as_u64() {
        None => "starting",
        Some(0) => "ready",
        Some(_) => "busy",
    };
    known["name"] = desk.name().into();
    known["state"] = state.into();
    known
}

fn row(known: &Value) -> [String; 7] {
    let text = |name: &str| match &known[name] {
        // Any text may stand there; a terminal obeys none of it.
        Value::String(text) => text.escape_debug().to_string(),
        _ => "-".to_owned(),
    };
    let time = |name: &str| known[name].as_u64().map_or_else(|| "-".to_owned(), human);
    [
        text("name"),
        text("agent"),
        text("session"),
        text("engine"),
        time("age_seconds"),
        time("idle_seconds"),
        text("state"),
    ]
}

fn human(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600.. => format!("{}h", seconds / 3600),
    }
}

/// Lines whose columns stand below each other.
fn table<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or_default()
    };
    let widths: Vec<_> = (0..N).map(width).collect();
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(&widths);
        let padded: Vec<_> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        padded.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// Commands are asked to end, killed after a while, and the container's removal is verified.
const STOP_LIMIT: Duration = Duration::from_secs(60);

const LOOK_EVERY: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_session_is_called_does_not_reach_the_terminal() {
        let row = row(&json!({"name": "a", "agent": "\u{1b}[31mred\n", "running": 0}));
        assert_eq!(row[1], "\\u{1b}[31mred\\n");
        assert_eq!(row[2], "-");
    }

    #[test]
    fn columns_stand_below_each_other() {
        let rows = [["a", "bb"], ["ccc", "d"]].map(|row| row.map(str::to_owned));
        assert_eq!(table(&rows), ["a    bb", "ccc  d"]);
    }
}
