//! A pattern over a path, a host or the name of a header: matches or not.

use cordon_policy::{Glob, Host, HostPattern, NamePattern};

use crate::{Case, Check, Unreadable};

pub(crate) fn check(case: &mut Case) -> Result<Check, Unreadable> {
    let kind = case.text("kind")?;
    let pattern = case.text("pattern")?;
    let value = case.text("value")?;
    let expected = case.expected()?;
    Ok(match kind.as_str() {
        "path" => Check::new(expected, Glob::new(&pattern).matches(&value)),
        "header" => Check::new(expected, NamePattern::new(&pattern).matches(&value)),
        "host" => match (HostPattern::parse(&pattern), Host::parse(&value)) {
            (Ok(pattern), Ok(host)) => Check::new(expected, pattern.matches(&host)),
            (Err(error), _) => Check::new(expected, false).because(format!("pattern: {error}")),
            (_, Err(error)) => Check::new(expected, false).because(format!("host: {error}")),
        },
        _ => return Err(Unreadable::Shape("kind")),
    })
}
