use proptest::{collection::vec, prelude::*, sample::select};

use super::*;

fn tree(text: &str) -> Node {
    parse(text, "the file").unwrap()
}

fn message(text: &str) -> String {
    parse(text, "the file").unwrap_err().to_string()
}

fn at(line: usize, column: usize) -> Position {
    Position { line, column }
}

#[test]
fn a_tree_knows_its_lines() {
    let entries = tree("a: 1\nb:\n  - x\n").map("f", "a map").unwrap();
    let [(a, one), (b, list)] = <[_; 2]>::try_from(entries).unwrap();
    assert_eq!(
        (a.at, one.at, b.at, list.at),
        (at(1, 1), at(1, 4), at(2, 1), at(3, 3))
    );
    let items = list.list("b", |node, place| {
        Ok::<_, Error>((place.to_owned(), node.at))
    });
    assert_eq!(items.unwrap(), [("b[0]".to_owned(), at(3, 5))]);
}

#[test]
fn scalars_are_what_they_look_like_and_keep_their_spelling() {
    for (text, kind) in [
        ("", "nothing"),
        ("~", "nothing"),
        ("null", "nothing"),
        ("True", "a boolean"),
        ("yes", "a string"),
        ("007", "a number"),
        ("0x1F", "a number"),
        ("0x-1", "a string"),
        ("1.50", "a number"),
        (".inf", "a number"),
        ("1.2.3", "a string"),
        ("'1'", "a string"),
        ("!t 1", "a string"),
        ("[]", "a list"),
        ("{}", "a map"),
    ] {
        assert_eq!(
            format!("{:?}", tree(text)),
            format!("{kind} at {}", if text == "!t 1" { "1:4" } else { "1:1" }),
            "{text}"
        );
    }
    for text in ["007", "1.50", "0x1F", "99999999999999999999", "word"] {
        assert_eq!(tree(text).scalar("f").as_deref(), Ok(text));
    }
    assert_eq!(tree("TRUE").scalar("f").as_deref(), Ok("true"));
}

#[test]
fn whole_numbers_are_read_in_three_bases() {
    for (text, number) in [("12", 12), ("-3", -3), ("0x1f", 31), ("0o17", 15)] {
        assert_eq!(tree(text).integer("f"), Ok(number));
    }
    for (text, expected) in [
        ("1.5", "f cannot be `1.5`: it must be a whole number"),
        ("'1'", "f must be a number, not a string"),
    ] {
        let error = tree(text).integer("f").unwrap_err();
        assert_eq!(error.kind.to_string(), expected);
    }
}

#[test]
fn a_tag_is_kept_with_its_place_and_refused_by_every_reader() {
    let entries = tree("a: !secret? NAME\n").map("f", "a map").unwrap();
    let node = entries.into_iter().next().unwrap().1;
    let tag = node.tag.clone().unwrap();
    assert_eq!((tag.name.as_str(), tag.at), ("!secret?", at(1, 4)));
    assert_eq!(node.at, at(1, 13));

    let refused = "the tag `!secret?` means nothing here (line 1, column 4)";
    let readers: [fn(Node) -> Result<(), Error>; 6] = [
        |node| node.string("f").map(drop),
        |node| node.scalar("f").map(drop),
        |node| node.boolean("f").map(drop),
        |node| node.integer("f").map(drop),
        |node| node.list("f", |_, _| Ok(())).map(drop),
        |node| node.map("f", "a map").map(drop),
    ];
    for reader in readers {
        assert_eq!(reader(node.clone()).unwrap_err().to_string(), refused);
    }
    let untagged = Node { tag: None, ..node };
    assert_eq!(untagged.string("f").as_deref(), Ok("NAME"));
}

#[test]
fn an_alias_repeats_the_tag_too() {
    let entries = tree("a: &x !env NAME\nb: *x\n").map("f", "a map").unwrap();
    let (_, alias) = entries.into_iter().nth(1).unwrap();
    assert_eq!(alias.at, at(2, 4));
    assert_eq!(alias.tag.map(|tag| tag.name).as_deref(), Some("!env"));
}

#[test]
fn mistakes_are_named_with_their_place() {
    for (text, expected) in [
        (
            "a: 1\na: 2",
            "the key `a` stands here twice (line 2, column 1)",
        ),
        ("1: 2", "a key must be a word (line 1, column 1)"),
        (
            "!k a: 1",
            "the tag `!k` means nothing here (line 1, column 1)",
        ),
        (
            "a\n---\nb",
            "the file is one document, and here begins another (line 2, column 1)",
        ),
    ] {
        assert_eq!(message(text), expected, "{text}");
    }
    for text in [
        "[",
        "a: *b",
        "a:\n\tb: c",
        "a: 'b",
        "a: [b\u{7}]",
        "a: &a [*a]",
    ] {
        let message = message(text);
        assert!(message.starts_with("this is not valid YAML: "), "{message}");
    }
}

#[test]
fn a_short_text_cannot_become_an_endless_tree() {
    let mut text = "- &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let items = vec![format!("*a{}", level - 1); 9].join(", ");
        text += &format!("- &a{level} [{items}]\n");
    }
    assert!(message(&text).starts_with("the file is too large"));
    let deep = "[".repeat(100) + &"]".repeat(100);
    assert!(message(&deep).starts_with("the file is too large"));
}

#[test]
fn a_long_map_is_read_without_delay() {
    let text: String = (0..50_000).map(|n| format!("key{n}: x\n")).collect();
    assert_eq!(tree(&text).map("f", "a map").unwrap().len(), 50_000);
}

#[test]
fn a_printed_tree_shows_no_value() {
    let node = tree("token: hunter2\nlist: [hunter2, !x hunter2]\n");
    let printed = format!("{node:?} {:?}", node.value);
    assert!(!printed.contains("hunter2"), "{printed}");
    for text in [
        "a: {hunter2",
        "a: 'hunter2",
        "a: *hunter2",
        "a: \"hunter2\\q\"",
        "a: @hunter2",
        "a: hunter2: hunter2",
        "hunter2\n  x: y",
    ] {
        let error = parse(text, "the file").unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC*", pieces in vec(select(PIECES), 0..40)) {
        let _ = (parse(&text, "the file"), parse(&pieces.concat(), "the file"));
    }
}

const PIECES: &[&str] = &[
    "a",
    "b: ",
    "- ",
    "\n",
    "  ",
    "\n  ",
    "[",
    "]",
    "{",
    "}",
    ", ",
    "&x ",
    "*x ",
    "!t ",
    "!!str ",
    "'",
    "\"",
    "|\n",
    ">\n",
    "---\n",
    "...\n",
    "? ",
    ": ",
    "# ",
    "%TAG ! x\n",
    "1",
    "~",
    "\\",
    "\t",
    "!<",
    ">",
];
