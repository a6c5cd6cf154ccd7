use super::*;

fn rules() -> GraphqlRules {
    GraphqlRules {
        queries: vec![Glob::new("*")],
        mutations: vec![Glob::new("createIssue"), Glob::new("update*")],
        subscriptions: vec![],
    }
}

fn check(query: &str) -> Result<(), GraphqlDenial> {
    check_body(&serde_json::json!({ "query": query }).to_string())
}

fn check_body(body: &str) -> Result<(), GraphqlDenial> {
    let target = Target::parse(b"/graphql").unwrap();
    rules().check(&target, body.as_bytes())
}

fn refused(kind: OperationKind, field: &str) -> Result<(), GraphqlDenial> {
    let field = field.to_owned();
    Err(GraphqlDenial::FieldNotListed { kind, field })
}

#[test]
fn listed_operations_pass() {
    for query in [
        "{ viewer { login } }",
        "query { viewer { login } }",
        "query Q($first: Int = 10, $tags: [String!]! = [\"a\", \"}\"]) @live { repository(first: $first) { id } }",
        "mutation { createIssue(input: {title: \"x\", labels: [1, -2.5e3]}) { issue { id } } }",
        "mutation M { a: updateRef { x } b: updateIssue @include(if: true) { ...F } } fragment F on Issue { id }",
        "# {\nquery { node(id: \"\"\"a \\\"\"\" } b\"\"\") { id } }",
        "query { ... on Query { viewer { id } } ... @skip(if: false) { other } }",
        "query A { a } query B { b }",
    ] {
        assert_eq!(check(query), Ok(()), "{query}");
    }
}

#[test]
fn an_operation_that_is_not_listed_is_refused() {
    assert_eq!(
        check("mutation { deleteRef }"),
        refused(OperationKind::Mutation, "deleteRef")
    );
    assert_eq!(
        check("subscription { any }"),
        refused(OperationKind::Subscription, "any")
    );
    let none = GraphqlRules::default();
    let target = Target::parse(b"/graphql").unwrap();
    assert!(none.check(&target, br#"{"query":"{a}"}"#).is_err());
}

#[test]
fn an_alias_does_not_hide_the_field() {
    let query = "mutation { createIssue: deleteRef(x: 1) { id } }";
    assert_eq!(check(query), refused(OperationKind::Mutation, "deleteRef"));
}

#[test]
fn an_inline_fragment_does_not_hide_the_field() {
    let query = "mutation { ... on Mutation { ... { deleteRef } } }";
    assert_eq!(check(query), refused(OperationKind::Mutation, "deleteRef"));
}

#[test]
fn a_second_operation_does_not_hide_behind_the_first() {
    let query = "query A { viewer } mutation B { deleteRef }";
    assert_eq!(check(query), refused(OperationKind::Mutation, "deleteRef"));
}

#[test]
fn strings_and_comments_do_not_hide_an_operation() {
    for query in [
        "query { a(x: \"\\\\\") } mutation { deleteRef }",
        "query { a(x: \"\"\"\\\"\"\"\"\"\") } mutation { deleteRef }",
        "query { a } # \r mutation { deleteRef }",
        "query { a(x: \"#\") } mutation { deleteRef }",
    ] {
        assert_eq!(
            check(query),
            refused(OperationKind::Mutation, "deleteRef"),
            "{query}"
        );
    }
}

#[test]
fn a_named_fragment_at_the_top_level_is_refused() {
    let name = "F".to_owned();
    assert_eq!(
        check("mutation { ...F } fragment F on Mutation { deleteRef }"),
        Err(GraphqlDenial::TopLevelFragment { name })
    );
}

#[test]
fn what_is_no_document_of_operations_is_refused() {
    for query in [
        "",
        "fragment F on X { a }",
        "{ }",
        "{ a",
        "{ a } }",
        "{ a(x: [1) }",
        "{ a(x: \"\n\") }",
        "{ a(x: \"\"\"x\") }",
        "type X { a: Int }",
        "\"described\" query { a }",
        "query { a } ;",
        "query { ü }",
        "\u{feff}query { a }",
        "quer\u{0443} { a }",
    ] {
        assert_eq!(check(query), Err(GraphqlDenial::NotADocument), "{query}");
    }
}

#[test]
fn bodies_that_servers_read_differently_are_refused() {
    for body in [
        "",
        "[]",
        r#"[{"query":"{a}"}]"#,
        r#"{"query":1}"#,
        r#"{"operationName":"A"}"#,
        r#"{"query":"{a}","query":"mutation{deleteRef}"}"#,
        r#"{"query":"{a}","Query":"mutation{deleteRef}"}"#,
        r#"{"Query":"{a}"}"#,
        r#"{"query":"{a}","qu\u0065ry":"mutation{deleteRef}"}"#,
        r#"{"query":"{a}"} {"query":"mutation{deleteRef}"}"#,
        "query={a}",
        "\u{feff}{\"query\":\"{a}\"}",
    ] {
        assert_eq!(check_body(body), Err(GraphqlDenial::NotARequest), "{body}");
    }
}

#[test]
fn a_query_in_the_url_is_refused() {
    let target = Target::parse(b"/graphql?query=mutation{deleteRef}").unwrap();
    let body = br#"{"query":"{a}"}"#;
    assert_eq!(rules().check(&target, body), Err(GraphqlDenial::UrlQuery));
}

#[test]
fn a_body_past_the_limit_is_refused() {
    let query = "{ a } #".to_owned() + &"x".repeat(MAX_GRAPHQL_BODY);
    assert_eq!(check(&query), Err(GraphqlDenial::TooLarge));
}

#[test]
fn deep_nesting_is_no_stack_overflow() {
    let open = "{ a ".repeat(100_000);
    assert_eq!(check(&open), Err(GraphqlDenial::NotADocument));
    let spreads = "{ ... ".repeat(100_000);
    assert_eq!(check(&spreads), Err(GraphqlDenial::NotADocument));
    let body = r#"{"query":"{a}","variables":"#.to_owned() + &"[".repeat(100_000);
    assert_eq!(check_body(&body), Err(GraphqlDenial::NotARequest));
}
