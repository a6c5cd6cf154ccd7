//! A request against an allowlist: allow or block.

use cordon_policy::{Allowlist, Decision, Host, RequestHead, Scheme, Target};

use crate::{Case, Check, Unreadable};

pub(crate) fn check(case: &mut Case) -> Result<Check, Unreadable> {
    let allowlist = case.value("allowlist")?.to_string();
    let method = case.text("method")?;
    let host = case.text("host")?;
    let path = case.text("path")?;
    let expected = case.expected()?;
    let (got, because) = answer(&allowlist, &method, &host, &path);
    Ok(Check::new(expected, got).because(because))
}

fn answer(allowlist: &str, method: &str, raw_host: &str, path: &str) -> (&'static str, String) {
    let allowlist = match Allowlist::from_json(allowlist) {
        Ok(allowlist) => allowlist,
        Err(error) => return ("block", format!("allowlist: {}", error.kind)),
    };
    let host = match Host::parse(raw_host) {
        Ok(host) => host,
        Err(error) => return ("block", format!("host: {error}")),
    };
    let target = match Target::parse(path.as_bytes()) {
        Ok(target) => target,
        Err(error) => return ("block", format!("target: {error}")),
    };
    let decide = |method: &str| {
        let head = RequestHead {
            scheme: Scheme::Https,
            host: &host,
            port: Scheme::Https.default_port(),
            method,
            target: &target,
        };
        match allowlist.decide(&head) {
            Decision::Allow(_) | Decision::Inspect(..) => Ok(()),
            Decision::Deny(denial) => Err(denial.code()),
        }
    };
    // No method at all asks whether any would do.
    let listed = allowlist
        .url_prefixes
        .iter()
        .flat_map(|entry| &entry.methods);
    let any = method.is_empty()
        && listed
            .map(String::as_str)
            .any(|method| decide(method).is_ok());
    match decide(if method.is_empty() { "GET" } else { method }) {
        Err(code) if !any => ("block", format!("decision: {code}")),
        Ok(()) | Err(_) if raw_host.eq_ignore_ascii_case(host.as_str()) => ("allow", String::new()),
        Ok(()) | Err(_) => ("allow", format!("host: `{raw_host}` is `{host}`")),
    }
}
