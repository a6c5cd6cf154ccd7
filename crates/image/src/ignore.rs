//! What `.dockerignore` leaves out of a build context.
//!
//! The rules are Docker's: one pattern to a line, the last that matches wins, `!` takes back in, a pattern that matches a
//! directory covers what is below it, `*` stays within one part of the path and `**` does not.

/// The patterns of one `.dockerignore`, in their order.
#[derive(Debug, Default)]
pub struct Ignore(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    takes_back: bool,
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    /// `**`: any number of parts, none included.
    Any,
    /// One part.
    Glob(Vec<char>),
}

impl Ignore {
    /// What the file is called.
    pub const FILE: &str = ".dockerignore";

    /// Reads a file's text; every text is one.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let patterns = text.lines().filter(|line| !line.starts_with('#'));
        Self(patterns.filter_map(Rule::parse).collect())
    }

    /// Whether a file at `path` is left out.
    #[must_use]
    pub fn excludes(&self, path: &str) -> bool {
        let parts: Vec<&str> = path.split('/').collect();
        self.0
            .iter()
            .rfind(|rule| rule.covers(&parts))
            .is_some_and(|rule| !rule.takes_back)
    }

    /// Whether anything below the directory `path` may be wanted.
    #[must_use]
    pub fn may_hold(&self, path: &str) -> bool {
        self.0.iter().any(|rule| rule.takes_back) || !self.excludes(path)
    }
}

impl Rule {
    fn parse(line: &str) -> Option<Self> {
        let line = line.trim();
        let (takes_back, pattern) = match line.strip_prefix('!') {
            Some(pattern) => (true, pattern.trim()),
            None => (false, line),
        };
        let mut parts = Vec::new();
        for part in pattern.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop()),
                "**" => parts.push(Part::Any),
                part => parts.push(Part::Glob(part.chars().collect())),
            }
        }
        (!parts.is_empty()).then_some(Self { takes_back, parts })
    }

    /// Whether it matches the path itself or a directory on the way to it.
    fn covers(&self, path: &[&str]) -> bool {
        (1..=path.len()).any(|length| matches(&self.parts, &path[..length]))
    }
}

fn matches(parts: &[Part], path: &[&str]) -> bool {
    match (parts, path) {
        ([], []) => true,
        ([Part::Any, rest @ ..], _) => {
            matches(rest, path)
                || path
                    .split_first()
                    .is_some_and(|(_, below)| matches(parts, below))
        }
        ([Part::Glob(glob), rest @ ..], [name, below @ ..]) => {
            let name: Vec<char> = name.chars().collect();
            name_matches(glob, &name) && matches(rest, below)
        }
        ([], [_, ..]) | ([Part::Glob(_), ..], []) => false,
    }
}

fn name_matches(glob: &[char], name: &[char]) -> bool {
    match (glob, name) {
        ([], []) => true,
        (['*', rest @ ..], _) => {
            name_matches(rest, name)
                || name
                    .split_first()
                    .is_some_and(|(_, later)| name_matches(glob, later))
        }
        (['?', rest @ ..], [_, later @ ..]) => name_matches(rest, later),
        (['[', class @ ..], [first, later @ ..]) => {
            class_matches(class, *first).is_some_and(|rest| name_matches(rest, later))
        }
        (['\\', literal, rest @ ..], [first, later @ ..])
        | ([literal, rest @ ..], [first, later @ ..]) => {
            literal == first && name_matches(rest, later)
        }
        ([], [_, ..]) | ([_, ..], []) => false,
    }
}

/// What follows a character class, if `wanted` is in it; `None` also where the class has no end.
fn class_matches(class: &[char], wanted: char) -> Option<&[char]> {
    let (negated, mut class) = match class {
        ['^', rest @ ..] => (true, rest),
        _ => (false, class),
    };
    let mut found = false;
    loop {
        let (low, high);
        (low, high, class) = match class {
            [']', rest @ ..] => return (found != negated).then_some(rest),
            [low, '-', high, rest @ ..] if *high != ']' => (low, high, rest),
            [only, rest @ ..] => (only, only, rest),
            [] => return None,
        };
        found |= (low..=high).contains(&&wanted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left_out<'a>(patterns: &str, paths: &[&'a str]) -> Vec<&'a str> {
        let ignore = Ignore::parse(patterns);
        paths
            .iter()
            .copied()
            .filter(|path| ignore.excludes(path))
            .collect()
    }

    #[test]
    fn a_pattern_is_anchored_at_the_root_and_covers_what_is_below() {
        let paths = ["target", "target/a/b", "sub/target", "targets"];
        assert_eq!(left_out("target", &paths), ["target", "target/a/b"]);
        assert_eq!(left_out("/target/", &paths), ["target", "target/a/b"]);
    }

    #[test]
    fn a_star_stays_in_its_part_and_two_do_not() {
        let paths = ["a.log", "x/a.log", "x/y/a.log", "a.txt"];
        assert_eq!(left_out("*.log", &paths), ["a.log"]);
        assert_eq!(left_out("*/*.log", &paths), ["x/a.log"]);
        assert_eq!(
            left_out("**/*.log", &paths),
            ["a.log", "x/a.log", "x/y/a.log"]
        );
        assert_eq!(left_out("x/**", &paths), ["x/a.log", "x/y/a.log"]);
    }

    #[test]
    fn the_last_pattern_that_matches_wins() {
        let paths = ["docs/a.md", "docs/keep.md", "docs/x/keep.md"];
        assert_eq!(
            left_out("docs\n!docs/keep.md", &paths),
            ["docs/a.md", "docs/x/keep.md"]
        );
        assert_eq!(left_out("!docs/keep.md\ndocs", &paths), paths);
    }

    #[test]
    fn a_left_out_directory_is_entered_only_if_something_is_taken_back() {
        assert!(!Ignore::parse("docs").may_hold("docs"));
        assert!(Ignore::parse("docs\n!docs/keep.md").may_hold("docs"));
        assert!(Ignore::parse("docs").may_hold("src"));
    }

    #[test]
    fn comments_and_empty_lines_say_nothing() {
        assert_eq!(left_out("# a\n\n  \n.\n", &["a", "# a"]), [] as [&str; 0]);
    }

    #[test]
    fn classes_escapes_and_question_marks() {
        let paths = ["a1", "b1", "c1", "*1", "[1"];
        assert_eq!(left_out("[ab]1", &paths), ["a1", "b1"]);
        assert_eq!(left_out("[^a-b]1", &paths), ["c1", "*1", "[1"]);
        assert_eq!(left_out("\\*1", &paths), ["*1"]);
        assert_eq!(left_out("?1", &paths), paths);
        assert_eq!(left_out("[1", &paths), [] as [&str; 0]);
    }
}
