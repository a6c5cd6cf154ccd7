//! Replacement in header fields, line by line.
//!
//! Lines of one name are never joined: a foreign credential beside the surrogate must not ride along with it.

use std::collections::BTreeSet;

use cordon_policy::NamePattern;
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION},
};
use zeroize::Zeroizing;

use super::{
    Applied, Field, Rules, basic,
    text::{Edges, distinct},
};
use crate::replacements::{Masked, Role};

impl Rules<'_> {
    pub(super) fn apply_to_headers(&self, headers: &mut HeaderMap, applied: &mut Applied) {
        for name in Vec::from_iter(headers.keys().cloned()) {
            let rules = Vec::from_iter(self.masked().filter(|masked| covers(masked, &name)));
            if rules.is_empty() && name != AUTHORIZATION {
                continue;
            }
            let lines = lines(headers, &name);
            match self.judge(&name, &lines, &rules) {
                Verdict::Keep => {}
                Verdict::One { value, masked } => {
                    applied.masked += masked;
                    if lines.len() > 1 {
                        applied.collapse(Field::Header(name.clone()), lines.len());
                    }
                    headers.insert(name, value);
                }
                Verdict::Strip => {
                    headers.remove(&name);
                    applied.strip(Field::Header(name));
                }
            }
        }
    }

    fn judge(&self, name: &HeaderName, lines: &[HeaderValue], rules: &[&Masked]) -> Verdict {
        let wanted: BTreeSet<usize> = rules.iter().map(|masked| masked.value).collect();
        for line in lines {
            let Some((value, masked)) = self.replace(name, line, &wanted) else {
                continue;
            };
            // What no header can carry was refused when the secret was prepared.
            let Ok(mut value) = HeaderValue::from_bytes(&value) else {
                return Verdict::Strip;
            };
            value.set_sensitive(true);
            return Verdict::One { value, masked };
        }
        if name == AUTHORIZATION
            && let Some(line) = lines.iter().find(|line| self.holds_signing_key(line))
        {
            let value = line.clone();
            return Verdict::One { value, masked: 0 };
        }
        if rules.iter().any(|masked| strips_foreign(masked, name)) {
            return Verdict::Strip;
        }
        Verdict::Keep
    }

    fn replace(
        &self,
        name: &HeaderName,
        line: &HeaderValue,
        wanted: &BTreeSet<usize>,
    ) -> Option<(Zeroizing<Vec<u8>>, u32)> {
        let text = line.as_bytes();
        let hits = self.hits(text, Edges::Words, wanted);
        if !hits.is_empty() {
            return Some((self.splice(text, &hits), distinct(&hits)));
        }
        if name != AUTHORIZATION && name != PROXY_AUTHORIZATION {
            return None;
        }
        let credentials = basic::decode(text)?;
        let (user, password) = (credentials.user(), credentials.password());
        let user_hits = self.hits(user, Edges::Words, wanted);
        let password_hits = self.hits(password, Edges::Words, wanted);
        let user = self.splice(user, &user_hits);
        let password = self.splice(password, &password_hits);
        let hits = Vec::from_iter(user_hits.into_iter().chain(password_hits));
        if hits.is_empty() {
            return None;
        }
        let value = Zeroizing::new(basic::encode(&user, &password).as_bytes().to_vec());
        Some((value, distinct(&hits)))
    }

    /// Whether a line is signed with the surrogate of a key that may sign for this host.
    fn holds_signing_key(&self, line: &HeaderValue) -> bool {
        let mut found = self.inner.surrogates.matches(line.as_bytes());
        found.any(|found| {
            self.usable[found.owner] && self.inner.values[found.owner].role == Role::AccessKeyId
        })
    }
}

/// What becomes of all lines of one name.
enum Verdict {
    Keep,
    One { value: HeaderValue, masked: u32 },
    Strip,
}

/// The lines of a name. HTTP/2 clients split one Cookie line into several, which are the same line nevertheless.
fn lines(headers: &HeaderMap, name: &HeaderName) -> Vec<HeaderValue> {
    let lines = Vec::from_iter(headers.get_all(name).iter().cloned());
    if name == COOKIE && lines.len() > 1 {
        let texts = Vec::from_iter(lines.iter().map(HeaderValue::as_bytes));
        if let Ok(line) = HeaderValue::from_bytes(&texts.join(&b"; "[..])) {
            return vec![line];
        }
    }
    lines
}

fn covers(masked: &Masked, name: &HeaderName) -> bool {
    masked
        .headers
        .iter()
        .any(|pattern| pattern.matches(name.as_str()))
}

fn strips_foreign(masked: &Masked, name: &HeaderName) -> bool {
    let names = |pattern: &NamePattern| is_exact(pattern) && pattern.matches(name.as_str());
    !masked.allow_foreign_credentials && masked.headers.iter().any(names)
}

fn is_exact(pattern: &NamePattern) -> bool {
    !pattern.as_str().contains(['*', '?', '[', ']'])
}
