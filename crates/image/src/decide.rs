//! Whether an image that may be there already has to be built, decided without asking anybody.

use std::time::Duration;

use crate::Age;

/// What is to be done about an image.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Action {
    /// It is there, and good.
    Reuse,
    /// It is built.
    Build(Why),
}

/// Why an image is built.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Why {
    /// It is not there. The only case in which layers of earlier builds may be used.
    Missing,
    /// It is older than images may get.
    Stale,
    /// Images may not get any age.
    Always,
    /// The image that it stands on is another one by now.
    BaseChanged,
}

/// What became of the image that another one stands on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Base {
    /// It is the one that was built upon, or there is none of ours.
    Unchanged,
    /// It was built anew.
    Changed,
}

/// What is to be done about an image of that age, `None` if it is not there.
///
/// ```
/// use std::time::Duration;
/// use cordon_image::{Action, Age, Base, Why, decide};
///
/// let day = Duration::from_secs(24 * 3600);
/// assert_eq!(decide(None, Base::Unchanged, day), Action::Build(Why::Missing));
/// assert_eq!(decide(Some(Age(day)), Base::Unchanged, day), Action::Reuse);
/// ```
#[must_use]
pub fn decide(existing: Option<Age>, base: Base, max_age: Duration) -> Action {
    let Some(Age(age)) = existing else {
        return Action::Build(Why::Missing);
    };
    match base {
        Base::Changed => Action::Build(Why::BaseChanged),
        Base::Unchanged if max_age.is_zero() => Action::Build(Why::Always),
        Base::Unchanged if age > max_age => Action::Build(Why::Stale),
        Base::Unchanged => Action::Reuse,
    }
}

impl Why {
    /// Whether layers of earlier builds may be used.
    #[must_use]
    pub fn cached(self) -> bool {
        match self {
            Self::Missing => true,
            Self::Stale | Self::Always | Self::BaseChanged => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn hours(hours: u64) -> Option<Age> {
        Some(Age(Duration::from_secs(hours * 3600)))
    }

    #[test]
    fn a_missing_image_is_built_from_cache_whatever_else_holds() {
        for base in [Base::Unchanged, Base::Changed] {
            for max_age in [Duration::ZERO, DAY, Duration::MAX] {
                assert_eq!(decide(None, base, max_age), Action::Build(Why::Missing));
            }
        }
        assert!(Why::Missing.cached());
    }

    #[test]
    fn only_an_image_past_its_age_is_stale() {
        assert_eq!(decide(hours(24), Base::Unchanged, DAY), Action::Reuse);
        assert_eq!(
            decide(hours(25), Base::Unchanged, DAY),
            Action::Build(Why::Stale)
        );
        assert_eq!(
            decide(hours(999_999), Base::Unchanged, Duration::MAX),
            Action::Reuse
        );
    }

    #[test]
    fn no_age_at_all_means_always() {
        assert_eq!(
            decide(hours(0), Base::Unchanged, Duration::ZERO),
            Action::Build(Why::Always)
        );
    }

    #[test]
    fn an_image_on_a_changed_base_is_built_without_cache() {
        let action = decide(hours(0), Base::Changed, Duration::MAX);
        assert_eq!(action, Action::Build(Why::BaseChanged));
        assert!(!Why::BaseChanged.cached());
    }
}
