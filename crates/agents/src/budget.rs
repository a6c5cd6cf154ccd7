//! Limits on what a run may use up, and the count that is held against them while it streams.

use std::{collections::VecDeque, fmt};

use serde::{Deserialize, Serialize};

use crate::{Agent, ContentBlock, Error, EventKind, Message, StreamEvent, Usage};

/// What a run may use up; no limit where none is set.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// Money, in US dollars.
    pub max_cost_usd: Option<f64>,
    /// Answers of the model.
    pub max_turns: Option<u32>,
}

impl Budget {
    /// Refuses limits that cannot be kept.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidBudget`] for a limit of nothing, [`Error::CostNotReported`] for a limit
    /// on money with an agent that does not say what it spends.
    pub fn validate(&self, agent: Agent) -> Result<(), Error> {
        if let Some(limit) = self.max_cost_usd {
            if !limit.is_finite() || limit <= 0.0 {
                return Err(Error::InvalidBudget {
                    what: "max_cost_usd",
                });
            }
            if !agent.reports_cost() {
                return Err(Error::CostNotReported { agent });
            }
        }
        if self.max_turns == Some(0) {
            return Err(Error::InvalidBudget { what: "max_turns" });
        }
        Ok(())
    }

    /// The limit that the run has passed, if any; the run is to be stopped then.
    #[must_use]
    pub fn check(&self, spending: &Spending) -> Option<Exceeded> {
        if let Some(limit) = self.max_cost_usd
            && spending.cost_usd() > limit
        {
            let spent = spending.cost_usd();
            return Some(Exceeded::Cost { limit, spent });
        }
        if let Some(limit) = self.max_turns
            && spending.turns() > u64::from(limit)
        {
            return Some(Exceeded::Turns { limit });
        }
        None
    }
}

/// A limit that a run has passed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Exceeded {
    /// More money than allowed.
    Cost {
        /// The limit.
        limit: f64,
        /// What was spent by then, at least.
        spent: f64,
    },
    /// More answers of the model than allowed.
    Turns {
        /// The limit.
        limit: u32,
    },
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cost { limit, spent } => {
                write!(f, "spent ${spent:.4} of ${limit:.4}")
            }
            Self::Turns { limit } => write!(f, "took more than {limit} turns"),
        }
    }
}

/// What a run has used up so far.
///
/// Results carry the true cost. Until one comes, messages are priced by their tokens, so that a
/// run can be stopped in the middle.
#[derive(Clone, Debug, Default)]
pub struct Spending {
    turns: Turns,
    reported: f64,
    settled: f64,
    open: VecDeque<OpenMessage>,
}

impl Spending {
    /// Counts one event.
    pub fn push(&mut self, event: &StreamEvent) {
        self.turns.push(event);
        match &event.kind {
            EventKind::Assistant(message) => self.price(message),
            EventKind::Result(result) => {
                self.reported = self.reported.max(result.total_cost_usd.unwrap_or(0.0));
            }
            EventKind::System
            | EventKind::User(_)
            | EventKind::Oversized
            | EventKind::Unknown(_) => {}
        }
    }

    /// Answers of the main agent's model.
    #[must_use]
    pub fn turns(&self) -> u64 {
        self.turns.count()
    }

    /// US dollars, sub-agents included.
    #[must_use]
    pub fn cost_usd(&self) -> f64 {
        let open: f64 = self.open.iter().map(|message| message.cost).sum();
        self.reported.max(self.settled + open)
    }

    /// Several events may carry parts of one message, each with the usage of the whole.
    fn price(&mut self, message: &Message) {
        let (Some(id), Some(usage)) = (&message.id, &message.usage) else {
            return;
        };
        let rates = Rates::of(message.model.as_deref().unwrap_or_default());
        if let Some(open) = self.open.iter_mut().find(|open| open.id == *id) {
            open.add(message, usage, rates);
            return;
        }
        if self.open.len() == OPEN_MESSAGES
            && let Some(oldest) = self.open.pop_front()
        {
            self.settled += oldest.cost;
        }
        let mut open = OpenMessage {
            id: id.clone(),
            written: 0,
            cost: 0.0,
        };
        open.add(message, usage, rates);
        self.open.push_back(open);
    }
}

/// A message that further events may add to.
#[derive(Clone, Debug)]
struct OpenMessage {
    id: String,
    written: u64,
    cost: f64,
}

impl OpenMessage {
    fn add(&mut self, message: &Message, usage: &Usage, rates: Rates) {
        // The usage was taken when the answer began and knows little of its length.
        self.written += message.blocks.iter().map(written).sum::<u64>();
        let output = usage.output_tokens.max(self.written / BYTES_PER_TOKEN);
        self.cost = self.cost.max(rates.cost(usage, output));
    }
}

fn written(block: &ContentBlock) -> u64 {
    let bytes = match block {
        ContentBlock::Text(text) => text.len(),
        ContentBlock::ToolUse { input, .. } => input.values().map(|v| v.to_string().len()).sum(),
        ContentBlock::ToolResult { .. } => 0,
    };
    bytes as u64
}

/// List prices in US dollars per million tokens.
///
/// Used only to stop a run early; the cost that is reported is the agent's own figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Tokens sent.
    pub input: f64,
    /// Tokens received.
    pub output: f64,
}

impl Rates {
    /// The price of a model; an unknown one counts as the dearest.
    #[must_use]
    pub fn of(model: &str) -> Self {
        let [dearest, ..] = PRICES;
        PRICES
            .into_iter()
            .find(|(family, _)| model.contains(family))
            .unwrap_or(dearest)
            .1
    }

    fn cost(self, usage: &Usage, output_tokens: u64) -> f64 {
        let input = usage.input_tokens as f64
            + usage.cache_creation_input_tokens as f64 * CACHE_WRITE_FACTOR
            + usage.cache_read_input_tokens as f64 * CACHE_READ_FACTOR;
        (input * self.input + output_tokens as f64 * self.output) / 1e6
    }
}

/// Counts the answers of the main agent's model.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    count: u64,
    id: Option<String>,
    speaking: bool,
}

impl Turns {
    pub(crate) fn push(&mut self, event: &StreamEvent) {
        if event.parent_tool_use_id.is_some() {
            return;
        }
        match &event.kind {
            EventKind::Assistant(message) => {
                let new = match (&message.id, &self.id) {
                    (Some(id), Some(last)) => id != last,
                    (Some(_), None) => true,
                    (None, _) => !self.speaking,
                };
                self.count += u64::from(new);
                self.id.clone_from(&message.id);
                self.speaking = true;
            }
            EventKind::User(_) | EventKind::Result(_) => self.speaking = false,
            EventKind::System | EventKind::Oversized | EventKind::Unknown(_) => {}
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }
}

/// By family, the dearest first; the prices that Claude Code 2.1 computes with.
const PRICES: [(&str, Rates); 4] = [
    (
        "fable",
        Rates {
            input: 10.0,
            output: 50.0,
        },
    ),
    (
        "opus",
        Rates {
            input: 5.0,
            output: 25.0,
        },
    ),
    (
        "sonnet",
        Rates {
            input: 3.0,
            output: 15.0,
        },
    ),
    (
        "haiku",
        Rates {
            input: 1.0,
            output: 5.0,
        },
    ),
];

/// Writing to the cache costs a quarter more than sending.
const CACHE_WRITE_FACTOR: f64 = 1.25;

/// Reading from the cache costs a tenth of sending.
const CACHE_READ_FACTOR: f64 = 0.1;

/// A common rule for the length of a token in English and in code.
const BYTES_PER_TOKEN: u64 = 4;

/// Parallel sub-agents take turns writing; more of them than this at once is unheard of.
const OPEN_MESSAGES: usize = 64;

#[cfg(test)]
mod tests;
