//! Which images are built, and which of them from scratch.

use std::time::Duration;

use cordon_image::{Action, Age, Base, decide};
use serde_json::{Value, json};

use crate::{Case, Check, Unreadable};

pub(crate) fn check(case: &mut Case) -> Result<Check, Unreadable> {
    let ages = case.value("existing_age_hours")?;
    let max_age =
        hours(&case.value("max_age_hours")?)?.ok_or(Unreadable::Shape("max_age_hours"))?;
    // What an entrypoint does has no part in this.
    case.value("passthrough")?
        .as_bool()
        .ok_or(Unreadable::Shape("passthrough"))?;
    let expected = builds(&case.expected()?["builds"]).ok_or(Unreadable::Shape("expect"))?;

    let repo = decide(hours(&ages["repo"])?.map(Age), Base::Unchanged, max_age);
    let base = match repo {
        Action::Reuse => Base::Unchanged,
        Action::Build(_) => Base::Changed,
    };
    let overlay = decide(hours(&ages["overlay"])?.map(Age), base, max_age);
    let built = [("repo", repo), ("overlay", overlay)]
        .into_iter()
        .filter_map(|(name, action)| match action {
            Action::Reuse => None,
            Action::Build(why) => Some(json!({ "build": name, "no_cache": !why.cached() })),
        });
    Ok(Check::new(expected, Vec::from_iter(built)))
}

fn hours(value: &Value) -> Result<Option<Duration>, Unreadable> {
    match value.as_f64() {
        None if value.is_null() => Ok(None),
        None => Err(Unreadable::Shape("existing_age_hours")),
        Some(hours) => Duration::try_from_secs_f64(hours * 3600.0)
            .map(Some)
            .map_err(|_| Unreadable::Shape("existing_age_hours")),
    }
}

/// The builds of a case without what only its own images have: names, hashes and Dockerfiles.
fn builds(expected: &Value) -> Option<Vec<Value>> {
    let build = |entry: &Value| {
        let name = entry["build"].as_str()?.split(':').next()?;
        let name = ["repo", "overlay"]
            .into_iter()
            .find(|kind| name.ends_with(kind))?;
        Some(json!({ "build": name, "no_cache": entry["no_cache"].as_bool()? }))
    };
    expected.as_array()?.iter().map(build).collect()
}
