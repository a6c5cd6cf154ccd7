//! Whether there is room where images and caches are kept.

use std::path::Path;

use cordon_engine::Engine;
use rustix::fs::statvfs;

use super::{Code, Finding};
use crate::file::quoted;

/// The directory for what is known of engines, and for builds.
pub(super) fn cache(path: &Path) -> Option<Finding> {
    let hint = format!("du --summarize --human-readable {}", quoted(path));
    room("the cache", path, &hint)
}

/// Where an engine keeps images and containers, if that is on this machine.
pub(super) async fn store(engine: &Engine) -> Option<Finding> {
    if !engine.facts().local {
        return None;
    }
    let path = engine.store().await.ok()?;
    let kind = engine.kind();
    room(
        &format!("{kind}'s images"),
        &path,
        &format!("{kind} system prune"),
    )
}

/// What is to be said of the file system that a path is or will be on.
fn room(what: &str, path: &Path, hint: &str) -> Option<Finding> {
    let there = path.ancestors().find(|ancestor| ancestor.exists())?;
    let system = statvfs(there).ok()?;
    Some(judge(
        what,
        path,
        hint,
        system.f_bavail.saturating_mul(system.f_frsize),
    ))
}

fn judge(what: &str, path: &Path, hint: &str, free: u64) -> Finding {
    let message = format!("{what}: {} free at {}", amount(free), path.display());
    match free {
        0..SHORT => Finding::error(Code::DiskLow, message).hint(hint),
        SHORT..LOW => Finding::warning(Code::DiskLow, message).hint(hint),
        LOW.. => Finding::ok(Code::Disk, message),
    }
}

fn amount(bytes: u64) -> String {
    match bytes {
        0..GIB => format!("{} MiB", bytes >> 20),
        GIB.. => format!("{:.1} GiB", bytes as f64 / GIB as f64),
    }
}

const GIB: u64 = 1 << 30;

/// Even a small container writes this much.
const SHORT: u64 = 256 << 20;

/// An image with a toolchain takes about this much.
const LOW: u64 = 2 * GIB;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;

    #[test]
    fn the_less_room_the_louder() {
        let severity = |free| judge("the cache", Path::new("/x"), "prune", free).severity;
        assert_eq!(severity(100 << 20), Severity::Error);
        assert_eq!(severity(GIB), Severity::Warning);
        assert_eq!(severity(100 * GIB), Severity::Ok);
        assert_eq!(amount(1536 << 20), "1.5 GiB");
    }

    #[test]
    fn a_directory_that_will_be_made_is_judged_by_what_holds_it() {
        let found = cache(Path::new("/tmp/no/such/directory")).unwrap();
        assert!(
            found.message.contains("/tmp/no/such/directory"),
            "{found:?}"
        );
    }
}
