//! What a surrogate keeps of its secret.

use cordon_secrets::Shape;
use serde_json::json;

use crate::{Case, Check, Unreadable};

pub(crate) fn check(case: &mut Case) -> Result<Check, Unreadable> {
    let token = case.text("token")?;
    let shape = match case.optional("kind") {
        None => Shape::of(&token),
        Some(kind) if kind == "aws_session_token" => Shape::session_token(),
        Some(_) => return Err(Unreadable::Shape("kind")),
    };
    let expected = case.expected()?;
    let expected = json!({
        "prefix": expected["prefix"],
        "length": expected["length"],
        "suffix_charset": expected["suffix_charset"],
        "drawn_by_the_rules": true,
    });
    let drawn = shape.draw()?;
    let rest = drawn.as_str().strip_prefix(shape.prefix());
    let by_the_rules = drawn.as_str().len() == shape.len()
        && rest.is_some_and(|rest| {
            rest.chars()
                .all(|character| shape.charset().contains(character))
        });
    let got = json!({
        "prefix": shape.prefix(),
        "length": shape.len(),
        "suffix_charset": shape.charset(),
        "drawn_by_the_rules": by_the_rules,
    });
    let known = expected["prefix"].as_str().unwrap_or_default();
    let because = match (shape.prefix().strip_prefix(known), token.is_ascii()) {
        (Some(more), _) if !more.is_empty() => "a longer prefix is known",
        (_, false) => "a value beyond ASCII",
        (_, true) => "",
    };
    Ok(Check::new(expected, got).because(because))
}
