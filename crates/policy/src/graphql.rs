//! Which GraphQL operations an entry allows, judged on the body of the request.
//!
//! Everything is denied that is not a single plain operation whose top-level fields are all listed.

use crate::{Glob, RuleRef};

/// The operations that an entry allows; the empty rules allow none.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct GraphqlRules {
    /// Top-level fields of queries.
    pub queries: Vec<Glob>,
    /// Top-level fields of mutations.
    pub mutations: Vec<Glob>,
    /// Top-level fields of subscriptions.
    pub subscriptions: Vec<Glob>,
}

/// Why a GraphQL request is refused.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum GraphqlDenial {
    /// The proxy does not look into bodies.
    #[error("the body was not inspected")]
    NotInspected,
}

impl GraphqlDenial {
    pub(crate) fn hint(&self, rule: RuleRef) -> String {
        match self {
            Self::NotInspected => {
                format!("remove `graphql` from {rule} to allow the path without a look at the body")
            }
        }
    }
}
