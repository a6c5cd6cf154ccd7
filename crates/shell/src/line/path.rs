//! Paths in a line, judged as they are written.

use std::path::{Component, Path};

/// Whether a path stays in the workspace, or is the one device that anybody may use.
pub(super) fn is_usable(text: &str, workspace: &Path) -> bool {
    text == "/dev/null" || is_inside(text, workspace)
}

/// Whether a path, as it is written, stays below the workspace. Symbolic links are not followed.
pub(crate) fn is_inside(text: &str, workspace: &Path) -> bool {
    let path = Path::new(text);
    let climbs = path.components().any(|part| part == Component::ParentDir);
    !text.is_empty() && !climbs && (path.is_relative() || path.starts_with(workspace))
}

/// Whether it leads to where hooks and rules are kept.
pub(crate) fn is_protected(text: &str) -> bool {
    Path::new(text).components().any(|part| {
        let name = part.as_os_str().to_string_lossy().to_ascii_lowercase();
        PROTECTED.contains(&name.as_str())
    })
}

const PROTECTED: &[&str] = &[".git", ".cordon"];
