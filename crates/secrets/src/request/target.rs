//! Replacement in the path and the query of a request target.
//!
//! Surrogates are found in the decoded text and replaced in the encoded one: the rest of the target stays as it was sent.

use std::collections::BTreeSet;

use http::uri::PathAndQuery;
use zeroize::Zeroizing;

use super::{
    Applied, Field, Rules,
    text::{Edges, distinct},
};
use crate::forms::percent_encode;

impl Rules<'_> {
    pub(super) fn apply_to_target(&self, target: &mut PathAndQuery, applied: &mut Applied) {
        let mut done = Applied::default();
        let path = self.rewrite_path(target.path(), &mut done);
        let query = target
            .query()
            .and_then(|query| self.rewrite_query(query, &mut done));
        if path.is_none() && query.is_none() {
            return;
        }
        let mut text = path.unwrap_or_else(|| Zeroizing::new(target.path().as_bytes().to_vec()));
        let query = query
            .as_deref()
            .map(Vec::as_slice)
            .or_else(|| target.query().map(str::as_bytes));
        if let Some(query) = query.filter(|query| !query.is_empty()) {
            text.push(b'?');
            text.extend_from_slice(query);
        }
        // A target that grew past what can be sent keeps its surrogates, which are of no use to anybody.
        if let Ok(rewritten) = PathAndQuery::try_from(text.as_slice()) {
            *target = rewritten;
            applied.masked += done.masked;
            applied.dropped += done.dropped;
            applied.collapsed += done.collapsed;
            applied.notes.append(&mut done.notes);
        }
    }

    fn rewrite_path(&self, path: &str, applied: &mut Applied) -> Option<Zeroizing<Vec<u8>>> {
        let wanted = self
            .masked()
            .filter(|masked| masked.path)
            .map(|masked| masked.value);
        let (text, masked) = self.rewrite(path, Edges::Anything, &wanted.collect())?;
        applied.masked += masked;
        Some(text)
    }

    fn rewrite_query(&self, query: &str, applied: &mut Applied) -> Option<Zeroizing<Vec<u8>>> {
        let names: BTreeSet<&str> = self
            .masked()
            .flat_map(|masked| &masked.query)
            .map(String::as_str)
            .collect();
        let parameters = Vec::from_iter(query.split('&'));
        let mut kept: Vec<Option<Zeroizing<Vec<u8>>>> = parameters
            .iter()
            .map(|parameter| Some(Zeroizing::new(parameter.as_bytes().to_vec())))
            .collect();
        let mut changed = false;
        for name in names {
            let of_name = |&at: &usize| name_of(parameters[at]) == name.as_bytes();
            let places = Vec::from_iter((0..parameters.len()).filter(of_name));
            changed |= self.judge_parameter(name, &places, &parameters, &mut kept, applied);
        }
        if !changed {
            return None;
        }
        let kept = Vec::from_iter(kept.iter().flatten().map(|parameter| parameter.as_slice()));
        Some(Zeroizing::new(kept.join(&b'&')))
    }

    /// Settles all parameters of one name; says whether anything changed.
    fn judge_parameter(
        &self,
        name: &str,
        places: &[usize],
        parameters: &[&str],
        kept: &mut [Option<Zeroizing<Vec<u8>>>],
        applied: &mut Applied,
    ) -> bool {
        let rules = Vec::from_iter(
            self.masked()
                .filter(|masked| masked.query.iter().any(|query| query == name)),
        );
        let wanted = rules.iter().map(|masked| masked.value).collect();
        let replaced = places.iter().find_map(|&at| {
            let (text, masked) = self.rewrite(parameters[at], Edges::Words, &wanted)?;
            Some((at, text, masked))
        });
        let strips = rules.iter().any(|masked| !masked.allow_foreign_credentials);
        if places.is_empty() || (replaced.is_none() && !strips) {
            return false;
        }
        for &at in places {
            kept[at] = None;
        }
        let field = Field::Parameter(name.to_owned());
        match replaced {
            Some((at, text, masked)) => {
                kept[at] = Some(text);
                applied.masked += masked;
                if places.len() > 1 {
                    applied.collapse(field, places.len());
                }
            }
            None => applied.strip(field),
        }
        true
    }

    fn rewrite(
        &self,
        raw: &str,
        edges: Edges,
        wanted: &BTreeSet<usize>,
    ) -> Option<(Zeroizing<Vec<u8>>, u32)> {
        let decoded = Decoded::of(raw.as_bytes());
        let hits = self.hits(&decoded.text, edges, wanted);
        if hits.is_empty() {
            return None;
        }
        let mut out = Zeroizing::new(Vec::with_capacity(raw.len()));
        let mut done = 0;
        for hit in &hits {
            out.extend_from_slice(&raw.as_bytes()[done..decoded.origins[hit.start]]);
            out.extend_from_slice(&Zeroizing::new(percent_encode(self.real(hit.value))));
            done = decoded.origins[hit.end];
        }
        out.extend_from_slice(&raw.as_bytes()[done..]);
        Some((out, distinct(&hits)))
    }
}

/// A percent-decoded text that knows where each of its bytes came from.
pub(super) struct Decoded {
    pub(super) text: Vec<u8>,
    /// The place of each byte in the encoded text, and at last the length of that.
    origins: Vec<usize>,
}

impl Decoded {
    pub(super) fn of(raw: &[u8]) -> Self {
        let (mut text, mut origins) = (
            Vec::with_capacity(raw.len()),
            Vec::with_capacity(raw.len() + 1),
        );
        let mut at = 0;
        while let Some(&byte) = raw.get(at) {
            origins.push(at);
            match escape(&raw[at..]) {
                Some(decoded) => {
                    text.push(decoded);
                    at += 3;
                }
                None => {
                    text.push(byte);
                    at += 1;
                }
            }
        }
        origins.push(raw.len());
        Self { text, origins }
    }
}

fn escape(raw: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = *raw else {
        return None;
    };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}

/// The decoded name of a parameter.
fn name_of(parameter: &str) -> Vec<u8> {
    let raw = parameter
        .split_once('=')
        .map_or(parameter, |(name, _)| name);
    Decoded::of(raw.replace('+', " ").as_bytes()).text
}
