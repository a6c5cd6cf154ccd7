//! What a task may use of the machine.

use std::{str::FromStr, time::Duration};

/// Limits of one execution; what is `None` is not limited.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceLimits {
    /// How long it may take from its start to its end.
    pub timeout: Option<Duration>,
    /// How much memory it may use, without swap.
    pub memory: Option<Memory>,
    /// How many processor cores it may keep busy.
    pub cpus: Option<Cpus>,
    /// How many processes and threads it may have.
    pub pids: Option<Pids>,
}

/// An amount of memory, such as `512m` or `4g`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Memory(u64);

/// A number of processor cores, such as `2` or `0.5`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cpus(f64);

/// A number of processes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pids(u32);

/// A limit that cannot be read.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidLimit {
    /// Not an amount of memory.
    #[error("`{0}` is not an amount of memory; say for example 512m or 4g")]
    Memory(String),
    /// Too little memory for a container to start with.
    #[error("`{0}` is too little memory for a container; give it at least 8m")]
    LittleMemory(String),
    /// Not a number of processor cores.
    #[error("`{0}` is not a number of processor cores; say for example 2 or 0.5")]
    Cpus(String),
    /// Not a number of processes.
    #[error("`{0}` is not a number of processes; it must be at least 1")]
    Pids(String),
}

impl Memory {
    pub(crate) const fn gigabytes(number: u64) -> Self {
        Self(number << 30)
    }

    /// The amount in bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.0
    }
}

impl Cpus {
    pub(crate) fn whole(cores: u16) -> Self {
        Self(cores.into())
    }

    /// The number of cores.
    #[must_use]
    pub fn cores(self) -> f64 {
        self.0
    }
}

impl Pids {
    pub(crate) const fn new(count: u32) -> Self {
        Self(count)
    }

    /// The number of processes.
    #[must_use]
    pub fn count(self) -> u32 {
        self.0
    }
}

impl FromStr for Memory {
    type Err = InvalidLimit;

    fn from_str(text: &str) -> Result<Self, InvalidLimit> {
        let invalid = || InvalidLimit::Memory(text.to_owned());
        let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
            "" | "b" => 0,
            "k" | "kb" | "kib" => 10,
            "m" | "mb" | "mib" => 20,
            "g" | "gb" | "gib" => 30,
            "t" | "tb" | "tib" => 40,
            _ => return Err(invalid()),
        };
        let number: u64 = digits.parse().map_err(|_| invalid())?;
        let bytes = number.checked_mul(1 << shift).ok_or_else(invalid)?;
        if bytes < LEAST_MEMORY {
            return Err(InvalidLimit::LittleMemory(text.to_owned()));
        }
        Ok(Self(bytes))
    }
}

impl FromStr for Cpus {
    type Err = InvalidLimit;

    fn from_str(text: &str) -> Result<Self, InvalidLimit> {
        match text.parse() {
            Ok(cores) if (0.01..=4096.0).contains(&cores) => Ok(Self(cores)),
            _ => Err(InvalidLimit::Cpus(text.to_owned())),
        }
    }
}

impl FromStr for Pids {
    type Err = InvalidLimit;

    fn from_str(text: &str) -> Result<Self, InvalidLimit> {
        match text.parse() {
            Ok(count) if count >= 1 => Ok(Self(count)),
            _ => Err(InvalidLimit::Pids(text.to_owned())),
        }
    }
}

/// Runtimes themselves need about this much to start a process.
const LEAST_MEMORY: u64 = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_every_common_unit() {
        for (text, bytes) in [
            ("512m", 512 << 20),
            ("4G", 4 << 30),
            ("4gib", 4 << 30),
            ("16777216", 16 << 20),
            ("9000k", 9000 << 10),
        ] {
            assert_eq!(text.parse(), Ok(Memory(bytes)), "{text}");
        }
    }

    #[test]
    fn memory_that_is_no_amount_is_refused() {
        for text in [
            "",
            "10x",
            "m",
            "-1g",
            "1.5g",
            "0",
            "4 g",
            "99999999999999999999g",
            "99999999999999t",
            "1k",
        ] {
            assert!(text.parse::<Memory>().is_err(), "{text}");
        }
    }

    #[test]
    fn cores_and_processes_are_bounded() {
        assert!("0.5".parse::<Cpus>().is_ok());
        for text in ["0", "-1", "nan", "inf", "two", ""] {
            assert!(text.parse::<Cpus>().is_err(), "{text}");
        }
        assert!("1".parse::<Pids>().is_ok());
        for text in ["0", "-1", "many", "4294967296"] {
            assert!(text.parse::<Pids>().is_err(), "{text}");
        }
    }
}
