use proptest::{collection::vec, prelude::*};

use super::*;

/// A rewriter that writes the upper-case letters of what it finds.
fn rewriter(patterns: &[&str]) -> Rewriter {
    let entries = patterns.iter().enumerate().map(|(owner, pattern)| {
        let replacement = Zeroizing::new(pattern.to_ascii_uppercase().into());
        (
            Zeroizing::new(pattern.as_bytes().to_vec()),
            Target { owner, replacement },
        )
    });
    Rewriter::new(Arc::new(Patterns::new(entries)), Arc::default())
}

fn push(rewriter: &mut Rewriter, piece: &str) -> String {
    let out = rewriter.push(Bytes::copy_from_slice(piece.as_bytes()));
    String::from_utf8(out.to_vec()).unwrap()
}

fn whole(patterns: &[&str], text: &str) -> String {
    let mut rewriter = rewriter(patterns);
    let mut out = push(&mut rewriter, text);
    out.push_str(std::str::from_utf8(&rewriter.finish()).unwrap());
    out
}

/// Patterns and texts over few letters, so that they meet, overlap and nearly meet all the time.
fn dense_patterns() -> impl Strategy<Value = Vec<String>> {
    vec("[abc]{1,6}", 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_split_of_the_bytes_gives_the_same_output(
        patterns in dense_patterns(),
        pieces in vec("[abc]{0,7}", 0..12),
    ) {
        let patterns = Vec::from_iter(patterns.iter().map(String::as_str));
        let mut rewriter = rewriter(&patterns);
        let mut out: String = pieces.iter().map(|piece| push(&mut rewriter, piece)).collect();
        out.push_str(std::str::from_utf8(&rewriter.finish()).unwrap());
        prop_assert_eq!(out, whole(&patterns, &pieces.concat()));
    }

    #[test]
    fn nothing_real_is_in_the_output_at_any_split(
        patterns in dense_patterns(),
        pieces in vec("[abc]{0,7}", 0..12),
    ) {
        let patterns = Vec::from_iter(patterns.iter().map(String::as_str));
        let mut rewriter = rewriter(&patterns);
        let mut out = String::new();
        for piece in &pieces {
            out.push_str(&push(&mut rewriter, piece));
            prop_assert!(patterns.iter().all(|pattern| !out.contains(pattern)), "{}", out);
        }
    }

    #[test]
    fn only_the_beginning_of_a_pattern_is_held_back(
        patterns in dense_patterns(),
        pieces in vec("[abcd]{0,7}", 1..12),
    ) {
        let patterns = Vec::from_iter(patterns.iter().map(String::as_str));
        let mut rewriter = rewriter(&patterns);
        let (mut received, mut sent) = (String::new(), 0);
        for piece in &pieces {
            received.push_str(piece);
            sent += push(&mut rewriter, piece).len();
            let held = &received[sent..];
            prop_assert_eq!(held.len(), rewriter.held());
            let begins = |pattern: &&str| pattern.starts_with(held) && pattern.len() > held.len();
            prop_assert!(held.is_empty() || patterns.iter().any(begins), "{:?} was held", held);
        }
    }
}

#[test]
fn of_overlapping_patterns_the_leftmost_and_longest_counts() {
    assert_eq!(whole(&["pass", "password"], "a password"), "a PASSWORD");
    assert_eq!(whole(&["pass", "password"], "a passwort"), "a PASSwort");
    assert_eq!(whole(&["abcd", "bc"], "abcd abce"), "ABCD aBCe");
    assert_eq!(whole(&["abc", "cde"], "abcde"), "ABCde");
}

#[test]
fn a_piece_in_which_nothing_changes_is_passed_on_uncopied() {
    let piece = Bytes::from_static(b"data: nothing to see\n\n");
    let out = rewriter(&["secret"]).push(piece.clone());
    assert_eq!((out.as_ptr(), out.len()), (piece.as_ptr(), piece.len()));
}

#[test]
fn a_match_at_the_end_does_not_wait() {
    let mut rewriter = rewriter(&["secret"]);
    assert_eq!(push(&mut rewriter, "my secret"), "my SECRET");
    assert_eq!(rewriter.held(), 0);
}

#[test]
fn where_values_are_spelled_alike_the_preferred_owner_answers() {
    let entries = ["one", "two"].into_iter().enumerate().map(|(owner, text)| {
        let replacement = Zeroizing::new(text.into());
        (
            Zeroizing::new(b"xyz".to_vec()),
            Target { owner, replacement },
        )
    });
    let patterns = Arc::new(Patterns::new(entries));
    let answer = |preferred: &[bool]| {
        let mut rewriter = Rewriter::new(Arc::clone(&patterns), preferred.into());
        String::from_utf8(rewriter.whole(b"xyz").unwrap()).unwrap()
    };
    assert_eq!(answer(&[true, true]), "one");
    assert_eq!(answer(&[false, true]), "two");
    assert_eq!(answer(&[false, false]), "one");
}

#[test]
fn without_patterns_everything_passes() {
    let mut rewriter = Rewriter::new(Arc::default(), Arc::default());
    assert_eq!(push(&mut rewriter, "anything"), "anything");
    assert!(rewriter.finish().is_empty());
}
