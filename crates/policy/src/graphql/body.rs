//! The JSON around a GraphQL document.
//!
//! Servers disagree on which of two equal keys counts, and some ignore their case. So there is one `query`, spelled so.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use super::GraphqlDenial;

/// The document that a request body holds.
pub(super) fn query(body: &[u8]) -> Result<String, GraphqlDenial> {
    let body: Body = serde_json::from_slice(body).map_err(|_| GraphqlDenial::NotARequest)?;
    Ok(body.query)
}

struct Body {
    query: String,
}

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(BodyVisitor)
    }
}

struct BodyVisitor;

impl<'de> Visitor<'de> for BodyVisitor {
    type Value = Body;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with one `query`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Body, A::Error> {
        let mut query = None;
        while let Some(key) = map.next_key::<String>()? {
            if key == "query" && query.is_none() {
                query = Some(map.next_value()?);
            } else if key.eq_ignore_ascii_case("query") {
                return Err(A::Error::duplicate_field("query"));
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        match query {
            Some(query) => Ok(Body { query }),
            None => Err(A::Error::missing_field("query")),
        }
    }
}
