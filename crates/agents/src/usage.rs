//! Tokens used, as the agents report them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Tokens of one run, or of one message.
///
/// Counts are the agent's own. Claude Code leaves cached tokens out of `input_tokens`, Codex and
/// Gemini CLI include them; a resumed Codex session reports the whole thread.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Usage {
    /// Tokens sent.
    #[serde(default)]
    pub input_tokens: u64,
    /// Tokens received.
    #[serde(default)]
    pub output_tokens: u64,
    /// Tokens written to the API's cache.
    #[serde(default)]
    pub cache_creation_input_tokens: u64,
    /// Tokens read from the API's cache.
    #[serde(default)]
    pub cache_read_input_tokens: u64,
    /// Whatever else the agent reports, as it reports it.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Usage {
    /// Reads an object of counts, taking the four under the names given; odd values count as 0.
    pub(crate) fn read(value: &Value, names: &UsageNames) -> Self {
        let mut extra = value.as_object().cloned().unwrap_or_default();
        let mut take = |name: &str| extra.remove(name).map_or(0, |count| whole(&count));
        Self {
            input_tokens: take(names.input),
            output_tokens: take(names.output),
            cache_creation_input_tokens: take(names.cache_creation),
            cache_read_input_tokens: take(names.cache_read),
            extra,
        }
    }

    /// Reads Claude's spelling, which is also ours.
    pub(crate) fn read_claude(value: &Value) -> Self {
        Self::read(value, &CLAUDE)
    }
}

/// What an agent calls the four counts.
pub(crate) struct UsageNames {
    pub(crate) input: &'static str,
    pub(crate) output: &'static str,
    pub(crate) cache_creation: &'static str,
    pub(crate) cache_read: &'static str,
}

pub(crate) const CLAUDE: UsageNames = UsageNames {
    input: "input_tokens",
    output: "output_tokens",
    cache_creation: "cache_creation_input_tokens",
    cache_read: "cache_read_input_tokens",
};

pub(crate) const CODEX: UsageNames = UsageNames {
    input: "input_tokens",
    output: "output_tokens",
    cache_creation: "cache_write_input_tokens",
    cache_read: "cached_input_tokens",
};

pub(crate) const GEMINI: UsageNames = UsageNames {
    input: "input_tokens",
    output: "output_tokens",
    cache_creation: "cache_creation_input_tokens",
    cache_read: "cached",
};

/// A count from a number of any JSON kind; negative, absent and absurd ones are 0.
pub(crate) fn whole(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| {
        let number = value.as_f64().unwrap_or(0.0);
        // The cast saturates, and NaN becomes 0.
        number.max(0.0) as u64
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn odd_counts_are_zero_and_the_rest_is_kept() {
        let usage = Usage::read_claude(&json!({
            "input_tokens": 3.0,
            "output_tokens": "many",
            "cache_read_input_tokens": -4,
            "service_tier": "standard"
        }));
        assert_eq!(
            usage,
            Usage {
                input_tokens: 3,
                extra: Map::from_iter([("service_tier".to_owned(), json!("standard"))]),
                ..Usage::default()
            }
        );
        assert_eq!(Usage::read_claude(&json!(null)), Usage::default());
    }

    #[test]
    fn extras_lie_beside_the_counts_in_json() {
        let usage = Usage::read(
            &json!({"input_tokens": 1, "cached_input_tokens": 2, "reasoning_output_tokens": 3}),
            &CODEX,
        );
        let text = serde_json::to_string(&usage).unwrap();
        assert!(text.contains(r#""reasoning_output_tokens":3"#), "{text}");
        assert_eq!(serde_json::from_str::<Usage>(&text).unwrap(), usage);
    }
}
