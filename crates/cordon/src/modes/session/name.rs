//! What a session is called, whatever texts its agent and session are.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use super::SessionKey;

impl SessionKey {
    /// A name that is valid for files, containers and hosts, says as much of both texts as fits, and is
    /// no other session's.
    #[must_use]
    pub fn name(&self) -> String {
        let mut hash = Sha256::new();
        // The length keeps `a` + `bc` apart from `ab` + `c`.
        hash.update((self.agent.len() as u64).to_le_bytes());
        hash.update(&self.agent);
        hash.update(&self.session);
        let tail: String =
            hash.finalize()
                .iter()
                .take(HASH_BYTES)
                .fold(String::new(), |mut text, byte| {
                    // Writing to a string does not fail.
                    let _ = write!(text, "{byte:02x}");
                    text
                });
        let mut name = String::new();
        for (text, most) in [(&self.agent, AGENT_MOST), (&self.session, SESSION_MOST)] {
            let word = word(text, most);
            if !word.is_empty() {
                name += &word;
                name.push('-');
            }
        }
        name + &tail
    }
}

/// The labels of a session's container: both texts, written so that any engine takes them.
pub(super) fn labels(key: &SessionKey) -> Vec<(String, String)> {
    [
        ("cordon.agent", &key.agent),
        ("cordon.session", &key.session),
    ]
    .map(|(name, text)| (name.to_owned(), encoded(text)))
    .into()
}

/// Lower-case letters and digits, with single dashes for everything else.
fn word(text: &str, most: usize) -> String {
    let mut word = String::new();
    for c in text.chars().map(|c| c.to_ascii_lowercase()) {
        if word.len() == most {
            break;
        }
        if c.is_ascii_lowercase() || c.is_ascii_digit() {
            word.push(c);
        } else if !word.is_empty() && !word.ends_with('-') {
            word.push('-');
        }
    }
    word.trim_end_matches('-').to_owned()
}

/// Letters, digits and `-_.` as they are, all other bytes as `%` and two digits; cut where it is long.
fn encoded(text: &str) -> String {
    let mut written = String::new();
    for byte in text.bytes() {
        if written.len() >= LABEL_MOST {
            break;
        }
        if byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) {
            written.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(written, "%{byte:02x}");
        }
    }
    written
}

const AGENT_MOST: usize = 16;
const SESSION_MOST: usize = 24;

/// Sixteen digits: no two sessions of one machine meet.
const HASH_BYTES: usize = 8;

/// Labels stand in the argument list of the engine's client.
const LABEL_MOST: usize = 1024;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn hostile() -> Vec<String> {
        let long = "x".repeat(300);
        let mut texts: Vec<String> = [
            "", "a", "A", "a-b", "a b", "-", "--", "../..", "/", "\0", "\n", "'", "\"", "`id`",
            "$(id)", "ü", "日本", "\u{202e}", "%41", "a=b", "a,b", "-rm", &long,
        ]
        .map(str::to_owned)
        .into();
        texts.push(format!("{long}y"));
        texts
    }

    #[test]
    fn names_are_valid_and_unique_for_any_texts() {
        let mut names = HashSet::new();
        for agent in hostile() {
            for session in hostile() {
                let key = SessionKey {
                    agent: agent.clone(),
                    session,
                };
                let name = key.name();
                assert!((16..=63).contains(&name.len()), "{name}");
                let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
                assert!(name.chars().all(valid), "{name}");
                assert!(!name.starts_with('-') && !name.ends_with('-'), "{name}");
                assert_eq!(name, key.name());
                assert!(names.insert(name), "{key:?}");
            }
        }
    }

    #[test]
    fn labels_are_plain_words() {
        for text in hostile() {
            let key = SessionKey {
                agent: text.clone(),
                session: text,
            };
            for (_, value) in labels(&key) {
                let plain = |c: char| c.is_ascii_alphanumeric() || "-_.%".contains(c);
                assert!(value.chars().all(plain), "{value}");
                assert!(value.len() <= LABEL_MOST + 2);
            }
        }
    }
}
