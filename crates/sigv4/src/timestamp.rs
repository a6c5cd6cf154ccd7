//! The time that a request says it was signed at, and how far that is from the real one.

use std::{fmt, time::Duration};

use jiff::{civil, fmt::rfc2822, tz::Offset};

use crate::Error;

/// The time of a signature, to the second.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Timestamp(jiff::Timestamp);

impl Timestamp {
    /// Reads `YYYYMMDDTHHMMSSZ`, the form of `X-Amz-Date`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::basic(text).ok_or(Error::Malformed {
            field: "x-amz-date",
        })
    }

    /// Reads a `Date` header, which may have the form of HTTP or of `X-Amz-Date`.
    pub(crate) fn parse_date(text: &str) -> Result<Self, Error> {
        Self::basic(text)
            .or_else(|| {
                let parser = rfc2822::DateTimeParser::new().relaxed_weekday(true);
                parser.parse_timestamp(text).ok().map(Self)
            })
            .ok_or(Error::Malformed { field: "date" })
    }

    /// The same moment, for arithmetic.
    #[must_use]
    pub fn moment(self) -> jiff::Timestamp {
        self.0
    }

    fn basic(text: &str) -> Option<Self> {
        let [date @ .., b'T', h1, h2, m1, m2, s1, s2, b'Z'] = text.as_bytes() else {
            return None;
        };
        let [y1, y2, y3, y4, o1, o2, d1, d2] = *date else {
            return None;
        };
        let year = number(&[y1, y2, y3, y4])?;
        let two = |a, b| number(&[a, b]).and_then(|n| i8::try_from(n).ok());
        let date = civil::Date::new(year, two(o1, o2)?, two(d1, d2)?).ok()?;
        let time = civil::Time::new(two(*h1, *h2)?, two(*m1, *m2)?, two(*s1, *s2)?, 0).ok()?;
        let moment = Offset::UTC.to_timestamp(date.to_datetime(time)).ok()?;
        Some(Self(moment))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let utc = Offset::UTC.to_datetime(self.0);
        write!(
            f,
            "{:04}{:02}{:02}T{:02}{:02}{:02}Z",
            utc.year(),
            utc.month(),
            utc.day(),
            utc.hour(),
            utc.minute(),
            utc.second()
        )
    }
}

/// How wrong the client's clock is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Skew {
    /// The signature is from the future.
    Ahead(Duration),
    /// The signature is old.
    Behind(Duration),
}

impl fmt::Display for Skew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ahead(by) => write!(f, "signed {} s in the future", by.as_secs()),
            Self::Behind(by) => write!(f, "signed {} s ago", by.as_secs()),
        }
    }
}

/// The skew worth naming in the record: `None` up to [`MAX_SKEW`].
#[must_use]
pub fn skew(now: jiff::Timestamp, signed: Timestamp) -> Option<Skew> {
    let age = now.duration_since(signed.0);
    let by = age.unsigned_abs();
    match by > MAX_SKEW {
        false => None,
        true if age.is_negative() => Some(Skew::Ahead(by)),
        true => Some(Skew::Behind(by)),
    }
}

/// Most services refuse signatures further than this from their own clock.
pub const MAX_SKEW: Duration = Duration::from_mins(5);

fn number(digits: &[u8]) -> Option<i16> {
    digits.iter().try_fold(0, |number: i16, digit| {
        digit
            .is_ascii_digit()
            .then(|| number * 10 + i16::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_is_read_and_written_back() {
        for text in ["20260101T000000Z", "20241231T235959Z", "20240229T120000Z"] {
            assert_eq!(Timestamp::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_date_header_may_have_either_form() {
        for text in [
            "Thu, 01 Jan 2026 00:00:00 GMT",
            "Thu, 01 Jan 2026 00:00:00 -0000",
            "Mon, 01 Jan 2026 00:00:00 GMT",
            "20260101T000000Z",
        ] {
            let date = Timestamp::parse_date(text).unwrap();
            assert_eq!(date.to_string(), "20260101T000000Z", "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "20260101",
            "20260101T000000",
            "20260230T000000Z",
            "20261301T000000Z",
            "20260101T250000Z",
            "2026010xT000000Z",
            "-0260101T000000Z",
            "20260101T000000Z\n",
            "2026-01-01T00:00:00Z",
        ] {
            assert!(Timestamp::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn skew_is_named_beyond_five_minutes_only() {
        let signed = Timestamp::parse("20260101T120000Z").unwrap();
        let at = |text: &str| skew(text.parse().unwrap(), signed);
        assert_eq!(at("2026-01-01T12:05:00Z"), None);
        assert_eq!(at("2026-01-01T11:55:00Z"), None);
        assert_eq!(
            at("2026-01-01T12:06:00Z"),
            Some(Skew::Behind(Duration::from_mins(6)))
        );
        let ahead = at("2026-01-01T11:00:00Z").unwrap();
        assert_eq!(ahead, Skew::Ahead(Duration::from_hours(1)));
        assert_eq!(ahead.to_string(), "signed 3600 s in the future");
    }
}
