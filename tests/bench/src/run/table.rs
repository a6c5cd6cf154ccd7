//! What was measured, as medians over the rounds, and the limits that it must keep.

use std::collections::BTreeMap;

/// One kind of figure.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Key {
    /// Requests, connections or bytes in a second.
    Rate(&'static str),
    /// Microseconds.
    P50(&'static str),
    P99(&'static str),
    /// Processor time of the proxy for one request, connection or byte, in microseconds.
    Cost(&'static str),
    /// MiB after a few requests.
    IdleMemory,
    /// MiB with a thousand connections open, after all loads.
    BusyMemory,
    /// Processor time of other processes on the proxy's core, microseconds in a second.
    Others,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    figures: BTreeMap<(Key, &'static str), Vec<f64>>,
}

impl Table {
    pub(super) fn add(&mut self, contender: &'static str, key: Key, value: f64) {
        self.figures
            .entry((key, contender))
            .or_default()
            .push(value);
    }

    /// Prints the figures and then the limits.
    pub(super) fn say(&self, tell: &dyn Fn(&String)) {
        let row = |cells: [&str; 6]| {
            let [what, direct, cordon, mitm, ratio, share] = cells;
            tell(&format!(
                "{what:<34} {direct:>10} {cordon:>10} {mitm:>10} {ratio:>16} {share:>14}"
            ));
        };
        row([
            "",
            "direct",
            "cordon",
            "mitmproxy",
            "cordon/mitmproxy",
            "cordon/direct",
        ]);
        for (what, key, unit) in ROWS {
            let cell = |contender| {
                self.median(contender, key)
                    .map(|value| number(value / unit))
            };
            let part = |other| {
                Some(number(
                    self.median("cordon", key)? / self.median(other, key)?,
                ))
            };
            let cells = [
                cell("direct"),
                cell("cordon"),
                cell("mitmproxy"),
                part("mitmproxy"),
                part("direct"),
            ];
            let [direct, cordon, mitm, ratio, share] =
                cells.map(|cell| cell.unwrap_or_else(|| "-".to_owned()));
            row([what, &direct, &cordon, &mitm, &ratio, &share]);
        }
        tell(&String::new());
        for (what, key) in ADDED {
            let added =
                |contender| number((self.value(contender, key) - self.value("direct", key)) / 1e3);
            let (cordon, mitm) = (added("cordon"), added("mitmproxy"));
            tell(&format!(
                "added to one request at a time: {what}, ms   cordon {cordon}   mitmproxy {mitm}"
            ));
        }
        tell(&String::new());
        for (what, key) in SCRUBBED {
            let part = self.value("secrets", key) / self.value("cordon", key);
            tell(&format!(
                "with a secret in scope: {what:<46} x{}",
                number(part)
            ));
        }
        tell(&String::new());
        for limit in self.limits() {
            let verdict = if limit.kept() { "ok  " } else { "MISS" };
            let (value, bound) = (number(limit.value), number(limit.bound));
            let sense = if limit.at_least { "at least" } else { "below" };
            tell(&format!(
                "{verdict} {:<58} {value:>9}   ({sense} {bound})",
                limit.what
            ));
        }
    }

    pub(super) fn limits_kept(&self) -> bool {
        self.limits().iter().all(Limit::kept)
    }

    fn limits(&self) -> Vec<Limit> {
        let ratio = |key| self.value("cordon", key) / self.value("mitmproxy", key);
        let tail =
            |kind| self.value("cordon", Key::P99(kind)) / self.value("mitmproxy", Key::P50(kind));
        let delay =
            self.value("cordon", Key::P50("event")) - self.value("direct", Key::P50("event"));
        vec![
            at_least(
                "requests/s over h1, times mitmproxy",
                ratio(Key::Rate("h1")),
                40.0,
            ),
            at_least(
                "requests/s over h2, times mitmproxy",
                ratio(Key::Rate("h2")),
                40.0,
            ),
            at_least(
                "new connections/s, times mitmproxy",
                ratio(Key::Rate("connect")),
                12.0,
            ),
            at_least("bulk throughput, times mitmproxy", self.bulk_ratio(), 2.5),
            below(
                "memory idle, part of mitmproxy's",
                ratio(Key::IdleMemory),
                0.2,
            ),
            below(
                "memory with 1,000 connections, part of mitmproxy's",
                ratio(Key::BusyMemory),
                0.2,
            ),
            below("p99 over h1, part of mitmproxy's p50", tail("h1"), 1.0),
            below("p99 over h2, part of mitmproxy's p50", tail("h2"), 1.0),
            below("delay of the first event, ms over direct", delay / 1e3, 2.0),
        ]
    }

    /// All four transfers one after the other.
    fn bulk_ratio(&self) -> f64 {
        let time = |contender| -> f64 {
            BULK.iter()
                .map(|kind| 1.0 / self.value(contender, Key::Rate(kind)))
                .sum()
        };
        time("mitmproxy") / time("cordon")
    }

    /// Not a number where nothing was measured, which keeps no limit.
    fn value(&self, contender: &'static str, key: Key) -> f64 {
        self.median(contender, key).unwrap_or(f64::NAN)
    }

    fn median(&self, contender: &'static str, key: Key) -> Option<f64> {
        let mut values = self.figures.get(&(key, contender))?.clone();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    }
}

struct Limit {
    what: &'static str,
    value: f64,
    bound: f64,
    at_least: bool,
}

impl Limit {
    fn kept(&self) -> bool {
        if self.at_least {
            self.value >= self.bound
        } else {
            self.value < self.bound
        }
    }
}

fn at_least(what: &'static str, value: f64, bound: f64) -> Limit {
    Limit {
        what,
        value,
        bound,
        at_least: true,
    }
}

fn below(what: &'static str, value: f64, bound: f64) -> Limit {
    Limit {
        what,
        value,
        bound,
        at_least: false,
    }
}

fn number(value: f64) -> String {
    match value.abs() {
        0.0..0.1 => format!("{value:.4}"),
        0.1..10.0 => format!("{value:.2}"),
        10.0..1000.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

const BULK: [&str; 4] = ["down-h1", "down-h2", "up-h1", "up-h2"];

/// What a proxy adds to the time of a request that is alone.
const ADDED: [(&str, Key); 2] = [("p50", Key::P50("alone")), ("p99", Key::P99("alone"))];

/// What scrubbing costs: the rate with a secret in scope as a part of the rate without.
const SCRUBBED: [(&str, Key); 4] = [
    ("keep-alive h1, requests/s", Key::Rate("h1")),
    ("keep-alive h2, requests/s", Key::Rate("h2")),
    ("1 GiB down h1, MiB/s", Key::Rate("down-h1")),
    ("1 GiB down h2, MiB/s", Key::Rate("down-h2")),
];

const MIB: f64 = 1024.0 * 1024.0;
const PER_MIB: f64 = 1.0 / MIB;

/// Rows to print: what, which, and the unit to print it in.
const ROWS: [(&str, Key, f64); 26] = [
    ("keep-alive h1, requests/s", Key::Rate("h1"), 1.0),
    ("  p50, ms", Key::P50("h1"), 1e3),
    ("  p99, ms", Key::P99("h1"), 1e3),
    ("  processor time each, µs", Key::Cost("h1"), 1.0),
    ("keep-alive h2, requests/s", Key::Rate("h2"), 1.0),
    ("  p50, ms", Key::P50("h2"), 1e3),
    ("  p99, ms", Key::P99("h2"), 1e3),
    ("  processor time each, µs", Key::Cost("h2"), 1.0),
    ("one at a time h1, requests/s", Key::Rate("alone"), 1.0),
    ("  p50, ms", Key::P50("alone"), 1e3),
    ("  p99, ms", Key::P99("alone"), 1e3),
    ("new connections/s", Key::Rate("connect"), 1.0),
    ("  p50, ms", Key::P50("connect"), 1e3),
    ("  p99, ms", Key::P99("connect"), 1e3),
    ("  processor time each, µs", Key::Cost("connect"), 1.0),
    ("1 GiB down h1, MiB/s", Key::Rate("down-h1"), MIB),
    ("1 GiB down h2, MiB/s", Key::Rate("down-h2"), MIB),
    ("1 GiB up h1, MiB/s", Key::Rate("up-h1"), MIB),
    ("1 GiB up h2, MiB/s", Key::Rate("up-h2"), MIB),
    (
        "  processor time down h1, µs/MiB",
        Key::Cost("down-h1"),
        PER_MIB,
    ),
    (
        "  processor time up h1, µs/MiB",
        Key::Cost("up-h1"),
        PER_MIB,
    ),
    ("first event p50, ms", Key::P50("event"), 1e3),
    ("first event p99, ms", Key::P99("event"), 1e3),
    ("memory idle, MiB", Key::IdleMemory, 1.0),
    ("memory, 1,000 connections, MiB", Key::BusyMemory, 1.0),
    ("others on the proxy's core, %", Key::Others, 1e4),
];
