//! When an image was made, as engines write it, and how long ago that is.

use std::{fmt, str::FromStr, time::Duration};

use jiff::{Timestamp, civil::DateTime, fmt::strtime, tz::TimeZone};

/// The moment at which an image was made.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Created(Timestamp);

/// How old an image is.
///
/// ```
/// use std::time::Duration;
/// use cordon_image::Age;
///
/// assert_eq!(Age(Duration::from_secs(91_800)).to_string(), "25h30m");
/// assert_eq!(Age(Duration::from_secs(342)).to_string(), "5m42s");
/// ```
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Age(pub Duration);

/// A time in none of the forms that engines use.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{}` is not a time as engines write it", .0.escape_debug())]
pub struct UnreadableTime(String);

impl Created {
    /// The moment itself.
    #[must_use]
    pub fn timestamp(self) -> Timestamp {
        self.0
    }

    /// How old the image is at `now`; zero if it was made later than that.
    #[must_use]
    pub fn age(self, now: Timestamp) -> Age {
        Age(Duration::try_from(now.duration_since(self.0)).unwrap_or_default())
    }
}

impl FromStr for Created {
    type Err = UnreadableTime;

    /// Takes RFC 3339 (without an offset, UTC is meant) and what Go prints by itself:
    /// `2026-03-14 10:46:10.84137945 +0000 UTC`.
    fn from_str(text: &str) -> Result<Self, UnreadableTime> {
        let text = text.trim();
        let read = text
            .parse()
            .ok()
            .or_else(|| naive(text))
            .or_else(|| go(text));
        read.map(Self)
            .ok_or_else(|| UnreadableTime(text.to_owned()))
    }
}

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
            (0, 0, seconds) => write!(f, "{seconds}s"),
            (0, minutes, seconds) => write!(f, "{minutes}m{seconds}s"),
            (hours, minutes, _) => write!(f, "{hours}h{minutes}m"),
        }
    }
}

fn naive(text: &str) -> Option<Timestamp> {
    let time: DateTime = text.parse().ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// Date, time and offset; the zone's name and a reading of the monotonic clock may follow.
fn go(text: &str) -> Option<Timestamp> {
    let words: Vec<&str> = text.split(' ').take(3).collect();
    strtime::parse("%Y-%m-%d %H:%M:%S%.f %z", words.join(" "))
        .ok()?
        .to_timestamp()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn created(text: &str) -> Created {
        text.parse().unwrap()
    }

    #[test]
    fn every_spelling_of_a_moment_is_the_same_moment() {
        let moment = created("2026-01-15T10:30:00Z");
        for text in [
            "2026-01-15T10:30:00",
            "2026-01-15T10:30:00.000000000Z",
            "2026-01-15T05:30:00-05:00",
            "2026-01-15 10:30:00 +0000 UTC",
            "2026-01-15 10:30:00.0 +0000 UTC",
            "2026-01-15 05:30:00 -0500 CDT",
            "2026-01-15 11:30:00 +0100 +0100",
            "2026-01-15 10:30:00 +0000 UTC m=+0.5",
            " 2026-01-15T10:30:00Z\n",
        ] {
            assert_eq!(created(text), moment, "{text}");
        }
    }

    #[test]
    fn fractions_of_any_length_are_kept() {
        assert_eq!(
            created("2026-03-14 10:46:10.84137945 +0000 UTC"),
            created("2026-03-14T10:46:10.841379450Z")
        );
    }

    #[test]
    fn other_texts_are_no_times() {
        for text in [
            "",
            "yesterday",
            "2026-13-01T00:00:00Z",
            "12 hours ago",
            "1773485170",
        ] {
            assert!(text.parse::<Created>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_image_from_the_future_is_new() {
        let now = created("2026-01-15T10:30:00Z").timestamp();
        assert_eq!(
            created("2026-01-15T11:00:00Z").age(now),
            Age(Duration::ZERO)
        );
        assert_eq!(created("2026-01-15T10:29:00Z").age(now).to_string(), "1m0s");
    }
}
