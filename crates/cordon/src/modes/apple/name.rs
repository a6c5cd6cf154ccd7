//! Names of containers, valid and unique for any agent and session.

use sha2::{Digest as _, Sha256};

use crate::{SandboxError, modes::SessionKey};

/// A name for a new container of that session. No two are alike, also of one session: a container that is
/// still being removed is not in the way of the one that takes its place.
pub(super) fn fresh(key: &SessionKey) -> Result<String, SandboxError> {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).map_err(|_| SandboxError::Randomness)?;
    Ok(format!("{}{:08x}", stem(key), u32::from_be_bytes(bytes)))
}

/// A word that nobody can know beforehand, by which a program inside shows that it has begun.
pub(super) fn marker() -> Result<String, SandboxError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| SandboxError::Randomness)?;
    Ok(format!("cordon-{:032x}", u128::from_be_bytes(bytes)))
}

/// What people recognise of the session, and what tells it apart from those that look alike.
fn stem(key: &SessionKey) -> String {
    let mut hash = Sha256::new();
    // With the length before it, no part of one can pass for a part of the other.
    hash.update(key.agent.len().to_be_bytes());
    hash.update(&key.agent);
    hash.update(&key.session);
    let hash = hash.finalize();
    let hash = u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]);
    let agent = readable(&key.agent, AGENT_MAX);
    let session = readable(&key.session, SESSION_MAX);
    format!("cordon-{agent}-{session}-{hash:08x}")
}

/// Only what every part of a host's name may hold, because a container's name becomes one.
fn readable(text: &str, max: usize) -> String {
    let kept: String = text
        .chars()
        .map(|c| c.to_ascii_lowercase())
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(max)
        .collect();
    match kept.trim_matches('-') {
        "" => "x".to_owned(),
        kept => kept.to_owned(),
    }
}

/// With the rest, below the 63 characters that a host's name may have.
const AGENT_MAX: usize = 12;
const SESSION_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn key(agent: &str, session: &str) -> SessionKey {
        SessionKey {
            agent: agent.into(),
            session: session.into(),
        }
    }

    #[test]
    fn any_agent_and_session_give_a_valid_name() {
        let long = "x".repeat(10_000);
        for text in [
            "",
            "a",
            "-",
            "..",
            "../../etc",
            "ÄÖ 日本",
            "a=b,c:d",
            "\0\n",
            &long,
        ] {
            let name = fresh(&key(text, text)).unwrap();
            assert!(name.len() <= 63, "{name}");
            assert!(name.starts_with("cordon-"));
            let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
            assert!(name.bytes().all(plain), "{name}");
        }
    }

    #[test]
    fn sessions_that_look_alike_have_names_of_their_own() {
        let alike = [
            key("agent", "a/b"),
            key("agent", "a-b"),
            key("agent", "A-b"),
            key("agenta", "-b"),
            key("agent", &format!("{}1", "x".repeat(40))),
            key("agent", &format!("{}2", "x".repeat(40))),
        ];
        let stems: HashSet<_> = alike.iter().map(stem).collect();
        assert_eq!(stems.len(), alike.len());
        assert_ne!(fresh(&alike[0]).unwrap(), fresh(&alike[0]).unwrap());
    }
}
