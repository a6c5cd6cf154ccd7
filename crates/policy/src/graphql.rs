//! Which GraphQL operations an entry allows, judged on the body of the request.
//!
//! Everything is denied that is not plainly a document whose operations ask for listed fields alone. Where two servers
//! could read a body differently (two `query` keys, a query in the URL as well), it is denied too.

mod body;
mod document;

use std::fmt;

use document::Operation;

use crate::{Glob, RuleRef, Target};

/// Larger bodies are denied without a look; callers need not read on past this.
pub const MAX_GRAPHQL_BODY: usize = 1 << 20;

/// The operations that an entry allows, by their top-level fields; the empty rules allow none.
///
/// ```
/// # use cordon_policy::{Glob, GraphqlRules, Target};
/// let rules = GraphqlRules { queries: vec![Glob::new("*")], ..GraphqlRules::default() };
/// let target = Target::parse(b"/graphql")?;
/// assert!(rules.check(&target, br#"{"query": "{ viewer { login } }"}"#).is_ok());
/// assert!(rules.check(&target, br#"{"query": "mutation { deleteRef }"}"#).is_err());
/// # Ok::<(), cordon_policy::MalformedTarget>(())
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct GraphqlRules {
    /// Top-level fields of queries.
    pub queries: Vec<Glob>,
    /// Top-level fields of mutations.
    pub mutations: Vec<Glob>,
    /// Top-level fields of subscriptions.
    pub subscriptions: Vec<Glob>,
}

impl GraphqlRules {
    /// Checks a whole request body, without its content encoding.
    ///
    /// Every operation of the document must be allowed, whichever of them the request goes on to name.
    pub fn check(&self, target: &Target, body: &[u8]) -> Result<(), GraphqlDenial> {
        if target.query().is_some() {
            return Err(GraphqlDenial::UrlQuery);
        }
        if body.len() > MAX_GRAPHQL_BODY {
            return Err(GraphqlDenial::TooLarge);
        }
        let document = body::query(body)?;
        for operation in document::operations(&document)? {
            self.check_operation(&operation)?;
        }
        Ok(())
    }

    fn check_operation(&self, operation: &Operation<'_>) -> Result<(), GraphqlDenial> {
        let listed = match operation.kind {
            OperationKind::Query => &self.queries,
            OperationKind::Mutation => &self.mutations,
            OperationKind::Subscription => &self.subscriptions,
        };
        let refused = operation
            .fields
            .iter()
            .find(|field| !listed.iter().any(|pattern| pattern.matches(field)));
        match refused {
            None => Ok(()),
            Some(field) => Err(GraphqlDenial::FieldNotListed {
                kind: operation.kind,
                field: (*field).to_owned(),
            }),
        }
    }
}

/// What an operation does.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum OperationKind {
    /// Reads.
    Query,
    /// Writes.
    Mutation,
    /// Listens.
    Subscription,
}

impl OperationKind {
    /// The key under which an entry lists the fields.
    fn key(self) -> &'static str {
        match self {
            Self::Query => "queries",
            Self::Mutation => "mutations",
            Self::Subscription => "subscriptions",
        }
    }
}

impl fmt::Display for OperationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Query => "query",
            Self::Mutation => "mutation",
            Self::Subscription => "subscription",
        })
    }
}

/// Why a GraphQL request is refused.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum GraphqlDenial {
    /// A field that the entry does not list.
    #[error("{kind} `{field}` is not listed")]
    FieldNotListed {
        /// What the operation does.
        kind: OperationKind,
        /// The top-level field, by its real name.
        field: String,
    },
    /// The body is no JSON object with one `query` string: a batch, a form, compressed bytes.
    #[error("the body is not a JSON object with one `query`")]
    NotARequest,
    /// The `query` is not a document of operations and fragments.
    #[error("the query is not a GraphQL document of operations")]
    NotADocument,
    /// A named fragment at the top level, whose fields would have to be looked up.
    #[error("fields come from the fragment `{name}` at the top level")]
    TopLevelFragment {
        /// The fragment.
        name: String,
    },
    /// Parameters in the URL, which some servers prefer to the body.
    #[error("the URL has a query string beside the body")]
    UrlQuery,
    /// More than [`MAX_GRAPHQL_BODY`].
    #[error("the body is larger than {MAX_GRAPHQL_BODY} bytes")]
    TooLarge,
}

impl GraphqlDenial {
    pub(crate) fn hint(&self, rule: RuleRef) -> String {
        match self {
            Self::FieldNotListed { kind, field } => {
                format!("add `{field}` to `graphql.{}` of {rule}", kind.key())
            }
            Self::NotARequest => {
                "send one operation, as JSON, without a content encoding".to_owned()
            }
            Self::NotADocument => "send a plain query, mutation or subscription".to_owned(),
            Self::TopLevelFragment { .. } => "write the top-level fields out".to_owned(),
            Self::UrlQuery => "send everything in the body".to_owned(),
            Self::TooLarge => "send a smaller document".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
