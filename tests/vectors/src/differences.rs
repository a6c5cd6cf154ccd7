//! What differs on purpose, with the reason.

use cordon_policy::Glob;
use serde_json::Value;

use crate::case::{Case, Check, Unreadable};

/// The entries of `differences.json`.
pub(crate) struct Differences(Vec<Difference>);

/// Cases of one kind, or of kinds with like names, whose answer differs: the one with this id, or all with this answer
/// for this cause.
struct Difference {
    file: Glob,
    id: Option<String>,
    got: Option<Value>,
    because: Option<Glob>,
    reason: String,
}

impl Differences {
    pub(crate) fn read() -> Result<Self, Unreadable> {
        let Value::Array(entries) = serde_json::from_str(include_str!("../differences.json"))?
        else {
            return Err(Unreadable::NoCases);
        };
        entries
            .into_iter()
            .map(difference)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Why the answer to a case differs from what the case expects.
    pub(crate) fn reason(&self, file: &str, id: &str, check: &Check) -> Option<&str> {
        let applies = |difference: &&Difference| {
            difference.file.matches(file)
                && difference.id.as_ref().is_none_or(|known| known == id)
                && difference
                    .got
                    .as_ref()
                    .is_none_or(|known| *known == check.got)
                && difference
                    .because
                    .as_ref()
                    .is_none_or(|known| known.matches(&check.because))
        };
        self.0
            .iter()
            .find(applies)
            .map(|difference| difference.reason.as_str())
    }

    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Glob, &str)> {
        self.0
            .iter()
            .map(|difference| (&difference.file, difference.reason.as_str()))
    }
}

fn difference(entry: Value) -> Result<Difference, Unreadable> {
    let Value::Object(mut fields) = entry else {
        return Err(Unreadable::Shape("difference"));
    };
    fields.insert(
        "id".to_owned(),
        fields.get("id").cloned().unwrap_or_else(|| "*".into()),
    );
    let mut entry = Case::new(Value::Object(fields))?;
    let text = |value: Value| value.as_str().map(str::to_owned);
    let difference = Difference {
        file: Glob::new(&entry.text("file")?),
        id: Some(entry.id().to_owned()).filter(|id| id != "*"),
        got: entry.optional("got"),
        because: entry
            .optional("because")
            .and_then(text)
            .map(|pattern| Glob::new(&pattern)),
        reason: entry.text("reason")?,
    };
    // Without either, a whole file would be skipped.
    if difference.id.is_none() && difference.because.is_none() {
        return Err(Unreadable::Missing("because"));
    }
    entry.finish()?;
    Ok(difference)
}
